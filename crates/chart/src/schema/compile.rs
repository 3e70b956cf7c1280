//! Compilation of a schema to nodes with resolved references. References to other documents are rejected,
//! except those to the built-in metaschemas.

use std::collections::BTreeMap;
use std::rc::Rc;

use mainstay_sprig::Regex;
use mainstay_yaml::{Map, Value};

use super::LOCATION;
use super::check::{CheckError, check};
use super::document::{Document, location, lookup};
use super::draft::Draft;
use super::error::{LoadError, SchemaError};
use super::format::Format;
use super::meta::metaschema;
use super::node::{Compiled, Extra, Items, Node, NodeId, Pattern, Requirement};
use super::outcome::pointer;
use super::url::{join, scheme, split};
use crate::warning::Warning;

/// Compiles the schema of a chart.
pub(super) fn compile(
    schema: Value,
    metaschemas: &mut Metaschemas,
    warnings: &mut Vec<Warning>,
) -> Result<Compiled, SchemaError> {
    let mut compiler = Compiler::new(metaschemas, warnings, false);
    compiler.add(LOCATION, schema)?;
    compiler.run(LOCATION)
}

/// Returns the error for a reference to another document.
pub(super) fn load_error(url: &str) -> SchemaError {
    let reason = match scheme(url) {
        Some("file" | "http" | "https") => LoadError::OutsideSchema,
        _ => LoadError::UnknownScheme(url.into()),
    };
    SchemaError::Load {
        url: url.into(),
        reason,
    }
}

/// Metaschemas that have been compiled so far.
#[derive(Default)]
pub(super) struct Metaschemas(BTreeMap<Draft, Rc<Compiled>>);

impl Metaschemas {
    fn get(&mut self, draft: Draft) -> Result<Rc<Compiled>, SchemaError> {
        if let Some(known) = self.0.get(&draft) {
            return Ok(Rc::clone(known));
        }
        let compiled = Rc::new(compile_meta(draft)?);
        self.0.insert(draft, Rc::clone(&compiled));
        Ok(compiled)
    }
}

fn compile_meta(draft: Draft) -> Result<Compiled, SchemaError> {
    // A metaschema refers only to itself.
    let (mut none, mut ignored) = (Metaschemas::default(), Vec::new());
    let mut compiler = Compiler::new(&mut none, &mut ignored, true);
    compiler
        .documents
        .insert(draft.url().into(), meta_document(draft)?);
    compiler.run(draft.url())
}

fn meta_document(draft: Draft) -> Result<Document, SchemaError> {
    let mut meta = metaschema(draft);
    if let Value::Map(map) = &mut meta {
        map.insert("$schema".into(), Value::from(draft.url()));
    }
    Document::new(draft.url(), meta)
}

/// State of one compilation.
struct Compiler<'w> {
    documents: BTreeMap<String, Document>,
    nodes: Vec<Node>,
    /// URL and JSON pointer of each node.
    locations: Vec<(String, String)>,
    by_location: BTreeMap<(String, String), NodeId>,
    metaschemas: &'w mut Metaschemas,
    warnings: &'w mut Vec<Warning>,
    /// Whether formats are checked in all drafts, as required for metaschemas.
    assert_formats: bool,
    /// Size of all compiled patterns in bytes.
    pattern_bytes: usize,
}

/// Maximum size of all compiled patterns of a schema in bytes.
const MAX_PATTERN_BYTES: usize = 64 << 20;

/// The schema that is being compiled.
struct CurrentSchema<'a> {
    map: &'a Map,
    url: &'a str,
    pointer: &'a str,
    base: &'a str,
    draft: Draft,
}

impl<'w> Compiler<'w> {
    fn new(metaschemas: &'w mut Metaschemas, warnings: &'w mut Vec<Warning>, assert_formats: bool) -> Self {
        Self {
            documents: BTreeMap::new(),
            nodes: Vec::new(),
            locations: Vec::new(),
            by_location: BTreeMap::new(),
            metaschemas,
            warnings,
            assert_formats,
            pattern_bytes: 0,
        }
    }

    fn compile_regex(
        &mut self,
        here: &CurrentSchema<'_>,
        keyword: &str,
        text: &str,
    ) -> Result<Regex, SchemaError> {
        let regex = Regex::compile(text).map_err(|reason| SchemaError::Regex {
            pattern: text.into(),
            location: location(here.url, &child_pointer(here, &[keyword])),
            reason,
        })?;
        self.pattern_bytes = self.pattern_bytes.saturating_add(regex.memory());
        if self.pattern_bytes > MAX_PATTERN_BYTES {
            return Err(SchemaError::TooManySteps);
        }
        Ok(regex)
    }

