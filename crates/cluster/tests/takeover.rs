//! Releases on a real API server: our own installed twice, and Helm's taken over. Helm is the real one, in
//! both its generations, with a post-renderer that marks objects as the Sail Operator does.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "helpers of tests"
)]

#[path = "support/drift.rs"]
mod drift;
#[path = "support/helm.rs"]
mod helm;
mod support;
#[path = "support/twice.rs"]
mod twice;

use std::process::ExitCode;

use mainstay_cluster::apply::ChangeKind;
use mainstay_testkit::cluster::{Cluster, Options, PARTS};
use mainstay_testkit::suite::{self, TestCase};
use mainstay_testkit::{CaseCounts, Random, case_count};
use serde_json::{Value, json};

use helm::Helm;
use support::{CHARTS, Scene, attachment_definition, render, told, value_sets, values, versions};

fn main() -> ExitCode {
    if std::env::args().nth(1).as_deref() == Some(helm::POST_RENDER) {
        helm::post_render();
        return ExitCode::SUCCESS;
    }
    let trials = [
        TestCase {
            name: "the_second_time_nothing_is_written",
            start: || Box::pin(the_second_time_nothing_is_written()),
        },
        TestCase {
            name: "what_others_do_is_undone_or_left",
            start: || Box::pin(what_others_do_is_undone_or_left()),
        },
        TestCase {
            name: "what_the_sail_operator_installed_is_taken_over_without_a_write",
            start: || Box::pin(what_the_sail_operator_installed_is_taken_over_without_a_write()),
        },
        TestCase {
            name: "what_helm_installed_gets_an_owner_and_nothing_else",
            start: || Box::pin(what_helm_installed_gets_an_owner_and_nothing_else()),
        },
        TestCase {
            name: "an_upgrade_of_what_others_installed_ends_as_a_fresh_install",
            start: || Box::pin(an_upgrade_of_what_others_installed_ends_as_a_fresh_install()),
        },
    ];
    let peers: Vec<&str> = PARTS.into_iter().chain(["helm4", "helm3"]).collect();
    suite::main(&peers, &trials)
}

/// A server on which nothing happens that is not asked for.
async fn quiet() -> (Cluster, Scene) {
    let options = Options {
        controllers: Vec::new(),
        ..Options::default()
    };
    let cluster = Cluster::start(options).await.unwrap();
    let scene = Scene::new(cluster.client_with_agent("admin", "mainstay").unwrap()).await;
    (cluster, scene)
}

async fn the_second_time_nothing_is_written() {
    let (_cluster, mut scene) = quiet().await;
    let tally = twice::run(&mut scene, case_count(20), 6).await;
    assert!(tally.differences.is_empty(), "{}", tally.differences.join("\n"));
}

async fn what_others_do_is_undone_or_left() {
    let (_cluster, mut scene) = quiet().await;
    let tally = drift::run(&mut scene).await;
    assert!(tally.differences.is_empty(), "{}", tally.differences.join("\n"));
}

/// The values a release is installed with.
const VALUES: &[(&str, &str)] = &[
    // A variable that the chart sets too: the manifest has it twice.
    ("istiod", "env: {PILOT_CERT_PROVIDER: istiod, CLUSTER_ID: mine}\n"),
    ("base", "defaultRevision: default\n"),
    ("cni", "{}"),
    ("ztunnel", "{}"),
    ("revisiontags", "revisionTags: [prod]\nrevision: canary\n"),
];

fn values_of(chart: &str) -> &'static str {
    VALUES.iter().find(|(name, _)| *name == chart).unwrap().1
}

/// The same without what is there twice: an apply refuses that, Helm's too, and the first of ours would mend
/// it, which is a restart.
fn plain_values_of(chart: &str) -> &'static str {
    if chart == "istiod" { "{}" } else { values_of(chart) }
}

/// What a running control plane does to its own webhooks.
async fn play_istiod(scene: &Scene, release: &str) {
    for object in scene.everything().await {
        let is_validator = object["kind"] == "ValidatingWebhookConfiguration";
        let is_webhook = is_validator || object["kind"] == "MutatingWebhookConfiguration";
        if !is_webhook || object["metadata"]["annotations"]["meta.helm.sh/release-name"] != json!(release) {
            continue;
        }
        for index in 0..object["webhooks"].as_array().unwrap().len() {
            let at = format!("/webhooks/{index}");
            let mut patch =
                vec![json!({"op": "add", "path": format!("{at}/clientConfig/caBundle"), "value": "eA=="})];
            if is_validator {
                patch.push(json!({"op": "add", "path": format!("{at}/failurePolicy"), "value": "Fail"}));
            }
            scene.interfere(&object, &json!(patch), "pilot-discovery").await;
        }
    }
}

