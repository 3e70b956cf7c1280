//! Values that Go accesses by reflection: structs, pointers and named maps.

use std::any::Any;
use std::borrow::Cow;

use crate::function::{Call, Failure, Type};
use crate::string::Str;
use crate::value::Value;

/// A Go struct, pointer to struct, or named map that templates can use: `.Chart`, `.Files`, `.Capabilities`,
/// a semantic version, a time, a certificate. [`Value::native`] returns the Rust type.
pub trait Object: Any {
    /// Returns the Go type, as `%T` prints it: `*semver.Version`.
    fn type_name(&self) -> Cow<'static, str>;

    /// Returns the kind that `kindOf` and `range` see.
    fn go_kind(&self) -> GoKind;

    /// Returns an exported field; `None` is Go's "can't evaluate field".
    fn field(&self, name: &str) -> Option<Value>;

    /// Returns the signature of the method `name`, if there is one.
    fn method(&self, _name: &str) -> Option<Signature> {
        None
    }

    /// Calls the method; the arguments already match its signature.
    fn call(&self, _name: &str, _call: &mut Call<'_>) -> Result<Value, Failure> {
        Err(Failure::message("no such method"))
    }

    /// Formats the value for `print`: with the `String` or `Error` method where Go has one, else by its
    /// fields.
    fn print(&self) -> Str;

    /// Formats the value at the end of an action. Go takes the value's address first where it has one, so a
    /// `String` method on the pointer counts, which it does not for an argument of `printf` or `quote`.
    fn print_addressed(&self) -> Str {
        self.print()
    }

    /// Whether `print` is Go's `fmt.Stringer` or `error` (then `%s` and `%q` use it too).
    fn is_stringer(&self) -> bool {
        false
    }

    /// Returns the value that `toJson` and `toYaml` encode.
    fn plain(&self) -> Value;

    /// Returns the memory of [`Object::plain`], where it is larger than the object.
    fn plain_bytes(&self) -> usize {
        0
    }

    /// Returns the fields of a struct in the order of its JSON; `None` where [`Object::plain`] is equivalent.
    /// YAML is made from JSON but sorts its keys.
    fn json_fields(&self) -> Option<Vec<(Str, Value)>> {
        None
    }

    /// Returns the sorted keys, where the object is a map (`.Files`); [`Object::field`] returns the values.
    fn map_keys(&self) -> Vec<Str> {
        Vec::new()
    }
}

/// The parameters of a method.
#[derive(Clone, Copy, Debug)]
pub struct Signature {
    /// The parameter types; the last repeats when `variadic`.
    pub params: &'static [Type],
    /// Whether the last parameter repeats.
    pub variadic: bool,
}

/// A named Go map or slice type with its methods, such as Helm's `chartutil.Values`.
#[derive(Debug)]
pub struct NamedType {
    /// The Go name.
    pub name: &'static str,
    /// The methods. They take precedence over map entries.
    pub methods: &'static [Method],
}

/// Two types are the same if their Go names are.
impl PartialEq for NamedType {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for NamedType {}

/// A method of a [`NamedType`].
#[derive(Debug)]
pub struct Method {
    /// The Go name.
    pub name: &'static str,
    /// The parameters.
    pub signature: Signature,
    /// The implementation: receives the map or slice, and arguments that match the signature.
    pub run: fn(&Value, &mut Call<'_>) -> Result<Value, Failure>,
}

impl NamedType {
    /// Returns the method `name`, if there is one.
    #[must_use]
    pub fn method(&self, name: &[u8]) -> Option<&'static Method> {
        self.methods.iter().find(|method| method.name.as_bytes() == name)
    }
}

/// The kind of Go value that an object is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GoKind {
    /// A struct.
    Struct,
    /// A pointer to a struct.
    Pointer,
    /// A named map.
    Map,
    /// A named number, such as a `time.Month`, which [`Object::plain`] returns.
    Number,
}
