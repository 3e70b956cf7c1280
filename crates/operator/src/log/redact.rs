//! Texts without what users put into values: takes a text somebody else wrote and the action it is about, gives one that quotes no value.
//!
//! Values may hold secrets, and both a chart's `fail` and the API server's refusals quote what they were given.

use std::borrow::Cow;

use mainstay_api::Values;
use mainstay_mesh::plan::Action;
use serde_json::Value;

/// Shorter texts are words like `true` or `info`; they would garble the text and give nothing away.
const LEAST: usize = 6;
const HIDDEN: &str = "(a value)";

/// The text with every value of the action hidden.
#[must_use]
pub fn redact<'a>(text: &'a str, action: &Action) -> Cow<'a, str> {
    let mut text = Cow::Borrowed(text);
    for secret in values(action).map(leaves).unwrap_or_default() {
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

/// Every text among the values, the longest first: one may be part of another.
fn leaves(values: &Values) -> Vec<&str> {
    let mut found = Vec::new();
    let mut left: Vec<&Value> = values.values().collect();
    while let Some(value) = left.pop() {
        match value {
            Value::String(text) if text.len() >= LEAST => found.push(text.as_str()),
            Value::Array(items) => left.extend(items),
            Value::Object(map) => left.extend(map.values()),
            _ => {}
        }
    }
    found.sort_unstable_by_key(|text| std::cmp::Reverse(text.len()));
    found
}
