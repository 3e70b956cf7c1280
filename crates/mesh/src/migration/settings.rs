//! Parses `spec.updateStrategy.workloadMigration`. No other module reads these fields.

use std::collections::BTreeSet;

use jiff::SignedDuration;
use mainstay_api::{
    BatchedMigration, DurationError, FailurePolicy, GoDuration, Istio, MigrationStrategy, WorkloadMigration,
};
use mainstay_catalog::Version;

use crate::workload::WorkloadKind;

/// Default of `batched.readinessTimeout`.
const DEFAULT_READINESS_TIMEOUT: SignedDuration = SignedDuration::from_mins(5);
/// Default of `batched.delayBetweenBatches`.
const DEFAULT_DELAY_BETWEEN_BATCHES: SignedDuration = SignedDuration::from_secs(30);

/// Settings of a workload migration, with defaults applied.
///
/// An invalid field is replaced by its default, and [`error`](Self::error) names it. No workload is
/// restarted while there is an error.
#[derive(Clone, Debug, PartialEq)]
pub struct MigrationSettings {
    /// Maximum number of workloads that are restarted at the same time. At least 1.
    pub batch_size: usize,
    /// Time between the end of a batch and the start of the next one. `0s` means no delay.
    pub delay_between_batches: SignedDuration,
    /// Maximum time for a workload to become ready after its restart. Always positive: `0s` means the
    /// default, because a timeout of zero would fail every workload at once, and a Go client cannot tell zero
    /// from unset.
    pub readiness_timeout: SignedDuration,
    /// Highest version that workloads are migrated to, inclusive.
    pub max_version: Option<Version>,
    /// Kinds of workloads that are migrated. Default: Deployments.
    pub kinds: BTreeSet<WorkloadKind>,
    /// Whether no further batch starts after a failure.
    pub fail_fast: bool,
    /// Whether no further batch starts until this is reset.
    pub paused: bool,
    /// The first invalid field.
    pub error: Option<SettingsError>,
}

/// An invalid field of the settings.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// `batched.batchSize` is below 1.
    #[error("batched.batchSize is {0}, must be at least 1")]
    BatchSize(i32),
    /// A field is not a duration.
    #[error("batched.{field}: {error}")]
    Duration {
        /// Name of the field.
        field: &'static str,
        /// The parser's error.
        error: DurationError,
    },
    /// A field is a negative duration.
    #[error("batched.{field} must not be negative")]
    NegativeDuration {
        /// Name of the field.
        field: &'static str,
    },
    /// `kinds` contains an unknown kind.
    #[error("kinds: {0:?} is not one of Deployment, StatefulSet, DaemonSet")]
    UnknownKind(String),
    /// `batched.maxVersion` is not a version.
    #[error("batched.maxVersion: {0:?} is not a version")]
    MaxVersion(String),
}

impl Default for MigrationSettings {
    fn default() -> Self {
        Self::from_spec(&WorkloadMigration::default())
    }
}

impl MigrationSettings {
    /// Returns the settings of an Istio, or `None` if it does not request a migration.
    #[must_use]
    pub fn from_istio(istio: &Istio) -> Option<Self> {
        batched_spec(istio).map(Self::from_spec)
    }

    fn from_spec(spec: &WorkloadMigration) -> Self {
        let unset = BatchedMigration::default();
        let batched = spec.batched.as_ref().unwrap_or(&unset);
        let mut error = None;
        // The first error in this order is reported.
        let batch_size = unwrap_or_record(parse_batch_size(batched.batch_size), 1, &mut error);
        let readiness_timeout = parse_duration("readinessTimeout", batched.readiness_timeout.as_ref());
        let readiness_timeout = unwrap_or_record(readiness_timeout, None, &mut error);
        let kinds = parse_kinds(&spec.kinds, &mut error);
        let delay = parse_duration("delayBetweenBatches", batched.delay_between_batches.as_ref());
        let delay = unwrap_or_record(delay, None, &mut error);
        let max_version = unwrap_or_record(
            parse_max_version(batched.max_version.as_deref()),
            None,
            &mut error,
        );
        Self {
            batch_size,
            delay_between_batches: delay.unwrap_or(DEFAULT_DELAY_BETWEEN_BATCHES),
            readiness_timeout: readiness_timeout
                .filter(SignedDuration::is_positive)
                .unwrap_or(DEFAULT_READINESS_TIMEOUT),
            max_version,
            kinds,
            fail_fast: spec.failure_policy == Some(FailurePolicy::FailFast),
            paused: spec.paused,
            error,
        }
    }
}

