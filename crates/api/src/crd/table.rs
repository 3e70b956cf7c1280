//! Converts definitions to a table of facts, so that two sets of definitions can be compared. The table has
//! one line per definition, version and schema node, without descriptions.
//!
//! ```text
//! Istio {"group":"sailoperator.io","scope":"Cluster"}
//!   v1 {"served":true,"storage":true}
//!     schema {"type":"object"}
//!       spec {"type":"object","required":["version"]}
//!         version {"type":"string"}
//!         values = IstioRevision.v1.schema.spec.values
//! ```
//!
//! Children are indented by two spaces. `[]` is the schema of a list's items, `{}` that of a map's values.
//! `= PATH` means that facts and children equal those at an earlier path.

#![allow(
    clippy::indexing_slicing,
    reason = "indexing a `serde_json::Value` by a constant returns null, and the keys assigned belong to objects"
)]

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

/// Facts by path, such as `Istio.v1.schema.spec.version`.
pub type Facts = BTreeMap<String, Value>;

/// Error of parsing a table.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TableError {
    /// A line is neither `NAME JSON` nor `NAME = PATH`, or is indented too far.
    #[error("line {line}: {text:?} is not a fact")]
    Syntax {
        /// Number of the line, starting at 1.
        line: usize,
        /// Text of the line.
        text: String,
    },
    /// A line refers to a path that no earlier line defines.
    #[error("line {line}: {path} is not defined before")]
    UnknownPath {
        /// Number of the line, starting at 1.
        line: usize,
        /// Path.
        path: String,
    },
}

/// Keys of a schema that are not facts of the node itself.
const NESTED: [&str; 4] = ["description", "properties", "items", "additionalProperties"];

struct Node {
    name: String,
    facts: Value,
    children: Vec<Node>,
}

/// Returns the facts about definitions.
#[must_use]
pub fn facts(definitions: &[Value]) -> Facts {
    let mut facts = Facts::new();
    for definition in definitions {
        collect_facts(&Node::for_definition(definition), "", &mut facts);
    }
    facts
}

/// Formats the facts about definitions as a table.
#[must_use]
pub fn write_table(definitions: &[Value]) -> String {
    let mut table = Table::default();
    for definition in definitions {
        table.write_node(&Node::for_definition(definition), "", 0);
    }
    table.text
}

/// Parses a table.
pub fn read_table(text: &str) -> Result<Facts, TableError> {
    let mut facts = Facts::new();
    let mut parents: Vec<String> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let syntax = || TableError::Syntax {
            line: index + 1,
            text: line.to_owned(),
        };
        let trimmed = line.trim_start();
        let depth = (line.len() - trimmed.len()) / 2;
        let (name, fact) = trimmed.split_once(' ').ok_or_else(syntax)?;
        if depth > parents.len() {
            return Err(syntax());
        }
        parents.truncate(depth);
        let path = join(parents.last().map_or("", String::as_str), name);
        if let Some(same) = fact.strip_prefix("= ") {
            let copies = copy_facts(&facts, same, &path);
            if copies.is_empty() {
                return Err(TableError::UnknownPath {
                    line: index + 1,
                    path: same.to_owned(),
                });
            }
            facts.extend(copies);
        } else {
            let fact = serde_json::from_str(fact).map_err(|_| syntax())?;
            facts.insert(path.clone(), fact);
        }
        parents.push(path);
    }
    Ok(facts)
}

/// Rebuilds definitions from facts. Descriptions are lost.
#[must_use]
pub fn definitions_from_facts(facts: &Facts) -> Vec<Value> {
    let kinds = facts.iter().filter(|(path, _)| !path.contains('.'));
    kinds.map(|(kind, fact)| definition(facts, kind, fact)).collect()
}

