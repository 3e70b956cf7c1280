//! Functions that a template can call, with their Go signatures. The engine uses the signatures to check
//! arguments and to create the same errors as Go's reflection.

use std::any::Any;
use std::collections::BTreeMap;

use crate::limit::{LimitExceeded, Meter};
use crate::string::Str;
use crate::value::{List, Map, Value};

/// A function of a template.
#[derive(Clone, Copy)]
pub struct Function {
    /// Name in templates.
    pub name: &'static str,
    /// Parameter types. The last one repeats if `variadic` is set.
    pub params: &'static [Type],
    /// Whether the last parameter repeats.
    pub variadic: bool,
    /// Implementation. Arguments have been checked against `params` and converted.
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
    /// A native object with this Go type name.
    Object(&'static str),
    /// An interface with methods, with this Go name. No value of a template implements one; nil is allowed.
    Interface(&'static str),
}

/// The reason why a function returned no result.
#[derive(Debug)]
pub enum Failure {
    /// A Go error. The engine wraps it as `error calling NAME: …`.
    Message(String),
    /// An error from a template that the function ran (`include`, `tpl`), with its position.
    Template(Box<crate::Error>),
    /// The text passed to [`Templates::execute_text`] does not parse.
    Parse(Box<crate::Error>),
    /// A limit was exceeded; functions must not handle it.
    LimitExceeded(LimitExceeded),
}

impl Failure {
    /// Creates a Go error.
    pub fn message(text: impl Into<String>) -> Self {
        Self::Message(text.into())
    }
}

impl From<LimitExceeded> for Failure {
    fn from(limit: LimitExceeded) -> Self {
        Self::LimitExceeded(limit)
    }
}

/// Inputs of functions other than their arguments, provided by the caller of a render.
///
/// The default of each method returns no data, so a render without a host uses no clock, network or
/// cluster.
pub trait Host {
    /// Fills `buffer` with random bytes. The default fills it with zeros, which is deterministic and
    /// useless as a secret.
    fn entropy(&mut self, buffer: &mut [u8]) {
        buffer.fill(0);
    }

    /// Returns the current time in nanoseconds since 1970-01-01T00:00:00Z.
    fn now(&mut self) -> i128 {
        0
    }

    /// Returns an object from a cluster for `lookup`, or a list if `name` is empty. Returns an empty map if
    /// there is no such object.
    fn lookup(
        &mut self,
        _api_version: &str,
        _kind: &str,
        _namespace: &str,
        _name: &str,
    ) -> Result<Value, Failure> {
        Ok(Value::map(BTreeMap::new()))
    }

    /// Returns the state that functions keep between calls within a render, such as the depth of `include`.
    fn state(&mut self) -> Option<&mut dyn Any> {
        None
    }
}

/// A host without data: uses the default of every method.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoHost;

impl Host for NoHost {}

/// A function call: the arguments, and the resources that the function may use.
pub struct Call<'a> {
    /// Arguments. The final value of the pipeline is the last one.
    pub args: &'a [Value],
    /// Remaining resources of the run.
    pub meter: &'a mut Meter,
    /// Host of the render.
    pub host: &'a mut dyn Host,
    /// Runs templates for the function.
    pub templates: &'a mut dyn Templates,
}

/// Interface that functions use to run templates.
pub trait Templates {
    /// Runs the template `name` with `dot` and returns its output.
    fn execute(
        &mut self,
        name: &str,
        dot: Value,
        meter: &mut Meter,
        host: &mut dyn Host,
    ) -> Result<Vec<u8>, Failure>;

    /// Parses `text` under `name` into a temporary copy of the set and runs it, as `tpl` does. Returns the
    /// output.
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
    /// Returns argument `index`, or nil if it does not exist.
    #[must_use]
    pub fn arg(&self, index: usize) -> Value {
        self.args.get(index).cloned().unwrap_or_default()
    }

    /// Returns argument `index` of type `string`.
    #[must_use]
    pub fn str(&self, index: usize) -> Str {
        match self.args.get(index) {
            Some(Value::String(text)) => text.clone(),
            _ => Str::default(),
        }
    }

    /// Returns argument `index` of type `int` or `int64`.
    #[must_use]
    pub fn int(&self, index: usize) -> i64 {
        match self.args.get(index) {
            Some(Value::Int(value, _)) => *value,
            _ => 0,
        }
    }

    /// Returns argument `index` of type `uint32`.
    #[must_use]
    pub fn uint(&self, index: usize) -> u64 {
        match self.args.get(index) {
            Some(Value::Uint(value, _)) => *value,
            _ => 0,
        }
    }

    /// Returns argument `index` of type `float64`.
    #[must_use]
    pub fn float(&self, index: usize) -> f64 {
        match self.args.get(index) {
            Some(Value::Float(value)) => *value,
            _ => 0.0,
        }
    }

    /// Returns argument `index` of type `bool`.
    #[must_use]
    pub fn bool(&self, index: usize) -> bool {
        matches!(self.args.get(index), Some(Value::Bool(true)))
    }

    /// Returns argument `index` of a map type, or `None` if it is a nil map.
    #[must_use]
    pub fn map(&self, index: usize) -> Option<Map> {
        match self.args.get(index) {
            Some(Value::Map(map)) => Some(map.clone()),
            _ => None,
        }
    }

    /// Returns argument `index` of a slice type, or `None` if it is a nil slice.
    #[must_use]
    pub fn list(&self, index: usize) -> Option<List> {
        match self.args.get(index) {
            Some(Value::List(list)) => Some(list.clone()),
            _ => None,
        }
    }
}
