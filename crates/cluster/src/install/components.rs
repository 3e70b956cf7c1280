//! Executes an installation: creates the namespace, writes the inventories, installs the components in
//! dependency order, and prunes.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use http::Method;
use mainstay_manifest::{ComponentName, InstallationPlan, PlannedComponent, Schedule};
use mainstay_mesh::ErrorClass;
use mainstay_mesh::plan::ReleaseKey;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::error::InstallError;
use super::sets::{InstalledSet, SetName, installed_sets, planned_inventory};
use super::{Installer, api, member, set_key};
use crate::apply::{ApplyError, Change, ChangeKind, PartialApply};
use crate::connect::MANAGER;
use crate::desired::{Desired, ObjectId};
use crate::live::Known;
use crate::write::Body;

/// Maximum number of attempts to apply a component after retryable errors.
const MAX_ATTEMPTS: u32 = 6;
/// Delay before the second attempt. It doubles with every attempt.
const FIRST_RETRY: Duration = Duration::from_millis(250);

/// Progress event of an installation.
#[derive(Debug)]
pub enum InstallEvent {
    /// The objects of a component are being applied: the component and the number of objects.
    Applying(ComponentName, usize),
    /// The objects of a component were applied: the component and the number of objects that were
    /// written.
    Applied(ComponentName, usize),
    /// A component waits until its objects are ready.
    Waiting {
        /// Component that waits.
        component: ComponentName,
        /// Number of ready objects.
        ready: usize,
        /// Number of objects that are waited for.
        total: usize,
        /// The first object that is not ready, with its reason.
        reason: String,
    },
    /// A component has finished.
    Finished(ComponentName, ComponentOutcome),
    /// An object that the plan does not contain was deleted.
    Pruned(ObjectId),
}

/// Result of one component.
#[derive(Debug)]
pub enum ComponentOutcome {
    /// All objects of the component are ready.
    Ready {
        /// Number of objects.
        objects: usize,
        /// Number of objects written.
        written: usize,
    },
    /// The component failed.
    Failed(InstallError),
    /// The component was skipped because the given component failed.
    Skipped(ComponentName),
}

/// Result of an installation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InstallOutcome {
    /// Number of objects.
    pub objects: usize,
    /// Number of objects written.
    pub written: usize,
    /// Number of objects deleted.
    pub pruned: usize,
}

/// Callback for progress events.
pub(super) type Report<'a> = &'a (dyn Fn(InstallEvent) + Sync);

impl Installer {
    /// Installs a plan. A component starts when its parent is ready; if a component fails, its children
    /// are skipped. Objects that are no longer part of the plan are deleted only if every component is
    /// ready.
    pub async fn install(
        &self,
        plan: &InstallationPlan,
        report: Report<'_>,
    ) -> Result<InstallOutcome, InstallError> {
        self.ensure_namespace(plan).await?;
        let sets = installed_sets(&self.client).await?;
        self.write_inventories(plan, &sets).await?;
        let accepted: Vec<String> = sets.iter().map(|set| crate::desired::set_id(&set.key)).collect();
        let mut outcome = self.run_components(plan, accepted, report).await?;
        outcome.pruned = self.prune_sets(plan, report).await?;
        Ok(outcome)
    }

