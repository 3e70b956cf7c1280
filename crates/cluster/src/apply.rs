//! Installs and uninstalls releases: compares the desired objects with the known live ones, writes the
//! differences, and returns every change with its reason.
//!
//! ```text
//! Desired + Known ──decide──▶ inventory, applies in order, deletions ──▶ changes
//! ```
//!
//! *Invariants:* Equal objects are not written. A foreign object is never written; if there is one, the
//! release fails before its first write. Every deletion has a precondition, and every call a timeout. The
//! engine does not retry.

mod call;
mod decide;
mod error;
mod order;
mod rules;
mod set;
mod webhook_order;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use kube::Client;
use mainstay_api::OwnerReference;
use mainstay_mesh::ErrorClass;
use mainstay_mesh::plan::ReleaseKey;
use serde_json::Value;

pub use decide::Drift;
pub use error::{ApplyError, Verb};
pub use set::Preview;

use crate::compare::Difference;
use crate::connect::{DEADLINE, MANAGER};
use crate::desired::{APPLY_SET_PART, Desired, DesiredError, DesiredObject, Kind, Kinds, ObjectId};
use crate::installer::ISTIOCTL_MANAGER;
use crate::live::{Known, uid};
use call::{Apply, Caller};
use decide::Decision;

/// Field manager of an adoption. The operator does not change the fields of pod templates that this
/// manager owns.
pub const ADOPTED_MANAGER: &str = "mainstay-adopt";

/// Field managers that are taken over: the Helm CLI, the operator that embeds Helm, and istioctl.
pub const LEGACY_MANAGERS: &[&str] = &["helm", "sail-operator", ISTIOCTL_MANAGER];

/// Engine that installs and uninstalls releases.
pub struct Engine {
    caller: Caller,
    kinds: Mutex<Kinds>,
}

/// A change of one object. It is newer than any watch event: pass it to
/// [`Live::record`](crate::live::Live::record).
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// Identity of the changed object.
    pub id: ObjectId,
    /// The object after the change; `None` if it no longer exists.
    pub live: Option<Arc<Value>>,
    /// The operation that was performed.
    pub kind: ChangeKind,
    /// The difference that required the change; `None` if the object was only read.
    pub reason: Option<Difference>,
}

/// Kinds of changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChangeKind {
    /// The object was read and is up to date. Not a write.
    Found,
    /// The object was created.
    Created,
    /// An existing object was changed.
    Applied,
    /// Ownership of the fields of another installer was transferred to our field manager. An apply
    /// follows.
    TakenOver,
    /// The object was deleted. Finalizers may delay its removal.
    Deleted,
}

impl ChangeKind {
    /// Whether the change is a write to the cluster.
    #[must_use]
    pub fn is_write(self) -> bool {
        self != Self::Found
    }
}

/// Result of an install or uninstall that failed.
#[derive(Debug)]
pub struct PartialApply {
    /// The changes made before the error, in order.
    pub changes: Vec<Change>,
    /// The error that stopped the run.
    pub error: ApplyError,
}

impl Engine {
    /// Creates an engine that uses `client`, which must not retry calls.
    #[must_use]
    pub fn new(client: Client) -> Self {
        Self {
            caller: Caller {
                client,
                deadline: DEADLINE,
            },
            kinds: Mutex::default(),
        }
    }

    /// Sets the timeout of each call.
    #[must_use]
    pub fn with_deadline(mut self, deadline: Duration) -> Self {
        self.caller.deadline = deadline;
        self
    }

    /// Returns the desired state of a release, after discovering kinds that are neither built in nor
    /// known yet.
    pub async fn desired(
        &self,
        key: ReleaseKey,
        owner: impl Into<Option<OwnerReference>>,
        rendered: Vec<Value>,
    ) -> Result<Desired, ApplyError> {
        for object in &rendered {
            if let Ok(id) = ObjectId::from_object(object) {
                self.discover_kind(&id).await?;
            }
        }
        Ok(Desired::new(key, owner, rendered, &self.kinds())?)
    }

