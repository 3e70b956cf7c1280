//! Merging of the user's values: `-f` files and the arguments of the `--set` family, in Helm's order. A
//! callback returns the contents of files.

mod documents;

use mainstay_yaml::{Error, Map, Numbers, Value, parse_json_map, parse_map};

use crate::budget::budget;
use crate::dialect::Dialect;
use crate::error::{CallbackError, LayerError, ValuesError};
use crate::strvals::{Mode, SetError, Target, set_target};
use documents::{Document, documents};

/// The user's values by flag. Helm applies the flags in the order of these fields, regardless of their
/// order on the command line.
#[derive(Clone, Debug, Default)]
pub struct Layers {
    /// `-f`, `--values`: file names.
    pub files: Vec<String>,
    /// `--set-json`.
    pub json: Vec<String>,
    /// `--set`.
    pub set: Vec<String>,
    /// `--set-string`.
    pub strings: Vec<String>,
    /// `--set-file`.
    pub set_files: Vec<String>,
    /// `--set-literal`.
    pub literals: Vec<String>,
}

/// Callback that returns the contents of the named file, or an error with a text that is shown to users.
pub type ReadValues<'a> = &'a mut dyn FnMut(&str) -> Result<Vec<u8>, CallbackError>;

impl Layers {
    /// Merges all layers into one map.
    pub fn merge(&self, read: ReadValues<'_>, dialect: Dialect) -> Result<Map, LayerError> {
        let mut merge = Merge {
            added_items: 0,
            base: Map::new(),
            read,
            dialect,
        };
        for name in &self.files {
            merge.merge_file(name)?;
        }
        for argument in &self.json {
            merge.merge_json(argument)?;
        }
        for argument in &self.set {
            merge.apply_set("--set", argument, Mode::Typed)?;
        }
        for argument in &self.strings {
            merge.apply_set("--set-string", argument, Mode::Text)?;
        }
        for argument in &self.set_files {
            merge.apply_set_file(argument)?;
        }
        for argument in &self.literals {
            merge.apply_set("--set-literal", argument, Mode::Literal)?;
        }
        Ok(merge.base)
    }
}

/// State of a merge.
struct Merge<'a> {
    base: Map,
    /// Number of items that the indexes of all arguments have added to lists.
    added_items: usize,
    read: ReadValues<'a>,
    dialect: Dialect,
}

impl Merge<'_> {
    fn merge_file(&mut self, name: &str) -> Result<(), LayerError> {
        let text = (self.read)(name).map_err(|reason| LayerError::Read {
            file: name.into(),
            reason,
        })?;
        let layer = load_values(&text, self.dialect).map_err(|source| LayerError::File {
            file: name.into(),
            source,
        })?;
        merge_maps(&mut self.base, layer);
        Ok(())
    }

    fn merge_json(&mut self, argument: &str) -> Result<(), LayerError> {
        let object = argument.trim();
        if !(self.dialect.accepts_set_json_object() && object.starts_with('{')) {
            return self
                .apply_assignments(argument, Mode::Json)
                .map_err(|cause| LayerError::Json {
                    argument: argument.into(),
                    cause,
                });
        }
        let layer =
            parse_json_map(object, Numbers::Float, &budget()).map_err(|cause| LayerError::JsonObject {
                argument: argument.into(),
                cause: Box::new(cause),
            })?;
        merge_maps(&mut self.base, layer);
        Ok(())
    }

    fn apply_set(&mut self, flag: &'static str, argument: &str, mode: Mode<'_>) -> Result<(), LayerError> {
        self.apply_assignments(argument, mode)
            .map_err(|source| set_error(flag, argument, source))
    }

    fn apply_assignments(&mut self, argument: &str, mode: Mode<'_>) -> Result<(), SetError> {
        let target = Target {
            values: &mut self.base,
            added_items: &mut self.added_items,
        };
        set_target(argument, target, mode, self.dialect)
    }

    fn apply_set_file(&mut self, argument: &str) -> Result<(), LayerError> {
        let mut text =
            |name: &str| (self.read)(name).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        let target = Target {
            values: &mut self.base,
            added_items: &mut self.added_items,
        };
        set_target(argument, target, Mode::File(&mut text), self.dialect)
            .map_err(|source| set_error("--set-file", argument, source))
    }
}

fn set_error(flag: &'static str, argument: &str, source: SetError) -> LayerError {
    LayerError::Set {
        flag,
        argument: argument.into(),
        source,
    }
}

/// Parses a values file. In Helm 4 all documents are merged, in Helm 3 only the first is read.
pub fn load_values(text: &[u8], dialect: Dialect) -> Result<Map, ValuesError> {
    if !dialect.merges_values_documents() {
        return parse_map(text, &budget()).map_err(|error| ValuesError::Plain(Box::new(error)));
    }
    let mut values = Map::new();
    for document in documents(text) {
        let document = document?;
        let layer = parse_map(&document.text, &budget())
            .map_err(|error| ValuesError::Document(Box::new(position_in_file(error, &document))))?;
        merge_maps(&mut values, layer);
    }
    Ok(values)
}

/// Converts the position of `error` in the document to a position in the whole file.
fn position_in_file(mut error: Error, document: &Document<'_>) -> Error {
    if error.at.line > 0 {
        error.at.line += document.line;
        error.at.offset += document.offset;
    }
    error
}

/// Merges `over` into `base`. Tables are merged; all other values are replaced, including by null.
pub fn merge_maps(base: &mut Map, over: Map) {
    for (key, value) in over {
        match (base.get_mut(&key), value) {
            (Some(Value::Map(below)), Value::Map(above)) => merge_maps(below, above),
            (_, value) => {
                base.insert(key, value);
            }
        }
    }
}
