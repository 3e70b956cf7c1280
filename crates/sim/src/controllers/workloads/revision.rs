//! `ControllerRevisions`, which record the templates of a workload.

use std::sync::Arc;

use serde_json::{Value, json};

use super::actor::{self, Actor, GroupResource};
use super::names;
use crate::object::Object;
use crate::state::State;
use crate::status::Result;
use crate::tree;

const REVISIONS: GroupResource = GroupResource::new("apps", "controllerrevisions");
const TABLE: &str = "controllerrevisions.apps";

/// A recorded template.
#[derive(Clone, Debug)]
pub(super) struct Revision {
    pub(super) name: String,
    pub(super) hash: String,
    pub(super) template: Value,
    number: i64,
    object: Arc<Object>,
}

/// Workload with recorded templates.
pub(super) struct Owner<'a> {
    pub(super) actor: Actor,
    pub(super) kind: &'static str,
    pub(super) value: &'a Value,
    /// Label that contains the hash.
    pub(super) label: &'static str,
}

impl Owner<'_> {
    /// Returns the revisions of the workload, oldest first.
    pub(super) fn list(&self, state: &State) -> Vec<Revision> {
        let uid = tree::text(self.value, &["metadata", "uid"]);
        let mut all: Vec<Revision> = state
            .store
            .dependents(uid)
            .filter(|location| &*location.table == TABLE)
            .filter_map(|location| actor::load(state, TABLE, &location.key))
            .map(|(object, value)| self.read(object, &value))
            .collect();
        all.sort_by(|a, b| (a.number, &a.name).cmp(&(b.number, &b.name)));
        all
    }

    fn read(&self, object: Arc<Object>, value: &Value) -> Revision {
        Revision {
            name: object.meta().name.to_string(),
            hash: object.meta().label(self.label).unwrap_or("").to_owned(),
            template: without_patch(tree::get(value, &["data", "spec", "template"])),
            number: tree::int(value, &["revision"]).unwrap_or(0),
            object,
        }
    }

    /// Returns the revision of the current template. Creates it if it does not exist, and makes it the newest
    /// revision.
    pub(super) fn ensure_current(&self, state: &mut State, all: &mut Vec<Revision>) -> Result<Revision> {
        let template = tree::get(self.value, &["spec", "template"])
            .cloned()
            .unwrap_or_default();
        let next = all.last().map_or(1, |last| last.number.saturating_add(1));
        let Some(at) = all.iter().position(|one| one.template == template) else {
            let created = self.create(state, &template, next)?;
            all.push(created.clone());
            return Ok(created);
        };
        let mut found = all.remove(at);
        if at < all.len() {
            // A rollback: makes an earlier revision the newest.
            let mut value = found.object.packed();
            tree::set(&mut value, &["revision"], next);
            found.object = self.actor.update(state, REVISIONS, &value, "")?;
            found.number = next;
        }
        all.push(found.clone());
        Ok(found)
    }

    fn create(&self, state: &mut State, template: &Value, number: i64) -> Result<Revision> {
        let mut patch = template.clone();
        tree::set(&mut patch, &["$patch"], "replace");
        let hash = names::template_hash(template, 0);
        let name = format!("{}-{hash}", tree::text(self.value, &["metadata", "name"]));
        let mut labels = tree::get(template, &["metadata", "labels"])
            .cloned()
            .unwrap_or_else(|| json!({}));
        tree::set(&mut labels, &[self.label], hash.as_str());
        let value = json!({
            "apiVersion": "apps/v1", "kind": "ControllerRevision",
            "metadata": {
                "name": name, "labels": labels,
                "ownerReferences": [actor::controller_reference("apps/v1", self.kind, self.value)],
            },
            "data": {"spec": {"template": patch}}, "revision": number,
        });
        let namespace = tree::text(self.value, &["metadata", "namespace"]);
        let object = self.actor.create(state, REVISIONS, namespace, value)?;
        let value = object.packed();
        Ok(self.read(object, &value))
    }

    /// Deletes the oldest unused revisions that exceed the history limit.
    pub(super) fn clean_up(&self, state: &mut State, all: &[Revision], used: &[&str]) -> Result<()> {
        let limit = tree::int(self.value, &["spec", "revisionHistoryLimit"]).unwrap_or(10);
        let unused: Vec<&Revision> = all
            .iter()
            .filter(|one| !used.contains(&one.name.as_str()) && !used.contains(&one.hash.as_str()))
            .collect();
        let surplus = unused.len().saturating_sub(usize::try_from(limit).unwrap_or(0));
        for revision in unused.into_iter().take(surplus) {
            self.actor.delete(state, REVISIONS, &revision.object)?;
        }
        Ok(())
    }
}

fn without_patch(template: Option<&Value>) -> Value {
    let mut template = template.cloned().unwrap_or_default();
    tree::remove(&mut template, &["$patch"]);
    template
}
