//! `mainstay demo` on pseudo terminals of several widths and without a terminal: progress bars and colors.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::fs::File;
use std::io::Read as _;
use std::process::{Command, Stdio};

use anstream::adapter::strip_str;
use console::measure_text_width;
use nix::pty::{Winsize, openpty};

/// Prepares a demo in an environment without other variables than `TERM`.
fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mainstay"));
    command
        .args(["demo", "--speed", "1000"])
        .args(arguments)
        .env_clear()
        .env("TERM", "xterm-256color")
        .stdin(Stdio::null());
    command
}

/// Runs a command whose stdout and stderr are a pseudo terminal, and returns everything it writes to it.
fn run_on_terminal(mut command: Command, columns: u16) -> String {
    let size = Winsize {
        ws_row: 50,
        ws_col: columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    let terminal = openpty(&size, None).unwrap();
    command
        .stderr(terminal.slave.try_clone().unwrap())
        .stdout(terminal.slave);
    let mut child = command.spawn().unwrap();
    // The command holds copies of the terminal: reading ends only when all of them are closed.
    drop(command);
    let mut written = Vec::new();
    let mut buffer = [0; 4096];
    let mut terminal = File::from(terminal.master);
    // The kernel reports the end of a pseudo terminal as an error (EIO).
    while let Ok(length @ 1..) = terminal.read(&mut buffer) {
        written.extend(buffer.iter().take(length));
    }
    let text = String::from_utf8(written).unwrap();
    assert!(child.wait().unwrap().success(), "{text}");
    text
}

/// Returns the rows of a terminal that show progress bars. Each drawn line is filled with spaces up to the
/// last column, after which the terminal starts the next row.
fn drawn_bars(written: &str, columns: u16) -> Vec<String> {
    let is_bar = |row: &String| {
        let inside = row.split_once(" [").and_then(|(_, rest)| rest.split_once("] "));
        inside.is_some_and(|(bar, counts)| {
            bar.len() >= 8 && bar.trim_matches(['=', '>', ' ']).is_empty() && counts.contains('/')
        })
    };
    let plain = strip_str(written).to_string();
    let rows = plain.split(['\r', '\n']).flat_map(|line| {
        let characters: Vec<char> = line.chars().collect();
        let rows = characters.chunks(usize::from(columns));
        rows.map(|row| row.iter().collect::<String>()).collect::<Vec<_>>()
    });
    rows.map(|row| row.trim_end().to_owned()).filter(is_bar).collect()
}

/// Returns the color sequences: `ESC [ ... m`.
fn color_sequences(written: &str) -> Vec<&str> {
    let sequences = written.split("\u{1b}[").skip(1);
    let parameters = |text: &&str| text.find(|c: char| !c.is_ascii_digit() && c != ';');
    let is_color = |text: &&str| parameters(text).is_some_and(|end| text[end..].starts_with('m'));
    sequences.filter(is_color).collect()
}

fn check_bars(written: &str, columns: u16) {
    let bars = drawn_bars(written, columns);
    assert!(bars.len() >= 5, "four batches and the total: {bars:#?}");
    for bar in bars {
        let width = measure_text_width(&bar);
        assert!(
            width < usize::from(columns),
            "{columns} columns, {width}: {bar:?}"
        );
    }
}

/// Checks a demo with colors.
fn check_colored(columns: u16) {
    let written = run_on_terminal(command(&[]), columns);
    check_bars(&written, columns);
    assert!(
        written.contains("\u{1b}[1m\u{1b}[31mfailed\u{1b}[0m Deployment/payments/billing"),
        "{columns} columns: failures are red"
    );
}

/// Checks a demo without colors; progress bars are still drawn.
fn check_plain(command: Command, columns: u16) {
    let written = run_on_terminal(command, columns);
    check_bars(&written, columns);
    assert!(
        written.contains("failed Deployment/payments/billing"),
        "{written}"
    );
    assert_eq!(color_sequences(&written), [""; 0], "{columns} columns");
}

#[test]
fn bars_fit_a_narrow_terminal() {
    check_colored(60);
}

#[test]
fn bars_fit_a_wide_terminal() {
    check_colored(140);
}

#[test]
fn no_color_disables_colors_on_a_terminal() {
    let mut command = command(&[]);
    command.env("NO_COLOR", "1");
    check_plain(command, 80);
}

#[test]
fn color_never_disables_colors_on_a_terminal() {
    check_plain(command(&["--color", "never"]), 80);
}

#[test]
fn without_a_terminal_there_are_lines_without_sequences() {
    let output = command(&[]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}");
    assert!(!text.contains('\u{1b}'), "{text}");
    assert_eq!(drawn_bars(&text, 80), [""; 0]);
    assert!(text.contains("default Failed: 9 of 11 migrated"), "{text}");
}

#[test]
fn color_sequences_are_found() {
    assert_eq!(
        color_sequences("a\u{1b}[2K\u{1b}[1;31mb\u{1b}[0m"),
        ["1;31mb", "0m"]
    );
}

#[test]
fn rows_with_bars_are_found() {
    let fits = format!("{:<20}{:<20}", "a [========] 1/2", "b [========] 2/2 no");
    let expected = ["a [========] 1/2", "b [========] 2/2 no"];
    assert_eq!(drawn_bars(&fits, 20), expected);
    let reaches_the_end = "\r\u{1b}[2Ka [========] 1/2 long";
    assert_eq!(drawn_bars(reaches_the_end, 20), ["a [========] 1/2 lon"]);
}
