//! Random releases, installed twice, changed, removed: whatever the server, the second time writes nothing.

use std::collections::{BTreeMap, BTreeSet};

use mainstay_cluster::apply::ChangeKind;
use mainstay_testkit::{CaseCounts, Random};
use serde_json::{Value, json};

use crate::support::{CHARTS, Scene, attachment_definition, render, told, value_sets, values, versions};

/// A random release of `chart` that renders.
fn release(random: &mut Random, chart: (&str, &str)) -> (String, Vec<Value>) {
    let (versions, sets) = (versions(), value_sets());
    loop {
        let (version, set) = (random.pick(&versions), random.pick(&sets));
        if let Some(rendered) = render(version, chart.0, chart.1, &values(set)) {
            return (format!("{} {version} {set}", chart.0), rendered);
        }
    }
}

/// Installs `count` random releases, each over another of the same chart, and looks what the server stored
/// after every step.
pub(crate) async fn run(scene: &mut Scene, count: usize, seed: u64) -> CaseCounts {
    scene.make(&attachment_definition()).await;
    let (mut random, mut tally) = (Random::new(seed), CaseCounts::default());
    let (mut objects, mut writes, mut refused) = (0, 0, 0);
    for _ in 0..count {
        let chart = *random.pick(&CHARTS);
        let (first, second) = (release(&mut random, chart), release(&mut random, chart));
        for (name, rendered) in [&first, &second] {
            let desired = scene.desired(chart.1, rendered.clone()).await;
            match scene.install(&desired).await {
                Ok(changes) => writes += changes.len(),
                Err(error) => {
                    refused += 1;
                    let words = error.to_string();
                    let is_right = scene.is_refused(&desired, &error).await;
                    tally.count(is_right, || format!("{name}: only we are refused: {words}"));
                    continue;
                }
            }
            objects += desired.objects.len();
            let before = scene.versions(chart.1).await;
            let again = scene.install(&desired).await.unwrap();
            tally.count(again.is_empty(), || {
                format!("{name}, at once again: {:?}", told(&again))
            });
            scene.restart().await;
            // Rendered anew, as after a restart: what was learnt about this server is forgotten too.
            let desired = scene.desired(chart.1, rendered.clone()).await;
            let again = scene.install(&desired).await.unwrap();
            tally.count(again.is_empty(), || {
                format!("{name}, after a restart: {:?}", told(&again))
            });
            let drift: Vec<String> = desired
                .objects
                .iter()
                .filter_map(|wanted| desired.drift(&wanted.id, scene.live.get(&wanted.id).map(AsRef::as_ref)))
                .map(|difference| difference.to_string())
                .collect();
            tally.count(drift.is_empty(), || format!("{name}, drift: {drift:?}"));
            scene.live = mainstay_cluster::live::Live::default();
            let again = scene.install(&desired).await.unwrap();
            let is_read = again.iter().all(|change| change.kind == ChangeKind::Found);
            tally.count(is_read, || format!("{name}, knowing nothing: {:?}", told(&again)));
            let after = scene.versions(chart.1).await;
            tally.count(before == after, || format!("{name}: {before:?} became {after:?}"));
            scene.restart().await;
        }
        let evolved = scene.state(chart.1).await;
        scene.uninstall(chart.1).await;
        let rest = scene.versions(chart.1).await;
        tally.count(rest.is_empty(), || format!("{} left {rest:?}", chart.1));
        let desired = scene.desired(chart.1, second.1.clone()).await;
        if scene.install(&desired).await.is_ok() {
            let fresh = scene.state(chart.1).await;
            tally.count(evolved == fresh, || {
                format!("{} over {}: {}", second.0, first.0, unequal(&evolved, &fresh))
            });
        }
        scene.uninstall(chart.1).await;
    }
    println!(
        "installed twice: {tally} ({objects} objects, {writes} writes, {refused} refused by the server)"
    );
    tally
}

/// What differs between two states.
pub(crate) fn unequal(one: &BTreeMap<String, Value>, other: &BTreeMap<String, Value>) -> String {
    let mut places = Vec::new();
    differ(&json!(one), &json!(other), "", &mut places);
    places.join("; ")
}

fn differ(one: &Value, other: &Value, at: &str, places: &mut Vec<String>) {
    match (one, other) {
        (Value::Object(a), Value::Object(b)) => {
            let names: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            for name in names {
                differ(&one[name], &other[name], &format!("{at}/{name}"), places);
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (index, (one, other)) in a.iter().zip(b).enumerate() {
                differ(one, other, &format!("{at}/{index}"), places);
            }
        }
        _ if one == other => {}
        _ => places.push(format!("{at}: {one} and {other}")),
    }
}
