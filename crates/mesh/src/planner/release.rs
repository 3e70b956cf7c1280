//! Plans releases: installs missing or outdated ones, and uninstalls obsolete ones.

use std::sync::Arc;

use mainstay_api::{Kind, Reason, Resource, Values};

use super::builder::PlanBuilder;
use crate::plan::{Action, Release, ReleaseKey};
use crate::snapshot::ReleaseFact;
use crate::{Library, ReconcileError, Resolution, Snapshot};

/// Returns the key of a release of an object.
pub(super) fn new_release_key<S: Kind>(object: &Resource<S>, namespace: &str, name: String) -> ReleaseKey {
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
pub(super) fn new_release<S: Kind>(
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

/// Uninstalls obsolete releases, then installs missing or outdated ones. `former` contains releases that
/// may exist although they are not recorded.
pub(super) fn add_release_steps(
    snapshot: &Snapshot,
    builder: &mut PlanBuilder<'_>,
    desired: Vec<Release>,
    former: &[ReleaseKey],
) {
    for key in obsolete_releases(snapshot, &builder.object().uid, &desired, former) {
        builder.add(Action::Uninstall(key), Reason::ReleaseObsolete);
    }
    for release in desired {
        if let Some(reason) = install_reason(snapshot, &release) {
            builder.add(Action::Install(Arc::new(release)), reason);
        }
    }
}

fn obsolete_releases(
    snapshot: &Snapshot,
    owner: &str,
    desired: &[Release],
    former: &[ReleaseKey],
) -> Vec<ReleaseKey> {
    let known = snapshot.releases_of(owner).map(|(key, _)| key);
    let mut left: Vec<ReleaseKey> = known.chain(former).cloned().collect();
    left.sort();
    left.dedup();
    left.retain(|key| snapshot.release(key) != Some(&ReleaseFact::Absent));
    left.retain(|key| desired.iter().all(|release| release.key != *key));
    left
}

/// Returns the reason to install a release, or `None` if it is up to date.
fn install_reason(snapshot: &Snapshot, release: &Release) -> Option<Reason> {
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
