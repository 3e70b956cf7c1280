//! Semantic versions and constraints as in Masterminds' semver 3.5: the functions `semver` and
//! `semverCompare`, and types for use outside of templates.

mod constraint;
mod object;
mod version;

use mainstay_gostd::quote::quote;
use mainstay_template::{Call, Failure, Function, Type, Value};

use crate::table::fixed;
pub use constraint::{Constraint, ConstraintError, MAX_CONSTRAINT_GROUPS, MAX_CONSTRAINT_LEN};
pub use version::{MAX_VERSION_LEN, Version, VersionError};

pub(crate) const TABLE: &[Function] = &[
    fixed("semver", &[Type::String], semver),
    fixed("semverCompare", &[Type::String, Type::String], semver_compare),
];

fn semver(call: &mut Call<'_>) -> Result<Value, Failure> {
    parse(call, 0).map(object::pointer)
}

fn semver_compare(call: &mut Call<'_>) -> Result<Value, Failure> {
    let text = call.str(0);
    let Ok(text) = std::str::from_utf8(&text) else {
        return Err(Failure::message(format!("improper constraint: {}", quote(&text))));
    };
    let constraint = Constraint::parse(text).map_err(|error| Failure::message(error.to_string()))?;
    let version = parse(call, 1)?;
    Ok(constraint.check(&version).into())
}

fn parse(call: &Call<'_>, index: usize) -> Result<Version, Failure> {
    let text = call.str(index);
    Version::parse(&text.to_str_lossy()).map_err(|error| Failure::message(error.to_string()))
}