    /// Returns the kinds that are built in or were discovered.
    #[must_use]
    pub fn kinds(&self) -> Kinds {
        self.kinds.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Installs a release: writes the inventory if it lacks kinds, applies the objects that differ in
    /// order, and deletes the objects that are not desired. If there is no difference, nothing is
    /// written. Objects in `known` are not read.
    ///
    /// Stops at the first object that fails. The next attempt continues there, because the objects before
    /// it are equal.
    pub async fn install(&self, desired: &Desired, known: Known) -> Result<Vec<Change>, PartialApply> {
        let mut run = Run::new(self);
        match run.install(desired, known).await {
            Ok(()) => Ok(run.changes),
            Err(error) => Err(PartialApply {
                changes: run.changes,
                error,
            }),
        }
    }

    /// Uninstalls a release; the inventory is deleted last. Only objects with this owner and release are
    /// deleted.
    pub async fn uninstall(&self, key: &ReleaseKey, known: Known) -> Result<Vec<Change>, PartialApply> {
        let mut run = Run::new(self);
        match run.uninstall(key, known).await {
            Ok(()) => Ok(run.changes),
            Err(error) => Err(PartialApply {
                changes: run.changes,
                error,
            }),
        }
    }

    fn kind(&self, id: &ObjectId) -> Result<Kind, ApplyError> {
        let kinds = self.kinds.lock().unwrap_or_else(PoisonError::into_inner);
        let unknown = || DesiredError::UnknownKind(Box::new(id.clone()));
        Ok(kinds.get(&id.group, &id.kind).cloned().ok_or_else(unknown)?)
    }

    /// Returns a kind, after discovering it if it is unknown.
    async fn discovered_kind(&self, id: &ObjectId) -> Result<Kind, ApplyError> {
        self.discover_kind(id).await?;
        self.kind(id)
    }

    async fn discover_kind(&self, id: &ObjectId) -> Result<(), ApplyError> {
        if self.kind(id).is_ok() {
            return Ok(());
        }
        let response = match self.caller.discover(id).await {
            Err(error) if error.is_not_found() => return Ok(()),
            response => response?,
        };
        let mut kinds = self.kinds.lock().unwrap_or_else(PoisonError::into_inner);
        for row in response
            .get("resources")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            let text = |name: &str| row.get(name).and_then(Value::as_str).unwrap_or_default();
            // The list also contains subresources. Their names contain a slash.
            if !text("name").contains('/') {
                let kind = Kind {
                    plural: text("name").to_owned(),
                    is_namespaced: row.get("namespaced") == Some(&Value::Bool(true)),
                };
                kinds.insert(&id.group, text("kind"), kind);
            }
        }
        Ok(())
    }
}

/// One install or uninstall run.
struct Run<'a> {
    engine: &'a Engine,
    changes: Vec<Change>,
}

/// The decision about one object.
struct Task<'a> {
    wanted: &'a DesiredObject,
    live: Option<Arc<Value>>,
    decision: Decision,
}

impl<'a> Run<'a> {
    fn new(engine: &'a Engine) -> Self {
        Self {
            engine,
            changes: Vec::new(),
        }
    }

    async fn install(&mut self, desired: &Desired, known: Known) -> Result<(), ApplyError> {
        // All objects are checked before the first write, because a single foreign object makes the
        // release fail.
        let mut tasks = Vec::new();
        for wanted in &desired.objects {
            tasks.extend(
                self.plan_task(desired, wanted, known.objects.get(&wanted.id))
                    .await?,
            );
        }
        if !tasks.is_empty() || known.objects.values().any(|object| is_member(object)) {
            self.ensure_inventory(desired, &known).await?;
        }
        for task in tasks {
            self.execute(desired, task).await?;
        }
        self.remove(&desired.key, known.leftovers).await
    }

    async fn uninstall(&mut self, key: &ReleaseKey, known: Known) -> Result<(), ApplyError> {
        self.remove(key, known.leftovers).await?;
        let inventory = known
            .inventory
            .into_iter()
            .map(|live| (crate::desired::inventory_id(key), live));
        self.remove(key, inventory.collect()).await
    }

