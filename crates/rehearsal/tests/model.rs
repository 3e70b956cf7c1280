//! Tests that calculated and embedded rehearsals produce the same report, for a mixed mesh and for random
//! ones.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

mod support;

use mainstay_rehearsal::RehearsalRequest;
use mainstay_rehearsal::report::{Method, Report};
use mainstay_sim::Random;
use serde_json::{Value, json};

use support::{OLD, batched, deployment, istio, mixed_workloads, report, service, snapshot, upgrade};

/// Returns the parts of a report that must be equal for both methods. The number of status writes is
/// excluded, because it depends on how a watch batches events.
fn comparable(mut report: Report) -> Value {
    report.method = Method::Embedded;
    report
        .writes
        .retain(|writes| writes.verb != "status" && writes.kind != "Event");
    report.totals.writes = 0;
    let mut value = serde_json::to_value(&report).unwrap();
    // These texts contain pod names, which are random.
    for finding in value["findings"].as_array_mut().unwrap() {
        if finding["kind"] == "notPruned" {
            finding["what"] = json!("");
        }
    }
    value
}

/// Compares the reports of both methods and returns the number of workloads.
fn check(objects: &[Value], request: &RehearsalRequest) -> u64 {
    let rehearse = |method| {
        let request = RehearsalRequest {
            method: Some(method),
            ..request.clone()
        };
        comparable(report(objects, &request))
    };
    let (embedded, calculated) = (rehearse(Method::Embedded), rehearse(Method::Calculated));
    if embedded != calculated {
        for key in embedded.as_object().unwrap().keys() {
            assert_eq!(
                format!("{:#}", embedded[key]),
                format!("{:#}", calculated[key]),
                "embedded and calculated {key} differ"
            );
        }
    }
    embedded["totals"]["workloads"].as_u64().unwrap()
}

#[test]
fn both_methods_agree_on_a_mixed_mesh() {
    let objects = snapshot(&istio(&batched(2, "10s")), mixed_workloads());
    let request = RehearsalRequest {
        readiness_overrides: [("shop/slow".to_owned(), None)].into(),
        ..upgrade()
    };
    assert_eq!(check(&objects, &request), 9);
    check(&objects, &RehearsalRequest { seed: 3, ..upgrade() });
}

fn random_workloads(random: &mut Random) -> Vec<Value> {
    let mut mixed_workloads = Vec::new();
    for at in 0..3 {
        let name = format!("space-{at}");
        let labels = match random.below(3) {
            0 => json!({"istio-injection": "enabled"}),
            1 => json!({"istio.io/rev": OLD}),
            _ => json!({}),
        };
        mixed_workloads.push(
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}),
        );
        for number in 0..random.below(5) {
            let strategy = match random.below(4) {
                0 => json!({"type": "Recreate"}),
                1 => json!({"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1 + random.below(2)}}),
                2 => json!({"rollingUpdate": {"maxSurge": "50%", "maxUnavailable": "50%"}}),
                _ => json!({}),
            };
            let own = if labels == json!({}) && random.below(3) > 0 {
                json!({"istio.io/rev": OLD})
            } else {
                json!({})
            };
            let priority = (random.below(4) == 0).then(|| format!("{}", random.below(3)));
            let annotations = priority.map_or(
                json!({}),
                |priority| json!({"sailoperator.io/migration-batch": priority}),
            );
            let app = format!("app-{number}");
            let replicas = i64::try_from(random.below(5)).unwrap();
            let min_ready = random.below(3) * random.below(4);
            mixed_workloads.push(deployment(
                &name,
                &app,
                replicas,
                &json!({"metadata": {"annotations": annotations},
                    "spec": {"strategy": strategy, "minReadySeconds": min_ready, "template": {"metadata": {"labels": own}}}}),
            ));
            mixed_workloads.push(service(&name, &app));
        }
    }
    mixed_workloads
}

#[test]
fn both_methods_agree_on_random_meshes() {
    let cases = std::env::var("MAINSTAY_CASES")
        .ok()
        .and_then(|cases| cases.parse().ok())
        .unwrap_or(9);
    let mut workloads = 0;
    for seed in 0..cases {
        let mut random = Random::new(seed);
        let size = i64::try_from(1 + random.below(4)).unwrap();
        let delay = format!("{}s", random.below(20));
        let objects = snapshot(&istio(&batched(size, &delay)), random_workloads(&mut random));
        let mut request = RehearsalRequest { seed, ..upgrade() };
        for at in 0..3 {
            for number in 0..5 {
                let ready = match random.below(8) {
                    0 => None,
                    drawn => Some(std::time::Duration::from_millis(drawn * 1700)),
                };
                request
                    .readiness_overrides
                    .insert(format!("space-{at}/app-{number}"), ready);
            }
        }
        println!("seed {seed}");
        workloads += check(&objects, &request);
    }
    assert!(workloads > 2 * cases, "too few workloads: {workloads}");
}
