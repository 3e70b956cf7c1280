//! Collection of the named schemas (`$id`), anchors and drafts of a document, and resolution of pointers
//! and anchors.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use mainstay_yaml::{Map, Value};

use super::draft::Draft;
use super::error::SchemaError;
use super::outcome::pointer as tokens_to_pointer;
use super::url::{encode, join, split};

/// A schema document.
pub(super) struct Document {
    url: String,
    pub(super) value: Rc<Value>,
    /// Named schemas by their JSON pointer.
    resources: BTreeMap<String, Resource>,
    /// JSON pointers of the schemas that have been visited.
    seen: BTreeSet<String>,
}

/// The root schema, or a schema with an `$id`.
#[derive(Clone)]
pub(super) struct Resource {
    pub(super) pointer: String,
    pub(super) id: String,
    pub(super) draft: Draft,
    pub(super) anchors: BTreeMap<String, String>,
    pub(super) dynamic: BTreeSet<String>,
}

impl Document {
    /// Creates the document of the schema `value` at `url`.
    pub(super) fn new(url: &str, value: Value) -> Result<Self, SchemaError> {
        let value = Rc::new(value);
        let mut document = Self {
            url: url.into(),
            value: Rc::clone(&value),
            resources: BTreeMap::new(),
            seen: BTreeSet::new(),
        };
        document.collect(&value, url, "", Draft::D2020)?;
        Ok(document)
    }

    /// Returns the draft of the root.
    pub(super) fn draft(&self) -> Draft {
        self.resources.get("").map_or(Draft::D2020, |root| root.draft)
    }

    /// Visits the schema at `pointer`, a location that is not reached by keywords for schemas. Returns
    /// `false` if it has already been visited.
    pub(super) fn visit(&mut self, pointer: &str) -> Result<bool, SchemaError> {
        if self.seen.contains(pointer) {
            return Ok(false);
        }
        let root = Rc::clone(&self.value);
        let value = lookup(&root, &self.url, pointer)?;
        let (id, draft) = {
            let resource = self.resource(pointer);
            (resource.id.clone(), resource.draft)
        };
        self.collect(value, &id, pointer, draft)?;
        Ok(true)
    }

    fn collect(
        &mut self,
        schema: &Value,
        base: &str,
        pointer: &str,
        fallback: Draft,
    ) -> Result<(), SchemaError> {
        if !self.seen.insert(pointer.into()) {
            return Ok(());
        }
        let Value::Map(map) = schema else {
            if pointer.is_empty() {
                self.add_resource(pointer, base, fallback);
            }
            return Ok(());
        };
        let mut draft = self.schema_draft(map, pointer, fallback)?;
        let mut id = draft.id(map);
        if id.is_none() && !pointer.is_empty() {
            draft = fallback;
            id = draft.id(map);
        }
        let base = id.map_or_else(|| base.to_owned(), |id| join(base, id));
        if id.is_some() || pointer.is_empty() {
            self.check_duplicate(&base, pointer)?;
            self.add_resource(pointer, &base, draft);
        }
        self.collect_anchors(map, &base, pointer)?;
        for (path, sub) in draft.subschemas(map) {
            self.collect(
                sub,
                &base,
                &format!("{pointer}{}", tokens_to_pointer(&path)),
                draft,
            )?;
        }
        Ok(())
    }

    fn schema_draft(&self, map: &Map, pointer: &str, fallback: Draft) -> Result<Draft, SchemaError> {
        let Some(url) = map.get("$schema").and_then(Value::as_str) else {
            return Ok(fallback);
        };
        if let Some(draft) = Draft::from_url(url) {
            return Ok(draft);
        }
        let url = url.split('#').next().unwrap_or_default();
        if pointer.is_empty() && url == self.url {
            return Err(SchemaError::Draft(url.into()));
        }
        Err(super::compile::load_error(url))
    }

    fn add_resource(&mut self, pointer: &str, id: &str, draft: Draft) {
        let resource = Resource {
            pointer: pointer.into(),
            id: id.into(),
            draft,
            anchors: BTreeMap::new(),
            dynamic: BTreeSet::new(),
        };
        self.resources.insert(pointer.into(), resource);
    }

