//! Time axis of a chart: x coordinates and tick marks. Coordinates are tenths of a pixel, so that the same
//! report produces the same bytes everywhere.

use std::fmt;

use crate::report::Elapsed;

/// Distances between ticks in seconds. Longer distances are whole days.
const STEPS: [u64; 20] = [
    1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 10_800, 14_400, 21_600, 28_800, 43_200,
    86_400,
];

/// Maximum number of ticks.
const MAX_TICKS: u64 = 8;

/// A length in tenths of a pixel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Px(pub(super) u64);

impl Px {
    pub(super) const fn whole(pixels: u64) -> Self {
        Self(pixels.saturating_mul(10))
    }

    pub(super) const fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    pub(super) const fn minus(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl fmt::Display for Px {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 % 10 {
            0 => write!(f, "{}", self.0 / 10),
            rest => write!(f, "{}.{rest}", self.0 / 10),
        }
    }
}

/// A time axis.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scale {
    end: u64,
    left: Px,
    width: Px,
}

impl Scale {
    /// Creates an axis from 0 to `end` that starts at `left`.
    pub(super) fn new(end: Elapsed, left: Px, width: Px) -> Self {
        Self {
            end: end.0.max(1_000),
            left,
            width,
        }
    }

    /// Returns the coordinate of a time.
    pub(super) fn x(&self, at: Elapsed) -> Px {
        let share = u128::from(at.0.min(self.end)) * u128::from(self.width.0) / u128::from(self.end);
        self.left.plus(Px(u64::try_from(share).unwrap_or(self.width.0)))
    }

    /// Returns the times of the ticks.
    pub(super) fn ticks(&self) -> Vec<Elapsed> {
        let fits = |step: &u64| self.end / (step * 1000) <= MAX_TICKS;
        let day = 86_400;
        let days = || (self.end / 1000).div_ceil(day * MAX_TICKS).max(1) * day;
        let step = STEPS.into_iter().find(fits).unwrap_or_else(days);
        (0..=MAX_TICKS)
            .map(|number| Elapsed::from_secs(number.saturating_mul(step)))
            .take_while(|mark| mark.0 <= self.end)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marks(seconds: u64) -> Vec<String> {
        let scale = Scale::new(Elapsed::from_secs(seconds), Px::whole(0), Px::whole(100));
        scale.ticks().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn an_axis_has_few_round_marks() {
        assert_eq!(marks(0), ["0s", "1s"]);
        assert_eq!(
            marks(70),
            ["0s", "10s", "20s", "30s", "40s", "50s", "1m00s", "1m10s"]
        );
        assert_eq!(marks(40 * 86_400).len(), 9);
        assert!(marks(u64::MAX / 1000).len() <= 9);
    }

    #[test]
    fn coordinates_stay_inside_the_axis() {
        let scale = Scale::new(Elapsed(400), Px::whole(10), Px::whole(100));
        assert_eq!(scale.x(Elapsed(0)), Px::whole(10));
        assert_eq!(scale.x(Elapsed(250)).to_string(), "35");
        assert_eq!(scale.x(Elapsed(u64::MAX)), Px::whole(110));
        assert_eq!(Px(1234).to_string(), "123.4");
    }
}