    /// Validates a document against its metaschema and adds it.
    fn add(&mut self, url: &str, schema: Value) -> Result<(), SchemaError> {
        let document = Document::new(url, schema)?;
        check_metaschema(&document, url, "", self.metaschemas)?;
        self.documents.insert(url.into(), document);
        Ok(())
    }

    fn run(mut self, url: &str) -> Result<Compiled, SchemaError> {
        let root = self.enqueue(url, "");
        let mut next = 0;
        while let Some((url, pointer)) = self.locations.get(next).cloned() {
            self.compile_node(next, &url, &pointer)?;
            next += 1;
        }
        Ok(Compiled {
            nodes: self.nodes,
            root,
        })
    }

    fn enqueue(&mut self, url: &str, pointer: &str) -> NodeId {
        let key = (url.to_owned(), pointer.to_owned());
        if let Some(known) = self.by_location.get(&key) {
            return *known;
        }
        let id = self.nodes.len();
        // This placeholder is replaced when the schema is compiled.
        self.nodes.push(Node::new(String::new()));
        self.locations.push(key.clone());
        self.by_location.insert(key, id);
        id
    }

    fn compile_node(&mut self, id: NodeId, url: &str, pointer: &str) -> Result<(), SchemaError> {
        let document = self.documents.get_mut(url).ok_or_else(|| load_error(url))?;
        if document.visit(pointer)? && Draft::from_url(url).is_none() {
            check_metaschema(document, url, pointer, self.metaschemas)?;
        }
        let root = Rc::clone(&document.value);
        let value = lookup(&root, url, pointer)?;
        let resource = document.resource(pointer);
        let mut node = Node::new(location(url, pointer));
        node.draft = resource.draft;
        node.resource = self.enqueue(url, &resource.pointer);
        if resource.draft >= Draft::D2020 && resource.pointer == pointer {
            for name in &resource.dynamic {
                if let Some(at) = resource.anchors.get(name) {
                    node.dynamic_anchors.insert(name.clone(), self.enqueue(url, at));
                }
            }
        }
        match value {
            Value::Bool(always) => node.always = Some(*always),
            Value::Map(map) if map.is_empty() => node.always = Some(true),
            Value::Map(map) => {
                let here = CurrentSchema {
                    map,
                    url,
                    pointer,
                    base: &resource.id,
                    draft: resource.draft,
                };
                self.compile_keywords(&mut node, &here)?;
            }
            _ => {}
        }
        if let Some(slot) = self.nodes.get_mut(id) {
            *slot = node;
        }
        Ok(())
    }

    fn compile_keywords(&mut self, node: &mut Node, here: &CurrentSchema<'_>) -> Result<(), SchemaError> {
        node.reference = self.resolve_reference(here, "$ref")?;
        // Before 2019, the siblings of a reference are ignored. The Go library ignores only siblings that
        // exist in draft 4.
        if here.draft >= Draft::D2019 || node.reference.is_none() {
            self.compile_applicators(node, here)?;
            self.compile_assertions(node, here)?;
        }
        if here.draft >= Draft::D6 {
            node.contains = self.subschema(here, "contains");
            node.property_names = self.subschema(here, "propertyNames");
            node.constant = here.map.get("const").cloned();
        }
        if here.draft >= Draft::D7 {
            self.compile_conditional(node, here);
        }
        if here.draft >= Draft::D2019 {
            self.compile_since_2019(node, here)?;
        }
        if here.draft >= Draft::D2020 {
            self.compile_since_2020(node, here)?;
        }
        Ok(())
    }

    fn compile_applicators(&mut self, node: &mut Node, here: &CurrentSchema<'_>) -> Result<(), SchemaError> {
        node.all_of = self.subschema_list(here, "allOf");
        node.any_of = self.subschema_list(here, "anyOf");
        node.one_of = self.subschema_list(here, "oneOf");
        node.not = self.subschema(here, "not");
        if here.draft < Draft::D2020 {
            match here.map.get("items") {
                None => {}
                Some(Value::List(_)) => {
                    node.items = Some(Items::ByPosition(self.subschema_list(here, "items")));
                    node.additional_items = self.extra_items(here, "additionalItems");
                }
                Some(_) => node.items = self.subschema(here, "items").map(Items::All),
            }
        }
        node.properties = self.subschema_map(here, "properties");
        for (text, id) in self.subschema_map(here, "patternProperties") {
            node.pattern_properties
                .push((self.compile_regex(here, "patternProperties", &text)?, id));
        }
        node.additional_properties = self.extra_items(here, "additionalProperties");
        if let Some(Value::Map(map)) = here.map.get("dependencies") {
            for (name, value) in map {
                let requirement = match value {
                    Value::List(items) => Requirement::Names(strings(items)),
                    _ => Requirement::Schema(
                        self.enqueue(here.url, &child_pointer(here, &["dependencies", name])),
                    ),
                };
                node.dependencies.insert(name.clone(), requirement);
            }
        }
        Ok(())
    }

