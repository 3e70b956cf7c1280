//! Resource quotas: rejects an object that would exceed a quota of its namespace, and counts it otherwise.

use serde_json::{Value, json};

use super::{Attributes, Operation};
use crate::context::Context;
use crate::quota::{self, Amounts};
use crate::schema::Quantity;
use crate::state::State;
use crate::status::{Result, Status};
use crate::tree;
use crate::write;

/// Checks the quotas of the namespace and counts the object.
pub(super) fn check(
    state: &mut State,
    attributes: &Attributes<'_>,
    value: &Value,
    context: &Context,
) -> Result<()> {
    let target = attributes.target;
    if target.namespace.is_empty() || !context.subresource.is_empty() || !is_counted(attributes) {
        return Ok(());
    }
    let quotas: Vec<Value> = state
        .store
        .range(quota::TABLE, target.namespace, None)
        .map(|(_, object)| object.packed())
        .collect();
    let mut changed = Vec::new();
    for quota in quotas {
        changed.extend(charge(state, attributes, value, quota)?);
    }
    if let Some(resource) = state.resources.preferred("", quota::TABLE).cloned()
        && !context.dry_run
    {
        for quota in changed {
            write::persist(state, &resource, quota);
        }
    }
    Ok(())
}

/// New objects count; of updates only those that can change the usage.
fn is_counted(attributes: &Attributes<'_>) -> bool {
    let resource = attributes.target.resource;
    match attributes.operation {
        Operation::Create => true,
        Operation::Update => resource.is("", "services") || resource.is("", "persistentvolumeclaims"),
        Operation::Delete | Operation::Connect => false,
    }
}

/// Returns the quota with the object's usage added, if it uses any of it.
fn charge(
    state: &State,
    attributes: &Attributes<'_>,
    value: &Value,
    mut quota: Value,
) -> Result<Option<Value>> {
    let resource = attributes.target.resource;
    let hard = quota::amounts(tree::get(&quota, &["status", "hard"]));
    let required = quota::matching(&hard, resource);
    let declared = quota::amounts(tree::get(&quota, &["spec", "hard"]));
    if quota::matching(&declared, resource).is_empty() || !quota::selects(&quota, resource, value) {
        return Ok(None);
    }
    let name = tree::text(&quota, &["metadata", "name"]).to_owned();
    let reject = |reason: String| {
        let object = tree::text(value, &["metadata", "name"]);
        Err(Status::forbidden(resource.qualified(), object, &reason))
    };
    if let Some(reason) = quota::missing(resource, value, &required) {
        return reject(format!("failed quota: {name}: {reason}"));
    }
    let used = quota::amounts(tree::get(&quota, &["status", "used"]));
    let required = if required.is_empty() {
        quota::matching(&declared, resource)
    } else {
        required
    };
    if !required
        .iter()
        .all(|one| used.contains_key(one) && hard.contains_key(one))
    {
        let names = required.join(",");
        return reject(format!("status unknown for quota: {name}, resources: {names}"));
    }
    let requested = requested(state, attributes, value, &hard);
    let mut new = used.clone();
    quota::add(&mut new, &requested);
    let exceeded: Vec<&String> = requested
        .keys()
        .filter(|one| amount(&new, one).nanos() > amount(&hard, one).nanos())
        .collect();
    if !exceeded.is_empty() {
        let [requested, used, hard] = [&requested, &used, &hard].map(|part| list(part, &exceeded));
        return reject(format!(
            "exceeded quota: {name}, requested: {requested}, used: {used}, limited: {hard}"
        ));
    }
    if requested.is_empty() {
        return Ok(None);
    }
    let shown: serde_json::Map<String, Value> = new
        .into_iter()
        .map(|(name, amount)| (name, json!(amount.to_string())))
        .collect();
    tree::set(&mut quota, &["status", "used"], shown);
    Ok(Some(quota))
}

/// Returns what the write adds to the usage, without zeros.
fn requested(state: &State, attributes: &Attributes<'_>, value: &Value, hard: &Amounts) -> Amounts {
    let resource = attributes.target.resource;
    let before = attributes.old.map(|old| quota::usage(state, resource, old));
    let before = before.unwrap_or_default();
    quota::usage(state, resource, value)
        .into_iter()
        .map(|(name, now)| {
            let difference = now.minus(amount(&before, &name));
            (name, difference)
        })
        .filter(|(name, difference)| hard.contains_key(name) && difference.nanos() != 0)
        .collect()
}

fn amount(amounts: &Amounts, name: &str) -> Quantity {
    amounts.get(name).copied().unwrap_or(Quantity::ZERO)
}

fn list(amounts: &Amounts, names: &[&String]) -> String {
    let shown: Vec<String> = names
        .iter()
        .map(|name| format!("{name}={}", amount(amounts, name)))
        .collect();
    shown.join(",")
}
