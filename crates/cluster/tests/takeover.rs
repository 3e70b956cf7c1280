//! Tests releases on a real API server. Ours are installed twice. Releases of Helm 3 and Helm 4 are taken
//! over, with and without a post-renderer that marks objects as the Sail Operator does.

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
#[path = "support/reinstall.rs"]
mod reinstall;
mod support;

use std::process::ExitCode;

use mainstay_cluster::apply::ChangeKind;
use mainstay_testkit::cluster::{Cluster, Options, PARTS};
use mainstay_testkit::{CaseCounts, Random, case_count};
use mainstay_testkit::{suite, test_cases};
use serde_json::{Value, json};

use helm::Helm;
use support::{CHARTS, Fixture, attachment_definition, render, summaries, value_sets, values, versions};

fn main() -> ExitCode {
    if std::env::args().nth(1).as_deref() == Some(helm::POST_RENDER) {
        helm::post_render();
        return ExitCode::SUCCESS;
    }
    let cases = test_cases![
        "a_second_install_writes_nothing" => a_second_install_writes_nothing(),
        "edits_of_other_clients_are_reverted_or_kept" => edits_of_other_clients_are_reverted_or_kept(),
        "releases_of_the_sail_operator_are_taken_over_without_a_write" => releases_of_the_sail_operator_are_taken_over_without_a_write(),
        "releases_of_helm_get_an_owner_and_no_other_change" => releases_of_helm_get_an_owner_and_no_other_change(),
        "an_upgrade_after_a_takeover_equals_a_fresh_install" => an_upgrade_after_a_takeover_equals_a_fresh_install(),
    ];
    let peers: Vec<&str> = PARTS.into_iter().chain(["helm4", "helm3"]).collect();
    suite::main(&peers, &cases)
}

/// Starts a server without controllers, so that only the test writes objects.
async fn start_without_controllers() -> (Cluster, Fixture) {
    let options = Options {
        controllers: Vec::new(),
        ..Options::default()
    };
    let cluster = Cluster::start(options).await.unwrap();
    let fixture = Fixture::new(cluster.client_with_agent("admin", "mainstay").unwrap()).await;
    (cluster, fixture)
}

async fn a_second_install_writes_nothing() {
    let (_cluster, mut fixture) = start_without_controllers().await;
    let counts = reinstall::run(&mut fixture, case_count(20), 6).await;
    assert!(counts.differences.is_empty(), "{}", counts.differences.join("\n"));
}

async fn edits_of_other_clients_are_reverted_or_kept() {
    let (_cluster, mut fixture) = start_without_controllers().await;
    let counts = drift::run(&mut fixture).await;
    assert!(counts.differences.is_empty(), "{}", counts.differences.join("\n"));
}

/// Values of the release of each chart.
const VALUES: &[(&str, &str)] = &[
    // The chart also sets this variable, so the manifest contains it twice.
    ("istiod", "env: {PILOT_CERT_PROVIDER: istiod, CLUSTER_ID: mine}\n"),
    ("base", "defaultRevision: default\n"),
    ("cni", "{}"),
    ("ztunnel", "{}"),
    ("revisiontags", "revisionTags: [prod]\nrevision: canary\n"),
];

fn values_for(chart: &str) -> &'static str {
    VALUES.iter().find(|(name, _)| *name == chart).unwrap().1
}

/// Returns the values of a chart without duplicate variables. A server-side apply rejects duplicates,
/// including that of Helm, and our first apply would remove them.
fn values_without_duplicates(chart: &str) -> &'static str {
    if chart == "istiod" {
        "{}"
    } else {
        values_for(chart)
    }
}

/// Changes the webhooks of a release as a running istiod does.
async fn simulate_istiod(fixture: &Fixture, release: &str) {
    for object in fixture.list_all().await {
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
            fixture.patch_as(&object, &json!(patch), "pilot-discovery").await;
        }
    }
}

async fn releases_of_the_sail_operator_are_taken_over_without_a_write() {
    let mut counts = CaseCounts::default();
    let mut random = Random::new(3);
    let (versions, sets) = (versions(), value_sets());
    for generation in ["helm4", "helm3"] {
        let (cluster, mut fixture) = start_without_controllers().await;
        fixture.create(&attachment_definition()).await;
        let helm = Helm::new(generation, &cluster, Some(&fixture.owner));
        let mut cases: Vec<(String, &str, &str, String)> = Vec::new();
        for (chart, release) in CHARTS {
            cases.push(("1.29.1".into(), chart, release, values_for(chart).into()));
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
            if rendered.is_empty()
                || helm
                    .try_run("install", (version, chart), release, values)
                    .is_err()
            {
                continue;
            }
            // Half of the releases are in the state after several reconciles with a running control
            // plane.
            if index % 2 == 0 {
                helm.upgrade(version, chart, release, values);
                simulate_istiod(&fixture, release).await;
                helm.upgrade(version, chart, release, values);
            }
            let before = fixture.versions(release).await;
            fixture.restart().await;
            let desired = fixture.desired(release, rendered).await;
            let changes = fixture.install(&desired).await.unwrap();
            counts.count(changes.is_empty(), || {
                format!("{name}: {:?}", summaries(&changes))
            });
            let after = fixture.versions(release).await;
            counts.count(before == after && !before.is_empty(), || {
                format!("{name}: {before:?} {after:?}")
            });
            helm.uninstall(release);
        }
    }
    println!("taken over from the Sail Operator: {counts}");
    assert!(counts.run > 40, "{counts}");
    assert!(counts.differences.is_empty(), "{}", counts.differences.join("\n"));
}

