//! Checks the injection properties on generated manifests in many styles: each is injected, injected again,
//! uninjected, and compared with an independent implementation that works on values only. `LAWS=n` runs n
//! cases; a failure prints the seed of its case.

// Tests may panic, and read the number of cases from the environment.
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    clippy::format_push_string
)]

#[path = "../common/mod.rs"]
mod common;
mod reference;
mod rng;
mod shape;
mod style;

use mainstay_inject::{Action, Code, Images, LATER, Mode, Options, Outcome, RFC, run};
use rng::Rng;

/// Default number of cases. They take seconds in a debug build.
const CASES: u64 = 1_000;

#[test]
fn all_properties_hold_for_generated_manifests() {
    let cases = std::env::var("LAWS").map_or(CASES, |cases| cases.parse().expect("a number"));
    let mut counts = LawCounts::default();
    for seed in 0..cases {
        let text = style::stream(&mut Rng::new(seed));
        if let Err(why) = check(seed, &text, &mut counts) {
            let input = String::from_utf8_lossy(&text);
            panic!("seed {seed}: {why}\n--- input\n{input}\n---");
        }
    }
    println!("{cases} cases: {counts:?}");
    // The generator must produce enough cases of each kind.
    assert!(counts.changed * 2 > cases, "{counts:?}");
    assert!(
        counts.replaced * 100 > cases && counts.recorded * 10 > cases && counts.recorded * 10 < cases * 9,
        "{counts:?}"
    );
    assert!(counts.failed * 20 < counts.workloads, "{counts:?}");
}

#[derive(Debug, Default)]
struct LawCounts {
    workloads: u64,
    changed: u64,
    failed: u64,
    /// Texts with an undo record.
    recorded: u64,
    /// Texts with an undo record that contains replaced containers.
    replaced: u64,
}

fn check(seed: u64, text: &[u8], counts: &mut LawCounts) -> Result<(), String> {
    let rng = &mut Rng::new(seed ^ 0xD1CE);
    let options = options(rng);
    let outcome = run(text, &options).map_err(|error| error.to_string())?;
    count(&outcome, counts)?;
    let replaced = common::has_record(&outcome.text)
        && ["\"replaced\":", "\\\"replaced\\\":"]
            .iter()
            .any(|key| common::contains(&outcome.text, key));
    counts.replaced += u64::from(replaced);
    counts.recorded += u64::from(common::has_record(&outcome.text));
    check_equal(
        "injection is idempotent",
        &run(&outcome.text, &options).unwrap().text,
        &outcome.text,
    )?;
    let uninject = Options {
        mode: Mode::Uninject,
        ..options.clone()
    };
    check_equal(
        "uninjecting an original changes nothing",
        &run(text, &uninject).unwrap().text,
        text,
    )?;
    let back = run(&outcome.text, &uninject).unwrap();
    common::check_restored("the original is restored", &outcome.text, &back.text, text)?;
    if !replaced {
        check_lines_kept(text, &outcome.text)?;
    }
    let others = self::options(rng);
    let fresh = run(text, &others).unwrap();
    let changed = run(&outcome.text, &others).unwrap();
    // Failed workloads are not changed, so they cannot converge.
    if !outcome.failed() && !fresh.failed() {
        common::check_converged(
            "a run with other options equals a fresh run",
            &outcome.text,
            &changed.text,
            &fresh.text,
        )?;
    }
    check_annotation_change(text, &outcome, &options)?;
    reference::check(text, &outcome, &options)
}

fn options(rng: &mut Rng) -> Options {
    let profile = rng.pick(&[&RFC, &RFC, &LATER]);
    Options {
        profile,
        images: Images::for_profile(profile),
        skip_initializer: rng.percent(10),
        skip_service_mesh: rng.percent(10),
        ..Options::default()
    }
}

fn count(outcome: &Outcome<'_>, counts: &mut LawCounts) -> Result<(), String> {
    counts.changed += u64::from(outcome.changed());
    for report in &outcome.reports {
        counts.workloads += 1;
        counts.failed += u64::from(report.action == Action::Failed);
        let wrong = report
            .findings
            .iter()
            .find(|finding| matches!(finding.code, Code::Internal | Code::Syntax));
        if let Some(finding) = wrong {
            return Err(format!("{finding:?}"));
        }
    }
    Ok(())
}

fn check_equal(property: &str, given: &[u8], wanted: &[u8]) -> Result<(), String> {
    if given == wanted {
        return Ok(());
    }
    let (given, wanted) = (String::from_utf8_lossy(given), String::from_utf8_lossy(wanted));
    let equal = given
        .lines()
        .zip(wanted.lines())
        .take_while(|(given, wanted)| given == wanted)
        .count();
    let show = |text: &str| {
        let lines: Vec<&str> = text.lines().skip(equal.saturating_sub(3)).take(8).collect();
        lines.join("\n")
    };
    let line = equal + 1;
    Err(format!(
        "violated: {property} (line {line})\n--- given\n{}\n--- wanted\n{}",
        show(&given),
        show(&wanted)
    ))
}

/// Checks that the output contains every line of the input in the same order: unchanged, as a comment, or
/// with additions in its brackets.
fn check_lines_kept(before: &[u8], after: &[u8]) -> Result<(), String> {
    let (before, after) = (String::from_utf8_lossy(before), String::from_utf8_lossy(after));
    let mut rest = after.split_inclusive('\n');
    for line in before.split_inclusive('\n') {
        let found = rest.any(|new| {
            is_same_line(
                line.trim_end_matches(['\r', '\n']),
                new.trim_end_matches(['\r', '\n']),
            )
        });
        if !found {
            return Err(format!("line {line:?} is lost in\n{after}"));
        }
    }
    Ok(())
}

fn is_same_line(old: &str, new: &str) -> bool {
    let is_commented_out = || {
        ["# mainstay:was ", "# mainstay:was"]
            .iter()
            .any(|sign| new.replacen(sign, "", 1) == old)
    };
    old == new
        || is_commented_out()
        || (new.contains("contrast-") && is_subsequence(new, old))
        || new.strip_suffix(',') == Some(old)
}

/// Whether `old` is a subsequence of `new`; a null may have been replaced by a list.
fn is_subsequence(new: &str, old: &str) -> bool {
    let mut rest = new.chars();
    let mut old = ["NULL", "Null", "null", "~"]
        .iter()
        .fold(old.to_owned(), |old, null| old.replace(null, ""));
    old.retain(|character| character != ' ');
    old.chars().all(|wanted| rest.any(|given| given == wanted))
}

/// Checks that an annotation changed in the injected text has the same result as one changed in the
/// original.
fn check_annotation_change(text: &[u8], outcome: &Outcome<'_>, options: &Options) -> Result<(), String> {
    for (from, to) in [
        ("/servicemesh-", "/servicemush-"),
        ("/skip-initializer", "/skap-initializer"),
        ("runtimeClassName", "runtimeClassNome"),
    ] {
        let edited = |text: &[u8]| String::from_utf8_lossy(text).replace(from, to).into_bytes();
        let (fresh, changed) = (edited(text), edited(&outcome.text));
        let (fresh, changed) = (run(&fresh, options).unwrap(), run(&changed, options).unwrap());
        if !fresh.failed() && !outcome.failed() {
            common::check_converged(
                &format!("{to} converges"),
                &outcome.text,
                &changed.text,
                &fresh.text,
            )?;
        }
    }
    Ok(())
}
