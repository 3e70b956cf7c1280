//! Values that Go accesses by reflection: structs, pointers and named maps.

use std::any::Any;
use std::borrow::Cow;

use crate::function::{Call, Failure, Type};
use crate::string::Str;
use crate::value::Value;

/// A Go struct, pointer to a struct, or named map that templates can use: `.Chart`, `.Files`,
/// `.Capabilities`, a semantic version, a time, a certificate. [`Value::native`] returns the Rust type.
pub trait Object: Any {
    /// Returns the Go type as `%T` prints it, for example `*semver.Version`.
    fn type_name(&self) -> Cow<'static, str>;

    /// Returns the Go kind, as used by `kindOf` and `range`.
    fn go_kind(&self) -> GoKind;

    /// Returns an exported field, or `None` for Go's error "can't evaluate field".
    fn field(&self, _name: &str) -> Option<Value> {
        None
    }

    /// Returns the signature of the method `name`, or `None` if there is no such method.
    fn method(&self, _name: &str) -> Option<Signature> {
        None
    }

    /// Calls the method `name`. The arguments match its signature.
    fn call(&self, _name: &str, _call: &mut Call<'_>) -> Result<Value, Failure> {
        Err(Failure::message("no such method"))
    }

    /// Formats the value for `print`: with the Go type's `String` or `Error` method if it has one,
    /// otherwise by its fields.
    fn print(&self) -> Str;

    /// Formats the value at the end of an action. There, Go uses the value's address if it has one, so that
    /// a `String` method of the pointer type applies. It does not apply to an argument of `printf` or
    /// `quote`.
    fn print_addressed(&self) -> Str {
        self.print()
    }

    /// Whether the Go type implements `fmt.Stringer` or `error`. Then `%s` and `%q` also use
    /// [`Object::print`].
    fn is_stringer(&self) -> bool {
        false
    }

    /// Returns the value that `toJson` and `toYaml` encode.
    fn plain(&self) -> Value;

    /// Returns the size of [`Object::plain`] in bytes, if it is larger than the object.
    fn plain_bytes(&self) -> usize {
        0
    }

    /// Returns the fields of a struct in the order of its JSON form, or `None` if [`Object::plain`] is
    /// equivalent. YAML is converted from JSON, but sorts its keys.
    fn json_fields(&self) -> Option<Vec<(Str, Value)>> {
        None
    }

    /// Returns the sorted keys if the object is a map (`.Files`). [`Object::field`] returns the values.
    fn map_keys(&self) -> Vec<Str> {
        Vec::new()
    }
}

/// Parameters of a method.
#[derive(Clone, Copy, Debug)]
pub struct Signature {
    /// Parameter types. The last one repeats if `variadic` is set.
    pub params: &'static [Type],
    /// Whether the last parameter repeats.
    pub variadic: bool,
}

/// A named Go map or slice type with its methods, such as Helm's `chartutil.Values`.
#[derive(Debug)]
pub struct NamedType {
    /// Name of the Go type.
    pub name: &'static str,
    /// Methods of the type, which take precedence over map entries.
    pub methods: &'static [Method],
}

/// Two types are equal if their Go names are equal.
impl PartialEq for NamedType {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for NamedType {}

/// A method of a [`NamedType`].
#[derive(Debug)]
pub struct Method {
    /// Go name of the method.
    pub name: &'static str,
    /// Parameters of the method.
    pub signature: Signature,
    /// Implementation. Receives the map or slice, and arguments that match the signature.
    pub run: fn(&Value, &mut Call<'_>) -> Result<Value, Failure>,
}

impl NamedType {
    /// Returns the method `name`, or `None` if there is no such method.
    #[must_use]
    pub fn method(&self, name: &[u8]) -> Option<&'static Method> {
        self.methods.iter().find(|method| method.name.as_bytes() == name)
    }
}

/// Go kind of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GoKind {
    /// A struct.
    Struct,
    /// A pointer to a struct.
    Pointer,
    /// A named map.
    Map,
    /// A named number, such as a `time.Month`. [`Object::plain`] returns the number.
    Number,
}