    /// Creates the namespace of the control plane if necessary, and labels it with the network.
    async fn ensure_namespace(&self, plan: &InstallationPlan) -> Result<(), InstallError> {
        let path = format!("/api/v1/namespaces/{}", plan.namespace);
        let network = (!plan.network.is_empty()).then(|| json!({"topology.istio.io/network": plan.network}));
        let live = api::get(&self.client, &path).await?;
        let written = match (live, network) {
            (None, network) => {
                let metadata =
                    json!({"name": plan.namespace, "labels": network.unwrap_or_else(|| json!({}))});
                let body = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata});
                let path = format!("/api/v1/namespaces?fieldManager={MANAGER}");
                api::send(&self.client, Method::POST, &path, Body::Json(body)).await
            }
            (Some(live), Some(network)) if !has_labels(&live, &network) => {
                let body = json!({"metadata": {"labels": network}});
                let path = format!("{path}?fieldManager={MANAGER}");
                api::send(&self.client, Method::PATCH, &path, Body::Merge(body)).await
            }
            _ => return Ok(()),
        };
        match written {
            // Another process created or changed the namespace.
            Err(error) if error.code == 409 => Ok(()),
            Err(error) => Err(InstallError::Write {
                what: format!("namespace {}", plan.namespace),
                error,
            }),
            Ok(_) => Ok(()),
        }
    }

    /// Writes the inventories of the sets with the kinds of all components. Called before the first
    /// object is written.
    async fn write_inventories(
        &self,
        plan: &InstallationPlan,
        sets: &[InstalledSet],
    ) -> Result<(), InstallError> {
        for name in plan_sets(plan) {
            let key = name.key(&plan.namespace);
            let mut objects = Vec::new();
            for planned in plan
                .components
                .iter()
                .filter(|one| set_key(plan, one.component) == key)
            {
                objects.extend(member::to_json(&planned.objects)?);
            }
            let live = sets.iter().find(|set| set.key == key);
            let inventory = planned_inventory(plan, &name, live, &objects);
            let desired = Desired::for_inventory(key.clone(), inventory);
            self.engine
                .write_inventory(&desired)
                .await
                .map_err(|partial| set_error(&key, partial))?;
        }
        Ok(())
    }

    async fn run_components(
        &self,
        plan: &InstallationPlan,
        mut accepted: Vec<String>,
        report: Report<'_>,
    ) -> Result<InstallOutcome, InstallError> {
        accepted.extend(
            plan_sets(plan)
                .iter()
                .map(|name| crate::desired::set_id(&name.key(&plan.namespace))),
        );
        let accepted = &accepted;
        let mut schedule = Schedule::new(plan);
        let mut running = FuturesUnordered::new();
        let (mut outcome, mut failed) = (InstallOutcome::default(), 0);
        while !schedule.is_finished() {
            for component in schedule.start_ready() {
                let planned = plan.component_named(component);
                running.extend(planned.map(|planned| async move {
                    (
                        component,
                        self.run_component(plan, planned, accepted, report).await,
                    )
                }));
            }
            let Some((component, done)) = running.next().await else {
                break;
            };
            match done {
                Ok((objects, written)) => {
                    outcome.objects += objects;
                    outcome.written += written;
                    schedule.succeed(component);
                    report(InstallEvent::Finished(
                        component,
                        ComponentOutcome::Ready { objects, written },
                    ));
                }
                Err(error) => {
                    let skipped = schedule.fail(component);
                    failed += 1 + skipped.len();
                    report(InstallEvent::Finished(component, ComponentOutcome::Failed(error)));
                    for one in skipped {
                        report(InstallEvent::Finished(
                            one.component,
                            ComponentOutcome::Skipped(one.failed),
                        ));
                    }
                }
            }
        }
        let all = plan.components.len();
        if failed > 0 {
            Err(InstallError::Failed { failed, all })
        } else {
            Ok(outcome)
        }
    }

    async fn run_component(
        &self,
        plan: &InstallationPlan,
        planned: &PlannedComponent,
        accepted: &[String],
        report: Report<'_>,
    ) -> Result<(usize, usize), InstallError> {
        let component = planned.component;
        report(InstallEvent::Applying(component, planned.objects.len()));
        let objects = member::to_json(&planned.objects)?;
        let key = set_key(plan, component);
        let failed = |error: ApplyError| InstallError::apply(component, error);
        let desired = self.engine.desired(key, None, objects).await.map_err(failed)?;
        let desired = desired.with_accepted_sets(accepted.to_vec());
        let changes = self.apply_with_retries(&desired).await.map_err(failed)?;
        let written = changes.iter().filter(|change| change.kind.is_write()).count();
        report(InstallEvent::Applied(component, written));
        self.wait(component, &desired, report).await?;
        Ok((desired.objects.len(), written))
    }

    /// Applies the objects, and retries after transient errors. A retry skips the objects that were
    /// applied.
    async fn apply_with_retries(&self, desired: &Desired) -> Result<Vec<Change>, ApplyError> {
        let mut changes = Vec::new();
        let mut delay = FIRST_RETRY;
        for attempt in 1.. {
            match self.engine.install(desired, Known::default()).await {
                Ok(more) => {
                    changes.extend(more);
                    break;
                }
                Err(PartialApply { changes: more, error }) => {
                    changes.extend(more);
                    if attempt >= MAX_ATTEMPTS || !is_retryable(error.class()) {
                        return Err(error);
                    }
                }
            }
            sleep(delay).await;
            delay *= 2;
        }
        changes.retain(|change| change.kind != ChangeKind::Found);
        Ok(changes)
    }

    /// Deletes the objects of the plan's sets that the plan does not contain.
    async fn prune_sets(&self, plan: &InstallationPlan, report: Report<'_>) -> Result<usize, InstallError> {
        let sets = installed_sets(&self.client).await?;
        let planned = planned_ids(plan)?;
        let keys: BTreeSet<ReleaseKey> = plan_sets(plan)
            .iter()
            .map(|name| name.key(&plan.namespace))
            .collect();
        let mut count = 0;
        for set in sets.iter().filter(|set| keys.contains(&set.key)) {
            let mut leftovers = member::members(&self.client, set).await?;
            leftovers.retain(|id, live| !is_planned(&planned, id) && !member::is_kept(live));
            let pruned = self.engine.prune(&set.key, leftovers).await;
            for change in pruned.map_err(|partial| set_error(&set.key, partial))? {
                count += 1;
                report(InstallEvent::Pruned(change.id));
            }
        }
        Ok(count)
    }
}

