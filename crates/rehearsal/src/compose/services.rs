//! Endpoints over time: takes how many pods of each workload were ready when, gives the same for every Service that selects them.

use std::collections::BTreeMap;

use mainstay_mesh::workload::WorkloadKey;

use super::Play;
use crate::report::{Moment, Point, Report, Service, SpanResult};

/// The steps of one workload, since the beginning; one that never had a pod has none then.
pub(crate) fn steps(play: &Play<'_>, key: &WorkloadKey) -> Vec<Point> {
    let step = |(at, ready): &(jiff::Timestamp, u32)| Point {
        at: play.moment(*at),
        ready: *ready,
    };
    match play.recording.crews.get(key) {
        Some(steps) => steps.iter().map(step).collect(),
        None => vec![Point {
            at: Moment(0),
            ready: 0,
        }],
    }
}

/// The fewest ready pods of a workload within a stretch of time.
pub(super) fn fewest(play: &Play<'_>, key: &WorkloadKey, start: Moment, end: Moment) -> u32 {
    least(&steps(play, key), start, end).unwrap_or(0)
}

/// The least value of a step function within a stretch of time.
pub(crate) fn least(steps: &[Point], start: Moment, end: Moment) -> Option<u32> {
    let before = steps.iter().rev().find(|point| point.at <= start);
    let within = steps.iter().filter(|point| point.at > start && point.at <= end);
    before.into_iter().chain(within).map(|point| point.ready).min()
}

/// How many pods were replaced: all of those that moved.
pub(super) fn replaced(report: &Report) -> usize {
    let moved = report
        .workloads
        .iter()
        .filter(|span| span.result == SpanResult::Migrated);
    moved
        .map(|span| usize::try_from(span.replicas).unwrap_or(0))
        .sum()
}

/// Every Service of which a pod was restarted.
pub(super) fn services(play: &Play<'_>) -> Vec<Service> {
    let moved = play.recording.moved();
    let mut services: Vec<Service> = play
        .scene
        .services
        .iter()
        .filter_map(|service| {
            let crew: Vec<(&WorkloadKey, u32)> = play
                .scene
                .selected(&service.namespace, &service.selector)
                .map(|(key, workload)| (key, workload.replicas))
                .collect();
            let touched = crew.iter().any(|(key, _)| moved.contains(key));
            touched.then(|| of(play, (&service.namespace, &service.name), &crew))
        })
        .collect();
    services.sort_by(|a, b| (&a.namespace, &a.name).cmp(&(&b.namespace, &b.name)));
    services
}

fn of(play: &Play<'_>, (namespace, name): (&str, &str), crew: &[(&WorkloadKey, u32)]) -> Service {
    let points = sum(&crew.iter().map(|(key, _)| steps(play, key)).collect::<Vec<_>>());
    Service {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        desired: crew.iter().map(|(_, replicas)| replicas).sum(),
        fewest: points.iter().map(|point| point.ready).min().unwrap_or(0),
        interrupted: interrupted(&points, play.end()),
        points,
    }
}

/// The sum of step functions.
pub(crate) fn sum(all: &[Vec<Point>]) -> Vec<Point> {
    let mut changes: BTreeMap<Moment, i64> = BTreeMap::new();
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

/// For how long nothing was ready although something had been.
pub(crate) fn interrupted(points: &[Point], end: Moment) -> Moment {
    let ends = points.iter().skip(1).map(|point| point.at).chain([end]);
    let (mut had, mut total) = (false, 0);
    for (point, until) in points.iter().zip(ends) {
        if point.ready > 0 {
            had = true;
        } else if had {
            total += until.since(point.at).0;
        }
    }
    Moment(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(pairs: &[(u64, u32)]) -> Vec<Point> {
        let point = |(at, ready): &(u64, u32)| Point {
            at: Moment(*at),
            ready: *ready,
        };
        pairs.iter().map(point).collect()
    }

    #[test]
    fn step_functions_add_up() {
        let one = points(&[(0, 2), (10, 3), (20, 2)]);
        let other = points(&[(0, 1), (10, 0), (30, 1)]);
        assert_eq!(
            sum(&[one, other]),
            points(&[(0, 3), (20, 2), (30, 3)]),
            "what cancels out is no step"
        );
        assert_eq!(sum(&[]), []);
    }

    #[test]
    fn only_what_was_there_can_be_interrupted() {
        let check = |pairs: &[(u64, u32)], expected| {
            assert_eq!(
                interrupted(&points(pairs), Moment(100)),
                Moment(expected),
                "{pairs:?}"
            );
        };
        check(&[(0, 1), (10, 0), (15, 1)], 5);
        check(&[(0, 1), (90, 0)], 10);
        check(&[(0, 0), (50, 1)], 0);
        check(&[], 0);
    }

    #[test]
    fn the_least_counts_what_holds_at_the_start() {
        let steps = points(&[(0, 2), (10, 1), (20, 3)]);
        assert_eq!(least(&steps, Moment(12), Moment(30)), Some(1));
        assert_eq!(least(&steps, Moment(20), Moment(30)), Some(3));
        assert_eq!(least(&[], Moment(0), Moment(1)), None);
    }
}
