//! On what terms workloads move, and what holds them back: takes an Istio, gives the terms or the reason why nothing starts.

use jiff::SignedDuration;
use mainstay_api::{
    BatchedMigration, FailurePolicy, GoDuration, Istio, MigrationState, Reason, WorkloadMigration,
    WorkloadMigrationStatus,
};
use mainstay_catalog::Version;

use super::readiness::is_serving;
use super::target::version;
use crate::Snapshot;
use crate::migration::MigrationIndex;
use crate::snapshot::{Source, wanted_migration};
use crate::workload::WorkloadKind;

/// How long to wait between two batches unless told otherwise.
const DEFAULT_DELAY: SignedDuration = SignedDuration::from_secs(30);

/// How workloads move.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Terms {
    /// How many at a time.
    pub(super) size: usize,
    /// How long to wait between two batches.
    pub(super) delay: SignedDuration,
    /// Whether a failure stops the next batch.
    pub(super) fail_fast: bool,
}

/// Why nothing starts.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Hold {
    /// In one word.
    pub(super) reason: Reason,
    /// In a sentence.
    pub(super) message: String,
    /// How it would go, if that can be understood.
    pub(super) terms: Option<Terms>,
}

impl Hold {
    fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self {
            reason,
            message: message.into(),
            terms: None,
        }
    }
}

/// One migration, with everything a decision about it takes.
pub(super) struct Migration<'a> {
    pub(super) istio: &'a Istio,
    pub(super) index: &'a MigrationIndex,
    /// Where workloads go.
    pub(super) target: &'a str,
    /// How, or why nothing starts.
    pub(super) terms: Result<Terms, Hold>,
}

impl<'a> Migration<'a> {
    /// The migration of an Istio; nothing if it moves no workloads.
    pub(super) fn of(snapshot: &'a Snapshot, istio: &'a Istio) -> Option<Self> {
        let wanted = wanted_migration(istio)?;
        let target = snapshot.migration_target(istio.name())?;
        Some(Self {
            istio,
            index: snapshot.migration_index(istio.name())?,
            target,
            terms: terms(snapshot, istio, (wanted, target)),
        })
    }

    /// What was written of this very migration.
    pub(super) fn written(&self) -> Option<&'a WorkloadMigrationStatus> {
        let written = self.istio.status.workload_migration.as_ref();
        written.filter(|written| written.target_revision == self.target)
    }

    /// The terms, if it has begun and may go on: what starts then was announced in the status first.
    pub(super) fn under_way(&self, snapshot: &Snapshot) -> Option<(&Terms, &'a WorkloadMigrationStatus)> {
        let terms = self.terms.as_ref().ok()?;
        let written = self
            .written()
            .filter(|written| written.state == MigrationState::InProgress)?;
        let stopped = terms.fail_fast && self.index.counts(snapshot.now).failed > 0;
        (!stopped).then_some((terms, written))
    }
}

fn terms(
    snapshot: &Snapshot,
    istio: &Istio,
    (wanted, target): (&WorkloadMigration, &str),
) -> Result<Terms, Hold> {
    let settings = read(wanted).map_err(|message| Hold::new(Reason::InvalidMigrationSettings, message))?;
    match open(snapshot, istio, (wanted, target)) {
        Ok(()) => Ok(settings),
        Err(hold) => Err(Hold {
            terms: Some(settings),
            ..hold
        }),
    }
}

/// Whether anything may start.
fn open(
    snapshot: &Snapshot,
    istio: &Istio,
    (wanted, target): (&WorkloadMigration, &str),
) -> Result<(), Hold> {
    if let Err(error) = snapshot.readable(Source::Workloads) {
        let message = format!("workloads: {error}");
        return Err(Hold::new(Reason::WorkloadsUnreadable, message));
    }
    within_maximum(snapshot, istio, wanted)?;
    if !snapshot.revisions().get(target).is_some_and(is_serving) {
        let message = format!("waiting for IstioRevision {target:?} to be ready");
        return Err(Hold::new(Reason::TargetRevisionNotReady, message));
    }
    if wanted.paused {
        let message = "spec.updateStrategy.workloadMigration.paused is true";
        return Err(Hold::new(Reason::MigrationPaused, message));
    }
    Ok(())
}

