//! Field ownership of a live object: our record, the records of previous installers, and all records of a
//! path.

use serde_json::{Map, Value};

use super::Difference;
use super::fields::Fields;
use super::path::{Path, PathRef};

/// The `managedFields` of an object, as seen by one manager that takes over from others.
pub(crate) struct Records<'a> {
    entries: &'a [Value],
    manager: &'a str,
    legacy: &'a [&'a str],
    /// The merged records of `legacy`.
    legacy_record: Option<Value>,
    /// Paths that are excluded from the comparison.
    excluded: &'a [Path],
}

impl<'a> Records<'a> {
    /// Parses the records of `live` for `manager`, which takes over from `legacy`.
    pub(crate) fn parse(live: &'a Value, manager: &'a str, legacy: &'a [&'a str]) -> Self {
        let entries = live.pointer("/metadata/managedFields").and_then(Value::as_array);
        let mut records = Self {
            entries: entries.map(Vec::as_slice).unwrap_or_default(),
            manager,
            legacy,
            legacy_record: None,
            excluded: &[],
        };
        let mut legacy_record = None;
        for entry in records.entries.iter().filter(|entry| records.is_legacy(entry)) {
            if let Some(fields) = entry.get("fieldsV1") {
                merge(legacy_record.get_or_insert_default(), fields);
            }
        }
        records.legacy_record = legacy_record;
        records
    }

    /// Excludes paths from the comparison.
    pub(crate) fn excluding(mut self, paths: &'a [Path]) -> Self {
        self.excluded = paths;
        self
    }

    /// Returns a difference at a path, or `None` if the path is excluded.
    pub(super) fn difference_at(&self, what: fn(Path) -> Difference, at: PathRef<'_>) -> Option<Difference> {
        let path = at.path();
        let is_excluded = self
            .excluded
            .iter()
            .any(|excluded| path.steps().starts_with(excluded.steps()));
        (!is_excluded).then(|| what(path))
    }

    fn is_own(&self, entry: &Value) -> bool {
        text(entry, "manager") == self.manager
            && text(entry, "operation") == "Apply"
            && text(entry, "subresource").is_empty()
    }

    fn is_legacy(&self, entry: &Value) -> bool {
        self.legacy.contains(&text(entry, "manager")) && text(entry, "subresource").is_empty()
    }

    /// Returns our record, or `None` if we never applied the object.
    pub(super) fn own_record(&self) -> Option<Fields<'a>> {
        let own = self.entries.iter().find(|entry| self.is_own(entry))?;
        own.get("fieldsV1").map(Fields::new)
    }

    /// Whether we ever applied the object.
    pub(crate) fn has_own_record(&self) -> bool {
        self.own_record().is_some()
    }

    /// Returns the record of the pod template of another manager; `None` if there is none.
    pub(crate) fn pod_template_of(&self, manager: &str) -> Option<&'a Value> {
        let entry = self
            .entries
            .iter()
            .find(|entry| text(entry, "manager") == manager)?;
        entry.get("fieldsV1")?.get("f:spec")?.get("f:template")
    }

    /// Returns the merged records of previous installers; `None` if there are none.
    pub(super) fn legacy_record(&self) -> Option<Fields<'_>> {
        self.legacy_record.as_ref().map(Fields::new)
    }

    /// Whether we or a previous installer own the path.
    pub(crate) fn owns(&self, steps: &[String]) -> bool {
        let has = |record: Fields<'_>| {
            steps
                .iter()
                .try_fold(record, |fields, key| fields.child(key))
                .is_some()
        };
        self.own_record().is_some_and(has) || self.legacy_record().is_some_and(has)
    }

    /// Returns the records of all managers below a path.
    pub(super) fn records_at(&self, at: PathRef<'_>) -> impl Iterator<Item = Fields<'a>> {
        let path = at.path();
        self.entries.iter().filter_map(move |entry| {
            let record = Fields::new(entry.get("fieldsV1")?);
            path.steps()
                .iter()
                .try_fold(record, |fields, key| fields.child(key))
        })
    }

    /// Whether some manager owns only parts of the value at this path, which means that the value is not
    /// atomic.
    pub(super) fn is_shared(&self, at: PathRef<'_>) -> bool {
        self.records_at(at).any(|fields| !fields.is_leaf())
    }

    /// Returns the entries as if we had applied everything: our entry also contains the fields of the
    /// previous installers, and their entries are removed. Fields that are recorded for another API
    /// version are dropped.
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
                merge(&mut fields, more);
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

/// Merges the fields of `more` into a record.
fn merge(record: &mut Value, more: &Value) {
    let Value::Object(more) = more else { return };
    if !record.is_object() {
        *record = Value::Object(Map::new());
    }
    if let Value::Object(map) = record {
        for (key, value) in more {
            merge(
                map.entry(key.clone())
                    .or_insert_with(|| Value::Object(Map::new())),
                value,
            );
        }
    }
}