fn definition(facts: &Facts, kind: &str, fact: &Value) -> Value {
    let versions: Vec<Value> = children(facts, kind)
        .map(|(name, fact)| version(facts, &join(kind, name), name, fact))
        .collect();
    let name = format!("{}.{}", text(&fact["names"]["plural"]), text(&fact["group"]));
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": name},
        "spec": {"group": fact["group"], "names": fact["names"], "scope": fact["scope"], "versions": versions},
    })
}

fn version(facts: &Facts, path: &str, name: &str, fact: &Value) -> Value {
    let columns = fact["columns"].as_array().into_iter().flatten();
    let columns: Vec<Value> = columns
        .map(|column| json!({"name": column[0], "jsonPath": column[1], "type": column[2]}))
        .collect();
    let mut version = json!({
        "name": name, "additionalPrinterColumns": columns,
        "schema": {"openAPIV3Schema": schema(facts, &join(path, "schema"))},
    });
    for key in ["served", "storage", "deprecated", "subresources"] {
        if !fact[key].is_null() {
            version[key] = fact[key].clone();
        }
    }
    version
}

fn schema(facts: &Facts, path: &str) -> Value {
    let mut schema = facts.get(path).cloned().unwrap_or_else(|| json!({}));
    let mut properties = Map::new();
    for (name, _) in children(facts, path) {
        let child = self::schema(facts, &join(path, name));
        match name {
            "[]" => schema["items"] = child,
            "{}" => schema["additionalProperties"] = child,
            name => {
                properties.insert(name.to_owned(), child);
            }
        }
    }
    if !properties.is_empty() {
        schema["properties"] = Value::Object(properties);
    }
    schema
}

/// Returns the names and facts of the direct children of a path.
fn children<'a>(facts: &'a Facts, path: &str) -> impl Iterator<Item = (&'a str, &'a Value)> {
    let prefix = format!("{path}.");
    let below = facts.range(prefix.clone()..);
    below
        .map_while(move |(path, fact)| Some((path.strip_prefix(&prefix)?, fact)))
        .filter(|(name, _)| !name.contains('.'))
}

/// Returns the facts at and below the path `from` with paths at and below `to`.
fn copy_facts(facts: &Facts, from: &str, to: &str) -> Vec<(String, Value)> {
    let all = facts.range(from.to_owned()..);
    all.take_while(|(path, _)| path.starts_with(from))
        .filter_map(|(path, fact)| {
            let rest = path.strip_prefix(from)?;
            let is_below = rest.is_empty() || rest.starts_with('.');
            is_below.then(|| (format!("{to}{rest}"), fact.clone()))
        })
        .collect()
}

fn join(parent: &str, name: &str) -> String {
    if parent.is_empty() {
        name.to_owned()
    } else {
        format!("{parent}.{name}")
    }
}

fn collect_facts(node: &Node, parent: &str, facts: &mut Facts) {
    let path = join(parent, &node.name);
    for child in &node.children {
        collect_facts(child, &path, facts);
    }
    facts.insert(path, node.facts.clone());
}

#[derive(Default)]
struct Table {
    text: String,
    /// Paths of nodes by their content. If several nodes have equal content, the first path is kept.
    paths_by_content: BTreeMap<String, String>,
}

impl Table {
    fn write_node(&mut self, node: &Node, parent: &str, depth: usize) {
        let path = join(parent, &node.name);
        self.text.push_str(&"  ".repeat(depth));
        self.text.push_str(&node.name);
        let content = node.to_text();
        if let Some(same) = self
            .paths_by_content
            .get(&content)
            .filter(|_| !node.children.is_empty())
        {
            self.text.extend([" = ", same, "\n"]);
            return;
        }
        self.text.extend([" ", &node.facts.to_string(), "\n"]);
        for child in &node.children {
            self.write_node(child, &path, depth + 1);
        }
        // Inserted after the children: a path must be complete when another line refers to it.
        self.paths_by_content.entry(content).or_insert(path);
    }
}

