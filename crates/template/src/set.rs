//! Named templates that can call each other. A set is cheap to clone and can be shared between threads.

use std::collections::HashMap;
use std::sync::Arc;

use crate::ast::Template;
use crate::builtin::{self, Builtin};
use crate::error::Error;
use crate::function::Function;
use crate::names::{BuildNameHasher, InternedNames};
use crate::parse::{self, Parsed};
use crate::texts::ParsedTexts;

/// Name of Helm's template set. Texts run by `tpl` also have this name.
const DEFAULT_NAME: &str = "gotpl";

/// A set of templates, the functions that they may call, and the handling of missing keys.
#[derive(Clone)]
pub struct TemplateSet {
    name: Arc<str>,
    templates: Arc<HashMap<Arc<str>, Template, BuildNameHasher>>,
    names: Arc<InternedNames>,
    functions: Arc<Registry>,
    missing_key: MissingKey,
    parsed_texts: ParsedTexts,
    shared_texts: SharedTexts,
}

/// Texts that were parsed by [`TemplateSet::parse_shared`], by their address. Each contains its text, so that
/// no other text can have this address.
type SharedTexts = Arc<HashMap<usize, Parsed>>;

/// Value of a key that a map does not contain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MissingKey {
    /// No value. It and its fields print `<no value>`.
    #[default]
    Default,
    /// Zero value of the map's element type, as in Helm.
    Zero,
    /// Error, as in Helm with `--strict`.
    Error,
}

/// Functions by index and by name.
#[derive(Clone, Default)]
pub(crate) struct Registry {
    rows: Vec<Callable>,
    by_name: HashMap<&'static [u8], u32, BuildNameHasher>,
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

    /// Creates an empty set with another name. The name appears in the error "no template … associated with
    /// template NAME".
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
            parsed_texts: ParsedTexts::default(),
            shared_texts: SharedTexts::default(),
        }
    }

    /// Adds functions. Each replaces an existing function of the same name. Functions must be added before
    /// a text that refers to them is parsed.
    pub fn add_functions(&mut self, rows: &[Function]) {
        self.parsed_texts = ParsedTexts::default();
        self.shared_texts = SharedTexts::default();
        let registry = Arc::make_mut(&mut self.functions);
        for row in rows {
            registry.put(row.name, Callable::Function(*row));
        }
    }

    /// Sets the handling of missing keys.
    pub fn set_missing_key(&mut self, missing_key: MissingKey) {
        self.missing_key = missing_key;
    }

    /// Parses `text` as the template `name`, including all definitions in it. An existing template of the
    /// same name is replaced, unless the new one is blank.
    pub fn parse(&mut self, name: &str, text: impl AsRef<[u8]>) -> Result<(), Error> {
        let parsed = self.parse_text(name, &Arc::from(text.as_ref()))?;
        self.add(&parsed);
        Ok(())
    }

    /// Parses `text` like [`parse`](Self::parse), without copying it. The same text under several names, as
    /// in charts that are included several times, is parsed once.
    pub fn parse_shared(&mut self, name: &str, text: &Arc<[u8]>) -> Result<(), Error> {
        let address = text.as_ptr().addr();
        let known = self.shared_texts.get(&address);
        if let Some(parsed) = known.and_then(|known| known.under_name(name)) {
            self.add(&parsed);
            return Ok(());
        }
        let parsed = self.parse_text(name, text)?;
        self.add(&parsed);
        Arc::make_mut(&mut self.shared_texts).insert(address, parsed);
        Ok(())
    }

    fn parse_text(&mut self, name: &str, text: &Arc<[u8]>) -> Result<Parsed, Error> {
        let (functions, names) = (&self.functions, Arc::make_mut(&mut self.names));
        parse::parse(name, text, &|name| functions.find(name), names)
    }

    fn add(&mut self, parsed: &Parsed) {
        let templates = Arc::make_mut(&mut self.templates);
        for template in parsed.templates() {
            let known = templates.contains_key(&template.name);
            if !known || !template.is_blank() {
                templates.insert(Arc::clone(&template.name), template);
            }
        }
    }

    /// Whether the set contains the template `name`.
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

    /// Parses a text of `tpl`, or returns the cached result of an earlier parse. Does not change the set.
    pub(crate) fn parse_only(&self, name: &str, text: &[u8]) -> Result<Arc<Parsed>, Error> {
        if let Some(known) = self.parsed_texts.get(name, text) {
            return Ok(known);
        }
        let names = &mut InternedNames::default();
        let parsed = parse::parse(name, &Arc::from(text), &|name| self.functions.find(name), names)?;
        Ok(self.parsed_texts.put(parsed))
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

    pub(crate) fn missing_key_option(&self) -> MissingKey {
        self.missing_key
    }
}

impl Parsed {
    /// Returns the templates that the text defines.
    pub(crate) fn templates(&self) -> impl Iterator<Item = Template> + '_ {
        let template = |(name, root): &(Arc<str>, u32)| Template {
            name: Arc::clone(name),
            text_name: Arc::clone(&self.name),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::execute;
    use crate::function::NoHost;
    use crate::limit::{Limits, Meter};
    use crate::value::Value;

    fn run(set: &TemplateSet, name: &str) -> Result<String, String> {
        let mut meter = Meter::new(Limits::default());
        execute(set, name, Value::Nil, &mut meter, &mut NoHost)
            .map(|text| String::from_utf8_lossy(&text).into_owned())
            .map_err(|error| error.to_string())
    }

    fn share(names: &[&str], text: &str) -> TemplateSet {
        let (mut set, text) = (TemplateSet::new(), Arc::from(text.as_bytes()));
        for name in names {
            set.parse_shared(name, &text).unwrap();
        }
        set
    }

    #[test]
    fn a_shared_text_has_each_of_its_names() {
        let set = share(
            &["a/x", "b/x"],
            "{{ define \"part\" }}{{ index 1 2 }}{{ end }}text",
        );
        assert_eq!(set.names(), ["a/x", "b/x", "part"]);
        assert_eq!(run(&set, "a/x").as_deref(), Ok("text"));
        assert_eq!(run(&set, "b/x").as_deref(), Ok("text"));
        // The last definition replaces the earlier one.
        let error = run(&set, "part").unwrap_err();
        assert!(error.starts_with("template: b/x:1:"), "{error}");
    }

    #[test]
    fn a_text_that_defines_one_of_its_names_is_parsed_again() {
        for own in ["a", "b"] {
            let text = format!("{{{{ define \"{own}\" }}}}{{{{ end }}}}main");
            let (mut expected, shared) = (TemplateSet::new(), share(&["a", "b"], &text));
            for name in ["a", "b"] {
                expected.parse(name, &text).unwrap();
            }
            assert_eq!(shared.names(), expected.names());
            for name in ["a", "b"] {
                assert_eq!(run(&shared, name), run(&expected, name), "{name} of {text}");
            }
        }
    }
}
