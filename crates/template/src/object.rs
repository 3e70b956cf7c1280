//! Values with a mind of their own: what Go reaches by reflection on structs, pointers and named maps.

use std::any::Any;
use std::borrow::Cow;

use crate::function::{Call, Failure, Type};
use crate::string::Str;
use crate::value::Value;

/// A Go struct, pointer to struct, or named map, as a template can use it: `.Chart`, `.Files`, `.Capabilities`, a
/// semantic version, a time, a certificate. [`Value::native`] gets the Rust type back.
pub trait Object: Any {
    /// The Go type, as `%T` prints it: `*semver.Version`.
    fn type_name(&self) -> Cow<'static, str>;

    /// What `kindOf` and `range` see.
    fn go_kind(&self) -> GoKind;

    /// An exported field; `None` is Go's "can't evaluate field".
    fn field(&self, name: &str) -> Option<Value>;

    /// Whether there is a method of this name, and what it takes.
    fn method(&self, _name: &str) -> Option<Signature> {
        None
    }

    /// Calls the method; arguments already fit its signature.
    fn call(&self, _name: &str, _call: &mut Call<'_>) -> Result<Value, Failure> {
        Err(Failure::message("no such method"))
    }

    /// What `print` writes: the `String` or `Error` method where Go has one, else the fields.
    fn print(&self) -> Str;

    /// What an action that ends in this value writes. Go takes the value's address first where it has one, so that a
    /// `String` method on the pointer counts, which it does not for an argument of `printf` or `quote`.
    fn print_addressed(&self) -> Str {
        self.print()
    }

    /// Whether `print` is Go's `fmt.Stringer` or `error` (then `%s` and `%q` use it too).
    fn is_stringer(&self) -> bool {
        false
    }

    /// What `toJson` and `toYaml` see.
    fn plain(&self) -> Value;

    /// The fields of a struct as its JSON has them, in their order; `None` where [`Object::plain`] says it all. YAML is made
    /// from JSON but sorts its keys.
    fn json_fields(&self) -> Option<Vec<(Str, Value)>> {
        None
    }

    /// The entries, where the object is a map (`.Files`), sorted by key.
    fn map_entries(&self) -> Vec<(Str, Value)> {
        Vec::new()
    }
}

/// A method's parameters.
#[derive(Clone, Copy, Debug)]
pub struct Signature {
    /// Their types; the last repeats when `variadic`.
    pub params: &'static [Type],
    /// Whether the last parameter repeats.
    pub variadic: bool,
}

/// Which kind of Go value an object is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GoKind {
    /// A struct.
    Struct,
    /// A pointer to a struct.
    Pointer,
    /// A named map.
    Map,
    /// A named number, such as a `time.Month`: [`Object::plain`] gives it.
    Number,
}
