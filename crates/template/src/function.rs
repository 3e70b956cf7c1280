//! Functions a template can call: each a row with its Go signature, so that the engine can check arguments and word
//! errors as Go's reflection does.

use std::any::Any;
use std::collections::BTreeMap;

use crate::limit::{LimitExceeded, Meter};
use crate::string::Str;
use crate::value::{List, Map, Value};

/// One callable.
#[derive(Clone, Copy)]
pub struct Function {
    /// Its name in templates.
    pub name: &'static str,
    /// The types of its parameters; the last repeats when `variadic`.
    pub params: &'static [Type],
    /// Whether the last parameter repeats.
    pub variadic: bool,
    /// What it does. Arguments were checked against `params` and converted to them.
    pub run: fn(&mut Call<'_>) -> Result<Value, Failure>,
}

/// A Go parameter type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// `interface {}`.
    Any,
    /// `bool`.
    Bool,
    /// `int`.
    Int,
    /// `int64`.
    Int64,
    /// `uint32`.
    Uint32,
    /// `float64`.
    Float64,
    /// `string`.
    String,
    /// `[]interface {}`.
    ListOfAny,
    /// `[]string`.
    ListOfString,
    /// `map[string]interface {}`.
    MapOfAny,
    /// `map[string]string`.
    MapOfString,
    /// A native object of this Go type name.
    Object(&'static str),
}

/// Why a function gave no result.
#[derive(Debug)]
pub enum Failure {
    /// A Go error: the engine wraps it as `error calling NAME: …`.
    Message(String),
    /// An error from a template run on the function's behalf (`include`, `tpl`), position and all.
    Template(Box<crate::Error>),
    /// Text given to [`Templates::execute_text`] that does not parse.
    Parse(Box<crate::Error>),
    /// A limit was reached: nothing may catch it.
    LimitExceeded(LimitExceeded),
}

impl Failure {
    /// A Go error.
    pub fn message(text: impl Into<String>) -> Self {
        Self::Message(text.into())
    }
}

impl From<LimitExceeded> for Failure {
    fn from(limit: LimitExceeded) -> Self {
        Self::LimitExceeded(limit)
    }
}

/// What the caller of a render lends to functions: everything that is not a pure function of the arguments.
///
/// The default of each method is the harmless answer, so a render without a host reads no clock, network or cluster.
pub trait Host {
    /// Fills `buffer` with random bytes. The default is all zeroes, which is deterministic and worthless as a secret.
    fn entropy(&mut self, buffer: &mut [u8]) {
        buffer.fill(0);
    }

    /// Nanoseconds since 1970-01-01T00:00:00Z.
    fn now(&mut self) -> i128 {
        0
    }

    /// `lookup`: an object (or a list when `name` is empty) from a cluster; empty map where there is none.
    fn lookup(
        &mut self,
        _api_version: &str,
        _kind: &str,
        _namespace: &str,
        _name: &str,
    ) -> Result<Value, String> {
        Ok(Value::map(BTreeMap::new()))
    }

    /// What a family of functions keeps from one call to the next within a render, such as how deep `include` is.
    fn state(&mut self) -> Option<&mut dyn Any> {
        None
    }
}

/// A host that lends nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoHost;

impl Host for NoHost {}

/// One call under way: the arguments, and what the function may use.
pub struct Call<'a> {
    /// The arguments, final pipeline value last.
    pub args: &'a [Value],
    /// What is left of the run's limits.
    pub meter: &'a mut Meter,
    /// What the caller lent.
    pub host: &'a mut dyn Host,
    /// Runs templates on the function's behalf.
    pub templates: &'a mut dyn Templates,
}

/// The engine, as a function sees it.
pub trait Templates {
    /// Runs the template called `name` with `dot` into a buffer of its own.
    fn execute(
        &mut self,
        name: &str,
        dot: Value,
        meter: &mut Meter,
        host: &mut dyn Host,
    ) -> Result<Vec<u8>, Failure>;

    /// Parses `text` under `name` into a copy of the set that dies with this call, and runs it: what `tpl` does.
    fn execute_text(
        &mut self,
        name: &str,
        text: &[u8],
        dot: Value,
        meter: &mut Meter,
        host: &mut dyn Host,
    ) -> Result<Vec<u8>, Failure>;
}

impl Call<'_> {
    /// Argument `index`, or nil.
    #[must_use]
    pub fn arg(&self, index: usize) -> Value {
        self.args.get(index).cloned().unwrap_or_default()
    }

    /// Argument `index` where the signature says `string`.
    #[must_use]
    pub fn str(&self, index: usize) -> Str {
        match self.args.get(index) {
            Some(Value::String(text)) => text.clone(),
            _ => Str::default(),
        }
    }

    /// Argument `index` where the signature says `int` or `int64`.
    #[must_use]
    pub fn int(&self, index: usize) -> i64 {
        match self.args.get(index) {
            Some(Value::Int(value, _)) => *value,
            _ => 0,
        }
    }

    /// Argument `index` where the signature says `uint32`.
    #[must_use]
    pub fn uint(&self, index: usize) -> u64 {
        match self.args.get(index) {
            Some(Value::Uint(value, _)) => *value,
            _ => 0,
        }
    }

    /// Argument `index` where the signature says `float64`.
    #[must_use]
    pub fn float(&self, index: usize) -> f64 {
        match self.args.get(index) {
            Some(Value::Float(value)) => *value,
            _ => 0.0,
        }
    }

    /// Argument `index` where the signature says `bool`.
    #[must_use]
    pub fn bool(&self, index: usize) -> bool {
        matches!(self.args.get(index), Some(Value::Bool(true)))
    }

    /// Argument `index` where the signature says a map; a nil map is `None`.
    #[must_use]
    pub fn map(&self, index: usize) -> Option<Map> {
        match self.args.get(index) {
            Some(Value::Map(map)) => Some(map.clone()),
            _ => None,
        }
    }

    /// Argument `index` where the signature says a slice; a nil slice is `None`.
    #[must_use]
    pub fn list(&self, index: usize) -> Option<List> {
        match self.args.get(index) {
            Some(Value::List(list)) => Some(list.clone()),
            _ => None,
        }
    }
}
