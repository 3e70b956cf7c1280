//! Checks the injection properties on a corpus of manifests in many styles: every file below `corpus/`, with
//! every combination of options.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test reads its fixtures and fails by panicking"
)]

mod common;

use std::collections::BTreeMap;
use std::path::PathBuf;

use mainstay_inject::{Action, Images, Mode, Options, Profile, run};

/// Parts of the names of files in which containers or nulls are replaced, so that lines may change.
const REPLACED_NAME_PARTS: [&str; 3] = ["existing-initializer", "existing-mesh", "hand-init-"];

fn corpus() -> Vec<(String, Vec<u8>)> {
    let directory = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    let read = |entry: std::io::Result<std::fs::DirEntry>| {
        let path = entry.unwrap().path();
        (
            path.file_name().unwrap().to_string_lossy().into_owned(),
            std::fs::read(path).unwrap(),
        )
    };
    let mut files: Vec<_> = std::fs::read_dir(directory).unwrap().map(read).collect();
    files.sort();
    files
}

/// Returns every combination of profile and skip flags.
fn combinations() -> Vec<Options> {
    let flags = [(false, false), (true, false), (false, true), (true, true)];
    let combinations_of = |profile: &'static Profile| {
        flags.map(|(skip_initializer, skip_service_mesh)| Options {
            profile,
            images: Images::for_profile(profile),
            skip_initializer,
            skip_service_mesh,
            ..Options::default()
        })
    };
    Profile::ALL.into_iter().flat_map(combinations_of).collect()
}

#[track_caller]
fn check_equal(property: &str, name: &str, given: &[u8], wanted: &[u8]) {
    let to_text = |text| String::from_utf8_lossy(text).into_owned();
    assert!(
        given == wanted,
        "{name}: {property}\n--- given\n{}\n--- wanted\n{}",
        to_text(given),
        to_text(wanted)
    );
}

/// Whether `new` contains every line of `old` in the same order.
fn keeps_lines(old: &[u8], new: &[u8]) -> bool {
    let mut rest = new.split(|byte| *byte == b'\n');
    old.split(|byte| *byte == b'\n')
        .all(|line| rest.any(|other| other == line))
}

fn check(name: &str, text: &[u8], options: &Options) -> usize {
    let outcome = run(text, options).unwrap();
    let failed: Vec<_> = outcome
        .reports
        .iter()
        .filter(|report| report.action == Action::Failed)
        .collect();
    assert!(failed.is_empty(), "{name}: {failed:#?}");
    check_equal(
        "injection is idempotent",
        name,
        &run(&outcome.text, options).unwrap().text,
        &outcome.text,
    );
    let uninject = Options {
        mode: Mode::Uninject,
        ..options.clone()
    };
    check_equal(
        "uninjecting an original changes nothing",
        name,
        &run(text, &uninject).unwrap().text,
        text,
    );
    let back = run(&outcome.text, &uninject).unwrap();
    let property = format!("{name}: the original is restored");
    common::check_restored(&property, &outcome.text, &back.text, text)
        .unwrap_or_else(|error| panic!("{error}"));
    outcome.reports.len()
}

#[test]
fn all_properties_hold_for_every_manifest() {
    let (files, combinations) = (corpus(), combinations());
    let mut workloads = 0;
    for (name, text) in &files {
        for options in &combinations {
            workloads += check(name, text, options);
        }
    }
    println!(
        "corpus: {} manifests, {} runs, {workloads} workloads",
        files.len(),
        files.len() * combinations.len()
    );
    println!(
        "harden round-trip: {} manifests restored with {} sets of options",
        files.len(),
        combinations.len()
    );
    assert!(files.len() >= 200, "{}", files.len());
}

/// Returns the distances to the options of the second run: all if `LAWS` is set, otherwise a sample.
fn second_run_distances(count: usize) -> Vec<usize> {
    let all = std::env::var_os("LAWS").is_some();
    if all { (0..count).collect() } else { vec![1, 4] }
}

#[test]
fn changed_options_converge() {
    let (files, combinations) = (corpus(), combinations());
    let mut pairs = 0;
    for (name, text) in &files {
        let fresh: Vec<_> = combinations
            .iter()
            .map(|options| run(text, options).unwrap())
            .collect();
        for (number, earlier) in fresh.iter().enumerate() {
            for step in second_run_distances(fresh.len()) {
                let next = (number + step) % fresh.len();
                let changed = run(&earlier.text, &combinations[next]).unwrap();
                let property = format!("{name}: changed options converge");
                common::check_converged(&property, &earlier.text, &changed.text, &fresh[next].text)
                    .unwrap_or_else(|error| panic!("{error}"));
                pairs += 1;
            }
        }
    }
    println!("corpus convergence: {pairs} pairs");
    assert!(pairs > files.len() * 8);
}

#[test]
fn only_lines_are_added() {
    let mut compared = 0;
    for (name, text) in corpus() {
        let is_block = !name.contains("json")
            && !name.contains("flow")
            && !text.contains(&b'{')
            && !text.contains(&b'[');
        if !is_block || REPLACED_NAME_PARTS.iter().any(|it| name.contains(it)) {
            continue;
        }
        let outcome = run(&text, &Options::default()).unwrap();
        let kept = text.strip_suffix(b"\n").unwrap_or(&text);
        assert!(
            keeps_lines(kept, &outcome.text),
            "{name}\n{}",
            String::from_utf8_lossy(&outcome.text)
        );
        compared += 1;
    }
    assert!(compared > 50, "{compared}");
}

#[test]
fn the_corpus_has_every_kind_of_outcome() {
    let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
    for (_, text) in corpus() {
        for report in run(&text, &Options::default()).unwrap().reports {
            *reasons.entry(report.reason.code()).or_default() += 1;
        }
    }
    for wanted in [
        "initializer",
        "initializer-and-service-mesh",
        "service-mesh",
        "skip-annotation",
        "runtime-class",
        "coordinator",
    ] {
        assert!(reasons.contains_key(wanted), "{wanted}: {reasons:?}");
    }
}