impl Node {
    fn for_definition(definition: &Value) -> Self {
        let spec = &definition["spec"];
        let versions = spec["versions"].as_array().into_iter().flatten();
        Self {
            name: text(&spec["names"]["kind"]),
            facts: json!({"group": spec["group"], "names": spec["names"], "scope": spec["scope"]}),
            children: versions.map(Self::for_version).collect(),
        }
    }

    fn for_version(version: &Value) -> Self {
        let columns = version["additionalPrinterColumns"].as_array();
        let columns = columns.into_iter().flatten();
        let columns = columns.map(|column| json!([column["name"], column["jsonPath"], column["type"]]));
        let mut facts = json!({"columns": columns.collect::<Vec<_>>()});
        for key in ["served", "storage", "deprecated", "subresources"] {
            facts[key] = version[key].clone();
        }
        Self {
            name: text(&version["name"]),
            facts,
            children: vec![Self::for_schema("schema", &version["schema"]["openAPIV3Schema"])],
        }
    }

    fn for_schema(name: &str, schema: &Value) -> Self {
        let keys = schema.as_object().into_iter().flatten();
        let facts = keys.filter(|(key, _)| !NESTED.contains(&key.as_str()));
        let facts: Map<String, Value> = facts.map(|(key, value)| (key.clone(), value.clone())).collect();
        let properties = schema["properties"].as_object().into_iter().flatten();
        let properties = properties.map(|(name, schema)| Self::for_schema(name, schema));
        let nested = [("[]", &schema["items"]), ("{}", &schema["additionalProperties"])];
        let nested = nested.into_iter().filter(|(_, schema)| !schema.is_null());
        let nested = nested.map(|(name, schema)| Self::for_schema(name, schema));
        let mut children: Vec<Self> = properties.chain(nested).collect();
        children.sort_by(|a, b| a.name.cmp(&b.name));
        Self {
            name: name.to_owned(),
            facts: Value::Object(facts),
            children,
        }
    }

    /// Returns the facts and children of the node as one text.
    fn to_text(&self) -> String {
        let children = self.children.iter();
        let children: Vec<String> = children
            .map(|child| format!("{} {}", child.name, child.to_text()))
            .collect();
        format!("{} ({})", self.facts, children.join(", "))
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definition(kind: &str) -> Value {
        let values = json!({"type": "object", "description": "x", "properties": {"a": {"type": "string"}}});
        json!({"spec": {
            "group": "g", "scope": "Cluster", "names": {"kind": kind},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object",
                "properties": {"list": {"type": "array", "items": {"type": "string"}}, "values": values, "again": values},
            }}}],
        }})
    }

    #[test]
    fn table_contains_every_fact_once() {
        let definitions = [definition("A"), definition("B")];
        let table = write_table(&definitions);
        let found = read_table(&table).unwrap();
        assert_eq!(found, facts(&definitions), "{table}");
        assert_eq!(found["B.v1.schema.list.[]"], json!({"type": "string"}));
        assert_eq!(found["B.v1.schema.values"], json!({"type": "object"}));
        assert!(table.contains("\n      values = A.v1.schema.again\n"), "{table}");
        assert!(table.contains("\n  v1 = A.v1\n"), "{table}");
    }

    #[test]
    fn rebuilt_definitions_have_the_same_facts() {
        let original = facts(&[definition("A"), definition("B")]);
        assert_eq!(facts(&definitions_from_facts(&original)), original);
    }

    #[test]
    fn lines_that_are_not_facts_are_errors() {
        let check = |text: &str, expected: &str| {
            assert_eq!(read_table(text).unwrap_err().to_string(), expected);
        };
        check("A", "line 1: \"A\" is not a fact");
        check("# comment\n\nA x", "line 3: \"A x\" is not a fact");
        check("A {}\n    b {}", "line 2: \"    b {}\" is not a fact");
        check("A {}\n  b = C", "line 2: C is not defined before");
        check("Ab {}\nc = A", "line 2: A is not defined before");
    }
}
