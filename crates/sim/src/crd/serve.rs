//! Serves the resources of a `CustomResourceDefinition`: one per version, with compiled schemas and rules.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::rules::Rules;
use super::schema::Node;
use super::{Custom, definition, version_priority};
use crate::resource::{Resource, Shape, Subresource, Traits, Verbs};
use crate::state::State;
use crate::tree;

/// Serves the versions of a definition if its names are accepted. If nothing relevant has changed, the
/// resources and their watches are kept.
pub fn serve(state: &mut State, definition: &Value) {
    let identity = Arc::new(serving_identity(definition));
    let terminating = definition::is_condition_true(definition, "Terminating");
    let (group, plural) = group_and_plural(definition);
    let served = match state
        .resources
        .preferred(group, plural)
        .map(|resource| &resource.shape)
    {
        Some(Shape::Custom(custom)) if custom.identity == identity => Some(custom),
        _ => None,
    };
    if served.is_some_and(|served| served.terminating == terminating) {
        return;
    }
    let identity = served.map_or(identity, |served| Arc::clone(&served.identity));
    stop_serving(state, definition);
    let accepted = definition::is_condition_true(definition, "NamesAccepted")
        || definition::is_condition_true(definition, "Established");
    if accepted {
        for resource in build_resources(definition, &identity) {
            state.resources.add(resource);
        }
    }
}

/// Stops serving all versions of a definition.
pub fn stop_serving(state: &mut State, definition: &Value) {
    let (group, plural) = group_and_plural(definition);
    state.resources.remove(group, plural);
}

fn group_and_plural(definition: &Value) -> (&str, &str) {
    (
        tree::text(definition, &["spec", "group"]),
        tree::text(definition, &["spec", "names", "plural"]),
    )
}

/// Returns the parts of a definition that determine how objects are served.
fn serving_identity(definition: &Value) -> Value {
    json!([
        tree::get(definition, &["metadata", "uid"]),
        definition.get("spec"),
        tree::get(definition, &["status", "acceptedNames"]),
    ])
}

fn build_resources(definition: &Value, identity: &Arc<Value>) -> Vec<Resource> {
    let versions = tree::list(definition, &["spec", "versions"]);
    let name = |version: &Value| tree::text(version, &["name"]).to_owned();
    let stored = versions.iter().find(|version| tree::flag(version, &["storage"]));
    let stored = stored.map(name).unwrap_or_default();
    let nodes: BTreeMap<String, Arc<Node>> = versions
        .iter()
        .map(|version| (name(version), compile_node(version)))
        .collect();
    let served: Vec<&Value> = versions
        .iter()
        .filter(|version| tree::flag(version, &["served"]))
        .collect();
    let builder = ResourceBuilder {
        definition,
        identity,
        nodes: &nodes,
        stored: &stored,
        versions: versions.len(),
    };
    served
        .iter()
        .filter_map(|version| builder.build_resource(version))
        .collect()
}

fn compile_node(version: &Value) -> Arc<Node> {
    let schema = tree::get(version, &["schema", "openAPIV3Schema"]);
    Arc::new(schema.map_or_else(super::object::empty_schema, |schema| {
        let mut node = Node::compile(schema);
        super::definition::prune_defaults(&mut node);
        node
    }))
}

struct ResourceBuilder<'a> {
    definition: &'a Value,
    identity: &'a Arc<Value>,
    nodes: &'a BTreeMap<String, Arc<Node>>,
    stored: &'a str,
    versions: usize,
}

impl ResourceBuilder<'_> {
    fn build_resource(&self, version: &Value) -> Option<Resource> {
        let definition = self.definition;
        let group = tree::text(definition, &["spec", "group"]);
        let names = |field| tree::text(definition, &["status", "acceptedNames", field]);
        let list = |field| {
            tree::list(definition, &["status", "acceptedNames", field])
                .iter()
                .filter_map(Value::as_str)
                .map(Into::into)
                .collect()
        };
        let plural = names("plural");
        Some(Resource {
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
            stored_as: format!("{group}/{}", self.stored).into(),
            shape: Shape::Custom(Arc::new(self.build_custom(version)?)),
        })
    }

    fn build_custom(&self, version: &Value) -> Option<Custom> {
        let name = tree::text(version, &["name"]);
        let node = Arc::clone(self.nodes.get(name)?);
        let schema = tree::get(version, &["schema", "openAPIV3Schema"])
            .cloned()
            .unwrap_or_default();
        let generation = tree::int(self.definition, &["metadata", "generation"]).unwrap_or(1);
        Some(Custom {
            rules: Rules::compile(&schema, &node, true),
            schema,
            columns: tree::list(version, &["additionalPrinterColumns"]).to_vec(),
            selectable: selectable_fields(version),
            scale: tree::get(version, &["subresources", "scale"]).cloned(),
            versions: self.versions,
            list_kind: tree::text(self.definition, &["status", "acceptedNames", "listKind"]).to_owned(),
            warning: deprecation_warning(self.definition, version),
            terminating: definition::is_condition_true(self.definition, "Terminating"),
            as_stored: self.versions == 1 && generation == 1,
            identity: Arc::clone(self.identity),
            stored: Arc::clone(self.nodes.get(self.stored).unwrap_or(&node)),
            node,
        })
    }
}

/// Returns the warning for requests of a deprecated version.
fn deprecation_warning(definition: &Value, version: &Value) -> Option<String> {
    if !tree::flag(version, &["deprecated"]) {
        return None;
    }
    if let Some(text) = version.get("deprecationWarning").and_then(Value::as_str) {
        return Some(text.to_owned());
    }
    let (group, kind) = (
        tree::text(definition, &["spec", "group"]),
        tree::text(definition, &["spec", "names", "kind"]),
    );
    let name = tree::text(version, &["name"]);
    let mut newer: Vec<&str> = tree::list(definition, &["spec", "versions"])
        .iter()
        .filter(|other| tree::flag(other, &["served"]) && !tree::flag(other, &["deprecated"]))
        .map(|other| tree::text(other, &["name"]))
        .filter(|other| version_priority(other) > version_priority(name))
        .collect();
    newer.sort_by_key(|other| std::cmp::Reverse(version_priority(other)));
    let mut text = format!("{group}/{name} {kind} is deprecated");
    if let Some(newest) = newer.first() {
        text = format!("{text}; use {group}/{newest} {kind}");
    }
    Some(text)
}

fn selectable_fields(version: &Value) -> Vec<String> {
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
    let all = [("status", "", "", kind), ("scale", "autoscaling", "v1", "Scale")];
    all.into_iter()
        .filter(|(name, ..)| tree::get(version, &["subresources", name]).is_some_and(|sub| !sub.is_null()))
        .map(|(name, group, version, kind)| Subresource {
            name: name.into(),
            group: group.into(),
            version: version.into(),
            kind: kind.into(),
            verbs: Verbs::parse("gpu"),
        })
        .collect()
}
