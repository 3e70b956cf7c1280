//! Reconciles one resource: plans it, applies its components and writes its status.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::Method;
use mainstay_api::Reason;
use mainstay_api::istio_operator::{InstallState, IstioOperator};
use mainstay_catalog::{Catalog, Version};
use mainstay_cluster::install::{ComponentOutcome, InstallError, InstallEvent, Installer, ServedKind};
use mainstay_cluster::write::WriteError;
use mainstay_manifest::controller::{
    Claim, ComponentState, ControllerAction, ControllerEvent, Observation, Situation, decide_action,
    find_conflict, next_status, transition_events, writes_shared,
};
use mainstay_manifest::{ComponentName, InstallationPlan, Severity, check_webhooks};
use serde_json::Value;

use super::index::CachedClaim;
use super::planning::{self, CachedPlan, PlanError, PlanKey};
use super::resource::ResourceWriter;
use super::shared::Shared;
use crate::delivery::Name;
use crate::report::Report;

/// Interval of checks while components are not ready. Usually an event enqueues the resource earlier.
const UNREADY_INTERVAL: Duration = Duration::from_secs(15);
/// Interval at which a healthy installation is reconciled without an event.
const RESYNC_INTERVAL: Duration = Duration::from_mins(10);

/// Time at which a resource is reconciled again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Requeue {
    /// With the next event.
    OnEvent,
    /// After this time, or with the next event.
    After(Duration),
    /// After a back-off.
    Backoff(String),
    /// Without delay, because the resource was changed since it was read.
    Conflict(String),
}

/// Reconciler of `IstioOperator` resources.
pub(super) struct Reconciler {
    pub(super) shared: Arc<Shared>,
    pub(super) catalog: Arc<Catalog>,
    pub(super) installer: Installer,
    pub(super) resources: ResourceWriter,
    /// The only revision that this operator is responsible for; `None` for all.
    pub(super) revision: Option<String>,
    /// Names of the watched kinds.
    pub(super) known_kinds: Mutex<BTreeSet<String>>,
    /// Kinds that the control loop must start to watch.
    pub(super) new_kinds: Mutex<Vec<ServedKind>>,
}

/// Failure of a reconciliation.
pub(super) enum Failure {
    /// A failure that is reported in the status.
    Situation(Situation),
    /// A failed API call. The status does not change.
    Call(WriteError),
}

impl From<WriteError> for Failure {
    fn from(error: WriteError) -> Self {
        Self::Call(error)
    }
}

impl From<InstallError> for Failure {
    fn from(error: InstallError) -> Self {
        match error {
            InstallError::Read { what, error } => Self::Call(WriteError {
                message: format!("cannot read {what}: {error}"),
                ..error
            }),
            other => Self::Situation(Situation::Failed(other.to_string())),
        }
    }
}

/// Result of applying a plan.
struct Applied {
    components: Vec<(ComponentName, ComponentState)>,
    written: usize,
    pruned: usize,
    /// An error that does not concern a single component.
    error: Option<InstallError>,
}

impl Reconciler {
    /// Reconciles a resource.
    pub(super) async fn reconcile(&self, name: &Name) -> Requeue {
        let Some(operator) = self.shared.with(|index| index.get(name)) else {
            return Requeue::OnEvent;
        };
        let done = match decide_action(&operator, self.revision.as_deref()) {
            ControllerAction::Ignore => Ok(Requeue::OnEvent),
            ControllerAction::AddFinalizer => self.set_finalizer(&operator, true).await,
            ControllerAction::Release => self.set_finalizer(&operator, false).await,
            ControllerAction::Install => self.install(&operator).await,
            ControllerAction::Uninstall => self.uninstall(&operator).await,
        };
        match done {
            Ok(requeue) => requeue,
            Err(Failure::Call(error)) => requeue_after_error(error),
            Err(Failure::Situation(situation)) => self.report_failure(&operator, situation).await,
        }
    }

    pub(super) async fn set_finalizer(
        &self,
        operator: &IstioOperator,
        is_added: bool,
    ) -> Result<Requeue, Failure> {
        self.resources.set_finalizer(operator, is_added).await?;
        Ok(Requeue::OnEvent)
    }

    /// Writes a failure to the status. Returns a back-off, unless the resource is invalid.
    async fn report_failure(&self, operator: &IstioOperator, situation: Situation) -> Requeue {
        let message = match &situation {
            Situation::Invalid(message)
            | Situation::Rejected(_, message)
            | Situation::Failed(message)
            | Situation::NotDeleted(message) => message.clone(),
            Situation::Applied(_) | Situation::Blocked { .. } => String::new(),
        };
        let is_invalid = matches!(situation, Situation::Invalid(_));
        match self.write_status(operator, situation, String::new()).await {
            // A retry cannot succeed before the resource changes.
            Ok(()) if is_invalid => Requeue::OnEvent,
            Ok(()) => Requeue::Backoff(message),
            Err(error) => requeue_after_error(error),
        }
    }

