//! The functions `env` and `expandenv`, in a separate table since Helm removes them from charts. The
//! environment is always empty: a render depends only on its inputs.

use mainstay_template::{Call, Failure, Function, Type, Value};

use crate::table::fixed;

pub(crate) const TABLE: &[Function] = &[
    fixed("env", &[Type::String], |_| Ok("".into())),
    fixed("expandenv", &[Type::String], expand_env),
];

/// Removes all variable references from a text.
fn expand_env(call: &mut Call<'_>) -> Result<Value, Failure> {
    let text = call.str(0);
    let mut out = Vec::with_capacity(text.len());
    let mut rest: &[u8] = &text;
    while let Some(at) = rest.iter().position(|b| *b == b'$') {
        let (before, after) = rest.split_at(at);
        out.extend_from_slice(before);
        let after = after.get(1..).unwrap_or_default();
        let len = reference_len(after);
        if len.is_none() {
            out.push(b'$');
        }
        rest = after.get(len.unwrap_or(0)..).unwrap_or_default();
    }
    out.extend_from_slice(rest);
    Ok(Value::string(out))
}

/// Returns the length of the variable name after a `$`, or `None` if the `$` is literal.
fn reference_len(text: &[u8]) -> Option<usize> {
    match text {
        [b'{', rest @ ..] => Some(braced_len(rest)),
        [b'*' | b'#' | b'$' | b'@' | b'!' | b'?' | b'-' | b'0'..=b'9', ..] => Some(1),
        _ => match text
            .iter()
            .take_while(|b| **b == b'_' || b.is_ascii_alphanumeric())
            .count()
        {
            0 => None,
            len => Some(len),
        },
    }
}

/// Returns the length of the reference `{NAME}` after a `$`, including braces. `rest` is the text after the
/// opening brace. Invalid syntax is consumed as in Go.
fn braced_len(rest: &[u8]) -> usize {
    match rest.iter().position(|b| *b == b'}') {
        // `${}` is invalid: both braces are removed.
        Some(end) => end + 2,
        // Without a closing brace, only the opening brace is removed.
        None => 1,
    }
}
