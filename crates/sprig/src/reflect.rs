//! Functions for Go types and kinds of values.

use mainstay_template::Type::{Any, String};
use mainstay_template::{Call, Failure, Function, Value};

use crate::equal::is_equal;
use crate::table::fixed;

pub(crate) const TABLE: &[Function] = &[
    fixed("typeOf", &[Any], type_of),
    fixed("typeIs", &[String, Any], type_is),
    fixed("typeIsLike", &[String, Any], type_is_like),
    fixed("kindOf", &[Any], kind_of),
    fixed("kindIs", &[String, Any], kind_is),
    fixed("deepEqual", &[Any, Any], deep_equal),
];

fn type_of(call: &mut Call<'_>) -> Result<Value, Failure> {
    Ok(Value::from(call.arg(0).type_name().into_owned()))
}

fn type_is(call: &mut Call<'_>) -> Result<Value, Failure> {
    Ok(Value::from(*call.str(0) == *call.arg(1).type_name().as_bytes()))
}

fn type_is_like(call: &mut Call<'_>) -> Result<Value, Failure> {
    let (wanted, found) = (call.str(0), call.arg(1).type_name());
    let pointed = found.strip_prefix('*').unwrap_or(&found);
    Ok(Value::from(
        *wanted == *found.as_bytes() || *wanted == *pointed.as_bytes(),
    ))
}

fn kind_of(call: &mut Call<'_>) -> Result<Value, Failure> {
    Ok(Value::from(call.arg(0).kind_name()))
}

fn kind_is(call: &mut Call<'_>) -> Result<Value, Failure> {
    Ok(Value::from(*call.str(0) == *call.arg(1).kind_name().as_bytes()))
}

fn deep_equal(call: &mut Call<'_>) -> Result<Value, Failure> {
    let (a, b) = (call.arg(0), call.arg(1));
    Ok(Value::from(is_equal(call.meter, &a, &b)?))
}