/// The settings as numbers. Nothing moves on terms nobody understands.
fn read(wanted: &WorkloadMigration) -> Result<Terms, String> {
    let unset = BatchedMigration::default();
    let batched = wanted.batched.as_ref().unwrap_or(&unset);
    let size = batched.batch_size.unwrap_or(1);
    if size < 1 {
        return Err(format!("batched.batchSize is {size}, and must be at least 1"));
    }
    let span =
        |field: &str, text: Option<&GoDuration>, default: SignedDuration| match text.map(GoDuration::span) {
            None => Ok(default),
            Some(Ok(span)) if !span.is_negative() => Ok(span),
            Some(Ok(_)) => Err(format!("batched.{field} must not be negative")),
            Some(Err(error)) => Err(format!("batched.{field}: {error}")),
        };
    span(
        "readinessTimeout",
        batched.readiness_timeout.as_ref(),
        SignedDuration::ZERO,
    )?;
    if let Some(unknown) = wanted
        .kinds
        .iter()
        .find(|kind| WorkloadKind::from_name(kind).is_none())
    {
        return Err(format!(
            "kinds: {unknown:?} is none of Deployment, StatefulSet, DaemonSet"
        ));
    }
    Ok(Terms {
        size: usize::try_from(size).unwrap_or(1),
        delay: span(
            "delayBetweenBatches",
            batched.delay_between_batches.as_ref(),
            DEFAULT_DELAY,
        )?,
        fail_fast: wanted.failure_policy == Some(FailurePolicy::FailFast),
    })
}

/// Workloads move only to versions up to the highest allowed one, itself included.
fn within_maximum(snapshot: &Snapshot, istio: &Istio, wanted: &WorkloadMigration) -> Result<(), Hold> {
    let maximum = wanted
        .batched
        .as_ref()
        .and_then(|batched| batched.max_version.as_deref());
    let Some(maximum) = maximum else {
        return Ok(());
    };
    let invalid = |message: String| Hold::new(Reason::InvalidMigrationSettings, message);
    let maximum = highest(maximum).map_err(invalid)?;
    let version = version(snapshot, &istio.spec.version, String::new)
        .map_err(|trouble| invalid(trouble.to_string()))?;
    allowed(&version, &maximum).map_err(|message| Hold::new(Reason::VersionAboveMaximum, message))
}

fn highest(text: &str) -> Result<Version, String> {
    text.parse()
        .map_err(|_| format!("batched.maxVersion: {text:?} is no version"))
}

fn allowed(version: &Version, maximum: &Version) -> Result<(), String> {
    let above = format!("{version} is above batched.maxVersion {maximum}: workloads stay where they are");
    (version <= maximum).then_some(()).ok_or(above)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether workloads move to a version; an error where nobody understands the highest.
    fn moves_to(version: &str, maximum: Option<&str>) -> Result<bool, String> {
        let version = version.parse().unwrap();
        maximum.map_or(Ok(true), |text| Ok(allowed(&version, &highest(text)?).is_ok()))
    }

    #[test]
    fn the_decision_matrix_row_by_row() {
        for (old, new, maximum, moves) in [
            ("1.24.1", "1.24.2", None, true),
            ("1.24.1", "1.25.0", None, true),
            ("1.24.1", "2.0.0", None, true),
            ("1.24.1", "1.24.5", Some("1.24.999"), true),
            ("1.24.1", "1.25.0", Some("1.24.999"), false),
            ("1.24.1", "1.26.0", Some("1.25.0"), false),
            ("1.24.1", "1.25.3", Some("1.26.0"), true),
            // The examples in the words of the field.
            ("1.24.1", "1.24.999", Some("1.24.999"), true),
            ("1.25.0", "1.26.0", Some("1.26.0"), true),
            ("1.25.0", "1.26.1", Some("1.26.0"), false),
            ("1.25.0", "1.998.7", Some("1.999.0"), true),
            ("1.25.0", "2.0.0", Some("1.999.0"), false),
            // Ours: spelling, candidates, and numbers that are no text.
            ("1.24.1", "1.25.0", Some("v1.25.0"), true),
            ("1.24.1", "1.10.0", Some("1.9.0"), false),
            ("1.24.1", "1.25.0", Some("1.25.0-rc.1"), false),
            ("1.24.1", "1.25.0-rc.1", Some("1.25.0"), true),
        ] {
            assert_eq!(
                moves_to(new, maximum),
                Ok(moves),
                "{old} to {new}, at most {maximum:?}"
            );
        }
    }

    #[test]
    fn a_highest_version_that_is_none_is_an_error() {
        for text in [
            "",
            "newest",
            "1.24",
            "1.24.x",
            "1.24.999.1",
            "1.24.-1",
            "v1.26-latest",
        ] {
            let expected = format!("batched.maxVersion: {text:?} is no version");
            assert_eq!(moves_to("1.24.2", Some(text)), Err(expected));
        }
    }
}
