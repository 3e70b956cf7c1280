//! Owned definitions with the descriptors of the Sail Operator, which a console turns into forms.

use serde_json::{Value, json};

use super::name;

/// A field of a spec that a form shows.
struct Field {
    path: &'static str,
    title: &'static str,
    input: Input,
}

/// Input widget of a form field.
#[derive(Clone, Copy)]
enum Input {
    /// One of the installable versions.
    Version,
    /// One of the values in the schema.
    Choice,
    Namespace,
    Number,
    Switch,
    Other,
}

const fn field(path: &'static str, title: &'static str, input: Input) -> Field {
    Field { path, title, input }
}

/// Fields by kind, with the Sail Operator's titles and inputs.
const FIELDS: &[(&str, &[Field])] = &[
    (
        "Istio",
        &[
            field("updateStrategy.type", "Type", Input::Choice),
            field("version", "Istio Version", Input::Version),
            field(
                "updateStrategy.inactiveRevisionDeletionGracePeriodSeconds",
                "Inactive Revision Deletion Grace Period (seconds)",
                Input::Number,
            ),
            field(
                "updateStrategy.updateWorkloads",
                "Update Workloads Automatically",
                Input::Switch,
            ),
            field("namespace", "Namespace", Input::Namespace),
            field("profile", "Profile", Input::Choice),
            field("updateStrategy", "Update Strategy", Input::Other),
            field("values", "Helm Values", Input::Other),
        ],
    ),
    (
        "IstioRevision",
        &[
            field("version", "Istio Version", Input::Version),
            field("namespace", "Namespace", Input::Namespace),
            field("values", "Helm Values", Input::Other),
        ],
    ),
    ("IstioRevisionTag", &[]),
    (
        "IstioCNI",
        &[
            field("version", "Istio Version", Input::Version),
            field("namespace", "Namespace", Input::Namespace),
            field("profile", "Profile", Input::Choice),
            field("values", "Helm Values", Input::Other),
        ],
    ),
    (
        "ZTunnel",
        &[
            field("version", "Istio Version", Input::Version),
            field("namespace", "Namespace", Input::Namespace),
            field("values", "Helm Values", Input::Other),
        ],
    ),
];

/// Display names that differ from the kind.
const TITLES: &[(&str, &str)] = &[
    ("IstioRevision", "Istio Revision"),
    ("IstioRevisionTag", "Istio Revision Tag"),
    ("IstioCNI", "Istio CNI"),
];

/// Returns the entries of a definition, one per served version.
pub(super) fn owned(definition: &Value, installable: &[String]) -> Vec<Value> {
    let versions = definition["spec"]["versions"].as_array().cloned();
    let entry = |version: Value| {
        let kind = definition["spec"]["names"]["kind"].as_str().unwrap_or_default();
        let mut entry = json!({
            "kind": kind, "name": name(definition), "version": version["name"],
            "displayName": title(kind),
        });
        let schema = &version["schema"]["openAPIV3Schema"];
        entry["description"] = schema["description"].clone();
        if entry["description"].is_null() {
            entry["description"] = json!(format!("{kind} of Istio."));
        }
        let spec = &schema["properties"]["spec"];
        let fields = FIELDS.iter().find(|(known, _)| *known == kind);
        let fields = fields.map_or(&[][..], |(_, fields)| *fields);
        let descriptors: Vec<Value> = fields
            .iter()
            .filter_map(|field| describe(field, spec, installable))
            .collect();
        if !descriptors.is_empty() {
            entry["specDescriptors"] = descriptors.into();
        }
        entry
    };
    versions.unwrap_or_default().into_iter().map(entry).collect()
}

fn title(kind: &str) -> &str {
    let known = TITLES.iter().find(|(name, _)| *name == kind);
    known.map_or(kind, |(_, title)| *title)
}

/// Returns the descriptor of a field; `None` if the schema has no such field.
fn describe(field: &Field, spec: &Value, installable: &[String]) -> Option<Value> {
    let schema = field
        .path
        .split('.')
        .try_fold(spec, |schema, name| schema["properties"].get(name))?;
    let choices = schema["enum"].as_array().cloned().unwrap_or_default();
    let choices: Vec<&str> = choices.iter().filter_map(Value::as_str).collect();
    let inputs = inputs(field.input, &choices, installable);
    let mut descriptor = json!({
        "path": field.path, "displayName": field.title, "description": schema["description"],
    });
    if !inputs.is_empty() {
        descriptor["x-descriptors"] = inputs.into();
    }
    Some(descriptor)
}

fn inputs(input: Input, choices: &[&str], installable: &[String]) -> Vec<String> {
    let ui = |text: &str| format!("urn:alm:descriptor:com.tectonic.ui:{text}");
    let select = |choice: &&str| ui(&format!("select:{choice}"));
    match input {
        Input::Version => {
            let known = |choice: &&&str| installable.iter().any(|name| name == **choice);
            let versions = choices.iter().filter(known).map(select);
            [ui("fieldGroup:General")].into_iter().chain(versions).collect()
        }
        Input::Choice => choices.iter().map(select).collect(),
        Input::Namespace => vec!["urn:alm:descriptor:io.kubernetes:Namespace".to_owned()],
        Input::Number => vec![ui("number")],
        Input::Switch => vec![ui("booleanSwitch")],
        Input::Other => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_selected_from_what_is_installable() {
        let definition = json!({
            "metadata": {"name": "istiorevisions.sailoperator.io"},
            "spec": {"names": {"kind": "IstioRevision"}, "versions": [{"name": "v1", "schema": {"openAPIV3Schema": {
                "description": "A revision.",
                "properties": {"spec": {"properties": {"version": {"enum": ["v1.30.3", "v1.29.1"], "description": "d"}}}},
            }}}]},
        });
        let entries = owned(&definition, &["v1.29.1".to_owned()]);
        assert_eq!(entries[0]["displayName"], "Istio Revision");
        let descriptors = &entries[0]["specDescriptors"];
        assert_eq!(descriptors.as_array().unwrap().len(), 1);
        assert_eq!(
            descriptors[0]["x-descriptors"],
            json!([
                "urn:alm:descriptor:com.tectonic.ui:fieldGroup:General",
                "urn:alm:descriptor:com.tectonic.ui:select:v1.29.1"
            ])
        );
    }
}
