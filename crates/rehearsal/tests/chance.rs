//! Tests random choices: the same seed produces the same bytes; another seed changes only readiness times.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

mod support;

use mainstay_rehearsal::RehearsalRequest;
use mainstay_rehearsal::report::{Elapsed, Method, Report};
use serde_json::Value;

use support::many::{many, observed_at};
use support::{report, upgrade};

fn rehearse_with_seed(objects: &[Value], seed: u64) -> Report {
    let request = RehearsalRequest {
        seed,
        method: Some(Method::Calculated),
        ..upgrade()
    };
    report(objects, &request)
}

fn bytes(report: &Report) -> String {
    serde_json::to_string(report).unwrap()
}

/// Removes the timestamps from which readiness times are derived.
fn without_observed_readiness(mut objects: Vec<Value>) -> Vec<Value> {
    objects.retain(|object| object["kind"] != "Pod");
    objects
}

/// Removes all times from a report.
fn without_times(mut report: Report) -> Report {
    let zero = Elapsed(0);
    report.seed = 0;
    (report.totals.duration, report.totals.moving) = (zero, zero);
    for phase in &mut report.phases {
        (phase.start, phase.end) = (zero, zero);
    }
    for namespace in &mut report.namespaces {
        namespace.at = zero;
    }
    for batch in &mut report.batches {
        (batch.start, batch.end) = (zero, zero);
    }
    for span in &mut report.workloads {
        (span.start, span.end) = (zero, zero);
    }
    for service in &mut report.services {
        for point in &mut service.points {
            point.at = zero;
        }
    }
    for pruned in &mut report.pruned {
        pruned.at = zero;
    }
    report
}

#[test]
fn the_same_seed_produces_the_same_bytes() {
    let objects = without_observed_readiness(many(60));
    assert_eq!(
        bytes(&rehearse_with_seed(&objects, 7)),
        bytes(&rehearse_with_seed(&objects, 7))
    );
}

#[test]
fn another_seed_changes_only_times_that_were_not_observed() {
    let drawn = without_observed_readiness(many(60));
    let (one, other) = (rehearse_with_seed(&drawn, 1), rehearse_with_seed(&drawn, 2));
    assert_ne!(
        one.workloads, other.workloads,
        "readiness times must depend on the seed"
    );
    assert_eq!(
        without_status(without_times(one)),
        without_status(without_times(other))
    );
    // All pods have the same observed readiness time, so the seed has no effect.
    let observed = many(60);
    let (one, other) = (rehearse_with_seed(&observed, 1), rehearse_with_seed(&observed, 2));
    assert_eq!(one.input.observed_readiness, 60);
    assert_eq!(bytes(&one), bytes(&Report { seed: 1, ..other }));
}

/// Removes status writes: their number depends on how many workloads become ready at the same time.
fn without_status(mut report: Report) -> Report {
    report.writes.retain(|writes| writes.verb != "status");
    report.totals.writes = 0;
    report
}

#[test]
fn one_of_several_observed_times_is_selected_at_random() {
    let mut objects = many(1);
    let pods = objects.iter_mut().filter(|object| object["kind"] == "Pod");
    for (pod, seconds) in pods.zip([3, 40]) {
        observed_at(pod, seconds);
    }
    let lasted = |seed| {
        let span = &rehearse_with_seed(&objects, seed).workloads[0];
        span.end.since(span.start)
    };
    let all: std::collections::BTreeSet<Elapsed> = (0..12).map(lasted).collect();
    // The pods are replaced one after another (25% surge of two), each with the readiness time that was
    // selected.
    assert_eq!(all.into_iter().collect::<Vec<_>>().len(), 2);
}
