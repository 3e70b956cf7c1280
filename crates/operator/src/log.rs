//! Structured lines: takes what the program says through `tracing`, gives one line each on stderr, as JSON or for people.
//!
//! Flags, keys and times are those of zap, which operators have in their Deployments. Nothing here ever sees values of charts,
//! tokens or Secrets; texts of others are passed through [`redact`].

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
pub(crate) use plans::describe;
pub use redact::redact;

/// How to log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogOptions {
    /// What is said at all.
    pub level: Level,
    /// In which form.
    pub encoder: Encoder,
    /// How times are written.
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

/// From which level on something is said: `debug`, `info`, `error`, `panic`, or a number for ever more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level(pub LevelFilter);

impl Level {
    /// Also what is of use only to who looks for a bug.
    pub const DEBUG: Self = Self(LevelFilter::DEBUG);
}

impl FromStr for Level {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let filter = match text.to_ascii_lowercase().as_str() {
            "debug" | "1" => LevelFilter::DEBUG,
            "info" => LevelFilter::INFO,
            "error" => LevelFilter::ERROR,
            "panic" => LevelFilter::OFF,
            number if number.parse::<u32>().is_ok_and(|number| number > 1) => LevelFilter::TRACE,
            _ => return Err(format!("invalid log level {text:?}")),
        };
        Ok(Self(filter))
    }
}

/// In which form lines are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoder {
    /// One JSON object each.
    Json,
    /// Columns.
    Console,
}

impl FromStr for Encoder {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.to_ascii_lowercase().as_str() {
            "json" => Ok(Self::Json),
            "console" => Ok(Self::Console),
            _ => Err(format!("invalid encoder value {text:?}")),
        }
    }
}

/// How times are written.
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
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.to_ascii_lowercase().as_str() {
            "epoch" => Ok(Self::Epoch),
            "millis" => Ok(Self::Millis),
            "nanos" => Ok(Self::Nanos),
            "iso8601" => Ok(Self::Iso8601),
            "rfc3339" => Ok(Self::Rfc3339),
            "rfc3339nano" => Ok(Self::Rfc3339Nano),
            _ => Err(format!("invalid time-encoding value {text:?}")),
        }
    }
}

/// Says everything from now on in this process as `options` want it. The first call counts.
pub fn init(options: LogOptions) {
    let lines = Lines::new(options, std::io::stderr);
    // Somebody who set one up before wants it kept.
    let _ = tracing::subscriber::set_global_default(Registry::default().with(lines));
}

#[cfg(test)]
mod tests;