/// Whether an Istio requests that its workloads are migrated.
#[must_use]
pub fn requests_migration(istio: &Istio) -> bool {
    batched_spec(istio).is_some()
}

fn batched_spec(istio: &Istio) -> Option<&WorkloadMigration> {
    let spec = istio.spec.update_strategy.as_ref()?.workload_migration.as_ref()?;
    (spec.strategy == Some(MigrationStrategy::Batched)).then_some(spec)
}

/// Parses the annotation `sailoperator.io/readiness-timeout` of a workload. Returns `None` unless the value
/// is a positive duration; the timeout of the migration applies in that case.
#[must_use]
pub fn parse_readiness_timeout(annotation: &str) -> Option<SignedDuration> {
    let timeout = GoDuration(annotation.to_owned()).span().ok()?;
    timeout.is_positive().then_some(timeout)
}

/// Whether the annotation is a duration that is not negative. `0s` means the timeout of the migration.
pub(crate) fn is_readiness_timeout(annotation: &str) -> bool {
    let timeout = GoDuration(annotation.to_owned()).span();
    timeout.is_ok_and(|timeout| !timeout.is_negative())
}

fn unwrap_or_record<T>(parsed: Result<T, SettingsError>, default: T, error: &mut Option<SettingsError>) -> T {
    parsed.unwrap_or_else(|found| {
        error.get_or_insert(found);
        default
    })
}

fn parse_batch_size(field: Option<i32>) -> Result<usize, SettingsError> {
    let size = field.unwrap_or(1);
    let valid = usize::try_from(size).ok().filter(|size| *size > 0);
    valid.ok_or(SettingsError::BatchSize(size))
}

fn parse_duration(
    field: &'static str,
    text: Option<&GoDuration>,
) -> Result<Option<SignedDuration>, SettingsError> {
    match text.map(GoDuration::span).transpose() {
        Ok(Some(span)) if span.is_negative() => Err(SettingsError::NegativeDuration { field }),
        Ok(span) => Ok(span),
        Err(error) => Err(SettingsError::Duration { field, error }),
    }
}

fn parse_kinds(names: &[String], error: &mut Option<SettingsError>) -> BTreeSet<WorkloadKind> {
    if names.is_empty() {
        return BTreeSet::from([WorkloadKind::Deployment]);
    }
    let mut kinds = BTreeSet::new();
    for name in names {
        match WorkloadKind::from_name(name) {
            Some(kind) => drop(kinds.insert(kind)),
            None => drop(error.get_or_insert_with(|| SettingsError::UnknownKind(name.clone()))),
        }
    }
    kinds
}

