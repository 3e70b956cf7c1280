//! Named templates that can call each other. Cheap to clone, and can be shared between threads.

use std::collections::HashMap;
use std::sync::Arc;

use crate::ast::Template;
use crate::builtin::{self, Builtin};
use crate::error::Error;
use crate::function::Function;
use crate::names::{Mix, Names};
use crate::parse::{self, Parsed};
use crate::texts::Texts;

/// The name of Helm's template set; texts run by `tpl` have it too.
const DEFAULT_NAME: &str = "gotpl";

/// A set of templates, the functions they may call, and the handling of missing keys.
#[derive(Clone)]
pub struct TemplateSet {
    name: Arc<str>,
    templates: Arc<HashMap<Arc<str>, Template, Mix>>,
    names: Arc<Names>,
    functions: Arc<Registry>,
    missing_key: MissingKey,
    texts: Texts,
}

/// The value of a key that a map does not contain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MissingKey {
    /// No value: it prints `<no value>`, and so do its fields.
    #[default]
    Default,
    /// The zero value of the map's element type, as in Helm.
    Zero,
    /// An error, as in Helm with `--strict`.
    Error,
}

/// Functions by index and by name.
#[derive(Clone, Default)]
pub(crate) struct Registry {
    rows: Vec<Callable>,
    by_name: HashMap<&'static [u8], u32, Mix>,
}

/// A function that a template can call by name.
#[derive(Clone, Copy)]
pub(crate) enum Callable {
    Builtin(Builtin),
    Function(Function),
}

impl Registry {
    fn put(&mut self, name: &'static str, callable: Callable) {
        let next = self.rows.len() as u32;
        let index = *self.by_name.entry(name.as_bytes()).or_insert(next);
        match self.rows.get_mut(index as usize) {
            Some(row) => *row = callable,
            None => self.rows.push(callable),
        }
    }

    fn find(&self, name: &[u8]) -> Option<u32> {
        self.by_name.get(name).copied()
    }

    pub(crate) fn row(&self, index: u32) -> Option<&Callable> {
        self.rows.get(index as usize)
    }
}

impl Default for TemplateSet {
    fn default() -> Self {
        Self::new()
    }
}

impl TemplateSet {
    /// Creates an empty set with Go's built-in functions, named `gotpl` as in Helm.
    #[must_use]
    pub fn new() -> Self {
        Self::named(DEFAULT_NAME)
    }

    /// Creates an empty set with another name, which appears in "no template … associated with template
    /// NAME".
    #[must_use]
    pub fn named(name: &str) -> Self {
        let mut functions = Registry::default();
        for builtin in builtin::ALL {
            functions.put(builtin.name(), Callable::Builtin(builtin));
        }
        Self {
            name: name.into(),
            templates: Arc::default(),
            names: Arc::default(),
            functions: Arc::new(functions),
            missing_key: MissingKey::Default,
            texts: Texts::default(),
        }
    }

    /// Adds functions, each replacing the function of the same name. Add them before parsing: a text may
    /// refer only to functions that exist.
    pub fn functions(&mut self, rows: &[Function]) {
        self.texts = Texts::default();
        let registry = Arc::make_mut(&mut self.functions);
        for row in rows {
            registry.put(row.name, Callable::Function(*row));
        }
    }

    /// Sets the handling of missing keys.
    pub fn missing_key(&mut self, missing_key: MissingKey) {
        self.missing_key = missing_key;
    }

    /// Parses `text` as the template `name`, with all definitions in it. A template of the same name is
    /// replaced, unless the new one is blank.
    pub fn parse(&mut self, name: &str, text: impl AsRef<[u8]>) -> Result<(), Error> {
        self.parse_shared(name, &Arc::from(text.as_ref()))
    }

    /// Parses `text` like [`parse`](Self::parse), without a copy of it.
    pub fn parse_shared(&mut self, name: &str, text: &Arc<[u8]>) -> Result<(), Error> {
        let (functions, names) = (&self.functions, Arc::make_mut(&mut self.names));
        let parsed = parse::parse(name, text, &|name| functions.find(name), names)?;
        let templates = Arc::make_mut(&mut self.templates);
        for template in parsed.templates() {
            let known = templates.contains_key(&template.name);
            if !known || !template.is_blank() {
                templates.insert(Arc::clone(&template.name), template);
            }
        }
        Ok(())
    }

    /// Reports whether there is a template of this name.
    #[must_use]
    pub fn contains(&self, name: &str) -> bool {
        self.templates.contains_key(name)
    }

    /// Returns the names of all templates, sorted.
    #[must_use]
    pub fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.templates.keys().map(AsRef::as_ref).collect();
        names.sort_unstable();
        names
    }

    /// Parses a text of `tpl`, or returns what it was parsed to before.
    pub(crate) fn parse_only(&self, name: &str, text: &[u8]) -> Result<Arc<Parsed>, Error> {
        if let Some(known) = self.texts.get(name, text) {
            return Ok(known);
        }
        let names = &mut Names::default();
        let parsed = parse::parse(name, &Arc::from(text), &|name| self.functions.find(name), names)?;
        Ok(self.texts.put(parsed))
    }

    pub(crate) fn find(&self, name: &str) -> Option<&Template> {
        self.templates.get(name)
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn registry(&self) -> &Registry {
        &self.functions
    }

    pub(crate) fn on_missing_key(&self) -> MissingKey {
        self.missing_key
    }
}

impl Parsed {
    /// The definitions of the text.
    pub(crate) fn templates(&self) -> impl Iterator<Item = Template> + '_ {
        let template = |(name, root): &(Arc<str>, u32)| Template {
            name: Arc::clone(name),
            source: Arc::clone(&self.source),
            root: *root,
        };
        self.templates.iter().map(template)
    }
}

impl Template {
    pub(crate) fn is_blank(&self) -> bool {
        self.source.is_empty(self.root)
    }
}
