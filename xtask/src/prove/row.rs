//! One claim with its figure: data that a table, a file and an exit code are made from.

use std::fmt;

use serde::Serialize;

/// A claim and what was seen of it.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Row {
    /// What is claimed.
    pub(crate) claim: String,
    /// What was measured.
    pub(crate) figure: String,
    /// What was wanted.
    pub(crate) goal: String,
    /// Whether it decides the exit code.
    pub(crate) rank: Rank,
    /// Whether it holds.
    pub(crate) outcome: Outcome,
}

/// What a row decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Rank {
    /// It must hold.
    Correctness,
    /// It is reported.
    Performance,
}

/// Whether a claim holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Outcome {
    /// It was seen to hold.
    Met,
    /// It was seen not to.
    NotMet,
    /// It could not be seen.
    NotMeasured,
}

impl Row {
    /// A claim that must hold.
    pub(crate) fn correct(claim: &str, figure: String, goal: &str, holds: bool) -> Self {
        Self {
            claim: claim.into(),
            figure,
            goal: goal.into(),
            rank: Rank::Correctness,
            outcome: Outcome::of(holds),
        }
    }

    /// A figure with its goal.
    pub(crate) fn fast(claim: &str, figure: String, goal: &str, holds: bool) -> Self {
        Self {
            rank: Rank::Performance,
            ..Self::correct(claim, figure, goal, holds)
        }
    }

    /// A claim whose measurement broke: it does not pass, and says why.
    pub(crate) fn broken(claim: &str, goal: &str, rank: Rank, error: &anyhow::Error) -> Self {
        let figure = format!("{error:#}").lines().next().unwrap_or_default().to_owned();
        Self {
            claim: claim.into(),
            figure,
            goal: goal.into(),
            rank,
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
    fn of(holds: bool) -> Self {
        if holds { Self::Met } else { Self::NotMet }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Met => "met",
            Self::NotMet => "not met",
            Self::NotMeasured => "not measured",
        })
    }
}
