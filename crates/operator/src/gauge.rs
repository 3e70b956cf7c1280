//! How full everything is: takes the reconciler now and then, tells sizes and who is in use.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::reconciler::Reconciler;
use crate::report::{Observer, Report};

/// Counting pods walks over them: not at every turn.
const PERIOD: Duration = Duration::from_secs(10);

/// What was told last.
#[derive(Debug, Default)]
pub(crate) struct Gauges {
    told: Option<Instant>,
    revisions: BTreeSet<String>,
}

impl Gauges {
    /// Tells how many wait; the rest if it was not told for a while.
    pub(crate) fn tell(&mut self, reconciler: &Reconciler, observer: &Arc<dyn Observer>) {
        observer.report(&Report::QueueDepth(reconciler.depth()));
        if self.told.is_some_and(|told| told.elapsed() < PERIOD) {
            return;
        }
        self.told = Some(Instant::now());
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
        self.tell_use(reconciler, observer);
    }

    fn tell_use(&mut self, reconciler: &Reconciler, observer: &Arc<dyn Observer>) {
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
