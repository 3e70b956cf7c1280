//! The undo record of a pod: an annotation on its pod template that lists what was injected in flow style.
//!
//! In block style, comments mark injected items ([`crate::mark`]). Flow style often has no place for comments
//! and JSON does not allow any, so the information for `--uninject` is stored as compact JSON in
//! [`UNDO_ANNOTATION`]:
//!
//! ```json
//! {"added": {"initContainers": ["contrast-initializer"],
//!            "containers/app/volumeMounts": ["contrast-tls-certs"]},
//!  "before": {"initContainers": null, "containers/app/volumeMounts": "[]"},
//!  "replaced": [{"index": 0, "container": {"name": "contrast-initializer", "image": "old"}}]}
//! ```
//!
//! The record identifies items by name, so it remains valid after any tool that does not change the objects,
//! such as formatters, `jq` and `yq`.

use std::collections::{BTreeMap, HashMap};

use mainstay_yaml::{Budget, Map, NodeId, Numbers, Value, parse, parse_json, to_json_raw};

use crate::profile::{INITIALIZER, Profile, SERVICE_MESH};
use crate::tree::{Entry, View};

/// Key of the annotation.
pub(crate) const UNDO_ANNOTATION: &str = "contrast.edgeless.systems/mainstay-injected";

/// Maximum length of a record in bytes. Kubernetes limits all annotations of an object together to 256 KiB.
pub(crate) const MAX_RECORD_LEN: usize = 128 << 10;

/// Edits of the flow collections of one pod.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Record {
    /// Names of the injected items, by the path of their list.
    pub(crate) added: BTreeMap<String, Vec<String>>,
    /// Former values of keys without items, by path; also of `metadata` and `annotations`.
    pub(crate) before: BTreeMap<String, Before>,
    /// Init containers of the user that were replaced.
    pub(crate) replaced: Vec<Replaced>,
}

/// Former value of a key without items.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Before {
    /// The key was absent; `null` in JSON.
    Absent,
    /// Text of a null or of an empty collection.
    Text(String),
}

/// An init container that was replaced.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Replaced {
    /// Index among the init containers that were neither replaced nor injected.
    pub(crate) index: usize,
    pub(crate) container: Value,
}

impl Before {
    fn to_value(&self) -> Value {
        match self {
            Self::Absent => Value::Null,
            Self::Text(text) => Value::String(text.clone()),
        }
    }

    /// Accepts only text of null or an empty collection, so that a record cannot add content to a pod.
    fn from_value(value: &Value) -> Option<Self> {
        let Some(text) = value.as_str() else {
            return value.is_null().then_some(Self::Absent);
        };
        let meaning = parse(text, &Budget::default()).ok()?;
        let is_nothing = match meaning {
            Value::Null => true,
            Value::List(items) => items.is_empty(),
            Value::Map(entries) => entries.is_empty(),
            _ => false,
        };
        is_nothing.then(|| Self::Text(text.to_owned()))
    }
}

impl Record {
    /// Whether there is nothing to undo.
    pub(crate) fn is_empty(&self) -> bool {
        self.added.is_empty() && self.replaced.is_empty()
    }

    /// Records that `names` were added to the list at `path`. `before` is the former value of a list
    /// without items.
    pub(crate) fn add(&mut self, path: &str, names: Vec<String>, before: Option<Before>) {
        self.added.entry(path.to_owned()).or_default().extend(names);
        if let Some(before) = before {
            self.before.insert(path.to_owned(), before);
        }
    }

    /// Returns the value of the annotation; `None` if it is too long or a value has no JSON form.
    pub(crate) fn to_text(&self) -> Option<String> {
        let text = |text: &str| Value::String(text.to_owned());
        let mut map = Map::new();
        let added = self.added.iter().map(|(path, names)| {
            let names = names.iter().map(|name| text(name)).collect();
            (path.clone(), Value::List(names))
        });
        map.insert("added".into(), Value::Map(added.collect()));
        if !self.before.is_empty() {
            let before = self.before.iter();
            let before = before.map(|(path, before)| (path.clone(), before.to_value()));
            map.insert("before".into(), Value::Map(before.collect()));
        }
        if !self.replaced.is_empty() {
            let replaced = self.replaced.iter().map(Replaced::to_value);
            map.insert("replaced".into(), Value::List(replaced.collect()));
        }
        let json = escape_non_ascii(&to_json_raw(&Value::Map(map)).ok()?);
        (json.len() <= MAX_RECORD_LEN).then_some(json)
    }

    /// Parses the value of the annotation; `None` if it is not a record.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let value = parse_json(text, Numbers::Exact, &Budget::default()).ok()?;
        let mut record = Self::default();
        for (path, names) in value.get("added")?.as_map()? {
            let names = names
                .as_list()?
                .iter()
                .map(|name| name.as_str().map(str::to_owned));
            record.added.insert(path.clone(), names.collect::<Option<_>>()?);
        }
        for (path, before) in value.get("before").and_then(Value::as_map).into_iter().flatten() {
            record.before.insert(path.clone(), Before::from_value(before)?);
        }
        for replaced in value.get("replaced").and_then(Value::as_list).unwrap_or_default() {
            record.replaced.push(Replaced::from_value(replaced)?);
        }
        Some(record)
    }
}

impl Replaced {
    fn to_value(&self) -> Value {
        let index = i64::try_from(self.index).unwrap_or(i64::MAX);
        Value::Map(Map::from_iter([
            ("index".to_owned(), Value::Int(index)),
            ("container".to_owned(), self.container.clone()),
        ]))
    }

