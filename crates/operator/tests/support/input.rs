//! Bad objects in a world: takes them, looks that each is refused or told about, and that a good one beside them goes on.

use serde_json::{Value, json};

use super::World;
use super::at::{self, At};
use super::bad::Bad;
use super::made::{self, NEW};
use super::world::brief;

/// What became of the bad.
#[derive(Default)]
pub struct Fate {
    pub refused: usize,
    pub told: usize,
    pub content: usize,
    pub batches: usize,
    pub wrong: Vec<String>,
}

/// How many bad objects are there at once.
const BATCH: usize = 10;

/// Asks the server about each, and lets the operator see those it accepts: all of them, or so many.
pub async fn try_all(world: &World, bad: &[Bad], most: usize) -> Fate {
    let mut fate = Fate::default();
    world.create(made::istio("good", NEW, json!({}))).await;
    world.until_state(&at::istio("good"), "Healthy").await;
    let mut accepted = Vec::new();
    for one in bad {
        match refusal(world, one).await {
            Some((code, words)) if (400..500).contains(&code) && !words.is_empty() => fate.refused += 1,
            Some((code, words)) => fate.wrong.push(format!("{one}: {code} {words}")),
            None => accepted.push(one),
        }
    }
    let stride = (accepted.len() / most.max(1)).max(1);
    let chosen: Vec<&Bad> = accepted.into_iter().step_by(stride).collect();
    let (single, many): (Vec<&Bad>, Vec<&Bad>) = chosen.into_iter().partition(|one| one.is_single());
    for batch in many.chunks(BATCH).chain(single.chunks(1)) {
        fate.batches += 1;
        one_batch(world, batch, &mut fate).await;
    }
    fate
}

/// Code and words of the server's refusal.
async fn refusal(world: &World, bad: &Bad) -> Option<(u16, String)> {
    let object = bad.object("bad");
    let path = format!("{}?dryRun=All", collection(&object));
    let (code, body) = world.call("POST", &path, "application/json", Some(object)).await;
    (code >= 300).then(|| (code, body["message"].as_str().unwrap_or_default().to_owned()))
}

/// The path of the object's own version.
fn collection(object: &Value) -> String {
    let version = object["apiVersion"].as_str().unwrap();
    At::of(object).collection().replace("sailoperator.io/v1", version)
}

async fn one_batch(world: &World, batch: &[&Bad], fate: &mut Fate) {
    let mut made = Vec::new();
    for (number, bad) in batch.iter().enumerate() {
        let object = bad.object(&format!("bad-{number}"));
        let (code, body) = world
            .call(
                "POST",
                &collection(&object),
                "application/json",
                Some(object.clone()),
            )
            .await;
        if code >= 300 {
            fate.wrong.push(format!(
                "{bad}: refused only when meant: {code} {}",
                body["message"]
            ));
            continue;
        }
        made.push((At::of(&object), *bad));
    }
    for (at, bad) in &made {
        match verdict(world, at).await {
            Ok(true) => fate.content += 1,
            Ok(false) => fate.told += 1,
            Err(complaint) => fate.wrong.push(format!("{bad}: {complaint}")),
        }
    }
    // The good one beside them is still served.
    let round = format!("round-{}", fate.batches);
    let values = json!({"spec": {"values": {"pilot": {"env": {"ROUND": round.clone()}}}}});
    world.patch(&at::istio("good"), values).await;
    let istiod = At::inside("Deployment", "istio-system", "istiod-good");
    world
        .until_object(&istiod, "serves the good one", |object| {
            object["spec"].to_string().contains(&round)
        })
        .await;
    for (at, _) in &made {
        world.delete(at).await;
    }
    for (at, _) in &made {
        world.until_gone(at).await;
    }
}

/// Whether all is well with it; else it must say what is not.
async fn verdict(world: &World, at: &At) -> Result<bool, String> {
    let begin = tokio::time::Instant::now();
    loop {
        let object = world.get(at).await.ok_or("gone")?;
        if object["status"]["observedGeneration"] == object["metadata"]["generation"]
            && let Some(condition) = reconciled(&object)
        {
            let text = |key: &str| condition[key].as_str().unwrap_or_default().to_owned();
            if text("reason").is_empty() {
                return Err(format!("no reason: {}", brief(&object)));
            }
            if text("status") != "True" && text("message").is_empty() {
                return Err(format!("no words: {}", brief(&object)));
            }
            return Ok(text("status") == "True");
        }
        if begin.elapsed() > std::time::Duration::from_mins(1) {
            return Err(format!("nothing is said: {}", brief(&object)));
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
}

fn reconciled(object: &Value) -> Option<&Value> {
    let conditions = object["status"]["conditions"].as_array()?;
    conditions.iter().find(|one| one["type"] == "Reconciled")
}

impl Fate {
    /// Prints the line a proof reads, and fails on anything wrong.
    pub fn conclude(&self) {
        println!(
            "bad input: {} refused by the schema, {} told by a condition, {} harmless, {} batches beside a good one, {} wrong",
            self.refused,
            self.told,
            self.content,
            self.batches,
            self.wrong.len()
        );
        let shown: Vec<&String> = self.wrong.iter().take(20).collect();
        assert!(self.wrong.is_empty(), "{} wrong: {shown:#?}", self.wrong.len());
        assert!(self.refused > 0 && self.told > 0, "nothing was tried");
    }
}
