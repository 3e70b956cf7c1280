//! Named templates that can call each other: takes texts, gives a set to run. Cheap to clone and free to share between threads.

use std::collections::HashMap;
use std::sync::Arc;

use crate::ast::Template;
use crate::builtin::{self, Builtin};
use crate::error::Error;
use crate::function::Function;
use crate::names::{Mix, Names};
use crate::parse::{self, Parsed};

/// The name Helm gives its set; texts run by `tpl` carry it too.
const DEFAULT_NAME: &str = "gotpl";

/// A set of templates, the functions they may call, and what a missing key means.
#[derive(Clone)]
pub struct TemplateSet {
    name: Arc<str>,
    templates: Arc<HashMap<Arc<str>, Template, Mix>>,
    names: Arc<Names>,
    functions: Arc<Registry>,
    missing_key: MissingKey,
}

/// What a key that a map lacks evaluates to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MissingKey {
    /// Nothing: it prints `<no value>`, and so do fields of it.
    #[default]
    Default,
    /// The zero of the map's element type: what Helm uses.
    Zero,
    /// An error: what Helm uses with `--strict`.
    Error,
}

/// Functions by index and by name.
#[derive(Clone, Default)]
pub(crate) struct Registry {
    rows: Vec<Callable>,
    by_name: HashMap<&'static [u8], u32, Mix>,
}

/// What a name in a template can call.
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
    /// An empty set with Go's built-in functions, called `gotpl` as Helm's is.
    #[must_use]
    pub fn new() -> Self {
        Self::named(DEFAULT_NAME)
    }

    /// An empty set of another name; it shows in "no template … associated with template NAME".
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
        }
    }

    /// Adds functions, each replacing what had its name. Add them before parsing: a text may only name functions there are.
    pub fn functions(&mut self, rows: &[Function]) {
        let registry = Arc::make_mut(&mut self.functions);
        for row in rows {
            registry.put(row.name, Callable::Function(*row));
        }
    }

    /// Decides what a missing key means.
    pub fn missing_key(&mut self, missing_key: MissingKey) {
        self.missing_key = missing_key;
    }

    /// Parses `text` as the template `name`, with all it defines. A template of the same name is replaced, unless the new one is
    /// blank.
    pub fn parse(&mut self, name: &str, text: impl AsRef<[u8]>) -> Result<(), Error> {
        let (functions, names) = (&self.functions, Arc::make_mut(&mut self.names));
        let parsed = parse::parse(name, text.as_ref(), &|name| functions.find(name), names)?;
        let templates = Arc::make_mut(&mut self.templates);
        for template in parsed.templates() {
            let known = templates.contains_key(&template.name);
            if !known || !template.is_blank() {
                templates.insert(Arc::clone(&template.name), template);
            }
        }
        Ok(())
    }

    /// Whether there is a template of this name.
    #[must_use]
    pub fn contains(&self, name: &str) -> bool {
        self.templates.contains_key(name)
    }

    /// The names of all templates, sorted.
    #[must_use]
    pub fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.templates.keys().map(AsRef::as_ref).collect();
        names.sort_unstable();
        names
    }

    pub(crate) fn parse_only(&self, name: &str, text: &[u8]) -> Result<Parsed, Error> {
        let names = &mut Names::default();
        parse::parse(name, text, &|name| self.functions.find(name), names)
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
    /// What the text defines.
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
