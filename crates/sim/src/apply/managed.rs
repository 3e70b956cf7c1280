//! Parses and formats `metadata.managedFields`.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::error::ManagedFieldsError;
use super::memo::Fields;
use crate::tree;

/// Maximum number of update entries. Older ones are merged.
const MAX_UPDATE_ENTRIES: usize = 10;
/// Name of the manager of merged entries.
const ANCIENT_CHANGES: &str = "ancient-changes";

/// Identity of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Manager {
    pub name: String,
    /// Whether the operation is `Apply` rather than `Update`.
    pub applied: bool,
    /// API version of an update entry. Empty for apply entries, which are unique regardless of the version.
    pub api_version: String,
    pub subresource: String,
}

/// Fields owned by a manager.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// API version of the field paths.
    pub api_version: String,
    pub set: Fields,
    pub time: Option<String>,
}

/// The entries of `managedFields` by manager.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Managed(pub BTreeMap<Manager, Entry>);

impl Manager {
    pub(super) fn new(name: &str, applied: bool, api_version: &str, subresource: &str) -> Self {
        Self {
            name: if name.is_empty() { "unknown" } else { name }.to_owned(),
            applied,
            api_version: if applied { "" } else { api_version }.to_owned(),
            subresource: subresource.to_owned(),
        }
    }
}

/// The order in which conflicts are reported: by name, apply before update.
impl Ord for Manager {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.name
            .cmp(&other.name)
            .then_with(|| other.applied.cmp(&self.applied))
            .then_with(|| self.api_version.cmp(&other.api_version))
            .then_with(|| self.subresource.cmp(&other.subresource))
    }
}

impl PartialOrd for Manager {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// The text in conflict messages.
impl std::fmt::Display for Manager {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.name)?;
        if !self.subresource.is_empty() {
            write!(f, " with subresource {:?}", self.subresource)?;
        }
        if self.applied {
            return Ok(());
        }
        write!(f, " using {}", self.api_version)
    }
}

impl Managed {
    /// Parses a `managedFields` list.
    pub(super) fn parse(list: &[Value]) -> Result<Self, ManagedFieldsError> {
        let mut owners = Self::default();
        for (at, entry) in list.iter().enumerate() {
            let text = |field| tree::text(entry, &[field]);
            let applied = match text("operation") {
                "Apply" => true,
                "Update" => false,
                _ => return Err(ManagedFieldsError::Operation),
            };
            if text("apiVersion").is_empty() {
                return Err(ManagedFieldsError::ApiVersion);
            }
            match text("fieldsType") {
                "FieldsV1" => {}
                "" => return Err(ManagedFieldsError::MissingFieldsType(at)),
                other => {
                    return Err(ManagedFieldsError::InvalidFieldsType {
                        fields_type: other.to_owned(),
                        index: at,
                    });
                }
            }
            let set = match entry.get("fieldsV1") {
                None | Some(Value::Null) => Fields::default(),
                Some(Value::String(packed)) => Fields::parse(packed)?,
                Some(fields) => Fields::parse(&fields.to_string())?,
            };
            let manager = Manager {
                name: text("manager").to_owned(),
                applied,
                api_version: if applied { "" } else { text("apiVersion") }.to_owned(),
                subresource: text("subresource").to_owned(),
            };
            let entry = Entry {
                api_version: text("apiVersion").to_owned(),
                set,
                time: entry.get("time").and_then(Value::as_str).map(str::to_owned),
            };
            owners.0.insert(manager, entry);
        }
        Ok(owners)
    }

    /// Returns the `managedFields` list for an object, or `None` if it is empty.
    pub(super) fn to_list(&self) -> Option<Value> {
        if self.0.is_empty() {
            return None;
        }
        let mut all: Vec<(&Manager, &Entry)> = self.0.iter().collect();
        all.sort_by_key(|(manager, entry)| {
            (
                !manager.applied,
                entry.time.as_deref().unwrap_or(""),
                manager.name.as_str(),
                entry.api_version.as_str(),
                manager.subresource.as_str(),
            )
        });
        Some(
            all.into_iter()
                .map(|(manager, entry)| entry_to_value(manager, entry))
                .collect(),
        )
    }

