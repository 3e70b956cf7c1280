//! Operations on sets of objects that belong to an inventory instead of an owner: write the inventory,
//! prune, and preview an apply without writing.

use std::collections::BTreeMap;
use std::sync::Arc;

use mainstay_mesh::plan::ReleaseKey;
use serde_json::Value;

use super::call::Apply;
use super::decide::{self, Decision};
use super::error::Verb;
use super::{ApplyError, Change, Engine, PartialApply, Run, set_uid, webhook_order};
use crate::connect::MANAGER;
use crate::desired::{Desired, DesiredObject, ObjectId};
use crate::live::{Known, uid};

/// Expected result of an apply to one object.
#[derive(Clone, Debug, PartialEq)]
pub struct Preview {
    /// Identity of the object.
    pub id: ObjectId,
    /// The live object; `None` if it does not exist.
    pub before: Option<Value>,
    /// The object after the apply, as the server would store it.
    pub after: Value,
    /// Whether the server computed `after`, which requires that the namespace and the kind exist.
    pub is_exact: bool,
}

/// Returns a preview that only reorders the webhooks of an object.
fn preview_reordered(wanted: &DesiredObject, live: Value) -> Preview {
    let mut after = live.clone();
    webhook_order::reorder(wanted, &mut after);
    Preview {
        id: wanted.id.clone(),
        before: Some(live),
        after,
        is_exact: true,
    }
}

impl Engine {
    /// Writes the inventory of `desired`, unless the live one lists all its kinds and namespaces.
    pub(crate) async fn write_inventory(&self, desired: &Desired) -> Result<Vec<Change>, PartialApply> {
        let mut run = Run::new(self);
        let done = run.ensure_inventory(desired, &Known::default()).await;
        run.finish(done)
    }

    /// Deletes those of `leftovers` that belong to the set.
    pub(crate) async fn prune(
        &self,
        key: &ReleaseKey,
        leftovers: BTreeMap<ObjectId, Arc<Value>>,
    ) -> Result<Vec<Change>, PartialApply> {
        let mut run = Run::new(self);
        let done = run.remove(key, leftovers).await;
        run.finish(done)
    }

    /// Returns a preview of each object that an install would write.
    pub(crate) async fn preview(&self, desired: &Desired) -> Result<Vec<Preview>, ApplyError> {
        let mut previews = Vec::new();
        for wanted in &desired.objects {
            previews.extend(self.preview_object(desired, wanted).await?);
        }
        Ok(previews)
    }

    async fn preview_object(
        &self,
        desired: &Desired,
        wanted: &DesiredObject,
    ) -> Result<Option<Preview>, ApplyError> {
        let kind = self.kind(&wanted.id)?;
        let live = self.caller.get(&wanted.id, &kind).await?;
        let mut body = match decide::decide(wanted, live.as_ref(), desired)? {
            Decision::Skip => return Ok(None),
            Decision::Create => wanted.body.clone(),
            Decision::Apply { body, .. } => body,
            Decision::Reorder { .. } => return Ok(live.map(|live| preview_reordered(wanted, live))),
        };
        if let Some(live) = &live {
            set_uid(&mut body, uid(live));
        }
        let apply = Apply {
            verb: Verb::Patch,
            id: &wanted.id,
            kind: &kind,
            body: &body,
            manager: MANAGER,
            force: live.is_some(),
            dry_run: true,
        };
        let (after, is_exact) = match self.caller.apply(apply).await {
            Ok((_, after)) => (after, true),
            Err(error) if live.is_none() && error.is_not_found() => (body, false),
            Err(error) => return Err(error),
        };
        Ok(Some(Preview {
            id: wanted.id.clone(),
            before: live,
            after,
            is_exact,
        }))
    }

    /// Returns a preview of an apply of `body` by another field manager.
    pub(crate) async fn preview_as(&self, body: &Value, manager: &str) -> Result<Preview, ApplyError> {
        let id = ObjectId::from_object(body)?;
        let kind = self.discovered_kind(&id).await?;
        let before = self.caller.get(&id, &kind).await?;
        let apply = Apply {
            verb: Verb::Patch,
            id: &id,
            kind: &kind,
            body,
            manager,
            force: true,
            dry_run: true,
        };
        let (after, is_exact) = match self.caller.apply(apply).await {
            Ok((_, after)) => (after, true),
            Err(error) if before.is_none() && error.is_not_found() => (body.clone(), false),
            Err(error) => return Err(error),
        };
        Ok(Preview {
            id,
            before,
            after,
            is_exact,
        })
    }

    /// Splits rendered objects into those with a kind that the server serves, and the others.
    pub(crate) async fn split_served(
        &self,
        rendered: Vec<Value>,
    ) -> Result<(Vec<Value>, Vec<Value>), ApplyError> {
        let (mut served, mut unserved) = (Vec::new(), Vec::new());
        for object in rendered {
            let id = ObjectId::from_object(&object)?;
            self.discover_kind(&id).await?;
            let group = if self.kind(&id).is_ok() {
                &mut served
            } else {
                &mut unserved
            };
            group.push(object);
        }
        Ok((served, unserved))
    }

    /// Reads an object; `None` if it does not exist.
    pub(crate) async fn read(&self, id: &ObjectId) -> Result<Option<Value>, ApplyError> {
        let kind = self.discovered_kind(id).await?;
        self.caller.get(id, &kind).await
    }
}

impl Run<'_> {
    fn finish(self, done: Result<(), ApplyError>) -> Result<Vec<Change>, PartialApply> {
        let changes = self.changes;
        match done {
            Ok(()) => Ok(changes),
            Err(error) => Err(PartialApply { changes, error }),
        }
    }
}
