//! Layers of values to one map: takes the texts of `-f` files and the arguments of the `--set` family, gives what the user
//! asked for, merged in Helm's order. Contents of files come through a callback.

mod documents;

use mainstay_yaml::{Budget, Error, Map, Numbers, Value, parse_json_map, parse_map};

use crate::dialect::Dialect;
use crate::error::{LayerError, ValuesError};
use crate::strvals::{Mode, SetError, set_values};
use documents::documents;

/// What the user gives, kind by kind: Helm applies the kinds in this order, whatever their order on the command line.
#[derive(Clone, Debug, Default)]
pub struct Layers {
    /// `-f`, `--values`: names of files.
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

/// Gives the contents of a named file, or the reason why not, in the words the user should read.
pub type ReadValues<'a> = &'a mut dyn FnMut(&str) -> Result<Vec<u8>, String>;

impl Layers {
    /// Everything in one map.
    pub fn merge(&self, read: ReadValues<'_>, dialect: Dialect) -> Result<Map, LayerError> {
        let mut base = Map::new();
        for name in &self.files {
            let text = read(name).map_err(|text| LayerError::Read {
                file: name.clone(),
                text,
            })?;
            let layer = load_values(&text, dialect);
            merge_maps(
                &mut base,
                layer.map_err(|source| LayerError::File {
                    file: name.clone(),
                    source,
                })?,
            );
        }
        for argument in &self.json {
            set_json(argument, &mut base, dialect)?;
        }
        for (flag, arguments) in [("--set", &self.set), ("--set-string", &self.strings)] {
            for argument in arguments {
                let mode = if flag == "--set" { Mode::Typed } else { Mode::Text };
                set_values(argument, &mut base, mode, dialect)
                    .map_err(|source| refused(flag, argument, source))?;
            }
        }
        for argument in &self.set_files {
            let mut text = |name: &str| read(name).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
            set_values(argument, &mut base, Mode::File(&mut text), dialect)
                .map_err(|source| refused("--set-file", argument, source))?;
        }
        for argument in &self.literals {
            set_values(argument, &mut base, Mode::Literal, dialect)
                .map_err(|source| refused("--set-literal", argument, source))?;
        }
        Ok(base)
    }
}

fn refused(flag: &'static str, argument: &str, source: SetError) -> LayerError {
    LayerError::Set {
        flag,
        argument: argument.into(),
        source,
    }
}

/// `--set-json`: assignments, or since Helm 4 a whole object.
fn set_json(argument: &str, base: &mut Map, dialect: Dialect) -> Result<(), LayerError> {
    let object = argument.trim();
    if dialect == Dialect::Helm4 && object.starts_with('{') {
        let layer = parse_json_map(object, Numbers::Float, &Budget::default()).map_err(|cause| {
            LayerError::JsonObject {
                argument: argument.into(),
                cause: Box::new(cause),
            }
        })?;
        merge_maps(base, layer);
        return Ok(());
    }
    set_values(argument, base, Mode::Json, dialect).map_err(|cause| LayerError::Json {
        argument: argument.into(),
        cause,
    })
}

/// Reads one values file: every document of it in Helm 4, merged; the first in Helm 3.
pub fn load_values(text: &[u8], dialect: Dialect) -> Result<Map, ValuesError> {
    if dialect == Dialect::Helm3 {
        return parse_map(text, &Budget::default()).map_err(|error| ValuesError::Plain(Box::new(error)));
    }
    let mut values = Map::new();
    for document in documents(text) {
        let document = document?;
        let layer = parse_map(&document.text, &Budget::default())
            .map_err(|error| ValuesError::Document(Box::new(moved(error, document.line, document.offset))))?;
        merge_maps(&mut values, layer);
    }
    Ok(values)
}

/// The position counted from the start of the file.
fn moved(mut error: Error, lines: usize, bytes: usize) -> Error {
    if error.at.line > 0 {
        error.at.line += lines;
        error.at.offset += bytes;
    }
    error
}

/// Lays `over` on `base`: tables merge, everything else is replaced, null included.
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
