//! Computes the traffic weights of a cluster.
//!
//! Proxies do not skip destinations without endpoints. Therefore, weights are distributed over the
//! revisions that are available in the cluster. The sum is always 100.

use crate::division::{Share, divide};

/// Sum of the weights of a route.
const TOTAL: u32 = 100;

/// A revision to which a route sends requests in one cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backend {
    /// Name of the revision.
    pub revision: String,
    /// Requested weight.
    pub weight: u32,
    /// Available replicas in this cluster.
    pub available: u32,
}

/// Error of computing weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WeightError {
    /// No requested revision has an available replica; the route must not change.
    #[error("no revision with a weight is available")]
    NoAvailableBackend,
}

/// Returns the weight of each backend, in order. Unavailable revisions get weight 0. The others share 100
/// in proportion to their requested weights.
pub fn effective_weights(backends: &[Backend]) -> Result<Vec<u32>, WeightError> {
    let shares: Vec<Share> = backends
        .iter()
        .map(|backend| {
            let weight = if backend.available > 0 { backend.weight } else { 0 };
            Share::new(backend.revision.clone(), weight)
        })
        .collect();
    if shares.iter().all(|share| share.weight == 0) {
        return Err(WeightError::NoAvailableBackend);
    }
    Ok(divide(TOTAL, &shares))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn backends(rows: &[(u32, u32)]) -> Vec<Backend> {
        let row = |(index, (weight, available)): (usize, &(u32, u32))| Backend {
            revision: format!("v{index}"),
            weight: *weight,
            available: *available,
        };
        rows.iter().enumerate().map(row).collect()
    }

    #[test]
    fn unavailable_revisions_get_no_traffic() {
        assert_eq!(
            effective_weights(&backends(&[(50, 1), (30, 0), (20, 1)])).unwrap(),
            [71, 0, 29]
        );
        assert_eq!(
            effective_weights(&backends(&[(50, 5), (50, 5)])).unwrap(),
            [50, 50]
        );
    }

    #[test]
    fn a_route_without_available_revision_does_not_change() {
        assert_eq!(
            effective_weights(&backends(&[(50, 0), (0, 3)])),
            Err(WeightError::NoAvailableBackend)
        );
    }
}
