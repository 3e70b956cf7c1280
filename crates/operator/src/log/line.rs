//! Formats `tracing` events as lines.

use std::fmt::{self, Write as _};
use std::io::Write as _;

use jiff::Timestamp;
use mainstay_gostd::error::chain;
use serde_json::Value;
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::{Event, Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::Context;

use super::{Encoder, LogOptions, TimeEncoding};

/// Prefix of the targets of Mainstay's crates.
const OWN_TARGET: &str = "mainstay";

/// A subscriber layer that writes each event as a line.
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

    /// Whether an event is logged. Events of libraries are logged from level warn, or from level debug at
    /// the highest verbosity, because their details may contain values.
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
        let line = Line::from_event(event).format(self.options, Timestamp::now());
        // An error of writing to stderr cannot be reported.
        let _ = self.writer.make_writer().write_all(line.as_bytes());
    }
}

/// Parts of a line.
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
            level: level_name(*metadata.level()),
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

    /// Formats the line, including the line break.
    pub(super) fn format(&self, options: LogOptions, now: Timestamp) -> String {
        match options.encoder {
            Encoder::Json => self.format_json(&time_value(options.time, now)),
            Encoder::Console => self.format_console(&time_value(options.time, now)),
        }
    }

    fn format_json(&self, time: &Value) -> String {
        let mut text = String::from("{");
        let head = [
            ("level", &Value::from(self.level)),
            ("ts", time),
            ("logger", &Value::from(self.logger.as_str())),
            ("msg", &Value::from(self.message.as_str())),
        ];
        let fields = self.fields.iter().map(|(name, value)| (*name, value));
        write_fields(&mut text, head.into_iter().chain(fields));
        text.push_str("}\n");
        text
    }

    fn format_console(&self, time: &Value) -> String {
        let time = time.as_str().map_or_else(|| time.to_string(), str::to_owned);
        let level = self.level.to_ascii_uppercase();
        // Line breaks in the message are replaced, so that each event is exactly one line.
        let message = self.message.replace(['\n', '\r'], " ");
        let mut text = format!("{time}\t{level}\t{}\t{message}", self.logger);
        if !self.fields.is_empty() {
            text.push_str("\t{");
            write_fields(&mut text, self.fields.iter().map(|(name, value)| (*name, value)));
            text.push('}');
        }
        text.push('\n');
        text
    }
}

fn write_fields<'a>(text: &mut String, fields: impl Iterator<Item = (&'a str, &'a Value)>) {
    for (index, (name, value)) in fields.enumerate() {
        let comma = if index == 0 { "" } else { "," };
        let _ = write!(text, "{comma}{}:{value}", Value::from(name));
    }
}

fn level_name(level: tracing::Level) -> &'static str {
    match level {
        tracing::Level::ERROR => "error",
        tracing::Level::WARN => "warn",
        tracing::Level::INFO => "info",
        _ => "debug",
    }
}

fn time_value(encoding: TimeEncoding, now: Timestamp) -> Value {
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
    fn add_field(&mut self, field: &Field, value: Value) {
        match (field.name(), value) {
            ("message", Value::String(text)) => self.message = text,
            ("message", other) => self.message = other.to_string(),
            (name, value) => self.fields.push((name, value)),
        }
    }
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.add_field(field, format!("{value:?}").into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.add_field(field, value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.add_field(field, value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.add_field(field, value.into());
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.add_field(field, value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.add_field(field, value.into());
    }

    fn record_error(&mut self, field: &Field, value: &(dyn std::error::Error + 'static)) {
        self.add_field(field, chain(value).into());
    }
}
