//! Releases: takes one to be installed or removed, renders it once, lets the engine do what differs, and tells the reconciler.

use std::error::Error;
use std::sync::Arc;

use mainstay_cluster::apply::{ApplyError, Change, ChangeKind, PartialApply};
use mainstay_cluster::compare::Difference;
use mainstay_cluster::desired::Desired;
use mainstay_cluster::write::WriteError;
use mainstay_mesh::ErrorClass;
use mainstay_mesh::plan::{Release, ReleaseKey};
use serde_json::Value;

use super::{Effect, Executor};
use crate::render::RenderError;
use crate::report::Report;

impl Executor {
    /// Makes the cluster hold what a release renders to.
    pub(super) async fn install(&self, release: &Arc<Release>) -> Result<Effect, WriteError> {
        let rendered = self.shared.with(|reconciler| reconciler.rendered(release));
        let desired = match rendered {
            Some(desired) => desired,
            None => Arc::new(self.render(release).await?),
        };
        self.follow(&desired).await;
        let known = self.shared.with(|reconciler| reconciler.known(&desired));
        let done = self.engine.install(&desired, known).await;
        let effect = self.record(done)?;
        self.shared
            .with(|reconciler| reconciler.finish_install(release, desired));
        Ok(effect)
    }

    /// Removes what is there of a release.
    pub(super) async fn uninstall(&self, key: &ReleaseKey) -> Result<Effect, WriteError> {
        let known = self.shared.with(|reconciler| reconciler.begin_uninstall(key));
        let done = self.engine.uninstall(key, known).await;
        let effect = self.record(done)?;
        self.shared.with(|reconciler| reconciler.finish_uninstall(key));
        Ok(effect)
    }

    /// What a release is to be. The server is asked for its version when the first chart looks at it.
    async fn render(&self, release: &Arc<Release>) -> Result<Desired, WriteError> {
        let mut rendered = self.rendered(release).await?;
        if matches!(rendered, Err(RenderError::NoVersion)) {
            let version = self.client.apiserver_version().await?;
            self.renderer.know_version(&version.git_version);
            rendered = self.rendered(release).await?;
        }
        let objects = rendered.map_err(|error| WriteError::local(ErrorClass::Other, chain(&error)))?;
        let desired = self
            .engine
            .desired(release.key.clone(), release.owner.clone(), objects)
            .await;
        desired.map_err(|error| refused(&error))
    }

    /// Rendering takes milliseconds of pure work: not on the thread that answers watches.
    async fn rendered(&self, release: &Arc<Release>) -> Result<Result<Vec<Value>, RenderError>, WriteError> {
        let (charts, job) = (self.renderer.clone(), release.clone());
        let rendered = tokio::task::spawn_blocking(move || charts.render(&job)).await;
        rendered.map_err(|error| WriteError::local(ErrorClass::Other, format!("internal error: {error}")))
    }

    /// What a release consists of is watched before it is judged what is there of it.
    async fn follow(&self, desired: &Desired) {
        let ids = || {
            desired
                .objects
                .iter()
                .map(|wanted| &wanted.id)
                .chain([&desired.inventory.id])
        };
        let kinds = ids().map(|id| (id.group.clone(), id.version.clone(), id.kind.clone()));
        self.watches.follow_kinds(kinds, &self.engine.kinds());
        self.watches.listed_kinds(ids()).await;
    }

    fn record(&self, done: Result<Vec<Change>, PartialApply>) -> Result<Effect, WriteError> {
        let (changes, result) = match done {
            Ok(changes) if changes.iter().any(|change| change.kind.is_write()) => {
                (changes, Ok(Effect::Large))
            }
            Ok(changes) => (changes, Ok(Effect::Small)),
            Err(PartialApply { changes, error }) => (changes, Err(refused(&error))),
        };
        for change in changes.iter().filter(|change| change.kind.is_write()) {
            self.report(change);
        }
        self.shared.with(|reconciler| reconciler.changed(&changes));
        result
    }

    fn report(&self, change: &Change) {
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
        tracing::debug!(object = %change.id, action, why, "written");
        self.shared.observer.report(&Report::Written { action, reason });
    }
}

fn refused(error: &ApplyError) -> WriteError {
    WriteError {
        code: 0,
        class: error.class(),
        message: chain(error),
        retry_after: error.retry_after(),
    }
}

/// An error and its causes, each once.
fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let told = inner.to_string();
        if !text.contains(&told) {
            text = format!("{text}: {told}");
        }
        cause = inner.source();
    }
    text
}