    /// Plans the change of a desired object. Returns `None` if the object is up to date or excluded. Reads
    /// the object if it is not known.
    async fn plan_task<'w>(
        &mut self,
        desired: &Desired,
        wanted: &'w DesiredObject,
        known: Option<&Arc<Value>>,
    ) -> Result<Option<Task<'w>>, ApplyError> {
        let live = match known {
            Some(live) => Some(live.clone()),
            None => self
                .engine
                .caller
                .get(&wanted.id, &self.engine.kind(&wanted.id)?)
                .await?
                .map(Arc::new),
        };
        let decision = decide::decide(wanted, live.as_deref(), desired)?;
        if let Decision::Skip = decision {
            if let (None, Some(live)) = (known, live) {
                self.record_change(&wanted.id, Some(live), ChangeKind::Found, None);
            }
            return Ok(None);
        }
        Ok(Some(Task {
            wanted,
            live,
            decision,
        }))
    }

    async fn execute(&mut self, desired: &Desired, task: Task<'_>) -> Result<(), ApplyError> {
        let Task {
            wanted,
            live,
            decision,
        } = task;
        let (mut body, reason, records) = match decision {
            Decision::Skip => return Ok(()),
            Decision::Reorder { patch, reason } => return self.reorder(desired, wanted, patch, reason).await,
            Decision::Create => (wanted.body.clone(), Difference::Absent, None),
            Decision::Apply {
                body,
                reason,
                records,
            } => (body, reason, records),
        };
        let kind = self.engine.kind(&wanted.id)?;
        if let Some(records) = records {
            let patched = self
                .engine
                .caller
                .json_patch(&wanted.id, &kind, &records, MANAGER)
                .await;
            let patched = self.reread_on_conflict(&wanted.id, &kind, patched).await?;
            self.record_change(
                &wanted.id,
                Some(Arc::new(patched)),
                ChangeKind::TakenOver,
                Some(reason.clone()),
            );
        }
        if let Some(live) = &live {
            set_uid(&mut body, uid(live));
        }
        let verb = if live.is_some() { Verb::Patch } else { Verb::Create };
        let apply = Apply {
            verb,
            id: &wanted.id,
            kind: &kind,
            body: &body,
            manager: MANAGER,
            // Changes of other managers to a member are drift. An object that did not exist before is
            // foreign.
            force: live.is_some(),
            dry_run: false,
        };
        let applied = self.engine.caller.apply(apply).await;
        let (is_new, object) = self.reread_on_conflict(&wanted.id, &kind, applied).await?;
        let paths = decide::reverted_paths(wanted, &object);
        for path in &paths {
            tracing::warn!(
                object = %wanted.id,
                path = %path,
                "the field differs from the desired value right after the apply"
            );
        }
        desired.reapplied.set_paths(&wanted.id, uid(&object), paths);
        let done = if is_new {
            ChangeKind::Created
        } else {
            ChangeKind::Applied
        };
        self.record_change(&wanted.id, Some(Arc::new(object)), done, Some(reason));
        Ok(())
    }

    async fn reorder(
        &mut self,
        desired: &Desired,
        wanted: &DesiredObject,
        patch: Value,
        reason: Difference,
    ) -> Result<(), ApplyError> {
        let (caller, kind) = (&self.engine.caller, self.engine.kind(&wanted.id)?);
        let patched = caller.json_patch(&wanted.id, &kind, &patch, MANAGER).await;
        let object = self.reread_on_conflict(&wanted.id, &kind, patched).await?;
        let paths = decide::disordered_path(wanted, &object).into_iter().collect();
        desired.reapplied.set_paths(&wanted.id, uid(&object), paths);
        self.record_change(
            &wanted.id,
            Some(Arc::new(object)),
            ChangeKind::Applied,
            Some(reason),
        );
        Ok(())
    }

    /// Writes the inventory, unless the live one lists every kind already.
    async fn ensure_inventory(&mut self, desired: &Desired, known: &Known) -> Result<(), ApplyError> {
        let inventory = &desired.inventory;
        let kind = self.engine.kind(&inventory.id)?;
        let live = match &known.inventory {
            Some(live) => Some(live.clone()),
            None => self.engine.caller.get(&inventory.id, &kind).await?.map(Arc::new),
        };
        let wanted = DesiredObject {
            id: inventory.id.clone(),
            body: inventory.body(known.leftovers.keys()),
            is_scaled: false,
        };
        let decision = decide::decide(&wanted, live.as_deref(), desired)?;
        let is_complete = live.as_ref().is_some_and(|live| inventory.is_covered_by(live));
        if is_complete || matches!(decision, Decision::Skip) {
            return Ok(());
        }
        let wanted = &wanted;
        self.execute(
            desired,
            Task {
                wanted,
                live,
                decision,
            },
        )
        .await
    }

    async fn remove(
        &mut self,
        key: &ReleaseKey,
        leftovers: BTreeMap<ObjectId, Arc<Value>>,
    ) -> Result<(), ApplyError> {
        let mut leftovers: Vec<_> = leftovers
            .into_iter()
            .filter(|(_, live)| decide::may_delete(live, key))
            .collect();
        leftovers.sort_by_key(|(id, _)| order::uninstall_key(&id.kind));
        for (id, live) in leftovers {
            let kind = self.engine.discovered_kind(&id).await?;
            let response = self.engine.caller.delete(&id, &kind, &live).await;
            let response = self.reread_on_conflict(&id, &kind, response).await?;
            let lingering = response.filter(decide::is_deleting).map(Arc::new);
            self.record_change(&id, lingering, ChangeKind::Deleted, Some(Difference::Unwanted));
        }
        Ok(())
    }

    /// Reads the object again if the response is a conflict, so that the next attempt uses the current
    /// version even if a watch has missed an event.
    async fn reread_on_conflict<T>(
        &mut self,
        id: &ObjectId,
        kind: &Kind,
        response: Result<T, ApplyError>,
    ) -> Result<T, ApplyError> {
        if let Err(error) = &response
            && error.class() == ErrorClass::Conflict
        {
            let fresh = self.engine.caller.get(id, kind).await?;
            self.record_change(id, fresh.map(Arc::new), ChangeKind::Found, None);
        }
        response
    }

    fn record_change(
        &mut self,
        id: &ObjectId,
        live: Option<Arc<Value>>,
        kind: ChangeKind,
        reason: Option<Difference>,
    ) {
        self.changes.push(Change {
            id: id.clone(),
            live,
            kind,
            reason,
        });
    }
}

/// Whether an engine has written the object before.
fn is_member(object: &Value) -> bool {
    object
        .pointer("/metadata/labels")
        .is_some_and(|labels| labels.get(APPLY_SET_PART).is_some())
}

/// Sets the UID, so that the apply fails if another object has the same name now.
fn set_uid(body: &mut Value, uid: &str) {
    if let Some(Value::Object(metadata)) = body.get_mut("metadata") {
        metadata.insert("uid".into(), uid.into());
    }
}
