//! Computes the number of endpoints over time for every Service from the numbers of ready pods of its
//! workloads.

use std::collections::BTreeMap;

use mainstay_mesh::workload::WorkloadKey;

use super::Rehearsal;
use crate::cluster_model::Service as ModelService;
use crate::report::{Elapsed, Point, Report, Service, SpanResult};

/// Returns the number of ready pods of a workload over time, which starts at zero if the workload never had a
/// pod.
pub(crate) fn ready_pod_steps(rehearsal: &Rehearsal<'_>, key: &WorkloadKey) -> Vec<Point> {
    let step = |(at, ready): &(jiff::Timestamp, u32)| Point {
        at: rehearsal.elapsed(*at),
        ready: *ready,
    };
    match rehearsal.recording.ready_pods.get(key) {
        Some(steps) => steps.iter().map(step).collect(),
        None => vec![Point {
            at: Elapsed(0),
            ready: 0,
        }],
    }
}

/// Returns the minimum number of ready pods of a workload within a period.
pub(super) fn minimum_ready_pods(
    rehearsal: &Rehearsal<'_>,
    key: &WorkloadKey,
    start: Elapsed,
    end: Elapsed,
) -> u32 {
    minimum(&ready_pod_steps(rehearsal, key), start, end).unwrap_or(0)
}

/// Returns the minimum of a step function within a period, or `None` if the function has no value there.
pub(crate) fn minimum(steps: &[Point], start: Elapsed, end: Elapsed) -> Option<u32> {
    let before = steps.iter().rev().find(|point| point.at <= start);
    let within = steps.iter().filter(|point| point.at > start && point.at <= end);
    before.into_iter().chain(within).map(|point| point.ready).min()
}

/// Returns the number of replaced pods: all pods of migrated workloads.
pub(super) fn replaced_pods(report: &Report) -> usize {
    let moved = report
        .workloads
        .iter()
        .filter(|span| span.result == SpanResult::Migrated);
    moved
        .map(|span| usize::try_from(span.replicas).unwrap_or(0))
        .sum()
}

/// Returns every Service with a restarted pod.
pub(super) fn services(rehearsal: &Rehearsal<'_>) -> Vec<Service> {
    let moved = rehearsal.recording.restarted_workloads();
    let mut services: Vec<Service> = rehearsal
        .model
        .services
        .iter()
        .filter_map(|service| {
            let selected: Vec<(&WorkloadKey, u32)> = rehearsal
                .model
                .selected(&service.namespace, &service.selector)
                .map(|(key, workload)| (key, workload.replicas))
                .collect();
            let touched = selected.iter().any(|(key, _)| moved.contains(key));
            touched.then(|| availability(rehearsal, service, &selected))
        })
        .collect();
    services.sort_by(|a, b| (&a.namespace, &a.name).cmp(&(&b.namespace, &b.name)));
    services
}

fn availability(
    rehearsal: &Rehearsal<'_>,
    service: &ModelService,
    workloads: &[(&WorkloadKey, u32)],
) -> Service {
    let points = sum_steps(
        &workloads
            .iter()
            .map(|(key, _)| ready_pod_steps(rehearsal, key))
            .collect::<Vec<_>>(),
    );
    Service {
        namespace: service.namespace.clone(),
        name: service.name.clone(),
        desired: workloads.iter().map(|(_, replicas)| replicas).sum(),
        fewest: points.iter().map(|point| point.ready).min().unwrap_or(0),
        interrupted: interruption_duration(&points, rehearsal.end()),
        points,
    }
}

/// Returns the sum of step functions.
pub(crate) fn sum_steps(all: &[Vec<Point>]) -> Vec<Point> {
    let mut changes: BTreeMap<Elapsed, i64> = BTreeMap::new();
    for steps in all {
        let mut before = 0;
        for point in steps {
            *changes.entry(point.at).or_default() += i64::from(point.ready) - before;
            before = i64::from(point.ready);
        }
    }
    let (mut total, mut points) = (0, Vec::<Point>::new());
    for (at, change) in changes {
        total += change;
        let ready = u32::try_from(total.max(0)).unwrap_or(u32::MAX);
        if points.last().is_none_or(|last| last.ready != ready) {
            points.push(Point { at, ready });
        }
    }
    points
}

/// Returns the total time without a ready endpoint, after at least one endpoint was ready.
pub(crate) fn interruption_duration(points: &[Point], end: Elapsed) -> Elapsed {
    let ends = points.iter().skip(1).map(|point| point.at).chain([end]);
    let (mut had, mut total) = (false, 0);
    for (point, until) in points.iter().zip(ends) {
        if point.ready > 0 {
            had = true;
        } else if had {
            total += until.since(point.at).0;
        }
    }
    Elapsed(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(pairs: &[(u64, u32)]) -> Vec<Point> {
        let point = |(at, ready): &(u64, u32)| Point {
            at: Elapsed(*at),
            ready: *ready,
        };
        pairs.iter().map(point).collect()
    }

    #[test]
    fn step_functions_add_up() {
        let one = points(&[(0, 2), (10, 3), (20, 2)]);
        let other = points(&[(0, 1), (10, 0), (30, 1)]);
        assert_eq!(
            sum_steps(&[one, other]),
            points(&[(0, 3), (20, 2), (30, 3)]),
            "changes that cancel out are no step"
        );
        assert_eq!(sum_steps(&[]), []);
    }

    #[test]
    fn only_available_services_can_be_interrupted() {
        let check = |pairs: &[(u64, u32)], expected| {
            assert_eq!(
                interruption_duration(&points(pairs), Elapsed(100)),
                Elapsed(expected),
                "{pairs:?}"
            );
        };
        check(&[(0, 1), (10, 0), (15, 1)], 5);
        check(&[(0, 1), (90, 0)], 10);
        check(&[(0, 0), (50, 1)], 0);
        check(&[], 0);
    }

    #[test]
    fn the_minimum_includes_the_value_at_the_start() {
        let steps = points(&[(0, 2), (10, 1), (20, 3)]);
        assert_eq!(minimum(&steps, Elapsed(12), Elapsed(30)), Some(1));
        assert_eq!(minimum(&steps, Elapsed(20), Elapsed(30)), Some(3));
        assert_eq!(minimum(&[], Elapsed(0), Elapsed(1)), None);
    }
}
