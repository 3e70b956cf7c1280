//! The functions `include` and `tpl`, which run templates.

use std::collections::HashMap;

use mainstay_gostd::quote::quote;
use mainstay_template::{Call, Error, Failure, Str, Value};

/// For each template, the number of active `include` calls.
#[derive(Debug, Default)]
pub(crate) struct State(HashMap<Str, u32>);

/// Maximum nesting of one template. Helm's limit is higher by one.
const MAX_NESTING: u32 = 1000;

/// Name of Helm's template set. `tpl` parses text under this name.
pub(crate) const SET: &str = "gotpl";

/// Evaluates `include NAME DATA`.
pub(super) fn include(call: &mut Call<'_>) -> Result<Value, Failure> {
    let name = call.str(0);
    enter(call, &name)?;
    let text = call
        .templates
        .execute(&name.to_str_lossy(), call.arg(1), call.meter, call.host);
    if let Some(count) = state(call).and_then(|state| state.0.get_mut(&name)) {
        *count -= 1;
    }
    Ok(Value::string(text?))
}

fn enter(call: &mut Call<'_>, name: &Str) -> Result<(), Failure> {
    let Some(state) = state(call) else { return Ok(()) };
    if let Some(count) = state.0.get_mut(name) {
        if *count > MAX_NESTING {
            return Err(Failure::message(format!(
                "rendering template has a nested reference name: {name}: unable to execute template"
            )));
        }
        *count += 1;
    } else {
        state.0.insert(name.clone(), 1);
    }
    Ok(())
}

fn state<'a>(call: &'a mut Call<'_>) -> Option<&'a mut State> {
    call.host.state()?.downcast_mut()
}

/// Evaluates `tpl TEXT DATA`.
pub(super) fn tpl(call: &mut Call<'_>) -> Result<Value, Failure> {
    let text = call.str(0);
    let run = call
        .templates
        .execute_text(SET, &text, call.arg(1), call.meter, call.host);
    match run {
        Ok(output) => Ok(Value::string(without_no_value(output))),
        Err(Failure::Parse(error)) => Err(wrap_error("cannot parse template", &text, *error)),
        Err(Failure::Template(error)) => Err(wrap_error(
            "error during tpl function execution for",
            &text,
            *error,
        )),
        Err(other) => Err(other),
    }
}

/// Prefixes the error with Helm's text and keeps its positions. An exceeded limit gets no prefix, because
/// nested `tpl` calls would copy an increasingly long text at each level.
fn wrap_error(what: &str, text: &Str, mut error: Error) -> Failure {
    if let Some(limit) = error.limit_exceeded {
        return Failure::LimitExceeded(limit);
    }
    error.text = format!("{what} {}: {}", quote(text), error.text);
    Failure::Template(Box::new(error))
}

/// Removes the text `<no value>`, which Go prints for a missing value, as Helm does.
pub(crate) fn without_no_value(text: Vec<u8>) -> Vec<u8> {
    const NO_VALUE: &[u8] = b"<no value>";
    let finder = memchr::memmem::Finder::new(NO_VALUE);
    if finder.find(&text).is_none() {
        return text;
    }
    let mut kept = Vec::with_capacity(text.len());
    let mut rest = text.as_slice();
    while let Some(found) = finder.find(rest) {
        let (before, after) = rest.split_at(found);
        kept.extend_from_slice(before);
        rest = after.get(NO_VALUE.len()..).unwrap_or_default();
    }
    kept.extend_from_slice(rest);
    kept
}
