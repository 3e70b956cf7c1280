//! The functions `fail` and `hello`.

use mainstay_gostd::utf8::to_string_lossy;
use mainstay_template::Type::String;
use mainstay_template::{Call, Failure, Function, Value};

use crate::table::fixed;

pub(crate) const TABLE: &[Function] = &[fixed("hello", &[], hello), fixed("fail", &[String], fail)];

fn hello(_: &mut Call<'_>) -> Result<Value, Failure> {
    Ok(Value::from("Hello!"))
}

fn fail(call: &mut Call<'_>) -> Result<Value, Failure> {
    Err(Failure::message(to_string_lossy(&call.str(0))))
}
