//! Plans the status of Clusters. Performs no I/O.

use jiff::Timestamp;
use mainstay_api::delivery::{Cluster, ClusterStatus};
use mainstay_api::{Condition, ConditionStatus, ConditionType, Reason, Time};

use super::index::{ClusterState, Link};

/// Returns the status of a cluster if it differs from the stored one, or `None` if no write is needed. The
/// time of the last contact is only written together with other changes, so that a healthy cluster causes
/// no writes.
pub(crate) fn plan_cluster(cluster: &Cluster, state: &ClusterState, now: Timestamp) -> Option<ClusterStatus> {
    let (holds, reason, message) = match state.link() {
        Link::Unknown => return None,
        Link::Up { .. } => (true, Reason::Ready, String::new()),
        Link::Down(outage) => (false, outage.reason.clone(), outage.message.clone()),
    };
    let mut status = cluster.status.clone();
    status.observed_generation = cluster.metadata.generation;
    if let Link::Up { version, .. } = state.link() {
        status.version.clone_from(version);
    }
    let condition = Condition::new(
        ConditionType::Ready,
        ConditionStatus::from(holds),
        reason,
        message,
    );
    status.conditions.set(condition, now);
    if status == cluster.status {
        return None;
    }
    status.last_contact_time = state
        .last_contact()
        .map(Time::from_timestamp)
        .or(status.last_contact_time);
    Some(status)
}
