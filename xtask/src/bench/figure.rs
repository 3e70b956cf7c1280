//! Measured figures with their spread, the peer's figure from the same run, and the goal.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Distribution of a quantity over all runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Sample {
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
            median: at(5),
            p10: at(1),
            p90: at(9),
        }
    }

    fn shown(self, unit: &str) -> String {
        let Self { median, p10, p90 } = self;
        if p10.total_cmp(&p90).is_eq() {
            return format!("{} {unit}", rounded(median));
        }
        format!("{} {unit} ({}–{})", rounded(median), rounded(p10), rounded(p90))
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

    /// Whether the goal is met.
    pub(crate) fn met(&self) -> bool {
        match self.goal {
            Goal::None => true,
            Goal::Ratio(least) => self.ratio().is_some_and(|ratio| ratio >= least),
            Goal::AtMost(most) => self.ours.median <= most,
            Goal::AtLeast(least) => self.ours.median >= least,
        }
    }

    /// Returns `met`, `not met`, or nothing without a goal.
    pub(crate) fn outcome(&self) -> &'static str {
        match (self.goal, self.met()) {
            (Goal::None, _) => "",
            (_, true) => "met",
            (_, false) => "not met",
        }
    }
}

impl fmt::Display for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("reported"),
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
        let sample = |median| Sample {
            median,
            p10: median,
            p90: median,
        };
        Figure {
            subject: "a".into(),
            quantity: "wall time".into(),
            unit: "ms".into(),
            ours: sample(2.0),
            peer: Some(Peer {
                name: "helm".into(),
                sample: sample(20.0),
            }),
            goal,
        }
    }

    #[test]
    fn a_sample_has_median_and_spread() {
        let sample = Sample::from_runs((0..=20).rev().map(f64::from).collect());
        assert_eq!((sample.p10, sample.median, sample.p90), (2.0, 10.0, 18.0));
        assert_eq!(sample.shown("ms"), "10.0 ms (2.00–18.0)");
        assert_eq!(Sample::from_runs(vec![3.0]).shown("ms"), "3.00 ms");
        assert_eq!(Sample::from_runs(Vec::new()), Sample::default());
    }

    #[test]
    fn goals_compare_with_the_peer_or_a_value() {
        let met = |goal| figure(goal).met();
        assert!(
            met(Goal::None) && met(Goal::Ratio(10.0)) && met(Goal::AtMost(2.0)) && met(Goal::AtLeast(2.0))
        );
        assert!(!met(Goal::Ratio(10.1)) && !met(Goal::AtMost(1.9)) && !met(Goal::AtLeast(2.1)));
        assert_eq!(figure(Goal::None).text(), "2.00 ms, helm 20.0 ms: 10.0×");
        let alone = Figure {
            peer: None,
            ..figure(Goal::Ratio(1.0))
        };
        assert!(!alone.met());
        assert_eq!(alone.text(), "2.00 ms");
    }
}
