//! How full everything is: takes the brain now and then, tells sizes and who is in use.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::brain::Brain;
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
    pub(crate) fn tell(&mut self, brain: &Brain, observer: &Arc<dyn Observer>) {
        observer.note(&Report::Queued(brain.depth()));
        if self.told.is_some_and(|told| told.elapsed() < PERIOD) {
            return;
        }
        self.told = Some(Instant::now());
        let snapshot = brain.snapshot();
        let caches = [
            ("Istio", snapshot.istios().len()),
            ("IstioRevision", snapshot.revisions().len()),
            ("IstioRevisionTag", snapshot.tags().len()),
            ("IstioCNI", snapshot.cnis().len()),
            ("ZTunnel", snapshot.ztunnels().len()),
            ("Pod", snapshot.references().pods().count()),
            ("managed", brain.live().len()),
        ];
        for (cache, objects) in caches {
            observer.note(&Report::Cached { cache, objects });
        }
        self.tell_use(brain, observer);
    }

    fn tell_use(&mut self, brain: &Brain, observer: &Arc<dyn Observer>) {
        let snapshot = brain.snapshot();
        let now: BTreeSet<String> = snapshot
            .revisions()
            .iter()
            .map(|revision| revision.name().to_owned())
            .collect();
        for revision in &now {
            let counts = Some(snapshot.references().counts(revision));
            observer.note(&Report::InUse { revision, counts });
        }
        for revision in self.revisions.difference(&now) {
            observer.note(&Report::InUse {
                revision,
                counts: None,
            });
        }
        self.revisions = now;
    }
}
