//! Creates invalid objects and checks that each is rejected or reported, and that a valid object is still
//! reconciled.

use serde_json::{Value, json};

use super::World;
use super::fixtures::{self, NEW};
use super::invalid_object::InvalidObject;
use super::path::{self, ObjectPath};
use super::world::summarize;

/// Number of invalid objects by result.
#[derive(Default)]
pub struct InputResults {
    pub rejected: usize,
    pub reported: usize,
    pub harmless: usize,
    pub batches: usize,
    pub wrong: Vec<String>,
}

/// Number of invalid objects that exist at the same time.
const BATCH: usize = 10;

/// Sends each object to the server as a dry run, and creates a sample of about `max_reconciled` accepted
/// objects for the operator to reconcile.
pub async fn test_invalid_objects(
    world: &World,
    invalid: &[InvalidObject],
    max_reconciled: usize,
) -> InputResults {
    let mut results = InputResults::default();
    world.create(fixtures::istio("valid", NEW, json!({}))).await;
    world.until_state(&path::istio("valid"), "Healthy").await;
    let mut accepted = Vec::new();
    for one in invalid {
        match rejection(world, one).await {
            Some((code, message)) if (400..500).contains(&code) && !message.is_empty() => {
                results.rejected += 1;
            }
            Some((code, message)) => results.wrong.push(format!("{one}: {code} {message}")),
            None => accepted.push(one),
        }
    }
    let stride = (accepted.len() / max_reconciled.max(1)).max(1);
    let chosen: Vec<&InvalidObject> = accepted.into_iter().step_by(stride).collect();
    let (single, many): (Vec<&InvalidObject>, Vec<&InvalidObject>) =
        chosen.into_iter().partition(|one| one.is_singleton());
    for batch in many.chunks(BATCH).chain(single.chunks(1)) {
        results.batches += 1;
        test_batch(world, batch, &mut results).await;
    }
    results
}

/// Returns code and message if the server rejects an object.
async fn rejection(world: &World, bad: &InvalidObject) -> Option<(u16, String)> {
    let object = bad.object("invalid");
    let path = format!("{}?dryRun=All", collection(&object));
    let (code, body) = world.call("POST", &path, "application/json", Some(object)).await;
    (code >= 300).then(|| (code, body["message"].as_str().unwrap_or_default().to_owned()))
}

/// Returns the collection path of an object in its API version.
fn collection(object: &Value) -> String {
    let version = object["apiVersion"].as_str().unwrap();
    ObjectPath::from_object(object)
        .collection()
        .replace("sailoperator.io/v1", version)
}

async fn test_batch(world: &World, batch: &[&InvalidObject], results: &mut InputResults) {
    let mut created = Vec::new();
    for (number, bad) in batch.iter().enumerate() {
        let object = bad.object(&format!("invalid-{number}"));
        let (code, body) = world
            .call(
                "POST",
                &collection(&object),
                "application/json",
                Some(object.clone()),
            )
            .await;
        if code >= 300 {
            results.wrong.push(format!(
                "{bad}: rejected only without dry run: {code} {}",
                body["message"]
            ));
            continue;
        }
        created.push((ObjectPath::from_object(&object), *bad));
    }
    for (at, bad) in &created {
        match is_reconciled(world, at).await {
            Ok(true) => results.harmless += 1,
            Ok(false) => results.reported += 1,
            Err(problem) => results.wrong.push(format!("{bad}: {problem}")),
        }
    }
    // The valid object must still be reconciled.
    let round = format!("round-{}", results.batches);
    let values = json!({"spec": {"values": {"pilot": {"env": {"ROUND": round.clone()}}}}});
    world.patch(&path::istio("valid"), values).await;
    let istiod = ObjectPath::namespaced("Deployment", "istio-system", "istiod-valid");
    world
        .until_object(&istiod, "has the new value", |object| {
            object["spec"].to_string().contains(&round)
        })
        .await;
    for (at, _) in &created {
        world.delete(at).await;
    }
    for (at, _) in &created {
        world.until_gone(at).await;
    }
}

/// Errors in the report of an object's problem.
#[derive(Debug, thiserror::Error)]
enum ReportProblem {
    #[error("deleted")]
    Deleted,
    #[error("no reason: {0}")]
    NoReason(String),
    #[error("no message: {0}")]
    NoMessage(String),
    #[error("no condition: {0}")]
    NoCondition(String),
}

/// Whether an object is reconciled. If it is not, its condition must have a reason and a message.
async fn is_reconciled(world: &World, at: &ObjectPath) -> Result<bool, ReportProblem> {
    let begin = tokio::time::Instant::now();
    loop {
        let object = world.get(at).await.ok_or(ReportProblem::Deleted)?;
        if object["status"]["observedGeneration"] == object["metadata"]["generation"]
            && let Some(condition) = reconciled_condition(&object)
        {
            let text = |key: &str| condition[key].as_str().unwrap_or_default().to_owned();
            if text("reason").is_empty() {
                return Err(ReportProblem::NoReason(summarize(&object)));
            }
            if text("status") != "True" && text("message").is_empty() {
                return Err(ReportProblem::NoMessage(summarize(&object)));
            }
            return Ok(text("status") == "True");
        }
        if begin.elapsed() > std::time::Duration::from_mins(1) {
            return Err(ReportProblem::NoCondition(summarize(&object)));
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
}

fn reconciled_condition(object: &Value) -> Option<&Value> {
    let conditions = object["status"]["conditions"].as_array()?;
    conditions.iter().find(|one| one["type"] == "Reconciled")
}

impl InputResults {
    /// Prints the line that `cargo xtask prove` reads, and panics if an object was neither rejected,
    /// reported nor reconciled.
    pub fn print_and_check(&self) {
        println!(
            "bad input: {} rejected by the schema, {} reported by a condition, {} harmless, {} batches beside a valid object, {} wrong",
            self.rejected,
            self.reported,
            self.harmless,
            self.batches,
            self.wrong.len()
        );
        let shown: Vec<&String> = self.wrong.iter().take(20).collect();
        assert!(self.wrong.is_empty(), "{} wrong: {shown:#?}", self.wrong.len());
        assert!(self.rejected > 0 && self.reported > 0, "nothing was tested");
    }
}
