//! Custom resources: takes a `CustomResourceDefinition`, gives the resources it serves. Pruning, defaulting and validation by schema
//! belong here; for now custom objects are taken as they are.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::field::FieldErrors;
use crate::resource::{Resource, Shape, Subresource, Traits, Verbs};
use crate::schema::Decoded;
use crate::state::State;
use crate::status::Result;
use crate::tree;

/// What a definition says about one version.
#[derive(Clone, Debug, Default)]
pub struct Custom {
    /// `openAPIV3Schema`.
    pub schema: Value,
    /// Additional printer columns.
    pub columns: Vec<Value>,
    /// Paths that field selectors may ask for, without the leading dot.
    pub selectable: Vec<String>,
    /// `subresources.scale`.
    pub scale: Option<Value>,
    /// How many versions are served.
    pub versions: usize,
}

/// Reads a sent custom object: what the schema does not know is dropped and named.
pub fn decode(_state: &State, _custom: &Custom, value: Value) -> Result<Decoded> {
    Ok(Decoded {
        value,
        unknown: Vec::new(),
    })
}

/// Fills in the schema's defaults.
pub fn default(_state: &State, _custom: &Custom, _value: &mut Value) {}

/// Checks a custom object against the schema.
#[must_use]
pub fn validate(_state: &State, _custom: &Custom, _new: &Value, _old: Option<&Value>) -> FieldErrors {
    FieldErrors::new()
}

/// Defaults of the definition itself.
pub fn defaults(value: &mut Value) {
    let kind = tree::text(value, &["spec", "names", "kind"]).to_owned();
    tree::set_default_text(value, &["spec", "names", "singular"], &kind.to_lowercase());
    tree::set_default_text(value, &["spec", "names", "listKind"], &format!("{kind}List"));
    tree::set_default(value, &["spec", "conversion"], json!({"strategy": "None"}));
}

/// The definition's status: it is accepted at once.
pub fn prepare(value: &mut Value, old: Option<&Value>) {
    if let Some(old) = old {
        tree::copy(old, value, &["status"]);
    }
    let stored = tree::list(value, &["spec", "versions"])
        .iter()
        .filter(|version| tree::flag(version, &["storage"]));
    let stored: Vec<Value> = stored
        .filter_map(|version| version.get("name").cloned())
        .collect();
    let mut all = tree::list(value, &["status", "storedVersions"]).to_vec();
    for name in stored {
        if !all.contains(&name) {
            all.push(name);
        }
    }
    let names = tree::get(value, &["spec", "names"]).cloned().unwrap_or_default();
    tree::set(value, &["status", "storedVersions"], all);
    tree::set(value, &["status", "acceptedNames"], names);
    let at = tree::text(value, &["metadata", "creationTimestamp"]).to_owned();
    let condition = |kind: &str, reason: &str, message: &str| json!({"type": kind, "status": "True", "reason": reason, "message": message, "lastTransitionTime": at});
    let conditions = json!([
        condition("NamesAccepted", "NoConflicts", "no conflicts found"),
        condition(
            "Established",
            "InitialNamesAccepted",
            "the initial names have been accepted"
        ),
    ]);
    tree::set_default(value, &["status", "conditions"], conditions);
}

/// Serves every version of the definition.
pub fn serve(state: &mut State, definition: &Value) {
    stop_serving(state, definition);
    for resource in resources(definition) {
        state.resources.add(resource);
    }
}

/// Serves none of it any more.
pub fn stop_serving(state: &mut State, definition: &Value) {
    let (group, plural) = (
        tree::text(definition, &["spec", "group"]),
        tree::text(definition, &["spec", "names", "plural"]),
    );
    state.resources.remove(group, plural);
}

fn resources(definition: &Value) -> Vec<Resource> {
    let group = tree::text(definition, &["spec", "group"]);
    let versions = tree::list(definition, &["spec", "versions"]);
    let stored = versions.iter().find(|version| tree::flag(version, &["storage"]));
    let stored = stored.map_or("", |version| tree::text(version, &["name"]));
    let served: Vec<&Value> = versions
        .iter()
        .filter(|version| tree::flag(version, &["served"]))
        .collect();
    served
        .iter()
        .map(|version| resource(definition, group, version, stored, served.len()))
        .collect()
}

fn resource(definition: &Value, group: &str, version: &Value, stored: &str, versions: usize) -> Resource {
    let names = |field| tree::text(definition, &["spec", "names", field]);
    let list = |field| {
        tree::list(definition, &["spec", "names", field])
            .iter()
            .filter_map(Value::as_str)
            .map(Into::into)
            .collect()
    };
    let plural = names("plural");
    let custom = Custom {
        schema: tree::get(version, &["schema", "openAPIV3Schema"])
            .cloned()
            .unwrap_or_default(),
        columns: tree::list(version, &["additionalPrinterColumns"]).to_vec(),
        selectable: selectable(version),
        scale: tree::get(version, &["subresources", "scale"]).cloned(),
        versions,
    };
    Resource {
        group: group.into(),
        version: tree::text(version, &["name"]).into(),
        plural: plural.into(),
        kind: names("kind").into(),
        singular: names("singular").into(),
        namespaced: tree::text(definition, &["spec", "scope"]) == "Namespaced",
        short_names: list("shortNames"),
        categories: list("categories"),
        verbs: Verbs::all(),
        traits: Traits {
            versioned_updates: true,
            generation: true,
            ..Traits::default()
        },
        subresources: subresources(version, names("kind")),
        table: format!("{plural}.{group}").into(),
        stored_as: format!("{group}/{stored}").into(),
        shape: Shape::Custom(Arc::new(custom)),
    }
}

fn selectable(version: &Value) -> Vec<String> {
    let fields = tree::list(version, &["selectableFields"]).iter();
    fields
        .map(|field| {
            tree::text(field, &["jsonPath"])
                .trim_start_matches('.')
                .to_owned()
        })
        .collect()
}

fn subresources(version: &Value, kind: &str) -> Vec<Subresource> {
    let mut all = Vec::new();
    let verbs = Verbs::of("gpu");
    if tree::get(version, &["subresources", "status"]).is_some() {
        let (name, kind) = ("status".into(), kind.into());
        all.push(Subresource {
            name,
            group: "".into(),
            version: "".into(),
            kind,
            verbs,
        });
    }
    if tree::get(version, &["subresources", "scale"]).is_some() {
        let (name, kind) = ("scale".into(), "Scale".into());
        all.push(Subresource {
            name,
            group: "autoscaling".into(),
            version: "v1".into(),
            kind,
            verbs,
        });
    }
    all
}

/// Orders versions as Kubernetes does: `v2` before `v1` before `v1beta1` before `v1alpha1` before the rest.
#[must_use]
pub fn version_priority(name: &str) -> (u8, u64, u64, std::cmp::Reverse<String>) {
    let parsed = name.strip_prefix('v').and_then(|rest| {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let (major, stage) = rest.split_at_checked(digits)?;
        let major = major.parse().ok()?;
        let (rank, minor) = match stage {
            "" => (3, "0"),
            _ => match (stage.strip_prefix("beta"), stage.strip_prefix("alpha")) {
                (Some(minor), _) => (2, minor),
                (_, Some(minor)) => (1, minor),
                _ => return None,
            },
        };
        Some((rank, major, minor.parse().ok()?))
    });
    let (rank, major, minor) = parsed.unwrap_or((0, 0, 0));
    (rank, major, minor, std::cmp::Reverse(name.to_owned()))
}
