//! Structured logs: writes each `tracing` event as one line to stderr, as JSON or in columns.
//!
//! Flags, keys and time formats are those of zap, because existing Deployments use them. Chart values,
//! tokens and Secrets are never logged; messages of the API server are passed through [`redact`].

mod calls;
mod line;
mod plans;
mod redact;

use std::str::FromStr;

use tracing::level_filters::LevelFilter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::registry::Registry;

pub use calls::log_calls;
pub use line::Lines;
pub use plans::PlanLog;
pub(crate) use plans::describe_action;
pub use redact::redact;

/// An invalid log option, with the message of zap.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LogOptionError {
    /// The level is invalid.
    #[error("invalid log level {0:?}")]
    Level(String),
    /// The encoder is unknown.
    #[error("invalid encoder value {0:?}")]
    Encoder(String),
    /// The time encoding is unknown.
    #[error("invalid time-encoding value {0:?}")]
    TimeEncoding(String),
}

/// Options of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogOptions {
    /// Minimum level.
    pub level: Level,
    /// Line format.
    pub encoder: Encoder,
    /// Time format.
    pub time: TimeEncoding,
}

impl Default for LogOptions {
    fn default() -> Self {
        Self {
            level: Level(LevelFilter::INFO),
            encoder: Encoder::Console,
            time: TimeEncoding::Rfc3339,
        }
    }
}

/// Minimum level: `debug`, `info`, `error`, `panic`, or a positive number. Larger numbers are more verbose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level(pub LevelFilter);

impl Level {
    /// Level that includes debug messages.
    pub const DEBUG: Self = Self(LevelFilter::DEBUG);
}

impl FromStr for Level {
    type Err = LogOptionError;

    fn from_str(text: &str) -> Result<Self, LogOptionError> {
        let filter = match text.to_ascii_lowercase().as_str() {
            "debug" | "1" => LevelFilter::DEBUG,
            "info" => LevelFilter::INFO,
            "error" => LevelFilter::ERROR,
            "panic" => LevelFilter::OFF,
            number if number.parse::<u32>().is_ok_and(|number| number > 1) => LevelFilter::TRACE,
            _ => return Err(LogOptionError::Level(text.to_owned())),
        };
        Ok(Self(filter))
    }
}

/// Line format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoder {
    /// One JSON object per line.
    Json,
    /// Tab-separated columns.
    Console,
}

impl FromStr for Encoder {
    type Err = LogOptionError;

    fn from_str(text: &str) -> Result<Self, LogOptionError> {
        match text.to_ascii_lowercase().as_str() {
            "json" => Ok(Self::Json),
            "console" => Ok(Self::Console),
            _ => Err(LogOptionError::Encoder(text.to_owned())),
        }
    }
}

/// Time format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeEncoding {
    /// Seconds since 1970, with a fraction.
    Epoch,
    /// Milliseconds since 1970.
    Millis,
    /// Nanoseconds since 1970.
    Nanos,
    /// `2006-01-02T15:04:05.000Z`.
    Iso8601,
    /// `2006-01-02T15:04:05Z`.
    Rfc3339,
    /// `2006-01-02T15:04:05.999999999Z`.
    Rfc3339Nano,
}

impl FromStr for TimeEncoding {
    type Err = LogOptionError;

    fn from_str(text: &str) -> Result<Self, LogOptionError> {
        match text.to_ascii_lowercase().as_str() {
            "epoch" => Ok(Self::Epoch),
            "millis" => Ok(Self::Millis),
            "nanos" => Ok(Self::Nanos),
            "iso8601" => Ok(Self::Iso8601),
            "rfc3339" => Ok(Self::Rfc3339),
            "rfc3339nano" => Ok(Self::Rfc3339Nano),
            _ => Err(LogOptionError::TimeEncoding(text.to_owned())),
        }
    }
}

/// Installs the global log subscriber of this process, unless one is already installed.
pub fn init(options: LogOptions) {
    let lines = Lines::new(options, std::io::stderr);
    // The error means that a subscriber is already installed, which is kept.
    let _ = tracing::subscriber::set_global_default(Registry::default().with(lines));
}

#[cfg(test)]
mod tests;
