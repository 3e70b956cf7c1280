//! Where schemas are: takes a document, gives the named schemas (`$id`), anchors and drafts inside it, and finds what a
//! pointer or an anchor means.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use mainstay_gostd::quote::quote;
use mainstay_yaml::{Map, Value};

use super::draft::Draft;
use super::outcome::pointer as tokens_to_pointer;
use super::url::{encode, join, split};

/// One document.
pub(super) struct Document {
    url: String,
    pub(super) value: Rc<Value>,
    /// By pointer.
    resources: BTreeMap<String, Resource>,
    /// Pointers of the schemas looked at.
    seen: BTreeSet<String>,
}

/// A schema with a name of its own, or the root.
#[derive(Clone)]
pub(super) struct Resource {
    pub(super) pointer: String,
    pub(super) id: String,
    pub(super) draft: Draft,
    pub(super) anchors: BTreeMap<String, String>,
    pub(super) dynamic: BTreeSet<String>,
}

impl Document {
    /// Looks through `value`, a schema at `url`.
    pub(super) fn new(url: &str, value: Value) -> Result<Self, String> {
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

    /// The draft of the whole.
    pub(super) fn draft(&self) -> Draft {
        self.resources.get("").map_or(Draft::D2020, |root| root.draft)
    }

    /// Looks at the schema at `pointer`, which is where no schema was expected. False if it is known.
    pub(super) fn visit(&mut self, pointer: &str) -> Result<bool, String> {
        if self.seen.contains(pointer) {
            return Ok(false);
        }
        let value = self.lookup(pointer)?.clone();
        let (id, draft) = {
            let resource = self.resource(pointer);
            (resource.id.clone(), resource.draft)
        };
        self.collect(&value, &id, pointer, draft)?;
        Ok(true)
    }

    fn collect(&mut self, schema: &Value, base: &str, pointer: &str, fallback: Draft) -> Result<(), String> {
        if !self.seen.insert(pointer.into()) {
            return Ok(());
        }
        let Value::Map(map) = schema else {
            if pointer.is_empty() {
                self.add_resource(pointer, base, fallback);
            }
            return Ok(());
        };
        let mut draft = self.draft_of(map, pointer, fallback)?;
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

    fn draft_of(&self, map: &Map, pointer: &str, fallback: Draft) -> Result<Draft, String> {
        let Some(url) = map.get("$schema").and_then(Value::as_str) else {
            return Ok(fallback);
        };
        if let Some(draft) = Draft::from_url(url) {
            return Ok(draft);
        }
        let url = url.split('#').next().unwrap_or_default();
        if pointer.is_empty() && url == self.url {
            return Err(format!("draft {} is not supported", quote(url)));
        }
        Err(super::compile::refuse(url))
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

    fn check_duplicate(&self, id: &str, pointer: &str) -> Result<(), String> {
        match self
            .resources
            .values()
            .find(|resource| resource.id == id && resource.pointer != pointer)
        {
            None => Ok(()),
            Some(other) => Err(format!(
                "duplicate id {} in {} at {} and {}",
                quote(id),
                quote(&self.url),
                quote(pointer),
                quote(&other.pointer)
            )),
        }
    }

    fn collect_anchors(&mut self, map: &Map, id: &str, pointer: &str) -> Result<(), String> {
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
                let (_, fragment) = split(id)
                    .map_err(|_| format!("error in parsing anchor at {}", quote(&place(&url, pointer))))?;
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
                return Err(format!(
                    "duplicate anchor {} in {} at {} and {}",
                    quote(&name),
                    quote(&url),
                    quote(known),
                    quote(pointer)
                ));
            }
        }
        Ok(())
    }

    /// The named schema that the one at `pointer` belongs to.
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

    /// The pointer that `url` with `fragment` means in this document; `None` if it means another one.
    pub(super) fn resolve(&self, url: &str, fragment: &str) -> Option<Result<String, String>> {
        let resource = if url == self.url {
            self.resources.get("")
        } else {
            self.resources.values().find(|resource| resource.id == url)
        }?;
        Some(if fragment.is_empty() || fragment.starts_with('/') {
            Ok(format!("{}{fragment}", resource.pointer))
        } else {
            resource.anchors.get(fragment).cloned().ok_or_else(|| {
                let reference = format!("{}#{}", resource.id, encode(fragment));
                format!(
                    "anchor in {} not found in schema {}",
                    quote(&reference),
                    quote(&self.url)
                )
            })
        })
    }

    /// What is at `pointer`.
    pub(super) fn lookup(&self, pointer: &str) -> Result<&Value, String> {
        let mut value = &*self.value;
        for token in pointer.split('/').skip(1) {
            let token = unescape(token)
                .ok_or_else(|| format!("invalid json-pointer {}", quote(&place(&self.url, pointer))))?;
            let next = match value {
                Value::Map(map) => map.get(&token),
                Value::List(items) => token.parse().ok().and_then(|at: usize| items.get(at)),
                _ => None,
            };
            value = next
                .ok_or_else(|| format!("json-pointer in {} not found", quote(&place(&self.url, pointer))))?;
        }
        Ok(value)
    }
}

/// A URL with a pointer, as messages show it.
pub(super) fn place(url: &str, pointer: &str) -> String {
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
