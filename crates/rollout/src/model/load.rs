//! Computes the requests that each revision receives during a timeline.

use std::collections::BTreeMap;

use mainstay_api::delivery::RouteWeights;

use super::{Frame, Timeline};

/// Load during one second of a timeline.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Load {
    /// Seconds since the start.
    pub second: u64,
    /// Requests per second by revision.
    pub requests: BTreeMap<String, f64>,
    /// Requests per second for which no replica is available.
    pub unserved: f64,
}

/// Returns the load for every second of a timeline. `rates` contains the requests per second by cluster,
/// which are divided equally among the rules of the deployment.
#[must_use]
pub fn load(timeline: &Timeline, rates: &BTreeMap<String, f64>) -> Vec<Load> {
    let last = timeline.frames.last().map_or(0, Frame::second);
    let mut frames = timeline.frames.iter().peekable();
    let mut current = frames.next();
    let mut rows = Vec::new();
    for second in 0..=last {
        while frames.peek().is_some_and(|frame| frame.second() <= second) {
            current = frames.next();
        }
        if let Some(frame) = current {
            rows.push(frame.load(second, rates));
        }
    }
    rows
}

impl Frame {
    fn second(&self) -> u64 {
        u64::try_from(self.at.as_secs()).unwrap_or_default()
    }

    /// Returns the shares of revisions in a cluster by rule, from 0 to 1. Empty before the first route is
    /// verified.
    #[must_use]
    pub fn shares(&self, cluster: &str) -> Vec<(String, BTreeMap<String, f64>)> {
        let groups = self.traffic.iter();
        let own = groups.filter(|group| group.cluster_names.iter().any(|name| name == cluster));
        let routes = own.flat_map(|group| &group.routes);
        routes
            .map(|route| (route.rule.clone(), self.rule_shares(cluster, route)))
            .collect()
    }

    fn rule_shares(&self, cluster: &str, route: &RouteWeights) -> BTreeMap<String, f64> {
        let mut shares: BTreeMap<String, f64> = BTreeMap::new();
        for share in &route.shares {
            let available = self.available(cluster, &share.revision_name);
            let weight = share.weight.unwrap_or(available);
            *shares.entry(share.revision_name.clone()).or_default() += f64::from(weight);
        }
        let total: f64 = shares.values().sum();
        if total > 0.0 {
            for share in shares.values_mut() {
                *share /= total;
            }
        }
        shares
    }

    fn available(&self, cluster: &str, revision: &str) -> u32 {
        let key = (cluster.to_owned(), revision.to_owned());
        self.replicas.get(&key).map_or(0, |replicas| replicas.available)
    }

    fn load(&self, second: u64, rates: &BTreeMap<String, f64>) -> Load {
        let mut load = Load {
            second,
            ..Load::default()
        };
        for (cluster, rate) in rates {
            let rules = self.shares(cluster);
            // There are at most 32 rules.
            #[allow(clippy::cast_precision_loss, reason = "a small number")]
            let each = rate / rules.len().max(1) as f64;
            for (revision, share) in rules.iter().flat_map(|(_, shares)| shares) {
                if self.available(cluster, revision) > 0 {
                    *load.requests.entry(revision.clone()).or_default() += each * share;
                } else {
                    load.unserved += each * share;
                }
            }
            if rules
                .iter()
                .all(|(_, shares)| shares.values().all(|share| *share == 0.0))
            {
                load.unserved += rate;
            }
        }
        load
    }
}
