//! Field ownership of a live object: our record, those of installers before us, and all records of a path.

use serde_json::{Map, Value};

use super::Difference;
use super::at::{At, Path};
use super::fields::Fields;

/// The `managedFields` of an object from the view of one manager and those it takes over from.
pub(crate) struct Records<'a> {
    entries: &'a [Value],
    manager: &'a str,
    legacy: &'a [&'a str],
    /// The merged records of `legacy`.
    before: Option<Value>,
    /// Paths that are not compared.
    excepted: &'a [Path],
}

impl<'a> Records<'a> {
    /// Parses the records of `live` for `manager`, which takes over from `legacy`.
    pub(crate) fn parse(live: &'a Value, manager: &'a str, legacy: &'a [&'a str]) -> Self {
        let entries = live.pointer("/metadata/managedFields").and_then(Value::as_array);
        let mut records = Self {
            entries: entries.map(Vec::as_slice).unwrap_or_default(),
            manager,
            legacy,
            before: None,
            excepted: &[],
        };
        let mut before = None;
        for entry in records.entries.iter().filter(|entry| records.is_legacy(entry)) {
            if let Some(fields) = entry.get("fieldsV1") {
                unite(before.get_or_insert_default(), fields);
            }
        }
        records.before = before;
        records
    }

    /// Excludes paths from the comparison.
    pub(crate) fn except(mut self, places: &'a [Path]) -> Self {
        self.excepted = places;
        self
    }

    /// Returns a difference at a path, unless the path is excluded.
    pub(super) fn differ(&self, what: fn(Path) -> Difference, at: At<'_>) -> Option<Difference> {
        let path = at.path();
        let is_excepted = self
            .excepted
            .iter()
            .any(|place| path.steps().starts_with(place.steps()));
        (!is_excepted).then(|| what(path))
    }

    fn is_own(&self, entry: &Value) -> bool {
        text(entry, "manager") == self.manager
            && text(entry, "operation") == "Apply"
            && text(entry, "subresource").is_empty()
    }

    fn is_legacy(&self, entry: &Value) -> bool {
        self.legacy.contains(&text(entry, "manager")) && text(entry, "subresource").is_empty()
    }

    /// Our record, if we ever applied.
    pub(super) fn own(&self) -> Option<Fields<'a>> {
        let own = self.entries.iter().find(|entry| self.is_own(entry))?;
        own.get("fieldsV1").map(Fields::new)
    }

    /// Whether we ever applied.
    pub(crate) fn has_own(&self) -> bool {
        self.own().is_some()
    }

    /// The record of a pod template that another manager keeps.
    pub(crate) fn kept(&self, manager: &str) -> Option<&'a Value> {
        let entry = self
            .entries
            .iter()
            .find(|entry| text(entry, "manager") == manager)?;
        entry.get("fieldsV1")?.get("f:spec")?.get("f:template")
    }

    /// The records of previous installers.
    pub(super) fn before(&self) -> Option<Fields<'_>> {
        self.before.as_ref().map(Fields::new)
    }

    /// Whether a path is recorded as ours or as a previous installer's.
    pub(crate) fn owns(&self, steps: &[String]) -> bool {
        let has = |record: Fields<'_>| {
            steps
                .iter()
                .try_fold(record, |fields, key| fields.below(key))
                .is_some()
        };
        self.own().is_some_and(has) || self.before().is_some_and(has)
    }

    /// All records below a path.
    pub(super) fn below(&self, at: At<'_>) -> impl Iterator<Item = Fields<'a>> {
        let path = at.path();
        self.entries.iter().filter_map(move |entry| {
            let record = Fields::new(entry.get("fieldsV1")?);
            path.steps()
                .iter()
                .try_fold(record, |fields, key| fields.below(key))
        })
    }

    /// Whether a manager owns parts of the value at this path, so that no manager owns it as a whole.
    pub(super) fn is_shared(&self, at: At<'_>) -> bool {
        self.below(at).any(|fields| !fields.is_leaf())
    }

    /// The entries as if we had applied everything: the installers' entries are removed and ours holds their
    /// fields. Only fields recorded in our version can be kept.
    pub(crate) fn merged_entries(&self) -> Value {
        let is_candidate = |entry: &&Value| self.is_own(entry) || self.is_legacy(entry);
        let own = self.entries.iter().find(|entry| self.is_own(entry));
        let Some(base) = own.or_else(|| self.entries.iter().find(is_candidate)) else {
            return Value::Array(self.entries.to_vec());
        };
        let version = text(base, "apiVersion");
        let mut fields = Value::Object(Map::new());
        for entry in self.entries.iter().filter(is_candidate) {
            if let (true, Some(more)) = (text(entry, "apiVersion") == version, entry.get("fieldsV1")) {
                unite(&mut fields, more);
            }
        }
        let mut merged = base.clone();
        if let Value::Object(map) = &mut merged {
            map.insert("manager".into(), self.manager.into());
            map.insert("operation".into(), "Apply".into());
            map.insert("fieldsV1".into(), fields);
        }
        let others = self.entries.iter().filter(|entry| !is_candidate(entry)).cloned();
        Value::Array([merged].into_iter().chain(others).collect())
    }
}

fn text<'a>(entry: &'a Value, key: &str) -> &'a str {
    entry.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// Merges `more` into a record.
fn unite(record: &mut Value, more: &Value) {
    let Value::Object(more) = more else { return };
    if !record.is_object() {
        *record = Value::Object(Map::new());
    }
    if let Value::Object(map) = record {
        for (key, value) in more {
            unite(
                map.entry(key.clone())
                    .or_insert_with(|| Value::Object(Map::new())),
                value,
            );
        }
    }
}
