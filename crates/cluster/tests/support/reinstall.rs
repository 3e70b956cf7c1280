//! Installs, upgrades and removes random releases, and checks that a second install of a release writes
//! nothing. Runs on the simulator and on a real server.

use std::collections::{BTreeMap, BTreeSet};

use mainstay_cluster::apply::ChangeKind;
use mainstay_testkit::{CaseCounts, Random};
use serde_json::{Value, json};

use crate::support::{
    CHARTS, Fixture, attachment_definition, render, summaries, value_sets, values, versions,
};

/// Returns a random release of `chart` that can be rendered.
fn random_release(random: &mut Random, chart: (&str, &str)) -> (String, Vec<Value>) {
    let (versions, sets) = (versions(), value_sets());
    loop {
        let (version, set) = (random.pick(&versions), random.pick(&sets));
        if let Some(rendered) = render(version, chart.0, chart.1, &values(set)) {
            return (format!("{} {version} {set}", chart.0), rendered);
        }
    }
}

/// Installs `count` pairs of random releases of the same chart, the second over the first, and checks the
/// stored objects after every step.
pub(crate) async fn run(fixture: &mut Fixture, count: usize, seed: u64) -> CaseCounts {
    fixture.create(&attachment_definition()).await;
    let (mut random, mut counts) = (Random::new(seed), CaseCounts::default());
    let (mut objects, mut writes, mut rejected) = (0, 0, 0);
    for _ in 0..count {
        let chart = *random.pick(&CHARTS);
        let (first, second) = (
            random_release(&mut random, chart),
            random_release(&mut random, chart),
        );
        for (name, rendered) in [&first, &second] {
            let desired = fixture.desired(chart.1, rendered.clone()).await;
            match fixture.install(&desired).await {
                Ok(changes) => writes += changes.len(),
                Err(error) => {
                    rejected += 1;
                    let words = error.to_string();
                    let is_rejected = fixture.is_rejected(&desired, &error).await;
                    counts.count(is_rejected, || {
                        format!("{name}: rejected only for our apply: {words}")
                    });
                    continue;
                }
            }
            objects += desired.objects.len();
            let before = fixture.versions(chart.1).await;
            let again = fixture.install(&desired).await.unwrap();
            counts.count(again.is_empty(), || {
                format!("{name}, installed again: {:?}", summaries(&again))
            });
            fixture.restart().await;
            // The desired state is created again, as after a restart, so that it does not contain the
            // paths that the server changes.
            let desired = fixture.desired(chart.1, rendered.clone()).await;
            let again = fixture.install(&desired).await.unwrap();
            counts.count(again.is_empty(), || {
                format!("{name}, after a restart: {:?}", summaries(&again))
            });
            let drift: Vec<String> = desired
                .objects
                .iter()
                .filter_map(|wanted| {
                    desired.drift(&wanted.id, fixture.live.get(&wanted.id).map(AsRef::as_ref))
                })
                .map(|drift| drift.to_string())
                .collect();
            counts.count(drift.is_empty(), || format!("{name}, drift: {drift:?}"));
            fixture.live = mainstay_cluster::live::Live::default();
            let again = fixture.install(&desired).await.unwrap();
            let is_read = again.iter().all(|change| change.kind == ChangeKind::Found);
            counts.count(is_read, || {
                format!("{name}, with an empty cache: {:?}", summaries(&again))
            });
            let after = fixture.versions(chart.1).await;
            counts.count(before == after, || format!("{name}: {before:?} became {after:?}"));
            fixture.restart().await;
        }
        let upgraded = fixture.state(chart.1).await;
        fixture.uninstall(chart.1).await;
        let rest = fixture.versions(chart.1).await;
        counts.count(rest.is_empty(), || format!("{} left {rest:?}", chart.1));
        let desired = fixture.desired(chart.1, second.1.clone()).await;
        if fixture.install(&desired).await.is_ok() {
            let fresh = fixture.state(chart.1).await;
            counts.count(upgraded == fresh, || {
                format!(
                    "{} over {}: {}",
                    second.0,
                    first.0,
                    describe_differences(&upgraded, &fresh)
                )
            });
        }
        fixture.uninstall(chart.1).await;
    }
    println!(
        "installed twice: {counts} ({objects} objects, {writes} writes, {rejected} rejected by the server)"
    );
    counts
}

/// Describes the differences between two states.
pub(crate) fn describe_differences(one: &BTreeMap<String, Value>, other: &BTreeMap<String, Value>) -> String {
    let mut paths = Vec::new();
    collect_differences(&json!(one), &json!(other), "", &mut paths);
    paths.join("; ")
}

fn collect_differences(one: &Value, other: &Value, at: &str, paths: &mut Vec<String>) {
    match (one, other) {
        (Value::Object(a), Value::Object(b)) => {
            let names: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            for name in names {
                collect_differences(&one[name], &other[name], &format!("{at}/{name}"), paths);
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (index, (one, other)) in a.iter().zip(b).enumerate() {
                collect_differences(one, other, &format!("{at}/{index}"), paths);
            }
        }
        _ if one == other => {}
        _ => paths.push(format!("{at}: {one} and {other}")),
    }
}
