//! Formats an event as a line.

use std::fmt::{self, Write as _};
use std::io::Write as _;

use jiff::Timestamp;
use serde_json::Value;
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::{Event, Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::Context;

use super::{Encoder, LogOptions, TimeEncoding};

/// Prefix of the targets of our own crates.
const OWN_TARGET: &str = "mainstay";

/// A subscriber layer that writes lines.
#[derive(Debug)]
pub struct Lines<W> {
    options: LogOptions,
    writer: W,
}

impl<W> Lines<W> {
    /// Creates a layer that writes to `writer`.
    pub fn new(options: LogOptions, writer: W) -> Self {
        Self { options, writer }
    }

    /// Libraries are logged from level warn on, or debug at the highest verbosity: their details may contain
    /// values.
    fn is_logged(&self, metadata: &Metadata<'_>) -> bool {
        let all = self.options.level.0;
        let limit = match metadata.target().starts_with(OWN_TARGET) {
            true => all,
            false if all == LevelFilter::TRACE => LevelFilter::DEBUG,
            false => all.min(LevelFilter::WARN),
        };
        metadata.level() <= &limit
    }
}

impl<S: Subscriber, W: for<'w> MakeWriter<'w> + 'static> Layer<S> for Lines<W> {
    fn enabled(&self, metadata: &Metadata<'_>, _: Context<'_, S>) -> bool {
        self.is_logged(metadata)
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(self.options.level.0.max(LevelFilter::WARN))
    }

    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let line = Line::from_event(event).text(self.options, Timestamp::now());
        // An error of stderr cannot be reported anywhere.
        let _ = self.writer.make_writer().write_all(line.as_bytes());
    }
}

/// The parts of a line.
pub(super) struct Line {
    pub(super) level: &'static str,
    pub(super) logger: String,
    pub(super) message: String,
    pub(super) fields: Vec<(&'static str, Value)>,
}

impl Line {
    fn from_event(event: &Event<'_>) -> Self {
        let metadata = event.metadata();
        let mut line = Self {
            level: name(*metadata.level()),
            logger: metadata
                .target()
                .trim_start_matches("mainstay_")
                .replace("::", "."),
            message: String::new(),
            fields: Vec::new(),
        };
        event.record(&mut line);
        line
    }

    /// Returns the line with its line break.
    pub(super) fn text(&self, options: LogOptions, now: Timestamp) -> String {
        match options.encoder {
            Encoder::Json => self.json(&time(options.time, now)),
            Encoder::Console => self.console(&time(options.time, now)),
        }
    }

    fn json(&self, time: &Value) -> String {
        let mut text = String::from("{");
        let head = [
            ("level", &Value::from(self.level)),
            ("ts", time),
            ("logger", &Value::from(self.logger.as_str())),
            ("msg", &Value::from(self.message.as_str())),
        ];
        let fields = self.fields.iter().map(|(name, value)| (*name, value));
        join(&mut text, head.into_iter().chain(fields));
        text.push_str("}\n");
        text
    }

    fn console(&self, time: &Value) -> String {
        let time = time.as_str().map_or_else(|| time.to_string(), str::to_owned);
        let level = self.level.to_ascii_uppercase();
        // One event is one line, even if a message has line breaks.
        let message = self.message.replace(['\n', '\r'], " ");
        let mut text = format!("{time}\t{level}\t{}\t{message}", self.logger);
        if !self.fields.is_empty() {
            text.push_str("\t{");
            join(&mut text, self.fields.iter().map(|(name, value)| (*name, value)));
            text.push('}');
        }
        text.push('\n');
        text
    }
}

fn join<'a>(text: &mut String, fields: impl Iterator<Item = (&'a str, &'a Value)>) {
    for (index, (name, value)) in fields.enumerate() {
        let comma = if index == 0 { "" } else { "," };
        let _ = write!(text, "{comma}{}:{value}", Value::from(name));
    }
}

fn name(level: tracing::Level) -> &'static str {
    match level {
        tracing::Level::ERROR => "error",
        tracing::Level::WARN => "warn",
        tracing::Level::INFO => "info",
        _ => "debug",
    }
}

fn time(encoding: TimeEncoding, now: Timestamp) -> Value {
    match encoding {
        TimeEncoding::Epoch => (now.as_microsecond() as f64 / 1e6).into(),
        TimeEncoding::Millis => now.as_millisecond().into(),
        TimeEncoding::Nanos => i64::try_from(now.as_nanosecond()).unwrap_or(i64::MAX).into(),
        TimeEncoding::Iso8601 => now.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string().into(),
        TimeEncoding::Rfc3339 => now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string().into(),
        TimeEncoding::Rfc3339Nano => now.to_string().into(),
    }
}

impl Line {
    fn add(&mut self, field: &Field, value: Value) {
        match (field.name(), value) {
            ("message", Value::String(text)) => self.message = text,
            ("message", other) => self.message = other.to_string(),
            (name, value) => self.fields.push((name, value)),
        }
    }
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.add(field, format!("{value:?}").into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.add(field, value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.add(field, value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.add(field, value.into());
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.add(field, value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.add(field, value.into());
    }

    fn record_error(&mut self, field: &Field, value: &(dyn std::error::Error + 'static)) {
        let causes = std::iter::successors(Some(value), |error| error.source());
        let text = causes.map(ToString::to_string).collect::<Vec<_>>().join(": ");
        self.add(field, text.into());
    }
}
