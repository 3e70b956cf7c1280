//! Parses deployments: our kinds, the documents of the proposal as printed there, and `KubeVela`'s
//! `AppDeployment`.

use mainstay_api::delivery::API_VERSION;
use mainstay_yaml::{Budget, Document, Position, parse_spanned_values, to_json};
use serde_json::{Map, Value, json};

/// Group and version of `KubeVela`'s kinds.
const OAM_API_VERSION: &str = "core.oam.dev/v1beta1";

/// Maximum length of a text in bytes.
const MAX_BYTES: usize = 4 << 20;

/// An object in a form that the API server accepts.
#[derive(Clone, Debug, PartialEq)]
pub struct NormalizedObject {
    /// The object.
    pub object: Value,
    /// Position of its document in the text.
    pub position: Position,
    /// Descriptions of the changes that were made, one sentence each.
    pub changes: Vec<String>,
}

/// Maximum size of one document as JSON: the limit of an API server for a request.
const MAX_DOCUMENT: usize = 3 << 20;

/// Error of parsing documents.
#[derive(Debug, thiserror::Error)]
pub enum DocumentError {
    /// The text is too long.
    #[error("the text has {0} bytes; at most {MAX_BYTES} are read")]
    TooLong(usize),
    /// The text is not valid YAML.
    #[error(transparent)]
    Syntax(#[from] mainstay_yaml::Error),
    /// A value cannot be represented in JSON.
    #[error("line {line}: the document has no JSON form")]
    NoJson {
        /// Line of the document.
        line: usize,
    },
    /// A document is larger than an API server accepts.
    #[error(
        "line {line}: the document has {bytes} bytes as JSON; an API server accepts at most {MAX_DOCUMENT}"
    )]
    DocumentTooLarge {
        /// Line of the document.
        line: usize,
        /// Size of its JSON form.
        bytes: usize,
    },
    /// A document is not an object with a kind.
    #[error("line {line}, column {column}: the document has no kind; add `kind: ApplicationDeployment`")]
    NoKind {
        /// Line of the document.
        line: usize,
        /// Column of the document.
        column: usize,
    },
    /// The kind is unknown.
    #[error(
        "line {line}, column {column}: {api_version} {kind} is not known; use a kind of delivery.mainstay.dev/v1alpha1 or AppDeployment of core.oam.dev/v1beta1"
    )]
    UnknownKind {
        /// Line of the kind.
        line: usize,
        /// Column of the kind.
        column: usize,
        /// The kind.
        kind: String,
        /// The group and version.
        api_version: String,
    },
    /// The object has no name.
    #[error("line {line}, column {column}: the object has no name; add `metadata.name`")]
    NoName {
        /// Line of the document.
        line: usize,
        /// Column of the document.
        column: usize,
    },
}

/// Our kinds that a text may contain.
const KINDS: &[&str] = &[
    "AnalysisTemplate",
    "Application",
    "ApplicationDeployment",
    "ApplicationRevision",
    "Cluster",
    "DeploymentAction",
];

/// Parses all documents of a text. Empty documents are skipped.
pub fn parse_documents(text: &str) -> Result<Vec<NormalizedObject>, DocumentError> {
    if text.len() > MAX_BYTES {
        return Err(DocumentError::TooLong(text.len()));
    }
    let mut objects = Vec::new();
    for parsed in parse_spanned_values(text, &Budget::default())? {
        let value = to_json(&parsed.value?)?;
        let position = start_of(&parsed.document, &[]);
        let line = position.line;
        if value.len() > MAX_DOCUMENT {
            let bytes = value.len();
            return Err(DocumentError::DocumentTooLarge { line, bytes });
        }
        let value: Value = serde_json::from_str(&value).map_err(|_| DocumentError::NoJson { line })?;
        if !value.is_null() {
            objects.push(normalize(&parsed.document, value)?);
        }
    }
    Ok(objects)
}

