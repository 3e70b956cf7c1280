//! Template functions that Helm adds to Sprig.

mod include;
mod text;
mod toml;

use std::sync::LazyLock;

use mainstay_template::{Call, Failure, Function, MissingKey, TemplateSet, Type, Value};

pub(crate) use include::{State, without_no_value};
pub(crate) use text::{marshal_yaml, to_yaml};

use crate::dialect::Dialect;

/// Start of the marker that `required` and `fail` write around a message, so that it can be found in a
/// chain of errors.
pub(crate) const WARN_START: &str = "HELM_ERR_START";
/// End of that marker; see [`WARN_START`].
pub(crate) const WARN_END: &str = "HELM_ERR_END";

/// Returns a set with Helm's functions and no templates. Each set is built only once, because resolving
/// three hundred names takes a measurable part of the time of a render.
pub(crate) fn template_set(dialect: Dialect) -> TemplateSet {
    static HELM3_SET: LazyLock<TemplateSet> = LazyLock::new(|| build_set(Dialect::Helm3));
    static HELM4_SET: LazyLock<TemplateSet> = LazyLock::new(|| build_set(Dialect::Helm4));
    match dialect {
        Dialect::Helm3 => HELM3_SET.clone(),
        Dialect::Helm4 => HELM4_SET.clone(),
    }
}

/// Creates a set with Sprig's functions except `env` and `expandenv`, and Helm's own. A later function
/// replaces an earlier one of the same name.
fn build_set(dialect: Dialect) -> TemplateSet {
    let mut set = TemplateSet::new();
    set.add_functions(&[mainstay_sprig::functions(), HELM, dialect.additional_functions()].concat());
    set.set_missing_key(MissingKey::Zero);
    set
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
    row("getHostByName", STRING, get_host_by_name),
];

/// Functions that only Helm 4 has or overrides.
pub(crate) const HELM4: &[Function] = &[
    row("mustToToml", ANY, text::must_to_toml),
    row("mustToYaml", ANY, text::must_to_yaml),
    row("mustToJson", ANY, text::must_to_json),
];

fn required(call: &mut Call<'_>) -> Result<Value, Failure> {
    match call.arg(1) {
        Value::Nil => Err(marked_failure(call)),
        Value::String(text) if text.is_empty() => Err(marked_failure(call)),
        value => Ok(value),
    }
}

fn fail(call: &mut Call<'_>) -> Result<Value, Failure> {
    Err(marked_failure(call))
}

/// Returns the error of `required` and `fail`, which contains argument 0 between the markers.
fn marked_failure(call: &Call<'_>) -> Failure {
    Failure::message(format!("{WARN_START}{}{WARN_END}", call.str(0)))
}

fn lookup(call: &mut Call<'_>) -> Result<Value, Failure> {
    let [api_version, kind, namespace, name] =
        [0, 1, 2, 3].map(|index| call.str(index).to_str_lossy().into_owned());
    call.host.lookup(&api_version, &kind, &namespace, &name)
}

/// Implements `getHostByName`, which returns no address: templates have no network access.
#[expect(clippy::unnecessary_wraps, reason = "the signature of a row")]
fn get_host_by_name(_call: &mut Call<'_>) -> Result<Value, Failure> {
    Ok(Value::from(""))
}