async fn releases_of_helm_get_an_owner_and_no_other_change() {
    let mut counts = CaseCounts::default();
    for generation in ["helm4", "helm4 --server-side=true", "helm3"] {
        let (cluster, mut fixture) = start_without_controllers().await;
        let helm = Helm::new(generation, &cluster, None);
        for (chart, release) in CHARTS {
            helm.install("1.29.1", chart, release, values_without_duplicates(chart));
            let before = fixture.state(release).await;
            let rendered = render("1.29.1", chart, release, values_without_duplicates(chart)).unwrap();
            fixture.restart().await;
            let desired = fixture.desired(release, rendered.clone()).await;
            let changes = fixture.install(&desired).await.unwrap();
            let applied = changes
                .iter()
                .filter(|change| change.kind == ChangeKind::Applied)
                .count();
            counts.count(
                applied == desired.objects.len() && changes.len() == applied + 1,
                || {
                    format!(
                        "{generation} {chart}: {} objects, {:?}",
                        desired.objects.len(),
                        summaries(&changes)
                    )
                },
            );
            let after = fixture.state(release).await;
            counts.count(before.keys().eq(after.keys()), || {
                format!("{generation} {chart}: {before:?} {after:?}")
            });
            for change in &changes {
                let generation = change.live.as_ref().unwrap()["metadata"]["generation"].clone();
                counts.count(generation.is_null() || generation == 1, || {
                    format!("{chart} {}: {generation}", change.id)
                });
            }
            let without_metadata = |mut state: std::collections::BTreeMap<String, Value>| {
                for object in state.values_mut() {
                    object["metadata"] = Value::Null;
                }
                json!(state)
            };
            let (before, after) = (without_metadata(before), without_metadata(after));
            counts.count(before == after, || {
                format!("{generation} {chart}: {before} {after}")
            });
            let desired = fixture.desired(release, rendered).await;
            let again = fixture.install(&desired).await.unwrap();
            counts.count(again.is_empty(), || {
                format!("{generation} {chart} again: {:?}", summaries(&again))
            });
        }
    }
    println!("taken over from Helm: {counts}");
    assert!(counts.differences.is_empty(), "{}", counts.differences.join("\n"));
}

async fn an_upgrade_after_a_takeover_equals_a_fresh_install() {
    let mut counts = CaseCounts::default();
    for (generation, is_owned) in [
        ("helm4", true),
        ("helm4", false),
        ("helm4 --server-side=true", false),
        ("helm3", true),
    ] {
        let (cluster, mut fixture) = start_without_controllers().await;
        let helm = Helm::new(generation, &cluster, is_owned.then_some(&fixture.owner));
        let values = if is_owned {
            values_for
        } else {
            values_without_duplicates
        };
        for (chart, release) in CHARTS {
            helm.install("1.28.2", chart, release, values(chart));
            let rendered = render("1.28.2", chart, release, values(chart)).unwrap();
            fixture.restart().await;
            let desired = fixture.desired(release, rendered).await;
            fixture.install(&desired).await.unwrap();
            let rendered = render("1.29.1", chart, release, values(chart)).unwrap();
            fixture.restart().await;
            let desired = fixture.desired(release, rendered.clone()).await;
            let changes = fixture.install(&desired).await.unwrap();
            let desired = fixture.desired(release, rendered).await;
            let again = fixture.install(&desired).await.unwrap();
            counts.count(again.is_empty(), || {
                format!("{generation} {chart} again: {:?}", summaries(&again))
            });
            let upgraded = fixture.state(release).await;
            fixture.uninstall(release).await;
            fixture.install(&desired).await.unwrap();
            let fresh = fixture.state(release).await;
            counts.count(upgraded == fresh, || {
                format!(
                    "{generation} {chart}: {}\n  {:?}",
                    reinstall::describe_differences(&upgraded, &fresh),
                    summaries(&changes)
                )
            });
            fixture.uninstall(release).await;
        }
    }
    println!("upgraded after a takeover: {counts}");
    assert!(counts.differences.is_empty(), "{}", counts.differences.join("\n"));
}
