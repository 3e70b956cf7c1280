//! Compares a cluster with a plan and reports objects that are missing, different or not ready.

use mainstay_manifest::{ComponentName, FieldDifference, InstallationPlan, compare_values};
use mainstay_yaml::{Budget, Numbers, parse_json};
use serde_json::Value;

use super::error::InstallError;
use super::{Installer, member, readiness, set_key};
use crate::apply::{ApplyError, Preview};
use crate::desired::ObjectId;

/// Problem of an object.
#[derive(Clone, Debug, PartialEq)]
pub enum Problem {
    /// The object does not exist.
    Missing,
    /// Fields differ: the live value is on the left, the planned one on the right.
    Different(Vec<FieldDifference>),
    /// The object is not ready, for this reason.
    Unready(String),
    /// The object belongs to another tool; contains the reason of the conflict.
    Foreign(String),
}

/// An object that differs from the plan.
#[derive(Clone, Debug, PartialEq)]
pub struct VerifiedObject {
    /// Component that installs the object.
    pub component: ComponentName,
    /// Identity of the object.
    pub id: ObjectId,
    /// Difference from the plan.
    pub problem: Problem,
}

/// Fields that the server sets.
const SERVER_FIELDS: [&str; 5] = [
    "managedFields",
    "resourceVersion",
    "generation",
    "uid",
    "creationTimestamp",
];

impl Installer {
    /// Returns every object that is missing, different or not ready, and the number of compared objects.
    pub async fn verify(
        &self,
        plan: &InstallationPlan,
    ) -> Result<(Vec<VerifiedObject>, usize), InstallError> {
        let accepted = self.accepted_sets().await?;
        let (mut found, mut count) = (Vec::new(), 0);
        for planned in &plan.components {
            let objects = member::to_json(&planned.objects)?;
            count += objects.len();
            for object in objects {
                let problem = self
                    .verify_object(plan, planned.component, object, &accepted)
                    .await?;
                found.extend(problem);
            }
        }
        Ok((found, count))
    }

    async fn verify_object(
        &self,
        plan: &InstallationPlan,
        component: ComponentName,
        object: Value,
        accepted: &[String],
    ) -> Result<Option<VerifiedObject>, InstallError> {
        let failed = |error| InstallError::apply(component, error);
        let (served, unserved) = self.engine.split_served(vec![object]).await.map_err(failed)?;
        let problem = |id: ObjectId, problem| {
            Some(VerifiedObject {
                component,
                id,
                problem,
            })
        };
        if let Some(id) = unserved
            .first()
            .and_then(|object| ObjectId::from_object(object).ok())
        {
            return Ok(problem(id, Problem::Missing));
        }
        let key = set_key(plan, component);
        let desired = self.engine.desired(key, None, served).await.map_err(failed)?;
        let desired = desired.with_accepted_sets(accepted.to_vec());
        let Some(wanted) = desired.objects.first() else {
            return Ok(None);
        };
        let id = wanted.id.clone();
        let difference = match self.engine.preview(&desired).await {
            Ok(previews) => previews.first().and_then(preview_problem),
            Err(ApplyError::Foreign { reason, .. }) => Some(Problem::Foreign(reason)),
            Err(error) => return Err(failed(error)),
        };
        if let Some(found) = difference {
            return Ok(problem(id, found));
        }
        if !readiness::is_waited_for(&id.group, &id.kind) {
            return Ok(None);
        }
        let unready = self.unready_objects(component, &[&id]).await?;
        let unready = self.add_pod_reasons(unready).await.into_iter().next();
        Ok(unready.and_then(|(id, reason)| problem(id, Problem::Unready(reason))))
    }
}

/// Returns the difference in a preview; `None` if only `managedFields` would change.
fn preview_problem(preview: &Preview) -> Option<Problem> {
    let Some(before) = &preview.before else {
        return Some(Problem::Missing);
    };
    let fields = changed_fields(before, &preview.after);
    (!fields.is_empty()).then_some(Problem::Different(fields))
}

/// Compares two versions of an object without the fields that the server sets.
fn changed_fields(before: &Value, after: &Value) -> Vec<FieldDifference> {
    let convert = |object: &Value| {
        let mut object = object.clone();
        if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
            metadata.retain(|field, _| !SERVER_FIELDS.contains(&field.as_str()));
        }
        parse_json(object.to_string(), Numbers::Exact, &Budget::default()).unwrap_or_default()
    };
    compare_values(&convert(before), &convert(after))
}

impl Preview {
    /// Returns the fields that an apply would change; empty for a new object.
    #[must_use]
    pub fn fields(&self) -> Vec<FieldDifference> {
        let before = self.before.as_ref();
        before
            .map(|before| changed_fields(before, &self.after))
            .unwrap_or_default()
    }
}
