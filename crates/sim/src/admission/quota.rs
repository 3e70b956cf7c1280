//! Resource quotas: rejects an object that would exceed a quota of its namespace, otherwise adds its usage.

use serde_json::{Value, json};

use super::{Attributes, Operation};
use crate::context::Context;
use crate::quota::{self, Amounts};
use crate::schema::Quantity;
use crate::state::State;
use crate::status::{Result, Status};
use crate::tree;
use crate::write;

/// Checks the quotas of the namespace and adds the object's usage to their status.
pub(super) fn check(
    state: &mut State,
    attributes: &Attributes<'_>,
    value: &Value,
    context: &Context,
) -> Result<()> {
    let target = attributes.target;
    if target.namespace.is_empty() || !context.subresource.is_empty() || !can_change_usage(attributes) {
        return Ok(());
    }
    let quotas: Vec<Value> = state
        .store
        .range(quota::TABLE, target.namespace, None)
        .map(|(_, object)| object.packed())
        .collect();
    let mut changed = Vec::new();
    for quota in quotas {
        changed.extend(add_usage(state, attributes, value, quota)?);
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

/// Whether the write can change the usage: a new object, or an update of a kind whose usage can change.
fn can_change_usage(attributes: &Attributes<'_>) -> bool {
    let resource = attributes.target.resource;
    match attributes.operation {
        Operation::Create => true,
        Operation::Update => resource.is("", "services") || resource.is("", "persistentvolumeclaims"),
        Operation::Delete | Operation::Connect => false,
    }
}

/// Returns the quota with the usage of the write added, or `None` if the write does not change its usage.
/// Fails if the quota would be exceeded.
fn add_usage(
    state: &State,
    attributes: &Attributes<'_>,
    value: &Value,
    mut quota: Value,
) -> Result<Option<Value>> {
    let resource = attributes.target.resource;
    let hard = quota::parse_amounts(tree::get(&quota, &["status", "hard"]));
    let required = quota::matching_names(&hard, resource);
    let declared = quota::parse_amounts(tree::get(&quota, &["spec", "hard"]));
    if quota::matching_names(&declared, resource).is_empty() || !quota::selects(&quota, resource, value) {
        return Ok(None);
    }
    let name = tree::text(&quota, &["metadata", "name"]).to_owned();
    let reject = |reason: String| {
        let object = tree::text(value, &["metadata", "name"]);
        Err(Status::forbidden(resource.qualified(), object, &reason))
    };
    if let Some(reason) = quota::missing_resources_message(resource, value, &required) {
        return reject(format!("failed quota: {name}: {reason}"));
    }
    let used = quota::parse_amounts(tree::get(&quota, &["status", "used"]));
    let required = if required.is_empty() {
        quota::matching_names(&declared, resource)
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
    let requested = usage_difference(state, attributes, value, &hard);
    let mut new = used.clone();
    quota::add_amounts(&mut new, &requested);
    let exceeded: Vec<&String> = requested
        .keys()
        .filter(|one| amount_or_zero(&new, one).nanos() > amount_or_zero(&hard, one).nanos())
        .collect();
    if !exceeded.is_empty() {
        let [requested, used, hard] = [&requested, &used, &hard].map(|part| format_amounts(part, &exceeded));
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

/// Returns the change of the usage by the write, without zeros.
fn usage_difference(state: &State, attributes: &Attributes<'_>, value: &Value, hard: &Amounts) -> Amounts {
    let resource = attributes.target.resource;
    let before = attributes.old.map(|old| quota::usage(state, resource, old));
    let before = before.unwrap_or_default();
    quota::usage(state, resource, value)
        .into_iter()
        .map(|(name, now)| {
            let difference = now.minus(amount_or_zero(&before, &name));
            (name, difference)
        })
        .filter(|(name, difference)| hard.contains_key(name) && difference.nanos() != 0)
        .collect()
}

fn amount_or_zero(amounts: &Amounts, name: &str) -> Quantity {
    amounts.get(name).copied().unwrap_or(Quantity::ZERO)
}

fn format_amounts(amounts: &Amounts, names: &[&String]) -> String {
    let shown: Vec<String> = names
        .iter()
        .map(|name| format!("{name}={}", amount_or_zero(amounts, name)))
        .collect();
    shown.join(",")
}
