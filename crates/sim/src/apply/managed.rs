//! `metadata.managedFields`: takes the list on the wire, gives who owns what, and back.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::memo::Fields;
use crate::tree;

/// Entries of updates beyond this many are thrown together.
const UPDATERS: usize = 10;
/// Who owns what was thrown together.
const ANCIENT: &str = "ancient-changes";

/// Who owns fields: one entry of the list each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Manager {
    pub name: String,
    pub applied: bool,
    /// The version an updater wrote in; empty for appliers, who have one entry whatever the version.
    pub api_version: String,
    pub subresource: String,
}

/// What a manager owns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// The version the paths are of.
    pub api_version: String,
    pub set: Fields,
    pub time: Option<String>,
}

/// The whole list.
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

/// As conflicts are sorted: by name, appliers before updaters.
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

/// As conflicts name it.
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
    /// Reads the list; the server's words when it makes no sense.
    pub(super) fn parse(list: &[Value]) -> Result<Self, String> {
        let mut owners = Self::default();
        for (at, entry) in list.iter().enumerate() {
            let text = |field| tree::text(entry, &[field]);
            let applied = match text("operation") {
                "Apply" => true,
                "Update" => false,
                _ => return Err("operation must be `Apply` or `Update`".into()),
            };
            if text("apiVersion").is_empty() {
                return Err("apiVersion must not be empty".into());
            }
            match text("fieldsType") {
                "FieldsV1" => {}
                "" => return Err(format!("missing fieldsType in managed fields entry {at}")),
                other => {
                    return Err(format!(
                        "invalid fieldsType {other:?} in managed fields entry {at}"
                    ));
                }
            }
            let set = match entry.get("fieldsV1") {
                None | Some(Value::Null) => Fields::default(),
                Some(Value::String(packed)) => Fields::read(packed)?,
                Some(fields) => Fields::read(&fields.to_string())?,
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

    /// The list as an object carries it, `None` when nobody owns anything.
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
                .map(|(manager, entry)| on_wire(manager, entry))
                .collect(),
        )
    }

    /// Takes away entries that own nothing.
    pub(super) fn drop_empty(&mut self) {
        self.0.retain(|_, entry| !entry.set.is_empty());
    }

    /// Throws the oldest entries of updates together until there are few enough.
    pub(super) fn cap_updaters(&mut self) {
        if self.0.keys().filter(|manager| !manager.applied).count() <= UPDATERS {
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
        let mut first_of: BTreeMap<String, Manager> = BTreeMap::new();
        for (_, manager) in updaters {
            if count <= UPDATERS {
                return;
            }
            let version = manager.api_version.clone();
            let Some(first) = first_of.get(&version) else {
                first_of.insert(version, manager);
                continue;
            };
            let bucket = Manager::new(ANCIENT, false, &version, "");
            if !self.0.contains_key(&bucket)
                && let Some(entry) = self.0.remove(first)
            {
                self.0.insert(bucket.clone(), entry);
            }
            if let Some(entry) = self.0.remove(&manager) {
                let mut joined = entry.clone();
                if let Some(there) = self.0.get(&bucket) {
                    joined.set = joined.set.union(&there.set).into();
                }
                self.0.insert(bucket, joined);
                count -= 1;
            }
        }
    }
}

fn on_wire(manager: &Manager, entry: &Entry) -> Value {
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

/// Turns the wire form of an object's field sets into the form in which objects are written and compared here: one text per set
/// instead of a tree that is mostly larger than the object itself. What is packed stays so. [`crate::object::Object`] prints it as it was.
pub(super) fn pack(list: &mut [Value]) {
    for entry in list {
        if let Some(fields) = entry.get_mut("fieldsV1") {
            match fields {
                Value::String(packed) if Fields::read(packed).is_ok() => {}
                // No set at all: it is refused when it is read.
                Value::String(_) => *fields = "null".into(),
                _ => *fields = fields.to_string().into(),
            }
        }
    }
}

/// The way back from [`pack`].
pub(super) fn unpack(list: &mut [Value]) {
    for entry in list {
        if let Some(fields) = entry.get_mut("fieldsV1")
            && let Value::String(packed) = fields
        {
            *fields = serde_json::from_str(packed).unwrap_or_default();
        }
    }
}

/// Whether the sent list says that nobody shall own anything any more: it is empty, or has one empty entry.
pub(super) fn is_reset(sent: Option<&Value>) -> bool {
    match sent.and_then(Value::as_array).map(Vec::as_slice) {
        Some([]) => true,
        Some([one]) => *one == json!({}),
        _ => false,
    }
}
