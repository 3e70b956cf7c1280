//! Progress on stderr or stdout: spinners and bars on a terminal, plain lines otherwise.

mod bar;
#[cfg(test)]
pub(crate) mod screen;

use std::collections::BTreeMap;
use std::io::{IsTerminal as _, Write as _};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use anstream::adapter::strip_str;
use anstream::{AutoStream, ColorChoice};
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressFinish, ProgressStyle};

use super::table::one_line;
use super::width::terminal_columns;

/// Time before the first line without a terminal.
const FIRST_LINE_DELAY: Duration = Duration::from_secs(1);
/// Interval of further lines without a terminal.
const LINE_INTERVAL: Duration = Duration::from_secs(5);
/// Interval of spinner frames.
const TICK: Duration = Duration::from_millis(100);

/// Shows the current step of a slow command on stderr until it is dropped.
pub(crate) enum Progress {
    /// A spinner on a terminal.
    Spinner(ProgressBar),
    /// Lines for steps that take longer than a second.
    Lines(Sender<String>),
}

impl Progress {
    /// Starts the display.
    pub(crate) fn start() -> Self {
        Self::on_terminal().unwrap_or_else(|| Self::Lines(start_lines()))
    }

    /// Starts the display if stderr is a terminal.
    pub(crate) fn on_terminal() -> Option<Self> {
        if !std::io::stderr().is_terminal() {
            return None;
        }
        let spinner = ProgressBar::new_spinner();
        if let Ok(style) = ProgressStyle::with_template("{spinner} {wide_msg} {elapsed}") {
            spinner.set_style(style);
        }
        spinner.enable_steady_tick(TICK);
        Some(Self::Spinner(spinner))
    }

    /// Starts a step.
    pub(crate) fn step(&self, step: &str) {
        match self {
            Self::Spinner(spinner) => spinner.set_message(one_line(step)),
            // The thread ends only after this sender is dropped.
            Self::Lines(sender) => drop(sender.send(step.to_owned())),
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Self::Spinner(spinner) = self {
            spinner.finish_and_clear();
        }
    }
}

fn start_lines() -> Sender<String> {
    let (sender, steps) = mpsc::channel::<String>();
    std::thread::spawn(move || {
        let start = Instant::now();
        let mut step = String::new();
        let mut due = FIRST_LINE_DELAY;
        loop {
            match steps.recv_timeout(due.saturating_sub(start.elapsed())) {
                Ok(next) => step = next,
                Err(RecvTimeoutError::Timeout) => {
                    let seconds = start.elapsed().as_secs();
                    let _ = writeln!(anstream::stderr(), "{step} ({seconds}s)");
                    due = start.elapsed() + LINE_INTERVAL;
                }
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    });
    sender
}

/// Contents of one progress bar.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BarRow {
    /// Label before the bar.
    pub(crate) label: String,
    /// Completed part.
    pub(crate) done: usize,
    pub(crate) total: usize,
    /// Text after the bar.
    pub(crate) note: String,
}

/// Progress bars on the terminal of stdout; they stay visible at the end.
pub(crate) struct Bars {
    all: MultiProgress,
    by_key: BTreeMap<usize, ProgressBar>,
    /// Number of columns; `None` for that of the terminal, which may change.
    columns: Option<usize>,
}

impl Bars {
    /// Creates an empty display.
    pub(crate) fn new() -> Self {
        Self {
            all: MultiProgress::with_draw_target(ProgressDrawTarget::stdout()),
            by_key: BTreeMap::new(),
            columns: None,
        }
    }

    /// Creates an empty display on a screen in memory.
    #[cfg(test)]
    pub(crate) fn on_screen(screen: &screen::Screen) -> Self {
        let target = ProgressDrawTarget::term_like(Box::new(screen.clone()));
        Self {
            all: MultiProgress::with_draw_target(target),
            columns: Some(screen.columns()),
            ..Self::new()
        }
    }

    /// Prints a line above the bars, with colors if they are enabled on stdout.
    pub(crate) fn print(&self, line: &str) {
        let is_plain = AutoStream::choice(&std::io::stdout()) == ColorChoice::Never;
        // A closed terminal is ignored.
        let _ = if is_plain {
            self.all.println(strip_str(line).to_string())
        } else {
            self.all.println(line)
        };
    }

    /// Shows these rows instead of the previous ones.
    pub(crate) fn show(&mut self, rows: &[BarRow]) {
        for index in rows.len()..self.by_key.len() {
            if let Some(bar) = self.by_key.remove(&index) {
                self.all.remove(&bar);
            }
        }
        let lines = bar::lines(rows, self.columns.unwrap_or_else(terminal_columns));
        for (index, line) in lines.into_iter().enumerate() {
            let bar = self
                .by_key
                .entry(index)
                .or_insert_with(|| self.all.add(new_bar()));
            bar.set_message(line);
        }
    }
}

/// Returns a bar that shows its message only: the layout of lines is in `bar`.
fn new_bar() -> ProgressBar {
    let bar = ProgressBar::new(0).with_finish(ProgressFinish::Abandon);
    match ProgressStyle::with_template("{msg}") {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}