    /// Writes the status for a situation, then sends the events of the status transition.
    pub(super) async fn write_status(
        &self,
        operator: &IstioOperator,
        situation: Situation,
        version: String,
    ) -> Result<(), WriteError> {
        let observation = Observation {
            situation,
            version,
            now: self.shared.now(),
        };
        let status = next_status(operator, &observation);
        self.resources.set_status(operator, &status).await?;
        for event in transition_events(&operator.status, &status) {
            self.resources.send_event(operator, &event).await;
        }
        Ok(())
    }

    async fn install(&self, operator: &Arc<IstioOperator>) -> Result<Requeue, Failure> {
        let version = planning::resolve_version(&self.catalog, operator)
            .map_err(|error| Failure::Situation(Situation::Invalid(error.to_string())))?;
        let claims = self.claims();
        let own = claims
            .iter()
            .find(|claim| claim.metadata.uid == operator.metadata.uid);
        if let Some(other) = own.and_then(|own| find_conflict(own, &claims)) {
            let message = format!("IstioOperator {other} installs the same revision");
            let rejected = Situation::Rejected(Reason::RevisionClaimedByOther, message);
            return Err(Failure::Situation(rejected));
        }
        let is_writer = own.is_none_or(|own| !own.has_base || writes_shared(own, &claims));
        let plan = self.plan(operator, &version, is_writer).await?;
        self.check_overlaps(&plan).await?;
        self.watch_kinds(&plan).await?;
        let applied = self.apply(&plan).await;
        self.finish_install(operator, &version, applied).await
    }

    /// Returns the plan of a resource, from the cache if its input did not change.
    async fn plan(
        &self,
        operator: &Arc<IstioOperator>,
        version: &Version,
        writes_shared: bool,
    ) -> Result<Arc<InstallationPlan>, Failure> {
        let key = PlanKey {
            uid: operator.metadata.uid.clone(),
            generation: operator.metadata.generation,
            version: version.clone(),
            kube_version: self.kube_version().await?,
            live_tag: self.installer.default_tag().await?,
            writes_shared,
        };
        let name = Name::new(&operator.metadata.namespace, &operator.metadata.name);
        let cached = self.shared.with(|index| index.plans.get(&name).cloned());
        if let Some(cached) = cached.filter(|cached| cached.key == key) {
            return Ok(cached.plan);
        }
        let planned = planning::plan(self.catalog.clone(), operator.clone(), key.clone()).await;
        let plan = Arc::new(planned.map_err(|error| {
            let message = error.to_string();
            Failure::Situation(match error {
                PlanError::Invalid(_) => Situation::Invalid(message),
                PlanError::Tag(_) | PlanError::Panicked => Situation::Failed(message),
            })
        })?);
        let cached = CachedPlan {
            key,
            plan: plan.clone(),
        };
        self.shared.with(|index| index.plans.insert(name, cached));
        Ok(plan)
    }

    async fn kube_version(&self) -> Result<String, Failure> {
        let version = self.resources.writer.call(Method::GET, "/version", None).await?;
        let version = version.get("gitVersion").and_then(Value::as_str);
        Ok(version.unwrap_or_default().to_owned())
    }

    /// Returns the claims of all resources that this controller installs.
    pub(super) fn claims(&self) -> Vec<Claim> {
        let operators: Vec<(Name, Arc<IstioOperator>)> = self.shared.with(|index| {
            let all = index
                .operators()
                .map(|(name, operator)| (name.clone(), operator.clone()));
            all.collect()
        });
        let is_active = |operator: &IstioOperator| {
            matches!(
                decide_action(operator, self.revision.as_deref()),
                ControllerAction::Install | ControllerAction::AddFinalizer | ControllerAction::Uninstall
            )
        };
        let active = operators.iter().filter(|(_, operator)| is_active(operator));
        active
            .filter_map(|(name, operator)| self.claim(name, operator))
            .collect()
    }

    fn claim(&self, name: &Name, operator: &IstioOperator) -> Option<Claim> {
        let version = planning::resolve_version(&self.catalog, operator).ok()?;
        let metadata = &operator.metadata;
        let cached = self.shared.with(|index| {
            let known = index.claims.get(name)?;
            // A deletion changes the generation.
            let is_current = known.uid == metadata.uid
                && known.generation == metadata.generation
                && known.version == version.to_string();
            is_current.then(|| known.claim.clone())
        });
        if let Some(claim) = cached {
            return claim;
        }
        let claim = planning::claim(&self.catalog, operator, &version);
        let cached = CachedClaim {
            uid: metadata.uid.clone(),
            generation: metadata.generation,
            version: version.to_string(),
            claim: claim.clone(),
        };
        self.shared
            .with(|index| index.claims.insert(name.clone(), cached));
        claim
    }

