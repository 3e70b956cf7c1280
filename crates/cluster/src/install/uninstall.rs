//! Uninstalls control planes by their inventories.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use http::Method;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::components::set_error;
use super::error::InstallError;
use super::sets::{InstalledSet, SetName, installed_sets};
use super::{Installer, api, member};
use crate::desired::ObjectId;
use crate::live::Known;
use crate::write::Body;

/// Maximum time without progress of a deletion.
const STALL_TIMEOUT: Duration = Duration::from_mins(5);
/// Initial interval between two lists of the remaining objects. It doubles while there is no progress,
/// because each check lists all kinds.
const POLL_INTERVAL: Duration = Duration::from_millis(250);
const MAX_POLL_INTERVAL: Duration = Duration::from_secs(4);
/// Minimum poll interval at which remaining objects are reported. It is reached after about two seconds
/// without progress.
const REPORT_INTERVAL: Duration = Duration::from_secs(2);

/// Annotation of a definition that is changed so that the API server retries the removal.
const RETRY_ANNOTATION: &str = "install.mainstay.dev/deletion-retry";
/// Reason of the condition `Terminating` after a failed attempt to remove a definition.
const FAILED_REMOVAL: &str = "InstanceDeletionFailed";

/// Progress of an uninstallation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RemovalEvent<'a> {
    /// An object was deleted. It may still exist until its finalizers are removed.
    Deleted(&'a ObjectId),
    /// Objects still exist. Reported whenever their number or the reason changes.
    Waiting {
        /// Number of remaining objects.
        count: usize,
        /// One of the remaining objects.
        object: &'a ObjectId,
        /// Reason why the object still exists, from its conditions or finalizers.
        reason: String,
    },
}

/// Scope of an uninstallation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UninstallRequest {
    /// One revision. Shared objects are kept.
    Revision(String),
    /// All objects of all installations and tags.
    Purge,
    /// All objects that belong to an `IstioOperator` in the cluster. Definitions that have objects are
    /// kept.
    Owner {
        /// The resource as `NAMESPACE/NAME`.
        owner: String,
        /// Whether the objects that all revisions share are removed too.
        includes_shared: bool,
    },
}

/// Objects that an uninstallation removes.
#[derive(Debug, Default)]
pub struct RemovalPlan {
    sets: Vec<(InstalledSet, BTreeMap<ObjectId, Arc<Value>>)>,
    /// Pods that use a removed revision, as `NAMESPACE/NAME`.
    pub proxies: Vec<String>,
    /// Tags that point to a removed revision and are not removed themselves.
    pub tags: Vec<String>,
    /// Definitions that are kept because they have objects.
    pub kept: BTreeSet<ObjectId>,
}

impl RemovalPlan {
    /// Returns the objects to delete, sorted by kind and name within each set.
    pub fn objects(&self) -> impl Iterator<Item = &ObjectId> {
        self.sets.iter().flat_map(|(_, members)| members.keys())
    }

    /// Returns the gateways among the objects.
    pub fn gateways(&self) -> impl Iterator<Item = &ObjectId> {
        self.sets
            .iter()
            .flat_map(|(_, members)| members)
            .filter_map(|(id, live)| {
                let component = live.pointer("/metadata/labels/operator.istio.io~1component");
                let component = component.and_then(Value::as_str).unwrap_or_default();
                (id.kind == "Deployment" && component.ends_with("Gateways")).then_some(id)
            })
    }

    /// Whether a pod belongs to a workload that is removed.
    fn removes(&self, pod: &Value) -> bool {
        let members = self.sets.iter().flat_map(|(_, members)| members);
        members.into_iter().any(|(id, live)| {
            let selector = live
                .pointer("/spec/selector/matchLabels")
                .and_then(Value::as_object);
            let namespace = pod.pointer("/metadata/namespace").and_then(Value::as_str);
            let labels = pod.pointer("/metadata/labels");
            let has =
                |(key, value): (&String, &Value)| labels.and_then(|labels| labels.get(key)) == Some(value);
            namespace == Some(&id.namespace) && selector.is_some_and(|selector| selector.iter().all(has))
        })
    }

