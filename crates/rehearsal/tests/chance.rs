//! Random choices: the same seed produces the same bytes, another seed changes only readiness times.

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

fn play(objects: &[Value], seed: u64) -> Report {
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

/// Returns the objects without the times from which readiness is observed.
fn unobserved(mut objects: Vec<Value>) -> Vec<Value> {
    objects.retain(|object| object["kind"] != "Pod");
    objects
}

/// Removes all times from a report.
fn timeless(mut report: Report) -> Report {
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
    let objects = unobserved(many(60));
    assert_eq!(bytes(&play(&objects, 7)), bytes(&play(&objects, 7)));
}

#[test]
fn another_seed_changes_only_times_that_were_not_observed() {
    let drawn = unobserved(many(60));
    let (one, other) = (play(&drawn, 1), play(&drawn, 2));
    assert_ne!(one.workloads, other.workloads, "lots were drawn");
    assert_eq!(without_status(timeless(one)), without_status(timeless(other)));
    // Every pod was observed, and took the same time: there is nothing to draw.
    let observed = many(60);
    let (one, other) = (play(&observed, 1), play(&observed, 2));
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
fn of_several_times_that_were_observed_one_is_drawn() {
    let mut objects = many(1);
    let pods = objects.iter_mut().filter(|object| object["kind"] == "Pod");
    for (pod, seconds) in pods.zip([3, 40]) {
        observed_at(pod, seconds);
    }
    let lasted = |seed| {
        let span = &play(&objects, seed).workloads[0];
        span.end.since(span.start)
    };
    let all: std::collections::BTreeSet<Elapsed> = (0..12).map(lasted).collect();
    // Two pods after one another, with a quarter of two for surge: each takes what was drawn.
    assert_eq!(all.into_iter().collect::<Vec<_>>().len(), 2);
}