/// Returns the position of the node at `keys`, or of the root if there is no such node.
fn start_of(document: &Document<'_>, keys: &[&str]) -> Position {
    let id = document.find(keys).or_else(|| document.root());
    let node = id.and_then(|id| document.nodes.get(id.0 as usize));
    node.map_or(document.span.start, |node| node.span.start)
}

fn normalize(document: &Document<'_>, value: Value) -> Result<NormalizedObject, DocumentError> {
    let position = start_of(document, &[]);
    let Position { line, column, .. } = position;
    let Value::Object(mut object) = value else {
        return Err(DocumentError::NoKind { line, column });
    };
    let text = |object: &Map<String, Value>, key: &str| {
        object
            .get(key)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let (api_version, kind) = (text(&object, "apiVersion"), text(&object, "kind"));
    let mut changes = Vec::new();
    match (api_version.as_str(), kind.as_str()) {
        (_, "") => return Err(DocumentError::NoKind { line, column }),
        (API_VERSION, kind) if KINDS.contains(&kind) => {}
        ("", kind) if KINDS.contains(&kind) => {
            object.insert("apiVersion".into(), json!(API_VERSION));
            changes.push(format!("apiVersion is set to {API_VERSION}"));
        }
        (OAM_API_VERSION, kind @ ("AppDeployment" | "Cluster")) => {
            changes.push(format!("{OAM_API_VERSION} {kind} is converted"));
            convert_oam(&mut object, &mut changes);
        }
        _ => {
            let at = start_of(document, &["kind"]);
            return Err(DocumentError::UnknownKind {
                line: at.line,
                column: at.column,
                kind,
                api_version,
            });
        }
    }
    move_name(&mut object, &mut changes);
    let has_name = object.get("metadata").is_some_and(|metadata| {
        let is_set = |key: &str| metadata.get(key).and_then(Value::as_str).is_some();
        is_set("name") || is_set("generateName")
    });
    if !has_name {
        return Err(DocumentError::NoName { line, column });
    }
    Ok(NormalizedObject {
        object: Value::Object(object),
        position,
        changes,
    })
}

/// Moves `name` from the top level, where it is in the proposal's example, to `metadata`.
fn move_name(object: &mut Map<String, Value>, changes: &mut Vec<String>) {
    let Some(name) = object.remove("name") else {
        return;
    };
    let metadata = object.entry("metadata").or_insert_with(|| json!({}));
    if let Value::Object(metadata) = metadata {
        metadata.entry("name").or_insert(name);
        changes.push("name is moved to metadata.name".into());
    }
}

/// Converts an object of `KubeVela`. The spec is not changed, the status is removed. A target without a
/// weight gets weight 0 if other targets of the rule have one, as in `KubeVela`.
fn convert_oam(object: &mut Map<String, Value>, changes: &mut Vec<String>) {
    let kind = object.get("kind").and_then(Value::as_str);
    let kind = if kind == Some("AppDeployment") {
        "ApplicationDeployment"
    } else {
        "Cluster"
    };
    object.insert("kind".into(), json!(kind));
    object.insert("apiVersion".into(), json!(API_VERSION));
    if object.remove("status").is_some() {
        changes.push("status is removed".into());
    }
    let rules = object
        .get_mut("spec")
        .and_then(|spec| spec.pointer_mut("/traffic/http"))
        .and_then(Value::as_array_mut);
    for targets in rules
        .into_iter()
        .flatten()
        .filter_map(|rule| rule.get_mut("weightedTargets")?.as_array_mut())
    {
        complete_weights(targets, changes);
    }
}

fn complete_weights(targets: &mut [Value], changes: &mut Vec<String>) {
    let has_weight = |target: &Value| target.get("weight").is_some();
    if targets.iter().all(has_weight) || !targets.iter().any(has_weight) {
        return;
    }
    for target in targets.iter_mut().filter(|target| target.get("weight").is_none()) {
        if let Value::Object(target) = target {
            target.insert("weight".into(), json!(0));
            changes.push("a missing weight is set to 0".into());
        }
    }
}
