//! Versions as template values: `*semver.Version` from `semver`, and `semver.Version` from its methods.

use std::borrow::Cow;

use mainstay_template::{Call, Failure, GoKind, Object, Signature, Str, Type, Value};

use super::version::Version;

/// Wraps a version as `semver` returns it: as a pointer.
pub(super) fn pointer(version: Version) -> Value {
    Value::object(VersionObject {
        version,
        pointer: true,
    })
}

fn plain(version: Version) -> Value {
    Value::object(VersionObject {
        version,
        pointer: false,
    })
}

struct VersionObject {
    version: Version,
    /// Whether the value is a pointer. Methods with a pointer receiver are not available on a struct that
    /// another method returned.
    pointer: bool,
}

const POINTER: &str = "*semver.Version";
const NONE: &[Type] = &[];
const OTHER: &[Type] = &[Type::Object(POINTER)];
const TEXT: &[Type] = &[Type::String];

/// Methods: name, parameters, and whether the receiver must be a pointer.
const METHODS: &[(&str, &[Type], bool)] = &[
    ("String", NONE, false),
    ("Major", NONE, false),
    ("Minor", NONE, false),
    ("Patch", NONE, false),
    ("Prerelease", NONE, false),
    ("Metadata", NONE, false),
    ("IncPatch", NONE, false),
    ("IncMinor", NONE, false),
    ("IncMajor", NONE, false),
    ("SetPrerelease", TEXT, false),
    ("SetMetadata", TEXT, false),
    ("Value", NONE, false),
    ("Original", NONE, true),
    ("Compare", OTHER, true),
    ("Equal", OTHER, true),
    ("LessThan", OTHER, true),
    ("LessThanEqual", OTHER, true),
    ("GreaterThan", OTHER, true),
    ("GreaterThanEqual", OTHER, true),
];

impl Object for VersionObject {
    fn type_name(&self) -> Cow<'static, str> {
        Cow::Borrowed(if self.pointer { POINTER } else { "semver.Version" })
    }

    fn go_kind(&self) -> GoKind {
        if self.pointer {
            GoKind::Pointer
        } else {
            GoKind::Struct
        }
    }

    fn method(&self, name: &str) -> Option<Signature> {
        let (_, params, _) = METHODS
            .iter()
            .find(|(method, _, pointer)| *method == name && (self.pointer || !pointer))?;
        Some(Signature {
            params,
            variadic: false,
        })
    }

    fn call(&self, name: &str, call: &mut Call<'_>) -> Result<Value, Failure> {
        let own = &self.version;
        Ok(match name {
            "String" | "Value" => own.to_string().into(),
            "Major" => Value::uint64(own.major),
            "Minor" => Value::uint64(own.minor),
            "Patch" => Value::uint64(own.patch),
            "Prerelease" => own.pre.as_str().into(),
            "Metadata" => own.metadata.as_str().into(),
            "Original" => own.original.as_str().into(),
            "IncPatch" => plain(own.next_patch().ok_or_else(|| overflow_error("patch"))?),
            "IncMinor" => plain(own.next_minor().ok_or_else(|| overflow_error("minor"))?),
            "IncMajor" => plain(own.next_major().ok_or_else(|| overflow_error("major"))?),
            "SetPrerelease" => wrap_result(own.with_prerelease(&call.str(0).to_str_lossy()))?,
            "SetMetadata" => wrap_result(own.with_metadata(&call.str(0).to_str_lossy()))?,
            _ => return self.rank(name, call),
        })
    }

    fn print(&self) -> Str {
        self.version.to_string().into()
    }

    fn is_stringer(&self) -> bool {
        true
    }

    fn plain(&self) -> Value {
        self.version.to_string().into()
    }
}

impl VersionObject {
    fn rank(&self, name: &str, call: &Call<'_>) -> Result<Value, Failure> {
        let other = call.args.first().and_then(Value::native::<Self>);
        // In Go, a nil pointer is unequal to every version or causes a panic.
        let Some(other) = other else {
            return match name {
                "Equal" => Ok(false.into()),
                _ => Err(Failure::message(
                    "runtime error: invalid memory address or nil pointer dereference",
                )),
            };
        };
        let order = self.version.compare(&other.version);
        Ok(match name {
            "Compare" => Value::int(order as i64),
            "Equal" => order.is_eq().into(),
            "LessThan" => order.is_lt().into(),
            "LessThanEqual" => order.is_le().into(),
            "GreaterThan" => order.is_gt().into(),
            _ => order.is_ge().into(),
        })
    }
}

fn wrap_result(version: Result<Version, super::VersionError>) -> Result<Value, Failure> {
    version
        .map(plain)
        .map_err(|error| Failure::message(error.to_string()))
}

fn overflow_error(part: &str) -> Failure {
    Failure::message(format!("{part} version increment would overflow uint64"))
}
