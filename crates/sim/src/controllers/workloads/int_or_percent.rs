//! Int-or-percent values, resolved and rounded like in the real controllers.

use serde_json::Value;

/// Rounding direction of percentages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounding {
    /// Round up.
    Up,
    /// Round down.
    Down,
}

/// Returns the number, or the percentage of `total` for a text such as `25%`. Missing and invalid values
/// are zero.
#[must_use]
pub fn scaled_value(value: Option<&Value>, total: i64, round: Rounding) -> i64 {
    match value {
        Some(Value::String(text)) => {
            let Some(percent) = text
                .strip_suffix('%')
                .and_then(|digits| digits.parse::<i64>().ok())
            else {
                return 0;
            };
            let hundredths = percent.saturating_mul(total);
            match round {
                Rounding::Up => clamp(hundredths.saturating_add(99).div_euclid(100)),
                Rounding::Down => clamp(hundredths.div_euclid(100)),
            }
        }
        Some(value) => value.as_i64().map_or(0, clamp),
        None => 0,
    }
}

/// Limits a number to the range of int32, so that sums cannot overflow.
fn clamp(number: i64) -> i64 {
    number.clamp(i64::from(i32::MIN), i64::from(i32::MAX))
}

/// Returns maximum surge and maximum unavailability of a Deployment. If both are zero, the maximum
/// unavailability is 1, so that a rollout can proceed.
#[must_use]
pub fn resolve_fenceposts(surge: Option<&Value>, unavailable: Option<&Value>, replicas: i64) -> (i64, i64) {
    let surge = scaled_value(surge, replicas, Rounding::Up);
    let unavailable = scaled_value(unavailable, replicas, Rounding::Down);
    if surge == 0 && unavailable == 0 {
        return (0, 1);
    }
    (surge, unavailable)
}

/// Returns `a * b / c`, rounded half away from zero as in the real controller; zero if `c` is zero.
#[must_use]
pub fn ratio(a: i64, b: i64, c: i64) -> i64 {
    if c == 0 {
        return 0;
    }
    let doubled = a.saturating_mul(b).saturating_mul(2);
    let (sign, doubled) = (doubled.signum() * c.signum(), doubled.saturating_abs());
    let whole = c.saturating_abs();
    sign * (doubled.saturating_add(whole) / whole.saturating_mul(2))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn percentages_are_rounded_in_the_given_direction() {
        let table = [
            (json!("25%"), 10, 3, 2),
            (json!("25%"), 4, 1, 1),
            (json!("25%"), 1, 1, 0),
            (json!("0%"), 7, 0, 0),
            (json!("100%"), 7, 7, 7),
            (json!("33%"), 3, 1, 0),
            (json!(2), 1, 2, 2),
            (json!("x"), 9, 0, 0),
            (json!(null), 9, 0, 0),
        ];
        for (value, total, up, down) in table {
            assert_eq!(
                scaled_value(Some(&value), total, Rounding::Up),
                up,
                "{value} of {total}"
            );
            assert_eq!(
                scaled_value(Some(&value), total, Rounding::Down),
                down,
                "{value} of {total}"
            );
        }
    }

    #[test]
    fn surge_and_unavailability_are_never_both_zero() {
        let table = [
            (json!("25%"), json!("25%"), 1, (1, 0)),
            (json!(0), json!("25%"), 3, (0, 1)),
            (json!("0%"), json!("0%"), 10, (0, 1)),
            (json!(3), json!(0), 2, (3, 0)),
        ];
        for (surge, unavailable, replicas, expected) in table {
            assert_eq!(
                resolve_fenceposts(Some(&surge), Some(&unavailable), replicas),
                expected
            );
        }
    }

    #[test]
    fn ratios_round_half_away_from_zero() {
        for (a, b, c, expected) in [
            (5, 1, 2, 3),
            (-5, 1, 2, -3),
            (8, 18, 13, 11),
            (1, 1, 3, 0),
            (1, 1, 0, 0),
        ] {
            assert_eq!(ratio(a, b, c), expected, "{a}*{b}/{c}");
        }
    }
}
