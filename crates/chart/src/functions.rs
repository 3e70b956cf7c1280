//! What Helm adds to Sprig: takes a dialect, gives the table of functions its templates can call.

mod include;
mod text;
mod toml;

use mainstay_template::{Call, Failure, Function, Type, Value};

pub(crate) use include::{State, without_no_value};
pub(crate) use text::to_yaml;

use crate::dialect::Dialect;

/// What `required` and `fail` put around a message, so that the edge finds it in a chain of errors.
pub(crate) const WARN_START: &str = "HELM_ERR_START";
/// See [`WARN_START`].
pub(crate) const WARN_END: &str = "HELM_ERR_END";

/// Sprig without `env` and `expandenv`, then Helm's own; a later row replaces an earlier one of its name.
pub(crate) fn functions(dialect: Dialect) -> Vec<Function> {
    let newer: &[Function] = if dialect == Dialect::Helm4 { HELM4 } else { &[] };
    [mainstay_sprig::functions(), HELM, newer].concat()
}

const fn row(
    name: &'static str,
    params: &'static [Type],
    run: fn(&mut Call<'_>) -> Result<Value, Failure>,
) -> Function {
    Function {
        name,
        params,
        variadic: false,
        run,
    }
}

const ANY: &[Type] = &[Type::Any];
const STRING: &[Type] = &[Type::String];
const STRING_ANY: &[Type] = &[Type::String, Type::Any];

const HELM: &[Function] = &[
    row("toToml", ANY, text::to_toml),
    row("fromToml", STRING, text::from_toml),
    row("toYaml", ANY, text::to_yaml_function),
    row("toYamlPretty", ANY, text::to_yaml_pretty),
    row("fromYaml", STRING, text::from_yaml),
    row("fromYamlArray", STRING, text::from_yaml_array),
    row("toJson", ANY, text::to_json),
    row("fromJson", STRING, text::from_json),
    row("fromJsonArray", STRING, text::from_json_array),
    row("include", STRING_ANY, include::include),
    row("tpl", STRING_ANY, include::tpl),
    row("required", STRING_ANY, required),
    row("fail", STRING, fail),
    row(
        "lookup",
        &[Type::String, Type::String, Type::String, Type::String],
        lookup,
    ),
    row("getHostByName", STRING, no_host),
];

/// What only Helm 4 has or overrides.
const HELM4: &[Function] = &[
    row("mustToToml", ANY, text::must_to_toml),
    row("mustToYaml", ANY, text::must_to_yaml),
    row("mustToJson", ANY, text::must_to_json),
];

fn required(call: &mut Call<'_>) -> Result<Value, Failure> {
    match call.arg(1) {
        Value::Nil => Err(warn(call)),
        Value::String(text) if text.is_empty() => Err(warn(call)),
        value => Ok(value),
    }
}

fn fail(call: &mut Call<'_>) -> Result<Value, Failure> {
    Err(warn(call))
}

fn warn(call: &Call<'_>) -> Failure {
    Failure::message(format!("{WARN_START}{}{WARN_END}", call.str(0)))
}

fn lookup(call: &mut Call<'_>) -> Result<Value, Failure> {
    let [api_version, kind, namespace, name] =
        [0, 1, 2, 3].map(|index| call.str(index).to_str_lossy().into_owned());
    call.host
        .lookup(&api_version, &kind, &namespace, &name)
        .map_err(Failure::message)
}

/// Templates do not ask the network.
#[expect(clippy::unnecessary_wraps, reason = "the signature of a row")]
fn no_host(_call: &mut Call<'_>) -> Result<Value, Failure> {
    Ok(Value::from(""))
}
