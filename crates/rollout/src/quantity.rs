//! Parses numbers and percentages of replicas, and derives the limits of a rolling update from them.

use std::str::FromStr;

/// A number of replicas, or a percentage of the desired number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntOrPercent {
    /// An absolute number.
    Int(u32),
    /// A percentage.
    Percent(u32),
}

/// Rounding of percentages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounding {
    /// Toward zero, as for `maxUnavailable`.
    Down,
    /// Away from zero, as for `maxSurge`.
    Up,
}

/// Error of parsing a quantity or of combining two limits.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuantityError {
    /// Neither a number nor a percentage.
    #[error("{0:?} is neither a number nor a percentage")]
    Invalid(String),
    /// Both limits are zero, so that no pod could be replaced.
    #[error("maxSurge and maxUnavailable must not both be 0")]
    NoProgress,
}

impl FromStr for IntOrPercent {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parse = |digits: &str| {
            let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
            let number = if is_number { digits.parse().ok() } else { None };
            number.ok_or_else(|| QuantityError::Invalid(text.to_owned()))
        };
        match text.strip_suffix('%') {
            Some(digits) => parse(digits).map(Self::Percent),
            None => parse(text).map(Self::Int),
        }
    }
}

impl IntOrPercent {
    /// Returns the number of replicas for a total number.
    #[must_use]
    pub fn resolve(self, total: u32, rounding: Rounding) -> u32 {
        let percent = match self {
            Self::Int(number) => return number,
            Self::Percent(percent) => percent,
        };
        let product = u64::from(total) * u64::from(percent);
        let number = match rounding {
            Rounding::Down => product / 100,
            Rounding::Up => product.div_ceil(100),
        };
        u32::try_from(number).unwrap_or(u32::MAX)
    }

    /// Returns the cumulative number of replicas at a step, at most `total`. A percentage below 100 of more
    /// than one replica is at most `total - 1`, so that the source keeps at least one replica.
    #[must_use]
    pub fn resolve_step(self, total: u32) -> u32 {
        let number = self.resolve(total, Rounding::Up).min(total);
        match self {
            Self::Percent(percent) if percent < 100 && total > 1 => number.min(total - 1),
            _ => number,
        }
    }
}

/// Limits of the number of pods during a rollout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RolloutBudget {
    /// Desired number of replicas.
    pub desired: u32,
    /// Maximum number of pods above the desired number.
    pub surge: u32,
    /// Maximum number of unavailable pods.
    pub unavailable: u32,
}

impl RolloutBudget {
    /// Resolves both limits like Kubernetes: surge is rounded up, unavailability is rounded down. If both
    /// percentages resolve to zero, one pod may be unavailable.
    pub fn new(
        desired: u32,
        max_surge: IntOrPercent,
        max_unavailable: IntOrPercent,
    ) -> Result<Self, QuantityError> {
        let is_zero = |value| matches!(value, IntOrPercent::Int(0) | IntOrPercent::Percent(0));
        if is_zero(max_surge) && is_zero(max_unavailable) {
            return Err(QuantityError::NoProgress);
        }
        let surge = max_surge.resolve(desired, Rounding::Up);
        let unavailable = max_unavailable.resolve(desired, Rounding::Down).min(desired);
        let unavailable = if surge == 0 && unavailable == 0 {
            1
        } else {
            unavailable
        };
        Ok(Self {
            desired,
            surge,
            unavailable,
        })
    }

    /// Returns the maximum number of pods.
    #[must_use]
    pub fn ceiling(&self) -> u32 {
        self.desired.saturating_add(self.surge)
    }

    /// Returns the minimum number of available pods.
    #[must_use]
    pub fn floor(&self) -> u32 {
        self.desired.saturating_sub(self.unavailable)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quantity(text: &str) -> IntOrPercent {
        text.parse().unwrap()
    }

    #[test]
    fn numbers_and_percentages_are_parsed() {
        assert_eq!(quantity("25%"), IntOrPercent::Percent(25));
        assert_eq!(quantity("3"), IntOrPercent::Int(3));
        for text in ["", "%", "-1", "+1", "1.5", "10 %", "99999999999"] {
            assert_eq!(
                text.parse::<IntOrPercent>(),
                Err(QuantityError::Invalid(text.into()))
            );
        }
    }

    #[test]
    fn surge_rounds_up_and_unavailability_down() {
        let budget = RolloutBudget::new(10, quantity("25%"), quantity("25%")).unwrap();
        assert_eq!((budget.ceiling(), budget.floor()), (13, 8));
        let budget = RolloutBudget::new(3, quantity("0"), quantity("10%")).unwrap();
        assert_eq!((budget.ceiling(), budget.floor()), (3, 2));
        assert_eq!(
            RolloutBudget::new(3, quantity("0"), quantity("0%")),
            Err(QuantityError::NoProgress)
        );
    }

    #[test]
    fn steps_are_cumulative_and_keep_one_source_replica() {
        let steps: Vec<u32> = ["20%", "60%", "99%", "100%"]
            .iter()
            .map(|s| quantity(s).resolve_step(2))
            .collect();
        assert_eq!(steps, [1, 1, 1, 2]);
        assert_eq!(quantity("10%").resolve_step(1), 1);
        assert_eq!(quantity("7").resolve_step(5), 5);
    }
}
