//! Who tells the story: takes what happens, gives text with the cluster's clock in front, or a line of JSON. Decides nothing.

use std::cell::Cell;
use std::time::Instant;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::commands::migration::progress::{Display, Look};
use crate::commands::revision::Format;
use crate::commands::{print, print_styled};
use crate::error::CliError;
use crate::style::{FRAME, GOOD, HINT};

/// Tells it.
pub(super) struct Teller {
    json: bool,
    speed: f64,
    start: Timestamp,
    begun: Instant,
    chapter: Cell<usize>,
}

impl Teller {
    pub(super) fn new(json: bool, speed: f64, start: Timestamp) -> Self {
        Self {
            json,
            speed,
            start,
            begun: Instant::now(),
            chapter: Cell::new(0),
        }
    }

    /// One line for programs.
    fn event(&self, now: Timestamp, event: &str, more: Value) -> Result<(), CliError> {
        let mut line = json!({
            "event": event,
            "clusterSeconds": rounded(self.passed(now)),
            "wallSeconds": rounded(self.begun.elapsed().as_secs_f64()),
        });
        if let (Value::Object(line), Value::Object(more)) = (&mut line, more) {
            line.extend(more);
        }
        print(format!("{line}\n").as_bytes())
    }

    fn passed(&self, now: Timestamp) -> f64 {
        now.duration_since(self.start).as_secs_f64()
    }

    fn stamp(&self, now: Timestamp) -> String {
        let seconds = now.duration_since(self.start).as_secs();
        format!("{FRAME}[{:02}:{:02}]{FRAME:#} ", seconds / 60, seconds % 60)
    }

    /// The beginning.
    pub(super) fn begin(&self, now: Timestamp, words: &str) -> Result<(), CliError> {
        if self.json {
            return self.event(now, "begin", json!({"speed": self.speed}));
        }
        print_styled(&format!(
            "{words}\nIts clock runs {GOOD}{} times as fast{GOOD:#} as yours and is shown as [minutes:seconds].\n",
            self.speed
        ))
    }

    /// A new chapter.
    pub(super) fn chapter(&self, now: Timestamp, title: &str) -> Result<(), CliError> {
        let number = self.chapter.get() + 1;
        self.chapter.set(number);
        if self.json {
            return self.event(now, "chapter", json!({"number": number, "title": title}));
        }
        print_styled(&format!("\n{FRAME}{number}. {title}{FRAME:#}\n"))
    }

    /// What a user would type on a real cluster.
    pub(super) fn typed(&self, now: Timestamp, command: &str) -> Result<(), CliError> {
        if self.json {
            return self.event(now, "command", json!({"command": command}));
        }
        print_styled(&format!("{}{HINT}${HINT:#} {command}\n", self.stamp(now)))
    }

    /// What happened.
    pub(super) fn say(&self, now: Timestamp, words: &str) -> Result<(), CliError> {
        if self.json {
            return self.event(now, "note", json!({"text": words}));
        }
        print_styled(&format!("{}{words}\n", self.stamp(now)))
    }

    /// What a command printed, or its data.
    pub(super) fn page(&self, now: Timestamp, what: &str, text: &str, data: &Value) -> Result<(), CliError> {
        if self.json {
            return self.event(now, what, json!({"data": data}));
        }
        let indented = |line: &str| {
            if line.is_empty() {
                "\n".to_owned()
            } else {
                format!("        {line}\n")
            }
        };
        print_styled(&text.trim_matches('\n').lines().map(indented).collect::<String>())
    }

    /// A migration as it goes.
    pub(super) fn progress(&self, now: Timestamp, display: &mut Display, look: Look) -> Result<(), CliError> {
        let frame = display.next(look)?;
        if frame.text.is_empty() {
            return Ok(());
        }
        if self.json {
            let status: Value = serde_json::from_str(&frame.text).unwrap_or_default();
            return self.event(now, "migration", json!({"data": status}));
        }
        let stamp = self.stamp(now);
        frame.with_margin(&stamp).print()
    }

    /// How a migration is displayed here.
    pub(super) fn display(&self) -> Display {
        Display::new(if self.json { Format::Json } else { Format::Text })
    }

    /// The end.
    pub(super) fn end(&self, now: Timestamp, words: &str, data: Value) -> Result<(), CliError> {
        if self.json {
            return self.event(now, "end", data);
        }
        let (passed, wall) = (self.passed(now), self.begun.elapsed().as_secs_f64());
        print_styled(&format!(
            "\n{GOOD}{words}{GOOD:#}\nWall time: {wall:.1} s, for {:.0} min {:.0} s of the cluster's.\n",
            (passed / 60.0).floor(),
            passed % 60.0
        ))
    }

    /// Somebody has seen enough.
    pub(super) fn stopped(&self) -> Result<(), CliError> {
        if self.json {
            return self.event(self.start, "stopped", json!({"clusterSeconds": null}));
        }
        print_styled("\nStopped. Nothing is left behind.\n")
    }
}

fn rounded(seconds: f64) -> f64 {
    (seconds * 10.0).round() / 10.0
}
