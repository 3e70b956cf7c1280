//! `.Files`: access of templates to the other files of a chart, without access to the disk.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use mainstay_template::{
    Call, ENTRY_BYTES, Failure, GoKind, LimitExceeded, Map, MapType, Meter, Object, Signature, Str, Type,
    Value, encode_base64,
};

use super::glob::Glob;
use crate::chart::File;
use crate::dialect::Dialect;

/// A named Go map from path to content, with methods.
pub(crate) struct Files {
    by_name: Rc<BTreeMap<String, Arc<[u8]>>>,
    dialect: Dialect,
}

impl Files {
    /// Creates the object for the files of one chart.
    pub(crate) fn new(files: &[File], dialect: Dialect) -> Self {
        let entries = files
            .iter()
            .map(|file| (file.name.clone(), Arc::clone(&file.data)));
        Self {
            by_name: Rc::new(entries.collect()),
            dialect,
        }
    }

    fn get(&self, name: &[u8]) -> Option<&Arc<[u8]>> {
        self.by_name.get(std::str::from_utf8(name).ok()?)
    }

    fn glob(&self, pattern: &str) -> Self {
        let glob = Glob::new(pattern).unwrap_or_else(Glob::match_all);
        let fitting = self.by_name.iter().filter(|(name, _)| glob.matches(name));
        let by_name = fitting
            .map(|(name, data)| (name.clone(), Arc::clone(data)))
            .collect();
        Self {
            by_name: Rc::new(by_name),
            dialect: self.dialect,
        }
    }

    /// Checks the limits and consumes fuel for the result of a method.
    fn charge(&self, method: &str, name: &[u8], meter: &mut Meter) -> Result<(), LimitExceeded> {
        let size = self.get(name).map_or(0, |data| data.len());
        let total = || self.by_name.values().map(|data| data.len()).sum::<usize>();
        match method {
            // The result is a map with an entry for each file.
            "Glob" => {
                let names: usize = self.by_name.keys().map(String::len).sum();
                meter.consume_fuel((self.by_name.len() + names) as u64)?;
                meter.retain(self.by_name.len() * ENTRY_BYTES + names)
            }
            // The result contains a value for each byte or, at worst, for every second byte.
            "GetBytes" | "Lines" => {
                meter.consume_fuel(size as u64)?;
                meter.allocate(size.saturating_mul(size_of::<Value>()))
            }
            "AsConfig" | "AsSecrets" => meter.allocate(total().saturating_mul(3)),
            _ => Ok(()),
        }
    }

    fn lines(&self, name: &[u8]) -> Result<Value, Failure> {
        match self.get(name) {
            None => Ok(Value::strings::<&str>([])),
            Some(data) if data.is_empty() && self.dialect.fails_on_lines_of_empty_file() => {
                Err(Failure::message("runtime error: index out of range [-1]"))
            }
            Some(data) if data.is_empty() => Ok(Value::strings::<&str>([])),
            Some(data) => Ok(Value::strings(
                data.strip_suffix(b"\n")
                    .unwrap_or(data)
                    .split(|byte| *byte == b'\n'),
            )),
        }
    }

    /// Returns the contents by file name without directories. If two files have the same name, the last one
    /// is used; in Helm it may be either.
    fn by_base_name(&self, encode: impl Fn(&[u8]) -> Value) -> Value {
        let entries = self
            .by_name
            .iter()
            .map(|(name, data)| (Str::from(base_name(name)), encode(data)));
        Value::Map(Map::new(MapType::String, entries.collect()))
    }
}

fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

const ONE_STRING: Signature = Signature {
    params: &[Type::String],
    variadic: false,
};
const NOTHING: Signature = Signature {
    params: &[],
    variadic: false,
};

impl Object for Files {
    fn type_name(&self) -> Cow<'static, str> {
        "engine.files".into()
    }

    fn go_kind(&self) -> GoKind {
        GoKind::Map
    }

    fn field(&self, name: &str) -> Option<Value> {
        Some(Value::bytes(self.get(name.as_bytes()).map_or(&[], |data| data)))
    }

    fn method(&self, name: &str) -> Option<Signature> {
        match name {
            "Get" | "GetBytes" | "Glob" | "Lines" => Some(ONE_STRING),
            "AsConfig" | "AsSecrets" => Some(NOTHING),
            _ => None,
        }
    }

    fn call(&self, name: &str, call: &mut Call<'_>) -> Result<Value, Failure> {
        let argument = call.str(0);
        self.charge(name, &argument, call.meter)?;
        match name {
            "Get" => Ok(Value::string(self.get(&argument).cloned().unwrap_or_default())),
            "GetBytes" => Ok(Value::bytes(self.get(&argument).map_or(&[], |data| data))),
            "Glob" => Ok(Value::object(self.glob(&argument.to_str_lossy()))),
            "Lines" => self.lines(&argument),
            "AsConfig" => crate::functions::to_yaml(&self.by_base_name(|data| Value::string(data)), call),
            _ => crate::functions::to_yaml(
                &self.by_base_name(|data| Value::string(encode_base64(data))),
                call,
            ),
        }
    }

    /// Returns the names of the files, which comparisons use. The engine prints the entries of a map instead.
    fn print(&self) -> Str {
        let names: Vec<&str> = self.by_name.keys().map(String::as_str).collect();
        format!("map[{}]", names.join(" ")).into()
    }

    fn plain(&self) -> Value {
        let entry = |(name, data): (&String, &Arc<[u8]>)| (Str::from(name.as_str()), Value::bytes(data));
        Value::map(self.by_name.iter().map(entry).collect())
    }

    fn plain_bytes(&self) -> usize {
        let total: usize = self.by_name.values().map(|data| data.len()).sum();
        total.saturating_mul(size_of::<Value>())
    }

    fn map_keys(&self) -> Vec<Str> {
        self.by_name.keys().map(|name| name.as_str().into()).collect()
    }
}
