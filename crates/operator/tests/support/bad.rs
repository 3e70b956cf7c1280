//! Objects that are wrong in one place: takes our definitions, gives every field with a wrong type, nothing, too much, or an unknown
//! word in it. Knows nothing of who must refuse them.

use serde_json::{Map, Value, json};

use super::made::{self, NEW};

/// One bad object.
#[derive(Clone, Debug)]
pub struct Bad {
    pub kind: String,
    pub version: String,
    /// Where it is wrong.
    pub path: String,
    /// How.
    pub flaw: &'static str,
    steps: Vec<Step>,
    value: Value,
}

/// One step on the way to a field.
#[derive(Clone, Debug)]
enum Step {
    Key(String),
    Item,
}

/// Nothing in our definitions is deeper.
const DEEPEST: usize = 16;

/// Every flaw of every field of every kind.
pub fn all() -> Vec<Bad> {
    let mut found = Vec::new();
    for definition in made::definitions() {
        let kind = definition["spec"]["names"]["kind"].as_str().unwrap();
        for version in definition["spec"]["versions"].as_array().unwrap() {
            let spec = &version["schema"]["openAPIV3Schema"]["properties"]["spec"];
            let version = version["name"].as_str().unwrap();
            walk(spec, &mut vec![Step::Key("spec".into())], &mut |steps, schema| {
                for (flaw, value) in flaws(schema) {
                    found.push(Bad {
                        kind: kind.to_owned(),
                        version: version.to_owned(),
                        path: shown(steps),
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

fn walk(schema: &Value, steps: &mut Vec<Step>, visit: &mut impl FnMut(&[Step], &Value)) {
    visit(steps, schema);
    if steps.len() > DEEPEST {
        return;
    }
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        steps.push(Step::Key(name.clone()));
        walk(field, steps, visit);
        steps.pop();
    }
    if schema["additionalProperties"].is_object() {
        steps.push(Step::Key("k".into()));
        walk(&schema["additionalProperties"], steps, visit);
        steps.pop();
    }
    if schema["items"].is_object() {
        steps.push(Step::Item);
        walk(&schema["items"], steps, visit);
        steps.pop();
    }
}

fn shown(steps: &[Step]) -> String {
    let words = steps.iter().map(|step| match step {
        Step::Key(key) => key.as_str(),
        Step::Item => "[]",
    });
    words.collect::<Vec<_>>().join(".")
}

/// What can be wrong with a field of this schema.
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
        flaws.push(("unknown word", json!("no-such-thing")));
    }
    flaws
}

impl Bad {
    /// The object, by this name where its kind lets one choose.
    pub fn object(&self, name: &str) -> Value {
        let mut object = match self.kind.as_str() {
            "Istio" => made::istio(name, NEW, json!({})),
            "IstioRevision" => made::revision(name, NEW, "istio-system", json!({})),
            "IstioRevisionTag" => made::tag(name, "Istio", "good"),
            "IstioCNI" => made::cni(json!({})),
            _ => made::ztunnel(json!({})),
        };
        object["apiVersion"] = format!("sailoperator.io/{}", self.version).into();
        put(&mut object, &self.steps, &self.value);
        object
    }

    /// Whether there can only be one of its kind.
    pub fn is_single(&self) -> bool {
        ["IstioCNI", "ZTunnel"].contains(&self.kind.as_str())
    }
}

impl std::fmt::Display for Bad {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{} {} {}", self.kind, self.version, self.path, self.flaw)
    }
}

fn put(into: &mut Value, steps: &[Step], value: &Value) {
    match steps.split_first() {
        None => *into = value.clone(),
        Some((Step::Key(key), rest)) => {
            if !into.is_object() {
                *into = Value::Object(Map::new());
            }
            put(&mut into[key.as_str()], rest, value);
        }
        Some((Step::Item, rest)) => {
            let mut item = Value::Null;
            put(&mut item, rest, value);
            *into = json!([item]);
        }
    }
}
