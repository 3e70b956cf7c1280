//! One claim of a proof with its measured figure.

use std::fmt;

use serde::Serialize;

/// A claim and its measurement.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Row {
    pub(crate) claim: String,
    /// The measured figure.
    pub(crate) figure: String,
    pub(crate) goal: String,
    /// Whether the row decides the exit code.
    pub(crate) kind: RowKind,
    /// Whether the goal is met.
    pub(crate) outcome: Outcome,
}

/// Effect of a row on the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum RowKind {
    /// A missed goal fails the proof.
    Correctness,
    /// A missed goal is reported.
    Performance,
}

/// Result of comparing a figure with its goal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Outcome {
    /// The goal is met.
    Met,
    /// The goal is missed.
    NotMet,
    /// The figure could not be measured.
    NotMeasured,
    /// The figure has no goal.
    Reported,
}

impl Row {
    /// Creates a correctness row.
    pub(crate) fn correct(claim: &str, figure: String, goal: &str, holds: bool) -> Self {
        Self {
            claim: claim.into(),
            figure,
            goal: goal.into(),
            kind: RowKind::Correctness,
            outcome: Outcome::from_bool(holds),
        }
    }

    /// Creates a performance row.
    pub(crate) fn fast(claim: &str, figure: String, goal: &str, holds: bool) -> Self {
        Self {
            kind: RowKind::Performance,
            ..Self::correct(claim, figure, goal, holds)
        }
    }

    /// Creates a row for a failed measurement; it does not pass.
    pub(crate) fn not_measured(claim: &str, goal: &str, kind: RowKind, error: &anyhow::Error) -> Self {
        let figure = format!("{error:#}").lines().next().unwrap_or_default().to_owned();
        Self {
            claim: claim.into(),
            figure,
            goal: goal.into(),
            kind,
            outcome: Outcome::NotMeasured,
        }
    }

    pub(super) fn cells(&self) -> Vec<String> {
        vec![
            self.claim.clone(),
            self.figure.clone(),
            self.goal.clone(),
            self.outcome.to_string(),
        ]
    }
}

impl Outcome {
    fn from_bool(holds: bool) -> Self {
        if holds { Self::Met } else { Self::NotMet }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Met => "met",
            Self::NotMet => "not met",
            Self::NotMeasured => "not measured",
            Self::Reported => "reported",
        })
    }
}
