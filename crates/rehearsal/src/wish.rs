//! What is to be rehearsed: takes an input and what the user asks for, gives the Istio with its present and its future spec.

use std::collections::BTreeMap;
use std::time::Duration;

use mainstay_api::{Istio, UpdateStrategyType};
use mainstay_mesh::migration::requests_migration;
use serde_json::{Value, json};

use crate::error::RehearsalError;
use crate::input::{Input, text};
use crate::report::Method;

/// Above this many workloads rolling updates are calculated.
pub const EMBEDDED_MOST: usize = 100;

/// What the user asks for.
#[derive(Clone, Debug)]
pub struct Wish {
    /// Which Istio; may be left out if there is only one.
    pub istio: Option<String>,
    /// To which version.
    pub to: Option<String>,
    /// An Istio as it is to be: its spec replaces the present one.
    pub manifest: Option<Value>,
    /// Chance is drawn from it.
    pub seed: u64,
    /// How long a pod takes until it is ready where nothing was observed.
    pub readiness: Duration,
    /// How long pods of a workload (`namespace/name`) take; never where there is nothing.
    pub readiness_of: BTreeMap<String, Option<Duration>>,
    /// How workloads are played; by their number if not said.
    pub method: Option<Method>,
}

impl Default for Wish {
    fn default() -> Self {
        Self {
            istio: None,
            to: None,
            manifest: None,
            seed: 0,
            readiness: Duration::from_secs(10),
            readiness_of: BTreeMap::new(),
            method: None,
        }
    }
}

/// What will be done to which Istio.
#[derive(Clone, Debug)]
pub(crate) struct Plot {
    /// The Istio as it is.
    pub(crate) istio: Istio,
    /// Its spec while the stage is set: as it is, but nothing moves.
    pub(crate) before: Value,
    /// Its spec from the first moment on.
    pub(crate) after: Value,
    /// The Istio as it is to be.
    pub(crate) wanted: Istio,
    /// What was supposed.
    pub(crate) suppositions: Vec<String>,
}

/// Finds the Istio that is meant, and what it is to become.
pub(crate) fn plot(input: &Input, wish: &Wish) -> Result<Plot, RehearsalError> {
    let object = chosen(input, wish)?;
    let name = text(object, "/metadata/name").to_owned();
    let read = |object: Value| {
        serde_json::from_value::<Istio>(object).map_err(|source| RehearsalError::Istio {
            name: name.clone(),
            source,
        })
    };
    let istio = read(object.clone())?;
    let present = object.get("spec").cloned().unwrap_or_else(|| json!({}));
    let mut after = match &wish.manifest {
        Some(manifest) => manifest.get("spec").cloned().unwrap_or_else(|| json!({})),
        None => present.clone(),
    };
    let mut suppositions = Vec::new();
    if let Some(to) = &wish.to {
        put(&mut after, &["version"], json!(to));
    }
    let mut future = object.clone();
    put(&mut future, &["spec"], after.clone());
    suppose(&read(future)?, &mut after, &mut suppositions);
    let mut future = object.clone();
    put(&mut future, &["spec"], after.clone());
    let mut before = present;
    if let Some(strategy) = before
        .pointer_mut("/updateStrategy")
        .and_then(Value::as_object_mut)
    {
        strategy.remove("workloadMigration");
    }
    Ok(Plot {
        istio,
        before,
        wanted: read(future)?,
        after,
        suppositions,
    })
}

fn chosen<'a>(input: &'a Input, wish: &Wish) -> Result<&'a Value, RehearsalError> {
    let all: Vec<&Value> = input.of_kind("Istio").collect();
    let name = |object: &&Value| text(object, "/metadata/name").to_owned();
    let manifest = wish
        .manifest
        .as_ref()
        .map(|manifest| text(manifest, "/metadata/name"));
    let wanted = wish.istio.as_deref().or(manifest);
    match (wanted, all.as_slice()) {
        (Some(wanted), all) => {
            let found = all.iter().find(|object| name(object) == wanted);
            found.copied().ok_or_else(|| RehearsalError::UnknownIstio {
                name: wanted.to_owned(),
                names: all.iter().map(name).collect(),
            })
        }
        (None, []) => Err(RehearsalError::NoIstio),
        (None, [one]) => Ok(one),
        (None, all) => Err(RehearsalError::SeveralIstios(all.iter().map(name).collect())),
    }
}

/// Supposes that workloads move, where the Istio does not say so: a rehearsal of nothing helps nobody.
fn suppose(istio: &Istio, spec: &mut Value, notes: &mut Vec<String>) {
    if istio.spec.strategy() != UpdateStrategyType::RevisionBased {
        notes.push("supposing updateStrategy.type RevisionBased instead of InPlace".to_owned());
        put(spec, &["updateStrategy", "type"], json!("RevisionBased"));
    }
    if !requests_migration(istio) {
        notes.push("supposing workloadMigration.strategy Batched: it is not switched on".to_owned());
        put(
            spec,
            &["updateStrategy", "workloadMigration", "strategy"],
            json!("Batched"),
        );
    }
}

/// Sets a field, making the maps on the way.
fn put(object: &mut Value, path: &[&str], value: Value) {
    let Some((first, rest)) = path.split_first() else {
        *object = value;
        return;
    };
    if !object.is_object() {
        *object = json!({});
    }
    if let Value::Object(fields) = object {
        put(fields.entry(*first).or_insert(Value::Null), rest, value);
    }
}