async fn what_the_sail_operator_installed_is_taken_over_without_a_write() {
    let mut tally = CaseCounts::default();
    let mut random = Random::new(3);
    let (versions, sets) = (versions(), value_sets());
    for generation in ["helm4", "helm3"] {
        let (cluster, mut scene) = quiet().await;
        scene.make(&attachment_definition()).await;
        let helm = Helm::new(generation, &cluster, Some(&scene.owner));
        let mut cases: Vec<(String, &str, &str, String)> = Vec::new();
        for (chart, release) in CHARTS {
            cases.push(("1.29.1".into(), chart, release, values_of(chart).into()));
        }
        while cases.len() < CHARTS.len() + case_count(12) {
            let (chart, release) = *random.pick(&CHARTS);
            let set: &String = random.pick(&sets);
            let values = values(set);
            cases.push((random.pick(&versions).clone(), chart, release, values));
        }
        for (index, (version, chart, release, values)) in cases.iter().enumerate() {
            let name = format!("{generation} {version} {chart} {values}");
            let Some(rendered) = render(version, chart, release, values) else {
                continue;
            };
            if rendered.is_empty() || helm.try_to("install", (version, chart), release, values).is_err() {
                continue;
            }
            // Half of them as they are after some reconciles of a running control plane.
            if index % 2 == 0 {
                helm.upgrade(version, chart, release, values);
                play_istiod(&scene, release).await;
                helm.upgrade(version, chart, release, values);
            }
            let before = scene.versions(release).await;
            scene.restart().await;
            let desired = scene.desired(release, rendered).await;
            let changes = scene.install(&desired).await.unwrap();
            tally.count(changes.is_empty(), || format!("{name}: {:?}", told(&changes)));
            let after = scene.versions(release).await;
            tally.count(before == after && !before.is_empty(), || {
                format!("{name}: {before:?} {after:?}")
            });
            helm.uninstall(release);
        }
    }
    println!("taken over from the Sail Operator: {tally}");
    assert!(tally.run > 40, "{tally}");
    assert!(tally.differences.is_empty(), "{}", tally.differences.join("\n"));
}

async fn what_helm_installed_gets_an_owner_and_nothing_else() {
    let mut tally = CaseCounts::default();
    for generation in ["helm4", "helm4 --server-side=true", "helm3"] {
        let (cluster, mut scene) = quiet().await;
        let helm = Helm::new(generation, &cluster, None);
        for (chart, release) in CHARTS {
            helm.install("1.29.1", chart, release, plain_values_of(chart));
            let before = scene.state(release).await;
            let rendered = render("1.29.1", chart, release, plain_values_of(chart)).unwrap();
            scene.restart().await;
            let desired = scene.desired(release, rendered.clone()).await;
            let changes = scene.install(&desired).await.unwrap();
            let applied = changes
                .iter()
                .filter(|change| change.kind == ChangeKind::Applied)
                .count();
            tally.count(
                applied == desired.objects.len() && changes.len() == applied + 1,
                || {
                    format!(
                        "{generation} {chart}: {} objects, {:?}",
                        desired.objects.len(),
                        told(&changes)
                    )
                },
            );
            let after = scene.state(release).await;
            tally.count(before.keys().eq(after.keys()), || {
                format!("{generation} {chart}: {before:?} {after:?}")
            });
            for change in &changes {
                let generation = change.live.as_ref().unwrap()["metadata"]["generation"].clone();
                tally.count(generation.is_null() || generation == 1, || {
                    format!("{chart} {}: {generation}", change.id)
                });
            }
            let untouched = |mut state: std::collections::BTreeMap<String, Value>| {
                for object in state.values_mut() {
                    object["metadata"] = Value::Null;
                }
                json!(state)
            };
            let (before, after) = (untouched(before), untouched(after));
            tally.count(before == after, || {
                format!("{generation} {chart}: {before} {after}")
            });
            let desired = scene.desired(release, rendered).await;
            let again = scene.install(&desired).await.unwrap();
            tally.count(again.is_empty(), || {
                format!("{generation} {chart} again: {:?}", told(&again))
            });
        }
    }
    println!("taken over from Helm: {tally}");
    assert!(tally.differences.is_empty(), "{}", tally.differences.join("\n"));
}

async fn an_upgrade_of_what_others_installed_ends_as_a_fresh_install() {
    let mut tally = CaseCounts::default();
    for (generation, is_owned) in [
        ("helm4", true),
        ("helm4", false),
        ("helm4 --server-side=true", false),
        ("helm3", true),
    ] {
        let (cluster, mut scene) = quiet().await;
        let helm = Helm::new(generation, &cluster, is_owned.then_some(&scene.owner));
        let values = if is_owned { values_of } else { plain_values_of };
        for (chart, release) in CHARTS {
            helm.install("1.28.2", chart, release, values(chart));
            let rendered = render("1.28.2", chart, release, values(chart)).unwrap();
            scene.restart().await;
            let desired = scene.desired(release, rendered).await;
            scene.install(&desired).await.unwrap();
            let rendered = render("1.29.1", chart, release, values(chart)).unwrap();
            scene.restart().await;
            let desired = scene.desired(release, rendered.clone()).await;
            let changes = scene.install(&desired).await.unwrap();
            let desired = scene.desired(release, rendered).await;
            let again = scene.install(&desired).await.unwrap();
            tally.count(again.is_empty(), || {
                format!("{generation} {chart} again: {:?}", told(&again))
            });
            let upgraded = scene.state(release).await;
            scene.uninstall(release).await;
            scene.install(&desired).await.unwrap();
            let fresh = scene.state(release).await;
            tally.count(upgraded == fresh, || {
                format!(
                    "{generation} {chart}: {}\n  {:?}",
                    twice::unequal(&upgraded, &fresh),
                    told(&changes)
                )
            });
            scene.uninstall(release).await;
        }
    }
    println!("upgraded after a takeover: {tally}");
    assert!(tally.differences.is_empty(), "{}", tally.differences.join("\n"));
}