    async fn check_overlaps(&self, plan: &InstallationPlan) -> Result<(), Failure> {
        let findings = check_webhooks(plan, self.installer.webhooks().await?);
        let errors: Vec<String> = findings
            .into_iter()
            .filter(|one| one.severity == Severity::Error)
            .map(|one| one.message)
            .collect();
        if errors.is_empty() {
            return Ok(());
        }
        let rejected = Situation::Rejected(Reason::WebhookOverlap, errors.join("; "));
        Err(Failure::Situation(rejected))
    }

    /// Passes the kinds of a plan that are not watched yet to the control loop.
    async fn watch_kinds(&self, plan: &InstallationPlan) -> Result<(), Failure> {
        let mut known = self
            .known_kinds
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let new = self.installer.new_kinds(plan, &mut known).await?;
        self.known_kinds
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .extend(known);
        let mut kinds = self.new_kinds.lock().unwrap_or_else(PoisonError::into_inner);
        kinds.extend(new);
        Ok(())
    }

    async fn apply(&self, plan: &InstallationPlan) -> Applied {
        let progress = Mutex::new((Vec::new(), 0, 0));
        let report = |event: InstallEvent| {
            let mut progress = progress.lock().unwrap_or_else(PoisonError::into_inner);
            match event {
                InstallEvent::Applied(_, written) => progress.1 += written,
                InstallEvent::Finished(component, outcome) => {
                    progress.0.push((component, component_state(outcome)));
                }
                InstallEvent::Pruned(_) => progress.2 += 1,
                InstallEvent::Applying(..) | InstallEvent::Waiting { .. } => {}
            }
        };
        let done = self.installer.install(plan, &report).await;
        let (components, written, pruned) = progress.into_inner().unwrap_or_else(PoisonError::into_inner);
        Applied {
            components: in_dependency_order(components),
            written,
            pruned,
            error: match done {
                Ok(_) | Err(InstallError::Failed { .. }) => None,
                Err(error) => Some(error),
            },
        }
    }

    async fn finish_install(
        &self,
        operator: &IstioOperator,
        version: &Version,
        applied: Applied,
    ) -> Result<Requeue, Failure> {
        self.report_writes(&applied);
        if let Some(error) = applied.error {
            return Err(error.into());
        }
        let was_healthy = operator.status.status == InstallState::Healthy
            && operator.status.observed_generation == operator.metadata.generation;
        let changed = applied.written + applied.pruned;
        let failed = applied
            .components
            .iter()
            .find_map(|(component, state)| match state {
                ComponentState::Failed(error) => Some(format!("{}: {error}", component.name())),
                _ => None,
            });
        let is_ready = applied
            .components
            .iter()
            .all(|(_, state)| *state == ComponentState::Ready);
        let situation = Situation::Applied(applied.components);
        self.write_status(operator, situation, version.to_string())
            .await?;
        if was_healthy && changed > 0 {
            let message =
                format!("{changed} objects were changed or deleted by other clients and are restored");
            let event = ControllerEvent::normal(Reason::ReleaseDrifted, message);
            self.resources.send_event(operator, &event).await;
        }
        Ok(match failed {
            Some(message) => Requeue::Backoff(message),
            None if is_ready => Requeue::After(RESYNC_INTERVAL),
            None => Requeue::After(UNREADY_INTERVAL),
        })
    }

    fn report_writes(&self, applied: &Applied) {
        let writes = [
            ("apply", Reason::ObjectOutdated, applied.written),
            ("delete", Reason::ObjectObsolete, applied.pruned),
        ];
        for (action, reason, count) in writes {
            for _ in 0..count {
                let reason = reason.name();
                self.shared.observer.report(&Report::Written { action, reason });
            }
        }
    }
}

fn requeue_after_error(error: WriteError) -> Requeue {
    if error.code == 409 {
        Requeue::Conflict(error.message)
    } else {
        Requeue::Backoff(error.message)
    }
}

fn component_state(outcome: ComponentOutcome) -> ComponentState {
    match outcome {
        ComponentOutcome::Ready { .. } => ComponentState::Ready,
        ComponentOutcome::Failed(InstallError::NotReady { unready, .. }) => {
            let reasons: Vec<String> = unready
                .iter()
                .map(|(id, reason)| format!("{} {}: {reason}", id.kind, id.name))
                .collect();
            ComponentState::Waiting(reasons.join("; "))
        }
        ComponentOutcome::Failed(error) => ComponentState::Failed(error.to_string()),
        ComponentOutcome::Skipped(other) => ComponentState::Blocked(other),
    }
}

/// Sorts components in dependency order.
fn in_dependency_order(
    mut components: Vec<(ComponentName, ComponentState)>,
) -> Vec<(ComponentName, ComponentState)> {
    components.sort_by_key(|(component, _)| *component);
    components
}
