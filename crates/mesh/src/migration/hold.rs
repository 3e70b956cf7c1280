//! Determines whether a migration may start batches, and if not, the reason.

use mainstay_api::{Istio, MigrationState, Reason, WorkloadMigrationStatus};
use mainstay_catalog::Version;

use super::{MigrationIndex, MigrationSettings, SettingsError};
use crate::Snapshot;
use crate::planner::{is_serving, resolve_version};
use crate::snapshot::Source;

/// Sources that determine the state of a workload. If one of them is missing, workloads that must be
/// restarted are not counted, and the migration looks complete.
const SOURCES: [Source; 3] = [Source::Namespaces, Source::Pods, Source::Workloads];

/// Returns the first source of a migration that cannot be read.
pub(super) fn unreadable_source(snapshot: &Snapshot) -> Option<Source> {
    SOURCES
        .into_iter()
        .find(|source| snapshot.readable(*source).is_err())
}

/// Reason why no batch may start.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Hold {
    pub(super) reason: Reason,
    pub(super) message: String,
}

impl Hold {
    fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self {
            reason,
            message: message.into(),
        }
    }
}

/// The migration of one Istio.
pub(super) struct Migration<'a> {
    pub(super) istio: &'a Istio,
    pub(super) index: &'a MigrationIndex,
    /// The target revision.
    pub(super) target: &'a str,
    pub(super) settings: MigrationSettings,
    /// Reason why no batch may start, or `None` if batches may start.
    pub(super) hold: Option<Hold>,
}

impl<'a> Migration<'a> {
    /// Returns the migration of an Istio, or `None` if the Istio does not migrate workloads.
    pub(super) fn for_istio(snapshot: &'a Snapshot, istio: &'a Istio) -> Option<Self> {
        let settings = MigrationSettings::from_istio(istio)?;
        let target = snapshot.migration_target(istio.name())?;
        Some(Self {
            istio,
            index: snapshot.migration_index(istio.name())?,
            target,
            hold: check_may_start(snapshot, istio, &settings, target).err(),
            settings,
        })
    }

    /// Returns the recorded status if it describes a migration to this target.
    pub(super) fn written(&self) -> Option<&'a WorkloadMigrationStatus> {
        let written = self.istio.status.workload_migration.as_ref();
        written.filter(|written| written.target_revision == self.target)
    }

    /// Returns the recorded status if workloads may be restarted now. A batch must be in the recorded
    /// status before its workloads are restarted.
    pub(super) fn in_progress(&self, snapshot: &Snapshot) -> Option<&'a WorkloadMigrationStatus> {
        let written = self.written()?;
        let failed = self.settings.fail_fast && self.index.counts(snapshot.now).failed > 0;
        let may_restart = written.state == MigrationState::InProgress && self.hold.is_none() && !failed;
        may_restart.then_some(written)
    }
}

fn check_may_start(
    snapshot: &Snapshot,
    istio: &Istio,
    settings: &MigrationSettings,
    target: &str,
) -> Result<(), Hold> {
    if let Some(error) = &settings.error {
        return Err(Hold::new(Reason::InvalidMigrationSettings, error.to_string()));
    }
    if let Some(source) = unreadable_source(snapshot)
        && let Err(error) = snapshot.readable(source)
    {
        let message = format!("{}: {error}", source.name());
        return Err(Hold::new(Reason::WorkloadsUnreadable, message));
    }
    if let Some(maximum) = &settings.max_version {
        check_version(snapshot, istio, maximum)?;
    }
    if !snapshot.revisions().get(target).is_some_and(is_serving) {
        let message = format!("waiting for IstioRevision {target:?} to be ready");
        return Err(Hold::new(Reason::TargetRevisionNotReady, message));
    }
    if settings.paused {
        let message = "spec.updateStrategy.workloadMigration.paused is true";
        return Err(Hold::new(Reason::MigrationPaused, message));
    }
    Ok(())
}

/// Returns the reason why workloads must not move to an Istio's version, if there is one: the version is
/// above the maximum, or the maximum is invalid.
pub(crate) fn exceeded_maximum(snapshot: &Snapshot, istio: &Istio) -> Option<String> {
    let settings = MigrationSettings::from_istio(istio)?;
    if let Some(error @ SettingsError::MaxVersion(_)) = &settings.error {
        return Some(error.to_string());
    }
    let hold = check_version(snapshot, istio, settings.max_version.as_ref()?).err()?;
    Some(hold.message)
}

fn check_version(snapshot: &Snapshot, istio: &Istio, maximum: &Version) -> Result<(), Hold> {
    let version = resolve_version(snapshot, &istio.spec.version, String::new)
        .map_err(|error| Hold::new(Reason::InvalidMigrationSettings, error.to_string()))?;
    if is_allowed(&version, maximum) {
        return Ok(());
    }
    let message = format!("{version} is above batched.maxVersion {maximum}; workloads and managed tags stay");
    Err(Hold::new(Reason::VersionAboveMaximum, message))
}

/// Whether workloads may be migrated to `version`. The maximum is inclusive.
fn is_allowed(version: &Version, maximum: &Version) -> bool {
    version <= maximum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_maximum_version_is_inclusive() {
        for (new, maximum, expected) in [
            // Decision matrix of the proposal.
            ("1.24.5", "1.24.999", true),
            ("1.25.0", "1.24.999", false),
            ("1.26.0", "1.25.0", false),
            ("1.25.3", "1.26.0", true),
            // Examples in the field's description.
            ("1.24.999", "1.24.999", true),
            ("1.26.0", "1.26.0", true),
            ("1.26.1", "1.26.0", false),
            ("1.998.7", "1.999.0", true),
            ("2.0.0", "1.999.0", false),
            // A leading `v`, release candidates, and numbers that sort differently as text.
            ("1.25.0", "v1.25.0", true),
            ("1.10.0", "1.9.0", false),
            ("1.25.0", "1.25.0-rc.1", false),
            ("1.25.0-rc.1", "1.25.0", true),
        ] {
            let found = is_allowed(&new.parse().unwrap(), &maximum.parse().unwrap());
            assert_eq!(found, expected, "{new}, at most {maximum}");
        }
    }
}
