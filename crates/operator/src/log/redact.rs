//! Redaction: hides chart values in messages. Values may hold secrets, and both a chart's `fail` and the API
//! server's error messages quote their input: verbatim, escaped, encoded, or line by line.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mainstay_api::Values;
use mainstay_gostd::quote::{quote, quote_to_ascii};
use mainstay_mesh::plan::Action;
use serde_json::Value;

/// Shorter values are words like `true` or `info`: hiding them would garble the text and protect nothing.
const MIN_SECRET_LEN: usize = 6;
const HIDDEN: &str = "(a value)";

/// Returns the text with every value of the action hidden.
#[must_use]
pub fn redact<'a>(text: &'a str, action: &Action) -> Cow<'a, str> {
    let mut text = Cow::Borrowed(text);
    for secret in values(action).map(spellings).unwrap_or_default() {
        if text.contains(&*secret) {
            text = Cow::Owned(text.replace(&*secret, HIDDEN));
        }
    }
    text
}

/// Returns every way in which a message may quote one of the values, the longest first: one may be part of
/// another.
fn spellings(values: &Values) -> Vec<Cow<'_, str>> {
    let mut found = Vec::new();
    for value in strings(values) {
        let lines = value.lines().map(str::trim).filter(|line| *line != value);
        for part in [value].into_iter().chain(lines) {
            if part.len() >= MIN_SECRET_LEN {
                found.push(Cow::Borrowed(part));
                found.extend(escaped(part).map(Cow::Owned));
            }
        }
        found.push(Cow::Owned(STANDARD.encode(value)));
    }
    found.sort_unstable_by_key(|text| std::cmp::Reverse(text.len()));
    found.dedup();
    found
}

/// Returns the text as JSON and Go quote it, without the quotes, where that differs. A message may quote a
/// quotation again.
fn escaped(text: &str) -> impl Iterator<Item = String> {
    let json = |text: &str| Value::from(text).to_string();
    let once = [json(text), quote(text), quote_to_ascii(text)];
    let twice = once.each_ref().map(|quoted| quote(inner(quoted)));
    let text = text.to_owned();
    let all = once.into_iter().chain(twice);
    all.map(|quoted| inner(&quoted).to_owned())
        .filter(move |quoted| *quoted != text)
}

/// Returns a quotation without its quotes.
fn inner(quoted: &str) -> &str {
    quoted
        .strip_prefix('"')
        .and_then(|text| text.strip_suffix('"'))
        .unwrap_or(quoted)
}

fn values(action: &Action) -> Option<&Values> {
    match action {
        Action::Install(release) => Some(&release.values),
        Action::CreateRevision(new) => new.spec.values.as_ref(),
        Action::UpdateRevision(change) => change.spec.values.as_ref(),
        _ => None,
    }
}

/// Returns every string among the values.
fn strings(values: &Values) -> Vec<&str> {
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
