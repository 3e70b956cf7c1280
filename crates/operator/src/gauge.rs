//! Reports the depth of the queue, the sizes of the caches, and the referrers of each revision.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::reconciler::Reconciler;
use crate::report::{Observer, Report};

/// Minimum time between two reports of cache sizes. They are not reported more often because counting the
/// pods iterates over all of them.
const REPORT_INTERVAL: Duration = Duration::from_secs(10);

/// Time of the last report, and the revisions that it contained.
#[derive(Debug, Default)]
pub(crate) struct Gauges {
    reported: Option<Instant>,
    revisions: BTreeSet<String>,
}

impl Gauges {
    /// Reports the queue depth. If the interval has passed, also reports cache sizes and referrers.
    pub(crate) fn report(&mut self, reconciler: &Reconciler, observer: &Arc<dyn Observer>) {
        observer.report(&Report::QueueDepth(reconciler.depth()));
        if self
            .reported
            .is_some_and(|reported| reported.elapsed() < REPORT_INTERVAL)
        {
            return;
        }
        self.reported = Some(Instant::now());
        let snapshot = reconciler.snapshot();
        let caches = [
            ("Istio", snapshot.istios().len()),
            ("IstioRevision", snapshot.revisions().len()),
            ("IstioRevisionTag", snapshot.tags().len()),
            ("IstioCNI", snapshot.cnis().len()),
            ("ZTunnel", snapshot.ztunnels().len()),
            ("Pod", snapshot.references().pods().count()),
            ("managed", reconciler.live().len()),
        ];
        for (cache, objects) in caches {
            observer.report(&Report::Cached { cache, objects });
        }
        self.report_referrers(reconciler, observer);
    }

    fn report_referrers(&mut self, reconciler: &Reconciler, observer: &Arc<dyn Observer>) {
        let snapshot = reconciler.snapshot();
        let now: BTreeSet<String> = snapshot
            .revisions()
            .iter()
            .map(|revision| revision.name().to_owned())
            .collect();
        for revision in &now {
            let counts = Some(snapshot.references().counts(revision));
            observer.report(&Report::InUse { revision, counts });
        }
        for revision in self.revisions.difference(&now) {
            observer.report(&Report::InUse {
                revision,
                counts: None,
            });
        }
        self.revisions = now;
    }
}
