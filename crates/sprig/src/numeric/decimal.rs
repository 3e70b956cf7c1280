//! Exact decimals as in Go's shopspring package. They are converted from the shortest digits of a float.
//! Quotients have sixteen decimal places.

use mainstay_template::Failure;
use num_bigint::{BigInt, BigUint, Sign};

/// A decimal number: `value` × 10^`exponent`.
pub(super) struct Decimal {
    value: BigInt,
    exponent: i32,
}

/// Number of decimal places of a quotient.
const PLACES: i32 = 16;

impl Decimal {
    /// Returns the decimal with the fewest digits that converts back to `float`.
    pub(super) fn from_float(float: f64) -> Result<Self, Failure> {
        if float.is_nan() {
            return Err(Failure::message("Cannot create a Decimal from NaN"));
        }
        if float.is_infinite() {
            let sign = if float > 0.0 { '+' } else { '-' };
            return Err(Failure::message(format!(
                "Cannot create a Decimal from {sign}Inf"
            )));
        }
        let text = format!("{float:e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let value: i64 = format!("{whole}{fraction}").parse().unwrap_or(0);
        let exponent = exponent.parse().unwrap_or(0) - fraction.len() as i32;
        Ok(Self {
            value: value.into(),
            exponent: if value == 0 { 0 } else { exponent },
        })
    }

    /// Returns the nearest float, or infinity if the number is too large.
    pub(super) fn to_float(&self) -> f64 {
        format!("{}e{}", self.value, self.exponent).parse().unwrap_or(0.0)
    }

    /// Returns the approximate number of digits, which determines the cost of arithmetic.
    pub(super) fn digits(&self) -> u64 {
        self.value.bits() / 64 + u64::from(self.exponent.unsigned_abs()) / 16
    }

    pub(super) fn add(&self, other: &Self) -> Self {
        let exponent = self.exponent.min(other.exponent);
        Self {
            value: self.scaled_to(exponent) + other.scaled_to(exponent),
            exponent,
        }
    }

    pub(super) fn sub(&self, other: &Self) -> Self {
        let exponent = self.exponent.min(other.exponent);
        Self {
            value: self.scaled_to(exponent) - other.scaled_to(exponent),
            exponent,
        }
    }

    pub(super) fn mul(&self, other: &Self) -> Self {
        Self {
            value: &self.value * &other.value,
            exponent: self.exponent.saturating_add(other.exponent),
        }
    }

    /// Returns the quotient, with the last place rounded half away from zero.
    pub(super) fn div(&self, other: &Self) -> Result<Self, Failure> {
        if other.value.sign() == Sign::NoSign {
            return Err(Failure::message("decimal division by 0"));
        }
        let shift = self.exponent - other.exponent + PLACES;
        let (mut above, mut below) = (self.value.magnitude().clone(), other.value.magnitude().clone());
        if shift < 0 {
            below *= power_of_ten(shift.unsigned_abs());
        } else {
            above *= power_of_ten(shift.unsigned_abs());
        }
        let quotient = (above * 2_u32 + &below) / (below * 2_u32);
        let negative = self.value.sign() != other.value.sign();
        let sign = if negative { Sign::Minus } else { Sign::Plus };
        Ok(Self {
            value: BigInt::from_biguint(sign, quotient),
            exponent: -PLACES,
        })
    }

    fn scaled_to(&self, exponent: i32) -> BigInt {
        &self.value * BigInt::from(power_of_ten((self.exponent - exponent).unsigned_abs()))
    }
}

fn power_of_ten(exponent: u32) -> BigUint {
    BigUint::from(10_u32).pow(exponent)
}