    fn check_duplicate(&self, id: &str, pointer: &str) -> Result<(), SchemaError> {
        match self
            .resources
            .values()
            .find(|resource| resource.id == id && resource.pointer != pointer)
        {
            None => Ok(()),
            Some(other) => Err(SchemaError::DuplicateId {
                id: id.into(),
                document: self.url.clone(),
                first: pointer.into(),
                second: other.pointer.clone(),
            }),
        }
    }

    fn collect_anchors(&mut self, map: &Map, id: &str, pointer: &str) -> Result<(), SchemaError> {
        let url = self.url.clone();
        let Some(resource) = self.resources.values_mut().find(|resource| resource.id == id) else {
            return Ok(());
        };
        let text = |key: &str| map.get(key).and_then(Value::as_str);
        let mut names = Vec::new();
        if resource.draft < Draft::D2019 {
            if !map.contains_key("$ref")
                && let Some(id) = text(resource.draft.id_keyword())
            {
                let (_, fragment) =
                    split(id).map_err(|_| SchemaError::InvalidAnchor(location(&url, pointer)))?;
                if !fragment.is_empty() && !fragment.starts_with('/') {
                    names.push(fragment);
                }
            }
        } else {
            names.extend(text("$anchor").map(str::to_owned));
        }
        if resource.draft >= Draft::D2020
            && let Some(name) = text("$dynamicAnchor")
        {
            resource.dynamic.insert(name.into());
            names.push(name.into());
        }
        for name in names {
            let known = resource
                .anchors
                .entry(name.clone())
                .or_insert_with(|| pointer.into());
            if known != pointer {
                return Err(SchemaError::DuplicateAnchor {
                    anchor: name,
                    document: url,
                    first: known.clone(),
                    second: pointer.into(),
                });
            }
        }
        Ok(())
    }

    /// Returns the innermost named schema that contains `pointer`.
    pub(super) fn resource(&self, pointer: &str) -> Resource {
        let mut pointer = pointer;
        loop {
            if let Some(resource) = self.resources.get(pointer) {
                return resource.clone();
            }
            match pointer.rfind('/') {
                Some(at) => pointer = pointer.get(..at).unwrap_or_default(),
                None => break,
            }
        }
        Resource {
            pointer: String::new(),
            id: self.url.clone(),
            draft: Draft::D2020,
            anchors: BTreeMap::new(),
            dynamic: BTreeSet::new(),
        }
    }

    /// Resolves `url` with `fragment` to a JSON pointer in this document. Returns `None` if it refers to
    /// another document.
    pub(super) fn resolve(&self, url: &str, fragment: &str) -> Option<Result<String, SchemaError>> {
        let resource = if url == self.url {
            self.resources.get("")
        } else {
            self.resources.values().find(|resource| resource.id == url)
        }?;
        Some(if fragment.is_empty() || fragment.starts_with('/') {
            Ok(format!("{}{fragment}", resource.pointer))
        } else {
            resource
                .anchors
                .get(fragment)
                .cloned()
                .ok_or_else(|| SchemaError::UnknownAnchor {
                    reference: location(&resource.id, fragment),
                    document: self.url.clone(),
                })
        })
    }

    /// Returns the value at `pointer`.
    pub(super) fn lookup(&self, pointer: &str) -> Result<&Value, SchemaError> {
        lookup(&self.value, &self.url, pointer)
    }
}

/// Returns the value at `pointer` in `root`, the document with the URL `url`.
pub(super) fn lookup<'v>(root: &'v Value, url: &str, pointer: &str) -> Result<&'v Value, SchemaError> {
    let mut value = root;
    for token in pointer.split('/').skip(1) {
        let token = unescape(token).ok_or_else(|| SchemaError::InvalidPointer(location(url, pointer)))?;
        let next = match value {
            Value::Map(map) => map.get(&token),
            Value::List(items) => token.parse().ok().and_then(|at: usize| items.get(at)),
            _ => None,
        };
        value = next.ok_or_else(|| SchemaError::UnknownPointer(location(url, pointer)))?;
    }
    Ok(value)
}

/// Formats a URL and a JSON pointer for messages.
pub(super) fn location(url: &str, pointer: &str) -> String {
    format!("{url}#{}", encode(pointer))
}

fn unescape(token: &str) -> Option<String> {
    let mut parts = token.split('~');
    let mut out = parts.next()?.to_owned();
    for part in parts {
        out.push(match part.chars().next()? {
            '0' => '~',
            '1' => '/',
            _ => return None,
        });
        out.push_str(part.get(1..)?);
    }
    Some(out)
}