    /// Removes entries without fields.
    pub(super) fn drop_empty(&mut self) {
        self.0.retain(|_, entry| !entry.set.is_empty());
    }

    /// Merges the oldest update entries of each version until at most [`MAX_UPDATE_ENTRIES`] are left.
    pub(super) fn cap_update_entries(&mut self) {
        if self.0.keys().filter(|manager| !manager.applied).count() <= MAX_UPDATE_ENTRIES {
            return;
        }
        let mut updaters: Vec<(String, Manager)> = self
            .0
            .iter()
            .filter(|(manager, _)| !manager.applied)
            .map(|(manager, entry)| (entry.time.clone().unwrap_or_default(), manager.clone()))
            .collect();
        let mut count = updaters.len();
        updaters.sort();
        let mut first_by_version: BTreeMap<String, Manager> = BTreeMap::new();
        for (_, manager) in updaters {
            if count <= MAX_UPDATE_ENTRIES {
                return;
            }
            let version = manager.api_version.clone();
            let Some(first) = first_by_version.get(&version) else {
                first_by_version.insert(version, manager);
                continue;
            };
            let bucket = Manager::new(ANCIENT_CHANGES, false, &version, "");
            if !self.0.contains_key(&bucket)
                && let Some(entry) = self.0.remove(first)
            {
                self.0.insert(bucket.clone(), entry);
            }
            if let Some(entry) = self.0.remove(&manager) {
                let mut joined = entry.clone();
                if let Some(existing) = self.0.get(&bucket) {
                    joined.set = joined.set.union(&existing.set).into();
                }
                self.0.insert(bucket, joined);
                count -= 1;
            }
        }
    }
}

fn entry_to_value(manager: &Manager, entry: &Entry) -> Value {
    let mut out: Map<String, Value> = Map::new();
    let mut put = |key: &str, text: &str| {
        if !text.is_empty() {
            out.insert(key.to_owned(), text.into());
        }
    };
    put("manager", &manager.name);
    put("operation", if manager.applied { "Apply" } else { "Update" });
    put("apiVersion", &entry.api_version);
    put("time", entry.time.as_deref().unwrap_or(""));
    put("fieldsType", "FieldsV1");
    put("subresource", &manager.subresource);
    // Packed, see `pack`.
    out.insert("fieldsV1".to_owned(), entry.set.text().into());
    Value::Object(out)
}

/// Converts the field sets of an object from trees to strings, which are smaller and faster to compare.
/// Packed sets are unchanged. [`crate::object::Object`] prints them as trees.
pub(super) fn pack(list: &mut [Value]) {
    for entry in list {
        if let Some(fields) = entry.get_mut("fieldsV1") {
            match fields {
                Value::String(packed) if Fields::parse(packed).is_ok() => {}
                // Not a field set: a later parse of `null` fails.
                Value::String(_) => *fields = "null".into(),
                _ => *fields = fields.to_string().into(),
            }
        }
    }
}

/// Reverses [`pack`].
pub(super) fn unpack(list: &mut [Value]) {
    for entry in list {
        if let Some(fields) = entry.get_mut("fieldsV1")
            && let Value::String(packed) = fields
        {
            *fields = serde_json::from_str(packed).unwrap_or_default();
        }
    }
}

/// Returns whether the list resets ownership: it is empty or consists of one empty entry.
pub(super) fn is_reset(sent: Option<&Value>) -> bool {
    match sent.and_then(Value::as_array).map(Vec::as_slice) {
        Some([]) => true,
        Some([one]) => *one == json!({}),
        _ => false,
    }
}
