//! Objects with one invalid field. Covers every field of our definitions with a value of a wrong type, an
//! empty or huge value, or an unknown enum value.

use serde_json::{Map, Value, json};

use super::fixtures::{self, NEW};

/// An object with one invalid field.
#[derive(Clone, Debug)]
pub struct InvalidObject {
    pub kind: String,
    pub version: String,
    /// Path of the invalid field.
    pub path: String,
    /// Kind of flaw.
    pub flaw: &'static str,
    steps: Vec<Step>,
    value: Value,
}

/// Element of the path to a field.
#[derive(Clone, Debug)]
enum Step {
    Key(String),
    Item,
}

/// Maximum depth of our definitions.
const MAX_DEPTH: usize = 16;

/// Returns an object for each flaw of each field of each kind.
pub fn all_invalid_objects() -> Vec<InvalidObject> {
    let mut found = Vec::new();
    for definition in fixtures::definitions() {
        let kind = definition["spec"]["names"]["kind"].as_str().unwrap();
        for version in definition["spec"]["versions"].as_array().unwrap() {
            let spec = &version["schema"]["openAPIV3Schema"]["properties"]["spec"];
            let version = version["name"].as_str().unwrap();
            visit_fields(spec, &mut vec![Step::Key("spec".into())], &mut |steps, schema| {
                for (flaw, value) in flaws(schema) {
                    found.push(InvalidObject {
                        kind: kind.to_owned(),
                        version: version.to_owned(),
                        path: format_path(steps),
                        flaw,
                        steps: steps.to_vec(),
                        value,
                    });
                }
            });
        }
    }
    found
}

fn visit_fields(schema: &Value, steps: &mut Vec<Step>, visit: &mut impl FnMut(&[Step], &Value)) {
    visit(steps, schema);
    if steps.len() > MAX_DEPTH {
        return;
    }
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        steps.push(Step::Key(name.clone()));
        visit_fields(field, steps, visit);
        steps.pop();
    }
    if schema["additionalProperties"].is_object() {
        steps.push(Step::Key("k".into()));
        visit_fields(&schema["additionalProperties"], steps, visit);
        steps.pop();
    }
    if schema["items"].is_object() {
        steps.push(Step::Item);
        visit_fields(&schema["items"], steps, visit);
        steps.pop();
    }
}

fn format_path(steps: &[Step]) -> String {
    let words = steps.iter().map(|step| match step {
        Step::Key(key) => key.as_str(),
        Step::Item => "[]",
    });
    words.collect::<Vec<_>>().join(".")
}

/// Returns the flaws of a field with this schema.
fn flaws(schema: &Value) -> Vec<(&'static str, Value)> {
    let (wrong, empty, huge) = ("wrong type", "empty", "huge");
    let mut flaws = match schema["type"].as_str() {
        Some("object") => vec![(wrong, json!("text")), (empty, json!({})), ("null", Value::Null)],
        Some("array") => vec![
            (wrong, json!({"a": 1})),
            (empty, json!([])),
            (huge, Value::Array(vec![Value::Null; 2_000])),
        ],
        Some("boolean") => vec![(wrong, json!("text")), (empty, json!(""))],
        Some("integer" | "number") => vec![
            (wrong, json!("text")),
            (empty, json!("")),
            (huge, json!(i64::MAX)),
        ],
        Some("string") => vec![
            (wrong, json!(7)),
            (empty, json!("")),
            (huge, json!("x".repeat(20_000))),
        ],
        _ => vec![(wrong, json!([[]])), (huge, json!("x".repeat(20_000)))],
    };
    if schema["enum"].is_array() {
        flaws.push(("unknown value", json!("no-such-thing")));
    }
    flaws
}

impl InvalidObject {
    /// Returns the object. It has this name unless its kind is a singleton.
    pub fn object(&self, name: &str) -> Value {
        let mut object = match self.kind.as_str() {
            "Istio" => fixtures::istio(name, NEW, json!({})),
            "IstioRevision" => fixtures::revision(name, NEW, "istio-system", json!({})),
            "IstioRevisionTag" => fixtures::tag(name, "Istio", "valid"),
            "IstioCNI" => fixtures::cni(json!({})),
            _ => fixtures::ztunnel(json!({})),
        };
        object["apiVersion"] = format!("sailoperator.io/{}", self.version).into();
        set_value(&mut object, &self.steps, &self.value);
        object
    }

    /// Whether only one object of its kind can exist.
    pub fn is_singleton(&self) -> bool {
        ["IstioCNI", "ZTunnel"].contains(&self.kind.as_str())
    }
}

impl std::fmt::Display for InvalidObject {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{} {} {}", self.kind, self.version, self.path, self.flaw)
    }
}

fn set_value(into: &mut Value, steps: &[Step], value: &Value) {
    match steps.split_first() {
        None => *into = value.clone(),
        Some((Step::Key(key), rest)) => {
            if !into.is_object() {
                *into = Value::Object(Map::new());
            }
            set_value(&mut into[key.as_str()], rest, value);
        }
        Some((Step::Item, rest)) => {
            let mut item = Value::Null;
            set_value(&mut item, rest, value);
            *into = json!([item]);
        }
    }
}
