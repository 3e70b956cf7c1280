//! Output of the demo: text with the cluster's clock, JSON lines, or YAML documents.

use std::cell::Cell;
use std::time::Instant;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::commands::migration::progress::{Display, MigrationProgress};
use crate::commands::revision::{Format, stream_entry};
use crate::commands::{print, print_styled};
use crate::error::CliError;
use crate::ui::reserve_margin;
use crate::ui::style::{FRAME, GOOD, HINT};

/// Indentation of the output of commands, which tables leave free.
const MARGIN: u16 = 8;

/// Prints the demo.
pub(super) struct Printer {
    format: super::Format,
    speed: f64,
    start: Timestamp,
    started: Instant,
    section: Cell<usize>,
}

impl Printer {
    pub(super) fn new(format: super::Format, speed: f64, start: Timestamp) -> Self {
        reserve_margin(MARGIN);
        Self {
            format,
            speed,
            start,
            started: Instant::now(),
            section: Cell::new(0),
        }
    }

    /// Whether events are printed as data.
    fn is_structured(&self) -> bool {
        self.format != super::Format::Text
    }

    /// Prints a JSON line or a YAML document.
    fn event(&self, now: Timestamp, event: &str, more: Value) -> Result<(), CliError> {
        let mut line = json!({
            "event": event,
            "clusterSeconds": rounded(self.passed(now)),
            "wallSeconds": rounded(self.started.elapsed().as_secs_f64()),
        });
        if let (Value::Object(line), Value::Object(more)) = (&mut line, more) {
            line.extend(more);
        }
        let format = match self.format {
            super::Format::Yaml => Format::Yaml,
            _ => Format::Json,
        };
        print(stream_entry(&line, format)?.as_bytes())
    }

    fn passed(&self, now: Timestamp) -> f64 {
        now.duration_since(self.start).as_secs_f64()
    }

    fn stamp(&self, now: Timestamp) -> String {
        let seconds = now.duration_since(self.start).as_secs();
        format!("{FRAME}[{:02}:{:02}]{FRAME:#} ", seconds / 60, seconds % 60)
    }

    /// Prints the introduction.
    pub(super) fn begin(&self, now: Timestamp, words: &str) -> Result<(), CliError> {
        if self.is_structured() {
            return self.event(now, "begin", json!({"speed": self.speed}));
        }
        print_styled(&format!(
            "{words}\nIts clock runs at {GOOD}{}x{GOOD:#} and is shown as [minutes:seconds].\n",
            self.speed
        ))
    }

    /// Starts a section.
    pub(super) fn section(&self, now: Timestamp, title: &str) -> Result<(), CliError> {
        let number = self.section.get() + 1;
        self.section.set(number);
        if self.is_structured() {
            return self.event(now, "chapter", json!({"number": number, "title": title}));
        }
        print_styled(&format!("\n{FRAME}{number}. {title}{FRAME:#}\n"))
    }

    /// Prints a command that a user would run on a real cluster.
    pub(super) fn command(&self, now: Timestamp, command: &str) -> Result<(), CliError> {
        if self.is_structured() {
            return self.event(now, "command", json!({"command": command}));
        }
        print_styled(&format!("{}{HINT}${HINT:#} {command}\n", self.stamp(now)))
    }

    /// Prints a note.
    pub(super) fn note(&self, now: Timestamp, words: &str) -> Result<(), CliError> {
        if self.is_structured() {
            return self.event(now, "note", json!({"text": words}));
        }
        print_styled(&format!("{}{words}\n", self.stamp(now)))
    }

    /// Prints a line of a command's output, or its data.
    pub(super) fn line(&self, now: Timestamp, what: &str, text: &str, data: &Value) -> Result<(), CliError> {
        if self.is_structured() {
            return self.event(now, what, json!({"data": data}));
        }
        print_styled(&format!("{}{text}\n", self.stamp(now)))
    }

    /// Prints the output of a command, or its data.
    pub(super) fn page(&self, now: Timestamp, what: &str, text: &str, data: &Value) -> Result<(), CliError> {
        if self.is_structured() {
            return self.event(now, what, json!({"data": data}));
        }
        let indented = |line: &str| {
            if line.is_empty() {
                "\n".to_owned()
            } else {
                format!("{:1$}{line}\n", "", usize::from(MARGIN))
            }
        };
        print_styled(&text.trim_matches('\n').lines().map(indented).collect::<String>())
    }

    /// Prints the progress of a migration.
    pub(super) fn progress(
        &self,
        now: Timestamp,
        display: &mut Display,
        progress: MigrationProgress,
    ) -> Result<(), CliError> {
        if !self.is_structured() {
            return display.show(&self.stamp(now), progress);
        }
        let data = json!({"data": progress.status});
        match display.accept(progress) {
            Some(_) => self.event(now, "migration", data),
            None => Ok(()),
        }
    }

    /// Creates a progress display.
    pub(super) fn display(&self) -> Display {
        Display::new(if self.is_structured() {
            Format::Json
        } else {
            Format::Text
        })
    }

    /// Prints the summary.
    pub(super) fn end(&self, now: Timestamp, words: &str, data: Value) -> Result<(), CliError> {
        if self.is_structured() {
            return self.event(now, "end", data);
        }
        let (passed, wall) = (self.passed(now), self.started.elapsed().as_secs_f64());
        print_styled(&format!(
            "\n{GOOD}{words}{GOOD:#}\nWall time: {wall:.1} s; cluster time: {:.0} min {:.0} s.\n",
            (passed / 60.0).floor(),
            passed % 60.0
        ))
    }

    /// Prints that the demo was interrupted.
    pub(super) fn stopped(&self) -> Result<(), CliError> {
        if self.is_structured() {
            return self.event(self.start, "stopped", json!({"clusterSeconds": null}));
        }
        print_styled("\nStopped.\n")
    }
}

fn rounded(seconds: f64) -> f64 {
    (seconds * 10.0).round() / 10.0
}