    /// Returns the revisions that are removed.
    fn revisions(&self) -> Vec<String> {
        let names = self.sets.iter().map(|(set, _)| &set.name);
        let revisions = names.filter_map(|name| match name {
            SetName::Revision(revision) => Some(revision.clone()),
            SetName::Shared | SetName::Tags => None,
        });
        revisions.collect()
    }

    /// Whether there is nothing to remove.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.sets.is_empty()
    }
}

impl Installer {
    /// Returns the objects that an uninstallation would remove. Deletes nothing.
    pub async fn plan_removal(&self, request: &UninstallRequest) -> Result<RemovalPlan, InstallError> {
        let sets = installed_sets(&self.client).await?;
        let is_wanted = |set: &InstalledSet| match request {
            UninstallRequest::Purge => true,
            UninstallRequest::Revision(revision) => set.name == SetName::Revision(revision.clone()),
            UninstallRequest::Owner {
                owner,
                includes_shared,
            } => set.owner.as_ref() == Some(owner) && (*includes_shared || set.name != SetName::Shared),
        };
        let mut plan = RemovalPlan::default();
        for set in sets.into_iter().filter(is_wanted) {
            let members = member::members(&self.client, &set).await?;
            plan.sets.push((set, members));
        }
        match request {
            UninstallRequest::Purge => {}
            UninstallRequest::Revision(revision) if plan.sets.is_empty() => {
                return Err(InstallError::UnknownRevision(revision.clone()));
            }
            UninstallRequest::Revision(_) => self.find_users(&mut plan).await?,
            UninstallRequest::Owner { .. } => {
                self.find_users(&mut plan).await?;
                self.keep_definitions(&mut plan).await?;
            }
        }
        Ok(plan)
    }

    /// Adds the tags and pods that use the revisions of a plan.
    async fn find_users(&self, plan: &mut RemovalPlan) -> Result<(), InstallError> {
        for revision in plan.revisions() {
            let tags = self.find_foreign_tags(&revision, plan).await?;
            plan.tags.extend(tags);
            let proxies = self.find_proxies(&revision, plan).await?;
            plan.proxies.extend(proxies);
        }
        Ok(())
    }

    /// Removes definitions with the resource policy `keep` from the plan if they have objects.
    async fn keep_definitions(&self, plan: &mut RemovalPlan) -> Result<(), InstallError> {
        let members = plan.sets.iter().flat_map(|(_, members)| members);
        let mut kept = BTreeSet::new();
        for (id, live) in members.filter(|(_, live)| member::is_kept(live)) {
            let Some(path) = instances_path(live) else {
                continue;
            };
            if !api::list(&self.client, &path, "").await?.is_empty() {
                kept.insert(id.clone());
            }
        }
        for (_, members) in &mut plan.sets {
            members.retain(|id, _| !kept.contains(id));
        }
        plan.kept = kept;
        Ok(())
    }

