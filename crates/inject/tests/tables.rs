//! Inputs with their expected output: every `NAME.in.*` under tests/tables, with `NAME.out.*` (absent if
//! the output equals the input), `NAME.says` (the reports) and an optional `NAME.flags`. With `BLESS=1` the
//! expected files are written.

// Tests may panic and read files.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    clippy::format_push_string,
    clippy::format_collect
)]

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use mainstay_inject::{Images, LATER, Mode, Options, Outcome, PodTemplatePath, run};

#[test]
fn every_input_has_the_stored_output() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tables");
    let inputs = inputs(&root);
    let wrong: Vec<String> = inputs
        .iter()
        .filter_map(|input| check(&root, input).err())
        .collect();
    assert!(
        wrong.is_empty(),
        "{} of {} wrong\n{}",
        wrong.len(),
        inputs.len(),
        wrong.join("\n")
    );
    println!("harden inputs: {} inputs have the stored output", inputs.len());
    assert!(inputs.len() >= 150, "only {} inputs", inputs.len());
}

fn inputs(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(inputs(&path));
        } else if path.file_name().unwrap().to_string_lossy().contains(".in.") {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Checks output, reports and round-trip properties of one input.
fn check(root: &Path, input: &Path) -> Result<(), String> {
    let name = input.strip_prefix(root).unwrap().display().to_string();
    let sibling = |old: &str, new: &str| PathBuf::from(input.display().to_string().replace(old, new));
    let stem = input.display().to_string();
    let stem = PathBuf::from(stem.split(".in.").next().unwrap());
    let flags = fs::read_to_string(stem.with_extension("flags")).unwrap_or_default();
    let options = options(&flags);
    let text = fs::read(input).unwrap();
    let outcome = run(&text, &options).map_err(|error| format!("{name}: {error}"))?;
    let text_of_reports = format_reports(&outcome);
    let (output, reports) = (sibling(".in.", ".out."), stem.with_extension("says"));
    if std::env::var_os("BLESS").is_some() {
        if outcome.changed() {
            fs::write(&output, &outcome.text).unwrap();
        } else {
            drop(fs::remove_file(&output));
        }
        fs::write(&reports, &text_of_reports).unwrap();
    }
    let expected = fs::read(&output).unwrap_or_else(|_| text.clone());
    if outcome.text != expected {
        let given = String::from_utf8_lossy(&outcome.text);
        return Err(format!("{name}: unexpected output\n{given}"));
    }
    if fs::read_to_string(&reports).unwrap_or_default() != text_of_reports {
        return Err(format!("{name}: unexpected reports\n{text_of_reports}"));
    }
    if options.mode == Mode::Inject {
        check_properties(&name, &text, &outcome.text, &options)?;
    }
    Ok(())
}

fn check_properties(name: &str, before: &[u8], after: &[u8], options: &Options) -> Result<(), String> {
    let twice = run(after, options).unwrap();
    if twice.text != after {
        return Err(format!(
            "{name}: injection is not idempotent\n{}",
            String::from_utf8_lossy(&twice.text)
        ));
    }
    let uninject = Options {
        mode: Mode::Uninject,
        ..options.clone()
    };
    let back = run(after, &uninject).unwrap();
    // An input that is already injected is not restored.
    if common::has_marks(before) {
        return Ok(());
    }
    common::check_restored(
        &format!("{name}: the original is restored"),
        after,
        &back.text,
        before,
    )
}

fn options(flags: &str) -> Options {
    let mut options = Options::default();
    for flag in flags.split_whitespace() {
        match flag
            .split_once('=')
            .map_or((flag, ""), |(name, value)| (name, value))
        {
            ("uninject", _) => options.mode = Mode::Uninject,
            ("later", _) => {
                options.profile = &LATER;
                options.images = Images::for_profile(&LATER);
            }
            ("skip-initializer", _) => options.skip_initializer = true,
            ("skip-service-mesh", _) => options.skip_service_mesh = true,
            ("path", path) => options
                .pod_template_paths
                .push(PodTemplatePath::parse(path).unwrap()),
            ("coordinator", namespace) => options.coordinator_namespace = Some(namespace.into()),
            (other, _) => panic!("no flag {other}"),
        }
    }
    options
}

fn format_reports(outcome: &Outcome<'_>) -> String {
    let mut text_of_reports = String::new();
    for report in &outcome.reports {
        let namespace = report
            .namespace
            .as_deref()
            .map(|name| format!("{name}/"))
            .unwrap_or_default();
        let path = if report.path.is_empty() {
            String::new()
        } else {
            format!(" {}", report.path)
        };
        text_of_reports += &format!(
            "{}: {} {namespace}{}{path}: {} ({})\n",
            report.place.line,
            report.kind,
            report.name,
            report.action.code(),
            report.reason.code()
        );
        for finding in &report.findings {
            let place = finding.place;
            text_of_reports += &format!(
                "  {}:{}+{}: {:?} {}: {}\n",
                place.line,
                place.column,
                place.len,
                finding.severity,
                finding.code.code(),
                finding.message
            );
            text_of_reports += &finding
                .help
                .iter()
                .map(|help| format!("    {help}\n"))
                .collect::<String>();
        }
    }
    text_of_reports
}