    fn compile_assertions(&mut self, node: &mut Node, here: &CurrentSchema<'_>) -> Result<(), SchemaError> {
        node.types = types(here.map.get("type"));
        node.allowed = here
            .map
            .get("enum")
            .and_then(Value::as_list)
            .map(<[Value]>::to_vec);
        node.multiple_of = number(here, "multipleOf");
        (node.maximum, node.exclusive_maximum) = bounds(here, "maximum", "exclusiveMaximum");
        (node.minimum, node.exclusive_minimum) = bounds(here, "minimum", "exclusiveMinimum");
        node.min_length = count(here, "minLength");
        node.max_length = count(here, "maxLength");
        if let Some(text) = here.map.get("pattern").and_then(Value::as_str) {
            node.pattern = Some(Pattern {
                regex: self.compile_regex(here, "pattern", text)?,
                text: text.into(),
            });
        }
        node.min_items = count(here, "minItems");
        node.max_items = count(here, "maxItems");
        node.unique_items = flag(here, "uniqueItems");
        node.min_properties = count(here, "minProperties");
        node.max_properties = count(here, "maxProperties");
        node.required = here
            .map
            .get("required")
            .and_then(Value::as_list)
            .map(strings)
            .unwrap_or_default();
        if self.assert_formats || here.draft < Draft::D2019 {
            node.format = here
                .map
                .get("format")
                .and_then(Value::as_str)
                .and_then(Format::named);
        }
        Ok(())
    }

    fn compile_conditional(&mut self, node: &mut Node, here: &CurrentSchema<'_>) {
        node.condition = self.subschema(here, "if");
        let known = here.map.get("if").and_then(Value::as_bool);
        if node.condition.is_some() {
            node.then = self.subschema(here, "then").filter(|_| known != Some(false));
            node.otherwise = self.subschema(here, "else").filter(|_| known != Some(true));
        }
    }

    fn compile_since_2019(&mut self, node: &mut Node, here: &CurrentSchema<'_>) -> Result<(), SchemaError> {
        node.recursive_ref = self.resolve_reference(here, "$recursiveRef")?;
        node.recursive_anchor = flag(here, "$recursiveAnchor");
        if node.contains.is_some() {
            node.min_contains = count(here, "minContains");
            node.max_contains = count(here, "maxContains");
        }
        if let Some(Value::Map(map)) = here.map.get("dependentRequired") {
            let lists = map
                .iter()
                .filter_map(|(name, value)| Some((name.clone(), strings(value.as_list()?))));
            node.dependent_required = lists.collect();
        }
        node.dependent_schemas = self.subschema_map(here, "dependentSchemas");
        node.unevaluated_items = self.subschema(here, "unevaluatedItems");
        node.unevaluated_properties = self.subschema(here, "unevaluatedProperties");
        Ok(())
    }

    fn compile_since_2020(&mut self, node: &mut Node, here: &CurrentSchema<'_>) -> Result<(), SchemaError> {
        if let Some(target) = self.resolve_reference(here, "$dynamicRef")? {
            let text = here
                .map
                .get("$dynamicRef")
                .and_then(Value::as_str)
                .unwrap_or_default();
            let (_, fragment) = split(text)?;
            let anchor = if fragment.starts_with('/') {
                String::new()
            } else {
                fragment
            };
            node.dynamic_ref = Some((target, anchor));
        }
        if let Some(name) = here.map.get("$dynamicAnchor").and_then(Value::as_str) {
            name.clone_into(&mut node.dynamic_anchor);
        }
        node.prefix_items = self.subschema_list(here, "prefixItems");
        node.other_items = self.subschema(here, "items");
        Ok(())
    }

    fn subschema(&mut self, here: &CurrentSchema<'_>, keyword: &str) -> Option<NodeId> {
        here.map
            .contains_key(keyword)
            .then(|| self.enqueue(here.url, &child_pointer(here, &[keyword])))
    }

    fn subschema_list(&mut self, here: &CurrentSchema<'_>, keyword: &str) -> Vec<NodeId> {
        let Some(Value::List(items)) = here.map.get(keyword) else {
            return Vec::new();
        };
        (0..items.len())
            .map(|index| self.enqueue(here.url, &child_pointer(here, &[keyword, &index.to_string()])))
            .collect()
    }