    /// Deletes the objects of a plan, waits until they are removed, and deletes the inventories. Returns
    /// the number of deleted objects.
    pub async fn uninstall(
        &self,
        plan: RemovalPlan,
        report: &(dyn Fn(RemovalEvent<'_>) + Sync),
    ) -> Result<usize, InstallError> {
        let mut deleted = Vec::new();
        let kept = plan.kept;
        // Reverse order: revisions before the objects that they share.
        for (set, members) in plan.sets.into_iter().rev() {
            let changes = self.engine.prune(&set.key, members).await;
            for change in changes.map_err(|partial| set_error(&set.key, partial))? {
                report(RemovalEvent::Deleted(&change.id));
                deleted.push(change.id);
            }
            let has_kept = self.await_deletion(&set, &kept, report).await?;
            if !has_kept {
                self.delete_inventory(&set).await?;
            }
        }
        Ok(deleted.len())
    }

    /// Deletes the inventory of a set without members.
    pub(super) async fn delete_inventory(&self, set: &InstalledSet) -> Result<(), InstallError> {
        let known = Known {
            inventory: Some(Arc::new(set.live.clone())),
            ..Known::default()
        };
        let changes = self.engine.uninstall(&set.key, known).await;
        changes.map_err(|partial| set_error(&set.key, partial))?;
        Ok(())
    }

    /// Waits until all objects of a set except `kept` are removed, which finalizers may delay. Returns
    /// whether kept objects remain.
    async fn await_deletion(
        &self,
        set: &InstalledSet,
        kept: &BTreeSet<ObjectId>,
        report: &(dyn Fn(RemovalEvent<'_>) + Sync),
    ) -> Result<bool, InstallError> {
        let (mut fewest, mut until, mut interval) = (usize::MAX, Instant::now(), POLL_INTERVAL);
        let mut reported = (usize::MAX, String::new());
        loop {
            let mut left = member::members(&self.client, set).await?;
            let all = left.len();
            left.retain(|id, _| !kept.contains(id));
            let Some((id, live)) = left.iter().next() else {
                return Ok(all > 0);
            };
            let current = (left.len(), pending_reason(live));
            if interval >= REPORT_INTERVAL {
                self.retry_removals(&left).await;
            }
            if interval >= REPORT_INTERVAL && current != reported {
                report(RemovalEvent::Waiting {
                    count: current.0,
                    object: id,
                    reason: current.1.clone(),
                });
                reported = current;
            }
            if left.len() < fewest {
                (fewest, until) = (left.len(), Instant::now() + STALL_TIMEOUT);
                interval = POLL_INTERVAL;
            }
            if Instant::now() >= until {
                return Err(InstallError::NotDeleted {
                    count: left.len(),
                    example: super::error::label(id),
                    reason: pending_reason(live),
                });
            }
            sleep(interval).await;
            interval = MAX_POLL_INTERVAL.min(interval * 2);
        }
    }

    /// Changes the definitions whose removal has failed, so that the API server retries it. Its retry after a
    /// failure uses a copy that may be outdated; the conflict ends the retries until the next change of the
    /// definition, or for up to five minutes (Kubernetes 1.36). A failed write is repeated at the next check.
    async fn retry_removals(&self, left: &BTreeMap<ObjectId, Arc<Value>>) {
        for (id, live) in left
            .iter()
            .filter(|(id, live)| has_failed_removal(&id.kind, live))
        {
            let version = live.pointer("/metadata/resourceVersion").and_then(Value::as_str);
            let change = json!({"metadata": {"annotations": {RETRY_ANNOTATION: version}}});
            let path = format!("{DEFINITIONS}/{}", id.name);
            let written = api::send(&self.client, Method::PATCH, &path, Body::Merge(change)).await;
            if let Err(error) = written {
                tracing::debug!(definition = id.name, code = error.code, "cannot request a retry");
            }
        }
    }

    /// Returns tags that point to the revision and are not among the objects to delete.
    async fn find_foreign_tags(
        &self,
        revision: &str,
        plan: &RemovalPlan,
    ) -> Result<Vec<String>, InstallError> {
        let tags = self.tags().await?;
        let deleted: Vec<&str> = plan.objects().map(|id| id.name.as_str()).collect();
        let foreign = tags.into_iter().filter(|tag| tag.revision == revision);
        Ok(foreign
            .filter(|tag| !deleted.contains(&tag.webhook.as_str()))
            .map(|tag| tag.tag)
            .collect())
    }

    /// Returns the pods that use a revision or its tags according to their annotation, without the pods
    /// of removed workloads and without terminating pods.
    async fn find_proxies(&self, revision: &str, plan: &RemovalPlan) -> Result<Vec<String>, InstallError> {
        let pods = api::list(&self.client, "/api/v1/pods", "").await?;
        let is_terminating = |pod: &Value| pod.pointer("/metadata/deletionTimestamp").is_some();
        let uses = |pod: &Value| {
            let injected = pod
                .pointer("/metadata/annotations/istio.io~1rev")
                .and_then(Value::as_str);
            injected
                .is_some_and(|injected| injected == revision || plan.tags.iter().any(|tag| tag == injected))
        };
        let name = |pod: &Value| {
            let text = |at: &str| {
                pod.pointer(at)
                    .and_then(Value::as_str)
                    .unwrap_or_default()
                    .to_owned()
            };
            format!("{}/{}", text("/metadata/namespace"), text("/metadata/name"))
        };
        Ok(pods
            .iter()
            .filter(|pod| uses(pod) && !is_terminating(pod) && !plan.removes(pod))
            .map(name)
            .collect())
    }
}

/// Returns the API path of the objects of a definition.
fn instances_path(definition: &Value) -> Option<String> {
    let text = |at: &str| definition.pointer(at).and_then(Value::as_str);
    let versions = definition.pointer("/spec/versions").and_then(Value::as_array)?;
    let stored = versions
        .iter()
        .find(|version| version.get("storage") == Some(&Value::Bool(true)))?;
    let version = stored.get("name").and_then(Value::as_str)?;
    let (group, plural) = (text("/spec/group")?, text("/spec/names/plural")?);
    Some(format!("/apis/{group}/{version}/{plural}"))
}

/// API path of definitions.
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// Returns the condition `Terminating` of an object.
fn terminating_condition(live: &Value) -> Option<&Value> {
    let conditions = live.pointer("/status/conditions")?.as_array()?;
    let is_terminating =
        |condition: &&Value| condition.get("type").and_then(Value::as_str) == Some("Terminating");
    conditions.iter().find(is_terminating)
}

/// Whether the last attempt to remove a definition has failed.
fn has_failed_removal(kind: &str, live: &Value) -> bool {
    let reason = terminating_condition(live).and_then(|condition| condition.get("reason"));
    kind == "CustomResourceDefinition" && reason.and_then(Value::as_str) == Some(FAILED_REMOVAL)
}

/// Returns why an object in deletion still exists: the message of its condition `Terminating`, or its
/// finalizers.
fn pending_reason(live: &Value) -> String {
    let message = terminating_condition(live)
        .and_then(|condition| condition.get("message"))
        .and_then(Value::as_str);
    if let Some(message) = message {
        return message.to_owned();
    }
    let finalizers = live.pointer("/metadata/finalizers").and_then(Value::as_array);
    let names: Vec<&str> = finalizers
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    match names.as_slice() {
        [] => "deletion in progress".to_owned(),
        names => format!("finalizers: {}", names.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_of_a_pending_deletion_is_a_condition_or_the_finalizers() {
        let condition = json!({"type": "Terminating", "message": "CustomResource deletion is in progress"});
        let finalizers = json!(["example.com/a", "example.com/b"]);
        let check = |live: Value, expected: &str| assert_eq!(pending_reason(&live), expected);
        check(
            json!({"metadata": {"finalizers": finalizers}, "status": {"conditions": [condition]}}),
            "CustomResource deletion is in progress",
        );
        check(
            json!({"metadata": {"finalizers": finalizers}}),
            "finalizers: example.com/a, example.com/b",
        );
        check(json!({"metadata": {}}), "deletion in progress");
    }

    #[test]
    fn a_definition_is_retried_only_after_a_failed_removal() {
        let live =
            |reason: &str| json!({"status": {"conditions": [{"type": "Terminating", "reason": reason}]}});
        let failed = live("InstanceDeletionFailed");
        assert!(has_failed_removal("CustomResourceDefinition", &failed));
        assert!(!has_failed_removal("Namespace", &failed));
        let pending = live("InstanceDeletionInProgress");
        assert!(!has_failed_removal("CustomResourceDefinition", &pending));
        assert!(!has_failed_removal("CustomResourceDefinition", &json!({})));
    }

    #[test]
    fn pods_of_removed_workloads_do_not_count_as_users() {
        let id = ObjectId {
            group: "apps".into(),
            version: "v1".into(),
            kind: "Deployment".into(),
            namespace: "n".into(),
            name: "gateway".into(),
        };
        let set = InstalledSet::for_tests(SetName::Revision("a".into()));
        let live = json!({"spec": {"selector": {"matchLabels": {"app": "gateway"}}}});
        let mut plan = RemovalPlan::default();
        plan.sets.push((set, BTreeMap::from([(id, Arc::new(live))])));
        let pod = |namespace: &str, app: &str| json!({"metadata": {"namespace": namespace, "labels": {"app": app}}});
        assert!(plan.removes(&pod("n", "gateway")));
        assert!(!plan.removes(&pod("m", "gateway")) && !plan.removes(&pod("n", "web")));
    }
}
