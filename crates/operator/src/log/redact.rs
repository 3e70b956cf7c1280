//! Redaction: hides chart values in messages. Values may hold secrets, and both a chart's `fail` and the API
//! server's error messages quote their input.

use std::borrow::Cow;

use mainstay_api::Values;
use mainstay_mesh::plan::Action;
use serde_json::Value;

/// Shorter values are words like `true` or `info`: hiding them would garble the text and protect nothing.
const MIN_SECRET_LEN: usize = 6;
const HIDDEN: &str = "(a value)";

/// Returns the text with every value of the action hidden.
#[must_use]
pub fn redact<'a>(text: &'a str, action: &Action) -> Cow<'a, str> {
    let mut text = Cow::Borrowed(text);
    for secret in values(action).map(strings).unwrap_or_default() {
        if text.contains(secret) {
            text = Cow::Owned(text.replace(secret, HIDDEN));
        }
    }
    text
}

fn values(action: &Action) -> Option<&Values> {
    match action {
        Action::Install(release) => Some(&release.values),
        Action::CreateRevision(new) => new.spec.values.as_ref(),
        Action::UpdateRevision(change) => change.spec.values.as_ref(),
        _ => None,
    }
}

/// Returns every string among the values, the longest first: one may be part of another.
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
    found.sort_unstable_by_key(|text| std::cmp::Reverse(text.len()));
    found
}