fn parse_max_version(text: Option<&str>) -> Result<Option<Version>, SettingsError> {
    let parse = |text: &str| {
        text.parse()
            .map_err(|_| SettingsError::MaxVersion(text.to_owned()))
    };
    text.map(parse).transpose()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn parse(spec: Value) -> MigrationSettings {
        MigrationSettings::from_spec(&serde_json::from_value(spec).unwrap())
    }

    fn batched(field: &str, value: &Value) -> MigrationSettings {
        parse(json!({"batched": {field: value}}))
    }

    #[test]
    fn durations_are_parsed_with_defaults() {
        // Value of the field, expected readiness timeout and delay between batches, and expected timeout of
        // a workload with this value in its annotation.
        for (text, timeout, delay, annotation) in [
            (None, 300, 30, None),
            (Some("0s"), 300, 0, None),
            (Some("0"), 300, 0, None),
            (Some("1s"), 1, 1, Some(1)),
            (Some("10m"), 600, 600, Some(600)),
            (Some("1h30m"), 5400, 5400, Some(5400)),
        ] {
            let field = json!(text);
            let found = batched("readinessTimeout", &field);
            assert_eq!(
                (found.readiness_timeout.as_secs(), found.error),
                (timeout, None),
                "{text:?}"
            );
            let found = batched("delayBetweenBatches", &field);
            assert_eq!(
                (found.delay_between_batches.as_secs(), found.error),
                (delay, None),
                "{text:?}"
            );
            let own = text.and_then(parse_readiness_timeout);
            assert_eq!(own.map(|own| own.as_secs()), annotation, "{text:?}");
        }
    }

    #[test]
    fn invalid_fields_are_reported_and_have_their_default() {
        let check = |spec: Value, expected: &str| {
            let found = parse(spec);
            assert_eq!(
                found.error.as_ref().map(ToString::to_string).as_deref(),
                Some(expected)
            );
            let defaults = MigrationSettings {
                error: found.error.clone(),
                ..MigrationSettings::default()
            };
            assert_eq!(found, defaults);
        };
        for (size, text) in [(0, "0"), (-3, "-3")] {
            let expected = format!("batched.batchSize is {text}, must be at least 1");
            check(json!({"batched": {"batchSize": size}}), &expected);
        }
        for field in ["readinessTimeout", "delayBetweenBatches"] {
            let expected = format!("batched.{field} must not be negative");
            check(json!({"batched": {field: "-1ns"}}), &expected);
            let expected = format!("batched.{field}: time: invalid duration \"soon\"");
            check(json!({"batched": {field: "soon"}}), &expected);
        }
        for text in [
            "",
            "newest",
            "1.24",
            "1.24.x",
            "1.24.999.1",
            "1.24.-1",
            "v1.26-latest",
        ] {
            let expected = format!("batched.maxVersion: {text:?} is not a version");
            check(json!({"batched": {"maxVersion": text}}), &expected);
        }
        for text in ["soon", "-5m", ""] {
            assert_eq!(parse_readiness_timeout(text), None, "{text}");
        }
    }

    #[test]
    fn the_first_invalid_field_is_reported_and_valid_fields_are_kept() {
        let found = parse(json!({
            "kinds": ["Job", "DaemonSet"],
            "batched": {"batchSize": 0, "readinessTimeout": "10m", "delayBetweenBatches": "-1s"},
        }));
        assert_eq!(found.error, Some(SettingsError::BatchSize(0)));
        assert_eq!(found.readiness_timeout, SignedDuration::from_mins(10));
        assert_eq!(found.kinds, BTreeSet::from([WorkloadKind::DaemonSet]));
    }

    #[test]
    fn kinds_are_deployments_unless_set() {
        let check = |names: Value, expected: &[WorkloadKind]| {
            let found = parse(json!({"kinds": names}));
            assert_eq!(found.kinds, expected.iter().copied().collect(), "{names}");
            assert_eq!(found.error, None, "{names}");
        };
        check(json!([]), &[WorkloadKind::Deployment]);
        check(json!(["StatefulSet"]), &[WorkloadKind::StatefulSet]);
        check(
            json!(["DaemonSet", "Deployment"]),
            &[WorkloadKind::Deployment, WorkloadKind::DaemonSet],
        );
        let unknown = parse(json!({"kinds": ["Job"]})).error;
        let expected = "kinds: \"Job\" is not one of Deployment, StatefulSet, DaemonSet";
        assert_eq!(unknown.map(|error| error.to_string()).as_deref(), Some(expected));
    }

    #[test]
    fn only_the_batched_strategy_requests_a_migration() {
        let check = |strategy: Value, expected: bool| {
            let istio = json!({"metadata": {"name": "default"}, "spec": {"version": "v1.29.1", "namespace": "x",
                "updateStrategy": {"type": "RevisionBased", "workloadMigration": strategy}}});
            let istio: Istio = serde_json::from_value(istio).unwrap();
            assert_eq!(requests_migration(&istio), expected, "{strategy}");
            assert_eq!(
                MigrationSettings::from_istio(&istio).is_some(),
                expected,
                "{strategy}"
            );
        };
        check(Value::Null, false);
        check(json!({}), false);
        check(json!({"paused": true}), false);
        check(json!({"strategy": "Batched"}), true);
    }
}