/// Objects of a plan: namespaces by group, kind and name. An object without a namespace matches an object
/// in any namespace.
type PlannedIds = BTreeMap<(String, String, String), BTreeSet<String>>;

fn planned_ids(plan: &InstallationPlan) -> Result<PlannedIds, InstallError> {
    let mut all = PlannedIds::new();
    for planned in &plan.components {
        for object in member::to_json(&planned.objects)? {
            if let Ok(id) = ObjectId::from_object(&object) {
                all.entry((id.group, id.kind, id.name))
                    .or_default()
                    .insert(id.namespace);
            }
        }
    }
    Ok(all)
}

fn is_planned(planned: &PlannedIds, id: &ObjectId) -> bool {
    let key = (id.group.clone(), id.kind.clone(), id.name.clone());
    let namespaces = planned.get(&key);
    namespaces.is_some_and(|namespaces| {
        id.namespace.is_empty() || namespaces.contains(&id.namespace) || namespaces.contains("")
    })
}

/// Returns the sets that a plan writes.
pub(super) fn plan_sets(plan: &InstallationPlan) -> Vec<SetName> {
    let shared = plan.writes_shared.then_some(SetName::Shared);
    let revision = SetName::Revision(plan.revision.clone());
    shared.into_iter().chain([revision]).collect()
}

fn is_retryable(class: ErrorClass) -> bool {
    matches!(
        class,
        ErrorClass::WarmingUp | ErrorClass::Conflict | ErrorClass::Transient | ErrorClass::Unavailable
    )
}

fn has_labels(live: &Value, wanted: &Value) -> bool {
    let labels = live.pointer("/metadata/labels");
    let mut pairs = wanted.as_object().into_iter().flatten();
    pairs.all(|(key, value)| labels.and_then(|labels| labels.get(key)) == Some(value))
}

pub(super) fn set_error(key: &ReleaseKey, partial: PartialApply) -> InstallError {
    InstallError::Set {
        set: key.to_string(),
        error: Box::new(partial.error),
    }
}
