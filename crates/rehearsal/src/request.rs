//! Resolves a rehearsal request to the Istio to upgrade, with its current and target spec.

use std::collections::BTreeMap;
use std::time::Duration;

use mainstay_api::{Istio, UpdateStrategyType};
use mainstay_mesh::migration::requests_migration;
use serde_json::{Value, json};

use crate::error::RehearsalError;
use crate::input::{Input, text};
use crate::report::Method;
use crate::unmanaged::AdoptedPlane;

/// Maximum number of workloads for the embedded cluster. Larger clusters are calculated.
pub const MAX_EMBEDDED_WORKLOADS: usize = 100;

/// Parameters of a rehearsal.
#[derive(Clone, Debug)]
pub struct RehearsalRequest {
    /// Name of the Istio. Optional if there is only one.
    pub istio: Option<String>,
    /// Target version.
    pub to: Option<String>,
    /// Target manifest of the Istio. Its spec replaces the current one.
    pub manifest: Option<Value>,
    /// Seed of all random choices.
    pub seed: u64,
    /// Readiness time of pods for which none was observed.
    pub readiness: Duration,
    /// Readiness times by workload (`namespace/name`). `None` for a workload that never becomes ready.
    pub readiness_overrides: BTreeMap<String, Option<Duration>>,
    /// Simulation method. If unset, it depends on the number of workloads.
    pub method: Option<Method>,
}

impl Default for RehearsalRequest {
    fn default() -> Self {
        Self {
            istio: None,
            to: None,
            manifest: None,
            seed: 0,
            readiness: Duration::from_secs(10),
            readiness_overrides: BTreeMap::new(),
            method: None,
        }
    }
}

impl RehearsalRequest {
    /// Returns the name of the requested Istio, or `None` if the request names none.
    pub(crate) fn istio_name(&self) -> Option<&str> {
        let manifest = self.manifest.as_ref();
        let named = manifest.map(|manifest| text(manifest, "/metadata/name"));
        self.istio.as_deref().or(named)
    }
}

/// An Istio and the change to rehearse.
#[derive(Clone, Debug)]
pub(crate) struct PlannedUpgrade {
    /// The current Istio.
    pub(crate) istio: Istio,
    /// Spec during warm-up: the current one without workload migration.
    pub(crate) before: Value,
    /// Spec of the upgrade.
    pub(crate) after: Value,
    /// The Istio with the upgraded spec.
    pub(crate) target: Istio,
    /// Settings assumed for the rehearsal.
    pub(crate) suppositions: Vec<String>,
    /// Control planes that are assumed to be adopted.
    pub(crate) adopted: Vec<AdoptedPlane>,
}

/// Selects the Istio and computes its target spec.
pub(crate) fn plan_upgrade(
    input: &Input,
    request: &RehearsalRequest,
) -> Result<PlannedUpgrade, RehearsalError> {
    let object = select_istio(input, request)?;
    let name = text(&object, "/metadata/name").to_owned();
    let read = |object: Value| {
        serde_json::from_value::<Istio>(object).map_err(|source| RehearsalError::Istio {
            name: name.clone(),
            source,
        })
    };
    let istio = read(object.clone())?;
    let present = object.get("spec").cloned().unwrap_or_else(|| json!({}));
    let mut after = match &request.manifest {
        Some(manifest) => manifest.get("spec").cloned().unwrap_or_else(|| json!({})),
        None => present.clone(),
    };
    let mut suppositions = Vec::new();
    if let Some(to) = &request.to {
        set_field(&mut after, &["version"], json!(to));
    }
    let mut future = object.clone();
    set_field(&mut future, &["spec"], after.clone());
    assume_settings(&read(future)?, &mut after, &mut suppositions);
    let mut future = object.clone();
    set_field(&mut future, &["spec"], after.clone());
    let mut before = present;
    if let Some(strategy) = before
        .pointer_mut("/updateStrategy")
        .and_then(Value::as_object_mut)
    {
        strategy.remove("workloadMigration");
    }
    Ok(PlannedUpgrade {
        istio,
        before,
        target: read(future)?,
        after,
        suppositions,
        adopted: Vec::new(),
    })
}

fn select_istio(input: &Input, request: &RehearsalRequest) -> Result<Value, RehearsalError> {
    let all: Vec<Value> = input.of_kind("Istio").collect();
    let name = |object: &Value| text(object, "/metadata/name").to_owned();
    match (request.istio_name(), all.as_slice()) {
        (Some(wanted), all) => {
            let found = all.iter().find(|object| name(object) == wanted);
            found.cloned().ok_or_else(|| RehearsalError::UnknownIstio {
                name: wanted.to_owned(),
                names: all.iter().map(name).collect(),
            })
        }
        (None, []) => Err(RehearsalError::NoIstio),
        (None, [one]) => Ok(one.clone()),
        (None, all) => Err(RehearsalError::SeveralIstios(all.iter().map(name).collect())),
    }
}

/// Enables workload migration if the Istio does not: otherwise there would be nothing to rehearse.
fn assume_settings(istio: &Istio, spec: &mut Value, notes: &mut Vec<String>) {
    if istio.spec.strategy() != UpdateStrategyType::RevisionBased {
        notes.push("assuming updateStrategy.type RevisionBased instead of InPlace".to_owned());
        set_field(spec, &["updateStrategy", "type"], json!("RevisionBased"));
    }
    if !requests_migration(istio) {
        notes.push("assuming workloadMigration.strategy Batched, which is not enabled".to_owned());
        set_field(
            spec,
            &["updateStrategy", "workloadMigration", "strategy"],
            json!("Batched"),
        );
    }
}

/// Sets a field and creates missing maps on its path.
fn set_field(object: &mut Value, path: &[&str], value: Value) {
    let Some((first, rest)) = path.split_first() else {
        *object = value;
        return;
    };
    if !object.is_object() {
        *object = json!({});
    }
    if let Value::Object(fields) = object {
        set_field(fields.entry(*first).or_insert(Value::Null), rest, value);
    }
}
