//! Engine calls for sets of objects that an inventory owns: record the inventory first, apply in parts, prune
//! last, and preview without writing.

use std::collections::BTreeMap;
use std::sync::Arc;

use mainstay_mesh::plan::ReleaseKey;
use serde_json::Value;

use super::call::Apply;
use super::decide::{self, Decision};
use super::error::Verb;
use super::{ApplyError, Change, Engine, MANAGER, PartialApply, Run, name_uid, webhook_order};
use crate::desired::{Desired, DesiredObject, ObjectId};
use crate::live::{Known, uid};

/// What an apply would do to one object.
#[derive(Clone, Debug, PartialEq)]
pub struct Preview {
    /// The object.
    pub id: ObjectId,
    /// The live object; `None` if there is none.
    pub before: Option<Value>,
    /// The object after the apply, as the server would store it.
    pub after: Value,
    /// Whether the server computed `after`. It cannot while the namespace or the kind does not exist.
    pub is_exact: bool,
}

/// Returns the preview of an object whose webhooks are only reordered.
fn reordered(wanted: &DesiredObject, live: Value) -> Preview {
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
    /// Writes the inventory of `desired` unless the live one covers it.
    pub(crate) async fn record(&self, desired: &Desired) -> Result<Vec<Change>, PartialApply> {
        let mut run = Run::new(self);
        let done = run.keep_inventory(desired, &Known::default()).await;
        run.finish(done)
    }

    /// Deletes objects of a set that are not desired any more. Others are left alone.
    pub(crate) async fn prune(
        &self,
        key: &ReleaseKey,
        leftovers: BTreeMap<ObjectId, Arc<Value>>,
    ) -> Result<Vec<Change>, PartialApply> {
        let mut run = Run::new(self);
        let done = run.remove(key, leftovers).await;
        run.finish(done)
    }

    /// Returns the previews of all objects that an install would write.
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
            Decision::Leave => return Ok(None),
            Decision::Create => wanted.body.clone(),
            Decision::Apply { body, .. } => body,
            Decision::Reorder { .. } => return Ok(live.map(|live| reordered(wanted, live))),
        };
        if let Some(live) = &live {
            name_uid(&mut body, uid(live));
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

    /// Returns what an apply of `body` under another field manager would do.
    pub(crate) async fn preview_as(&self, body: &Value, manager: &str) -> Result<Preview, ApplyError> {
        let id = ObjectId::from_object(body)?;
        let kind = self.kind_of(&id).await?;
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

    /// Splits rendered objects by whether the server serves their kind.
    pub(crate) async fn split_served(
        &self,
        rendered: Vec<Value>,
    ) -> Result<(Vec<Value>, Vec<Value>), ApplyError> {
        let (mut served, mut unserved) = (Vec::new(), Vec::new());
        for object in rendered {
            let id = ObjectId::from_object(&object)?;
            self.learn(&id).await?;
            let group = if self.kind(&id).is_ok() {
                &mut served
            } else {
                &mut unserved
            };
            group.push(object);
        }
        Ok((served, unserved))
    }

    /// Reads an object.
    pub(crate) async fn read(&self, id: &ObjectId) -> Result<Option<Value>, ApplyError> {
        let kind = self.kind_of(id).await?;
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
