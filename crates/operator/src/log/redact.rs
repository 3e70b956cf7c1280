//! Replaces chart values in messages. Values may contain secrets, and messages of a chart's `fail` function
//! and of the API server quote their input: verbatim, escaped, encoded, or line by line.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mainstay_api::Values;
use mainstay_gostd::quote::{quote, quote_to_ascii};
use mainstay_mesh::plan::Action;
use serde_json::Value;

/// Minimum length in bytes of a value that is replaced. Shorter values are words like `true` or `info`:
/// replacing them would make the text unreadable and protect nothing.
const MIN_SECRET_LEN: usize = 6;
const PLACEHOLDER: &str = "(a value)";

/// Returns the text with every chart value of the action replaced.
#[must_use]
pub fn redact<'a>(text: &'a str, action: &Action) -> Cow<'a, str> {
    let mut text = Cow::Borrowed(text);
    for secret in action_values(action).map(quoted_forms).unwrap_or_default() {
        if text.contains(&*secret) {
            text = Cow::Owned(text.replace(&*secret, PLACEHOLDER));
        }
    }
    text
}

/// Returns all forms in which a message may quote one of the values. Longer forms come first, because a
/// form may contain another one.
fn quoted_forms(values: &Values) -> Vec<Cow<'_, str>> {
    let mut found = Vec::new();
    for value in secret_strings(values) {
        let lines = value.lines().map(str::trim).filter(|line| *line != value);
        for part in [value].into_iter().chain(lines) {
            if part.len() >= MIN_SECRET_LEN {
                found.push(Cow::Borrowed(part));
                found.extend(escaped_forms(part).map(Cow::Owned));
            }
        }
        found.push(Cow::Owned(STANDARD.encode(value)));
    }
    found.sort_unstable_by_key(|text| std::cmp::Reverse(text.len()));
    found.dedup();
    found
}

/// Returns the forms in which JSON and Go escape a text, without the quotes, if they differ from the text.
/// Also returns these forms escaped a second time, because a message may quote another message.
fn escaped_forms(text: &str) -> impl Iterator<Item = String> {
    let json = |text: &str| Value::from(text).to_string();
    let once = [json(text), quote(text), quote_to_ascii(text)];
    let twice = once.each_ref().map(|quoted| quote(strip_quotes(quoted)));
    let text = text.to_owned();
    let all = once.into_iter().chain(twice);
    all.map(|quoted| strip_quotes(&quoted).to_owned())
        .filter(move |quoted| *quoted != text)
}

/// Removes the surrounding double quotes, if both exist.
fn strip_quotes(quoted: &str) -> &str {
    quoted
        .strip_prefix('"')
        .and_then(|text| text.strip_suffix('"'))
        .unwrap_or(quoted)
}

fn action_values(action: &Action) -> Option<&Values> {
    match action {
        Action::Install(release) => Some(&release.values),
        Action::CreateRevision(new) => new.spec.values.as_ref(),
        Action::UpdateRevision(change) => change.spec.values.as_ref(),
        _ => None,
    }
}

/// Returns all strings in the values that have the minimum length.
fn secret_strings(values: &Values) -> Vec<&str> {
    let mut found = Vec::new();
    let mut left: Vec<&Value> = values.values().collect();
    while let Some(value) = left.pop() {
        match value {
            Value::String(text) if text.len() >= MIN_SECRET_LEN => found.push(text.as_str()),
            Value::Array(items) => left.extend(items),
            Value::Object(map) => left.extend(map.values()),
            _ => {}
        }
    }
    found
}
