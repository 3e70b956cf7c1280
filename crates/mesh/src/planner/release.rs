//! Plans releases: installs and uninstalls what differs from the requested releases.

use std::sync::Arc;

use mainstay_api::{Kind, Reason, Resource, Values};

use super::builder::PlanBuilder;
use crate::plan::{Action, Release, ReleaseKey};
use crate::snapshot::ReleaseFact;
use crate::{Library, ReconcileError, Resolution, Snapshot};

/// Returns the key of a release of an object.
pub(super) fn key<S: Kind>(object: &Resource<S>, namespace: &str, name: String) -> ReleaseKey {
    ReleaseKey {
        owner: object.metadata.uid.clone(),
        namespace: namespace.to_owned(),
        name,
    }
}

/// A chart of a version.
#[derive(Clone, Copy)]
pub(super) struct Chart<'a> {
    pub(super) name: &'static str,
    pub(super) version: &'a str,
}

/// Creates a release of an object.
pub(super) fn release<S: Kind>(
    object: &Resource<S>,
    key: ReleaseKey,
    chart: Chart<'_>,
    values: Values,
) -> Release {
    Release {
        key,
        chart: chart.name,
        version: chart.version.to_owned(),
        values,
        owner: object.owner_reference(),
    }
}

/// Uninstalls obsolete releases, then installs outdated ones. `former` are releases that may exist although
/// they are not recorded.
pub(super) fn settle(
    snapshot: &Snapshot,
    builder: &mut PlanBuilder<'_>,
    wanted: Vec<Release>,
    former: &[ReleaseKey],
) {
    for key in obsolete(snapshot, &builder.object().uid, &wanted, former) {
        builder.add(Action::Uninstall(key), Reason::ReleaseObsolete);
    }
    for release in wanted {
        if let Some(reason) = outdated(snapshot, &release) {
            builder.add(Action::Install(Arc::new(release)), reason);
        }
    }
}

fn obsolete(snapshot: &Snapshot, owner: &str, wanted: &[Release], former: &[ReleaseKey]) -> Vec<ReleaseKey> {
    let known = snapshot.releases_of(owner).map(|(key, _)| key);
    let mut left: Vec<ReleaseKey> = known.chain(former).cloned().collect();
    left.sort();
    left.dedup();
    left.retain(|key| snapshot.release(key) != Some(&ReleaseFact::Absent));
    left.retain(|key| wanted.iter().all(|release| release.key != *key));
    left
}

/// Returns why a release must be installed, if it must.
fn outdated(snapshot: &Snapshot, release: &Release) -> Option<Reason> {
    match snapshot.release(&release.key) {
        None | Some(ReleaseFact::Absent | ReleaseFact::Present) => Some(Reason::ReleaseMissing),
        Some(ReleaseFact::Drifted) => Some(Reason::ReleaseDrifted),
        Some(ReleaseFact::Applied(applied)) => (**applied != *release).then_some(Reason::ReleaseOutdated),
    }
}

/// Checks that the charts of a version are available. A revision has a version, never an alias.
pub(super) fn check_charts(
    library: &Library,
    chart: &'static str,
    version: &str,
) -> Result<(), ReconcileError> {
    match library.resolve(version) {
        Some(Resolution::Installable(found)) if found.name() == version => Ok(()),
        _ => Err(ReconcileError::NoCharts {
            chart,
            version: version.to_owned(),
        }),
    }
}