    fn from_value(value: &Value) -> Option<Self> {
        Some(Self {
            index: usize::try_from(value.get("index")?.as_i64()?).ok()?,
            container: value.get("container")?.clone(),
        })
    }
}

/// A record with its location in a document.
#[derive(Clone, Debug)]
pub(crate) struct Recorded {
    pub(crate) record: Record,
    /// Entry of `metadata` in the pod template.
    pub(crate) metadata: (NodeId, NodeId),
    /// Entry of `annotations` in the metadata.
    pub(crate) annotations: (NodeId, NodeId),
    /// Entry of the record in the annotations.
    pub(crate) entry: (NodeId, NodeId),
}

/// Result of looking up the record of a pod template.
#[derive(Clone, Debug)]
pub(crate) enum Lookup {
    /// There is no annotation.
    Absent,
    /// The annotation at this node is not a record.
    Invalid(NodeId),
    /// There is a record.
    Found(Box<Recorded>),
}

/// Looks up the record of `template`. A record that is reached through an alias or a merge key belongs to
/// another pod and is ignored.
pub(crate) fn find(view: &View<'_>, template: NodeId) -> Lookup {
    let own = |map: NodeId, key: &str| match view.entry(map, key) {
        Entry::Own(key, value) if view.resolve(value) == value => Some((key, value)),
        _ => None,
    };
    let parents = own(template, "metadata").and_then(|metadata| {
        let annotations = own(metadata.1, "annotations")?;
        Some((metadata, annotations, own(annotations.1, UNDO_ANNOTATION)?))
    });
    let Some((metadata, annotations, entry)) = parents else {
        return Lookup::Absent;
    };
    match view.scalar(entry.1).and_then(Record::parse) {
        None => Lookup::Invalid(entry.1),
        Some(record) => Lookup::Found(Box::new(Recorded {
            record,
            metadata,
            annotations,
            entry,
        })),
    }
}

/// Returns for each of `items`, the list at `path`, whether it was injected according to `record`.
pub(crate) fn injected_flags(view: &View<'_>, record: &Record, path: &str, items: &[NodeId]) -> Vec<bool> {
    let mut injected = vec![false; items.len()];
    let names = record.added.get(path).into_iter().flatten();
    for name in names.filter(|name| is_injected_name(name)) {
        let is_named = |item: &NodeId| view.scalar_at(*item, &["name"]) == Some(name.as_str());
        // The initializer is added as first item, all others as last. An item of the same name that was
        // added later is kept.
        let index = if name == INITIALIZER {
            items.iter().position(is_named)
        } else {
            items.iter().rposition(is_named)
        };
        if let Some(flag) = index.and_then(|index| injected.get_mut(index)) {
            *flag = true;
        }
    }
    injected
}

/// Whether an injected item can have this name. A marked line that was copied and renamed belongs to the
/// user.
pub(crate) fn is_injected_name(name: &str) -> bool {
    [INITIALIZER, SERVICE_MESH].contains(&name) || Profile::ALL.iter().any(|profile| profile.volume == name)
}

/// Returns the paths of the `volumeMounts` of `containers`, the user's items of `list`. A path contains the
/// name of the container if it is unique, otherwise the index.
pub(crate) fn mount_paths(view: &View<'_>, list: &str, containers: &[NodeId]) -> Vec<String> {
    let names: Vec<Option<&str>> = containers
        .iter()
        .map(|container| view.scalar_at(*container, &["name"]))
        .collect();
    let mut counts: HashMap<&str, usize> = HashMap::new();
    for name in names.iter().flatten() {
        *counts.entry(name).or_default() += 1;
    }
    let is_key = |name: &&str| !name.is_empty() && !name.contains(['/', '#']) && counts.get(name) == Some(&1);
    let keys = names.iter().enumerate().map(|(index, name)| {
        let key = name.filter(|name| is_key(name));
        key.map_or_else(|| format!("#{index}"), str::to_owned)
    });
    keys.map(|key| format!("{list}/{key}/volumeMounts")).collect()
}

fn escape_non_ascii(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for character in json.chars() {
        if character.is_ascii() && character != '\u{7f}' {
            out.push(character);
            continue;
        }
        let mut units = [0; 2];
        for unit in character.encode_utf16(&mut units) {
            out.extend(["\\u", &format!("{unit:04x}")]);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replaced(text: &str) -> Replaced {
        let container = parse_json(text, Numbers::Exact, &Budget::default()).unwrap();
        Replaced { index: 2, container }
    }

    #[test]
    fn records_round_trip() {
        let mut record = Record::default();
        record.add("initContainers", vec![INITIALIZER.into()], Some(Before::Absent));
        record.add(
            "containers/app/volumeMounts",
            vec!["contrast-secrets".into()],
            None,
        );
        record
            .before
            .insert("annotations".into(), Before::Text("~".into()));
        record.replaced.push(replaced(
            r#"{"name": "\u2028é\u007f", "n": 18446744073709551615, "o": null}"#,
        ));
        let text = record.to_text().unwrap();
        assert!(text.is_ascii(), "{text}");
        assert_eq!(Record::parse(&text), Some(record));
    }

    #[test]
    fn long_records_are_rejected() {
        let mut record = Record::default();
        record.replaced.push(replaced(&format!(
            "{{\"name\": \"{}\"}}",
            "x".repeat(MAX_RECORD_LEN)
        )));
        assert_eq!(record.to_text(), None);
    }

    #[test]
    fn other_text_is_not_a_record() {
        for text in [
            "",
            "null",
            "[]",
            "{}",
            r#"{"added": {"volumes": [1]}}"#,
            r#"{"added": {}, "before": {"a": "b"}}"#,
        ] {
            assert_eq!(Record::parse(text), None, "{text}");
        }
    }
}
