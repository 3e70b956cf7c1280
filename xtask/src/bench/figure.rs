//! Measured figures with their spread, the peer's figure from the same run, and the goal.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::prove::Outcome;

/// Distribution of a quantity over all runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Sample {
    /// Number of runs.
    pub(crate) runs: usize,
    /// Median.
    pub(crate) median: f64,
    /// 10th percentile.
    pub(crate) p10: f64,
    /// 90th percentile.
    pub(crate) p90: f64,
}

impl Sample {
    /// Computes the distribution of the values of all runs.
    pub(crate) fn from_runs(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        let at = |tenths: usize| {
            let last = values.len().saturating_sub(1);
            values.get((last * tenths + 5) / 10).copied().unwrap_or_default()
        };
        Self {
            runs: values.len(),
            median: at(5),
            p10: at(1),
            p90: at(9),
        }
    }

    /// Formats the median, and the spread of several runs.
    fn shown(self, unit: &str) -> String {
        let median = format!("{} {unit}", rounded(self.median));
        if self.runs == 1 {
            return median;
        }
        format!("{median} ({}–{})", rounded(self.p10), rounded(self.p90))
    }
}

/// Formats a value with three significant digits.
fn rounded(value: f64) -> String {
    match value {
        value if value >= 100.0 => format!("{value:.0}"),
        value if value >= 10.0 => format!("{value:.1}"),
        value => format!("{value:.2}"),
    }
}

/// Figure of the peer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Peer {
    /// Name of the peer.
    pub(crate) name: String,
    /// Runs of the peer, which alternate with those of Mainstay.
    pub(crate) sample: Sample,
}

/// Target of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Goal {
    /// No target: the figure is only reported.
    None,
    /// The peer's value is at least this multiple of ours.
    Ratio(f64),
    /// Our value is at most this.
    AtMost(f64),
    /// Our value is at least this.
    AtLeast(f64),
}

/// A row of the bench.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Figure {
    /// Processed input, such as a chart.
    pub(crate) subject: String,
    /// Measured quantity, such as `wall time`.
    pub(crate) quantity: String,
    /// Unit, such as `ms` or `MiB`.
    pub(crate) unit: String,
    /// Runs of Mainstay.
    pub(crate) ours: Sample,
    /// Figure of the peer from the same run, if there is a peer.
    pub(crate) peer: Option<Peer>,
    pub(crate) goal: Goal,
}

impl Figure {
    /// Returns subject and quantity.
    pub(crate) fn name(&self) -> String {
        format!("{}: {}", self.subject, self.quantity)
    }

    /// Returns the peer's median divided by ours.
    pub(crate) fn ratio(&self) -> Option<f64> {
        let peer = self.peer.as_ref()?;
        (self.ours.median > 0.0).then(|| peer.sample.median / self.ours.median)
    }

    /// Formats the distribution of our runs.
    pub(crate) fn ours(&self) -> String {
        self.ours.shown(&self.unit)
    }

    /// Formats the distribution of the peer's runs; empty without a peer.
    pub(crate) fn theirs(&self) -> String {
        let shown = |peer: &Peer| peer.sample.shown(&self.unit);
        self.peer.as_ref().map(shown).unwrap_or_default()
    }

    /// Formats the ratio; empty without a peer.
    pub(crate) fn shown_ratio(&self) -> String {
        self.ratio()
            .map(|ratio| format!("{ratio:.1}×"))
            .unwrap_or_default()
    }

    /// Formats our figure, the peer's figure and the ratio.
    pub(crate) fn text(&self) -> String {
        match &self.peer {
            None => self.ours(),
            Some(peer) => format!(
                "{}, {} {}: {}",
                self.ours(),
                peer.name,
                self.theirs(),
                self.shown_ratio()
            ),
        }
    }

    /// Compares the figure with its goal. Without a peer, a ratio is not measured.
    pub(crate) fn outcome(&self) -> Outcome {
        let is_met = match self.goal {
            Goal::None => return Outcome::Reported,
            Goal::Ratio(least) => self.ratio().map(|ratio| ratio >= least),
            Goal::AtMost(most) => Some(self.ours.median <= most),
            Goal::AtLeast(least) => Some(self.ours.median >= least),
        };
        match is_met {
            Some(true) => Outcome::Met,
            Some(false) => Outcome::NotMet,
            None => Outcome::NotMeasured,
        }
    }
}

impl fmt::Display for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("–"),
            Self::Ratio(least) => write!(f, "≥ {least}×"),
            Self::AtMost(most) => write!(f, "≤ {most}"),
            Self::AtLeast(least) => write!(f, "≥ {least}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(goal: Goal) -> Figure {
        Figure {
            subject: "a".into(),
            quantity: "wall time".into(),
            unit: "ms".into(),
            ours: Sample::from_runs(vec![2.0]),
            peer: Some(Peer {
                name: "helm".into(),
                sample: Sample::from_runs(vec![20.0]),
            }),
            goal,
        }
    }

    #[test]
    fn a_sample_has_median_and_spread() {
        let sample = Sample::from_runs((0..=20).rev().map(f64::from).collect());
        assert_eq!(
            (sample.runs, sample.p10, sample.median, sample.p90),
            (21, 2.0, 10.0, 18.0)
        );
        assert_eq!(sample.shown("ms"), "10.0 ms (2.00–18.0)");
        assert_eq!(Sample::from_runs(vec![3.0]).shown("ms"), "3.00 ms");
        assert_eq!(Sample::from_runs(vec![3.0; 2]).shown("ms"), "3.00 ms (3.00–3.00)");
        assert_eq!(Sample::from_runs(Vec::new()), Sample::default());
    }

    #[test]
    fn goals_compare_with_the_peer_or_a_value() {
        let outcome = |goal| figure(goal).outcome();
        for met in [Goal::Ratio(10.0), Goal::AtMost(2.0), Goal::AtLeast(2.0)] {
            assert_eq!(outcome(met), Outcome::Met);
        }
        for missed in [Goal::Ratio(10.1), Goal::AtMost(1.9), Goal::AtLeast(2.1)] {
            assert_eq!(outcome(missed), Outcome::NotMet);
        }
        assert_eq!(outcome(Goal::None), Outcome::Reported);
        assert_eq!(figure(Goal::None).text(), "2.00 ms, helm 20.0 ms: 10.0×");
    }

    #[test]
    fn a_ratio_without_a_peer_is_not_measured() {
        let alone = Figure {
            peer: None,
            ..figure(Goal::Ratio(1.0))
        };
        assert_eq!(alone.outcome(), Outcome::NotMeasured);
        assert_eq!(alone.text(), "2.00 ms");
    }
}
