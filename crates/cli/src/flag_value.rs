//! Parsers of flag values that several commands accept.

#[cfg(feature = "simulator")]
use std::ops::RangeInclusive;
use std::time::Duration;

use jiff::SignedDuration;
use mainstay_api::GoDuration;
use mainstay_gostd::time::DurationError;

/// Errors of flag values.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FlagError {
    /// Not a duration in Go's form.
    #[error(transparent)]
    Duration(#[from] DurationError),
    /// A duration below zero.
    #[error("must not be negative")]
    Negative,
    /// Not a number.
    #[cfg(feature = "simulator")]
    #[error("not a number")]
    NotANumber(RangeInclusive<f64>),
    /// A number outside of the accepted range.
    #[cfg(feature = "simulator")]
    #[error("must be between {} and {}", .0.start(), .0.end())]
    OutOfRange(RangeInclusive<f64>),
    /// Not a boolean in Go's form.
    #[error("strconv.ParseBool: parsing {0:?}: invalid syntax")]
    Bool(String),
    /// A label without an equals sign.
    #[error("not of the form KEY=VALUE")]
    NoValue,
    /// A label without a key.
    #[error("the key is empty")]
    NoKey,
}

impl FlagError {
    /// Returns the remedy, which starts with a verb.
    pub(crate) fn remedy(&self) -> String {
        match self {
            Self::Duration(_) => "add a unit to each number, such as 30s, 5m or 1h30m".to_owned(),
            Self::Negative => "use zero or a positive duration, such as 30s".to_owned(),
            #[cfg(feature = "simulator")]
            Self::NotANumber(range) | Self::OutOfRange(range) => {
                format!("use a number from {} to {}", range.start(), range.end())
            }
            Self::Bool(_) => "use true or false".to_owned(),
            Self::NoValue | Self::NoKey => "use the form KEY=VALUE, such as region=eu".to_owned(),
        }
    }
}

/// Parses a duration such as `30s` or `5m`.
pub(crate) fn signed_duration(text: &str) -> Result<SignedDuration, FlagError> {
    Ok(GoDuration(text.to_owned()).span()?)
}

/// Parses a duration that is not negative.
pub(crate) fn duration(text: &str) -> Result<Duration, FlagError> {
    Duration::try_from(signed_duration(text)?).map_err(|_| FlagError::Negative)
}

/// Parses a number in `range`.
#[cfg(feature = "simulator")]
pub(crate) fn number_in(range: RangeInclusive<f64>, text: &str) -> Result<f64, FlagError> {
    match text.parse::<f64>() {
        Ok(number) if range.contains(&number) => Ok(number),
        Ok(_) => Err(FlagError::OutOfRange(range)),
        Err(_) => Err(FlagError::NotANumber(range)),
    }
}

/// Parses a boolean like Go's `strconv.ParseBool`.
pub(crate) fn go_bool(text: &str) -> Result<bool, FlagError> {
    match text {
        "1" | "t" | "T" | "TRUE" | "true" | "True" => Ok(true),
        "0" | "f" | "F" | "FALSE" | "false" | "False" => Ok(false),
        _ => Err(FlagError::Bool(text.to_owned())),
    }
}

/// Parses `KEY=VALUE`.
pub(crate) fn label(text: &str) -> Result<(String, String), FlagError> {
    match text.split_once('=') {
        None => Err(FlagError::NoValue),
        Some(("", _)) => Err(FlagError::NoKey),
        Some((key, value)) => Ok((key.to_owned(), value.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_may_not_be_negative() {
        assert_eq!(duration("1m30s").unwrap(), Duration::from_secs(90));
        assert_eq!(duration("-1s").unwrap_err().to_string(), "must not be negative");
        assert!(signed_duration("-1s").unwrap().is_negative());
        assert!(duration("10").is_err());
    }

    #[test]
    fn numbers_are_limited_to_a_range() {
        let parse = |text| number_in(0.0..=10.0, text).map_err(|error| error.to_string());
        assert_eq!(parse("2.5"), Ok(2.5));
        assert_eq!(parse("NaN"), Err("must be between 0 and 10".to_owned()));
        assert_eq!(parse("11"), Err("must be between 0 and 10".to_owned()));
        assert_eq!(parse("x"), Err("not a number".to_owned()));
    }

    #[test]
    fn labels_have_a_key() {
        assert_eq!(label("a=b=c").unwrap(), ("a".to_owned(), "b=c".to_owned()));
        assert_eq!(label("a").unwrap_err().to_string(), "not of the form KEY=VALUE");
        assert_eq!(label("=b").unwrap_err().to_string(), "the key is empty");
    }
}