    fn subschema_map(&mut self, here: &CurrentSchema<'_>, keyword: &str) -> BTreeMap<String, NodeId> {
        let Some(Value::Map(map)) = here.map.get(keyword) else {
            return BTreeMap::new();
        };
        map.keys()
            .map(|name| {
                (
                    name.clone(),
                    self.enqueue(here.url, &child_pointer(here, &[keyword, name])),
                )
            })
            .collect()
    }

    fn extra_items(&mut self, here: &CurrentSchema<'_>, keyword: &str) -> Option<Extra> {
        match here.map.get(keyword)? {
            Value::Bool(allowed) => Some(Extra::Allowed(*allowed)),
            _ => self.subschema(here, keyword).map(Extra::Schema),
        }
    }

    fn resolve_reference(
        &mut self,
        here: &CurrentSchema<'_>,
        keyword: &str,
    ) -> Result<Option<NodeId>, SchemaError> {
        let Some(text) = here.map.get(keyword).and_then(Value::as_str) else {
            return Ok(None);
        };
        let (reference, fragment) = split(text)?;
        let url = join(here.base, reference);
        if let Some(pointer) = self
            .documents
            .get(here.url)
            .and_then(|document| document.resolve(&url, &fragment))
        {
            let pointer = pointer?;
            return Ok(Some(self.enqueue(here.url, &pointer)));
        }
        self.load(&url)?;
        let document = self.documents.get(&url).ok_or_else(|| load_error(&url))?;
        let pointer = document
            .resolve(&url, &fragment)
            .ok_or_else(|| load_error(&url))??;
        Ok(Some(self.enqueue(&url, &pointer)))
    }

    /// Loads a built-in document. For a URN, adds a schema that accepts every value.
    fn load(&mut self, url: &str) -> Result<(), SchemaError> {
        if self.documents.contains_key(url) {
            return Ok(());
        }
        let document = match (Draft::from_url(url), scheme(url)) {
            (Some(draft), _) => Document::new(url, (*meta_document(draft)?.value).clone())?,
            (None, Some("urn")) => {
                self.warnings.push(Warning::UnresolvedUrn { urn: url.into() });
                Document::new(url, Value::Bool(true))?
            }
            _ => return Err(load_error(url)),
        };
        self.documents.insert(url.into(), document);
        Ok(())
    }
}

/// Validates the schema at `pointer` against the metaschema of its draft.
fn check_metaschema(
    document: &Document,
    url: &str,
    pointer: &str,
    metaschemas: &mut Metaschemas,
) -> Result<(), SchemaError> {
    let draft = if pointer.is_empty() {
        document.draft()
    } else {
        document.resource(pointer).draft
    };
    let meta = metaschemas.get(draft)?;
    match check(&meta, meta.root, document.lookup(pointer)?) {
        Ok(()) => Ok(()),
        Err(CheckError::TooManySteps) => Err(SchemaError::TooManySteps),
        Err(CheckError::Invalid(failure)) => Err(SchemaError::Metaschema {
            location: location(url, pointer),
            metaschema: draft.url(),
            report: failure.report(1),
        }),
    }
}

fn child_pointer(here: &CurrentSchema<'_>, tokens: &[&str]) -> String {
    format!("{}{}", here.pointer, pointer(tokens))
}

/// Returns the known type names in the order in which messages list them.
fn types(value: Option<&Value>) -> Vec<&'static str> {
    let named = |name: &str| match value {
        Some(Value::String(text)) => text == name,
        Some(Value::List(items)) => items.iter().any(|item| item.as_str() == Some(name)),
        _ => false,
    };
    let known = [
        "null", "boolean", "number", "integer", "string", "array", "object",
    ];
    known.into_iter().filter(|name| named(name)).collect()
}

fn strings(items: &[Value]) -> Vec<String> {
    items
        .iter()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect()
}

fn number(here: &CurrentSchema<'_>, keyword: &str) -> Option<Value> {
    here.map
        .get(keyword)
        .filter(|value| value.as_f64().is_some())
        .cloned()
}

fn count(here: &CurrentSchema<'_>, keyword: &str) -> Option<i64> {
    here.map.get(keyword)?.as_i64()
}

fn flag(here: &CurrentSchema<'_>, keyword: &str) -> bool {
    here.map.get(keyword).and_then(Value::as_bool) == Some(true)
}

/// Returns the inclusive and the exclusive bound. In draft 4, the exclusive bound is a flag.
fn bounds(here: &CurrentSchema<'_>, keyword: &str, exclusive: &str) -> (Option<Value>, Option<Value>) {
    let bound = number(here, keyword);
    if flag(here, exclusive) {
        (None, bound)
    } else {
        (bound, number(here, exclusive))
    }
}
