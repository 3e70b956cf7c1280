//! Installs and uninstalls releases: renders a release unless the result is cached, applies the
//! differences, and records the result.

use std::sync::Arc;

use mainstay_cluster::apply::{ApplyError, Change, ChangeKind, PartialApply};
use mainstay_cluster::compare::Difference;
use mainstay_cluster::desired::Desired;
use mainstay_cluster::write::WriteError;
use mainstay_gostd::error::chain;
use mainstay_mesh::ErrorClass;
use mainstay_mesh::plan::{Release, ReleaseKey};
use serde_json::Value;

use super::{Effect, Executor};
use crate::render::RenderError;
use crate::report::Report;
use crate::watch::all::Gvk;

impl Executor {
    /// Applies the rendered objects of a release.
    pub(super) async fn install(&self, release: &Arc<Release>) -> Result<Effect, WriteError> {
        let rendered = self.shared.with(|reconciler| reconciler.rendered(release));
        let desired = match rendered {
            Some(desired) => desired,
            None => Arc::new(self.render(release).await?),
        };
        self.watch_kinds(&desired).await;
        let known = self.shared.with(|reconciler| reconciler.known_objects(&desired));
        let result = self.engine.install(&desired, known).await;
        let effect = self.record_changes(result)?;
        self.shared
            .with(|reconciler| reconciler.finish_install(release, desired));
        Ok(effect)
    }

    /// Deletes the objects of a release.
    pub(super) async fn uninstall(&self, key: &ReleaseKey) -> Result<Effect, WriteError> {
        let known = self.shared.with(|reconciler| reconciler.begin_uninstall(key));
        let result = self.engine.uninstall(key, known).await;
        let effect = self.record_changes(result)?;
        self.shared.with(|reconciler| reconciler.finish_uninstall(key));
        Ok(effect)
    }

    /// Renders a release. Requests the version of the API server if a chart needs it and it is not known yet.
    async fn render(&self, release: &Arc<Release>) -> Result<Desired, WriteError> {
        let mut rendered = self.render_charts(release).await?;
        if matches!(rendered, Err(RenderError::NoVersion)) {
            let version = self.client.apiserver_version().await?;
            self.renderer.set_version(&version.git_version);
            rendered = self.render_charts(release).await?;
        }
        let objects = rendered.map_err(|error| WriteError::local(ErrorClass::Other, chain(&error)))?;
        let desired = self
            .engine
            .desired(release.key.clone(), release.owner.clone(), objects)
            .await;
        desired.map_err(|error| write_error(&error))
    }

    /// Renders on a blocking thread, because rendering takes milliseconds of CPU time.
    async fn render_charts(
        &self,
        release: &Arc<Release>,
    ) -> Result<Result<Vec<Value>, RenderError>, WriteError> {
        let (renderer, release) = (self.renderer.clone(), release.clone());
        let outcome = tokio::task::spawn_blocking(move || renderer.render(&release)).await;
        outcome.map_err(|error| WriteError::local(ErrorClass::Other, format!("internal error: {error}")))
    }

    /// Watches the kinds of a release and waits until they are listed, so that its live objects can be
    /// compared.
    async fn watch_kinds(&self, desired: &Desired) {
        let ids = || {
            desired
                .objects
                .iter()
                .map(|object| &object.id)
                .chain([&desired.inventory.id])
        };
        let kinds = ids().map(|id| Gvk {
            group: id.group.clone(),
            version: id.version.clone(),
            kind: id.kind.clone(),
        });
        self.watches.follow_kinds(kinds, &self.engine.kinds());
        self.watches.wait_until_kinds_listed(ids()).await;
    }

    fn record_changes(&self, result: Result<Vec<Change>, PartialApply>) -> Result<Effect, WriteError> {
        let (changes, effect) = match result {
            Ok(changes) if changes.iter().any(|change| change.kind.is_write()) => {
                (changes, Ok(Effect::Replan))
            }
            Ok(changes) => (changes, Ok(Effect::Continue)),
            Err(PartialApply { changes, error }) => (changes, Err(write_error(&error))),
        };
        for change in changes.iter().filter(|change| change.kind.is_write()) {
            self.report_change(change);
        }
        self.shared
            .with(|reconciler| reconciler.observe_changes(&changes));
        effect
    }

    fn report_change(&self, change: &Change) {
        let why = change
            .reason
            .as_ref()
            .map(ToString::to_string)
            .unwrap_or_default();
        let reason = change.reason.as_ref().map_or("Unknown", Difference::name);
        let action = match change.kind {
            ChangeKind::Created => "create",
            ChangeKind::Deleted => "delete",
            _ => "apply",
        };
        tracing::debug!(object = %change.id, action, why, "object written");
        self.shared.observer.report(&Report::Written { action, reason });
    }
}

fn write_error(error: &ApplyError) -> WriteError {
    WriteError {
        code: 0,
        class: error.class(),
        message: chain(error),
        retry_after: error.retry_after(),
    }
}
