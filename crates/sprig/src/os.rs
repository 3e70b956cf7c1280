//! The process environment, in a table of its own since Helm takes it away from charts. It is empty here: a render depends
//! on nothing that was not given to it.

use mainstay_template::{Call, Failure, Function, Type, Value};

use crate::table::fixed;

pub(crate) const TABLE: &[Function] = &[
    fixed("env", &[Type::String], |_| Ok("".into())),
    fixed("expandenv", &[Type::String], expand_env),
];

/// The text with every variable replaced by nothing.
fn expand_env(call: &mut Call<'_>) -> Result<Value, Failure> {
    let text = call.str(0);
    let mut out = Vec::with_capacity(text.len());
    let mut rest: &[u8] = &text;
    while let Some(at) = rest.iter().position(|b| *b == b'$') {
        let (before, after) = rest.split_at(at);
        out.extend_from_slice(before);
        let after = after.get(1..).unwrap_or_default();
        let len = variable(after);
        if len.is_none() {
            out.push(b'$');
        }
        rest = after.get(len.unwrap_or(0)..).unwrap_or_default();
    }
    out.extend_from_slice(rest);
    Ok(Value::string(out))
}

/// How many bytes after a `$` name a variable; `None` where the `$` stands for itself.
fn variable(text: &[u8]) -> Option<usize> {
    match text {
        [b'{', rest @ ..] => Some(braced(rest)),
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

/// The same after `${`: a broken one is eaten as Go eats it.
fn braced(rest: &[u8]) -> usize {
    match rest.iter().position(|b| *b == b'}') {
        // `${}` is bad syntax: both braces go.
        Some(end) => end + 2,
        // Without an end only the opening goes.
        None => 1,
    }
}
