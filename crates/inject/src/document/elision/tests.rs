//! Compares the results of elided documents with those of whole documents, for stored inputs and random
//! changes of them.

#![allow(clippy::disallowed_methods, reason = "inputs are files")]

use std::fs;
use std::path::{Path, PathBuf};

use super::*;
use crate::document::{process_long, process_whole};
use crate::{LATER, Mode, Options};

/// A pod with values of every kind in and around its lists.
const POD: &str = "apiVersion: apps/v1\nkind: StatefulSet\nmetadata:\n  name: a\n  labels:\n    app: a\n    tier: b\nspec:\n  selector:\n    matchLabels:\n      app: a\n  template:\n    metadata:\n      labels: {app: a}\n      annotations:\n        contrast.edgeless.systems/servicemesh-ingress: |-\n          web#8080#false##\n          api#9090#true\n    spec:\n      runtimeClassName: contrast-cc\n      affinity:\n        nodeAffinity:\n          x: y\n      containers:\n      - name: app\n        args:\n        - |\n          echo a\n\n          echo b\n\n        env:\n        - name: A\n          value: \"b\"\n        # the end of the environment\n      - env:\n        - name: B\n          value: c\n        name: two\n        command: [a, b]\n        volumeMounts:\n        - name: x\n          mountPath: /y\n        resources:\n          limits:\n            cpu: 100m\n      - name: three\n        command:\n        - sh\n        - -c\n        - >-\n          one\n          two\n      volumes:\n      - name: x\n        configMap:\n          name: y\n          items:\n          - key: a\n            path: b\n      tolerations:\n      - key: a\n        operator: Exists\n---\n";

/// A pod with the same structure in JSON.
const JSON: &str = "{\"apiVersion\": \"v1\", \"kind\": \"Pod\", \"metadata\": {\"name\": \"p\", \"labels\": {\"a\": \"b\"}}, \"spec\": {\n  \"runtimeClassName\": \"contrast-cc\", \"affinity\": {\"a\": [1, 2]},\n  \"initContainers\": [{\"name\": \"contrast-initializer\", \"env\": [{\"name\": \"A\", \"value\": \"b\"}]}],\n  \"containers\": [{\"name\": \"app\", \"env\": [\n    {\"name\": \"A\"}\n  ], \"args\": [\"a\"]}, {\"env\": [], \"name\": \"two\"}], \"tolerations\": [{\"key\": \"a\"}]}}\n";

fn options() -> Vec<Options> {
    let later = || Options {
        profile: &LATER,
        ..Options::default()
    };
    let uninject = |options: Options| Options {
        mode: Mode::Uninject,
        ..options
    };
    vec![
        Options::default(),
        later(),
        uninject(Options::default()),
        uninject(later()),
    ]
}

/// Number of processed texts, and number of those with elided values.
#[derive(Default)]
struct Counts {
    texts: usize,
    elided: usize,
}

/// Checks that elision does not change the result of a document.
fn check(text: &[u8], options: &Options, min: usize, count: &mut Counts) -> Option<Vec<u8>> {
    count.texts += 1;
    let whole = process_whole(text, options);
    if let Some(elided) = process_elided(text, &[], min, |text| process_whole(text, options)) {
        count.elided += 1;
        let input = String::from_utf8_lossy(text);
        let text = |processed: &Processed| {
            processed
                .text
                .as_deref()
                .map(|text| String::from_utf8_lossy(text).into_owned())
        };
        assert_eq!(text(&elided), text(&whole), "from\n{input}");
        assert_eq!(
            format!("{:#?}", elided.reports),
            format!("{:#?}", whole.reports),
            "from\n{input}"
        );
        assert_eq!(elided.items, whole.items);
    }
    whole.apply_failure().text
}

/// Checks a document with all options; an injected document is injected again and uninjected.
fn check_all(text: &[u8], min: usize, count: &mut Counts) {
    for range in crate::split::documents(text) {
        let Some(document) = text.get(range) else { continue };
        for options in options() {
            let new = check(document, &options, min, count);
            if let Some(new) = new.filter(|_| options.mode == Mode::Inject) {
                check(&new, &options, min, count);
                let uninject = Options {
                    mode: Mode::Uninject,
                    ..options
                };
                check(&new, &uninject, min, count);
            }
        }
    }
}

fn inputs(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(inputs(&path));
        } else {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Returns every input of the crate's tests and the stored cases of the fuzz targets.
fn stored_inputs() -> Vec<Vec<u8>> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let directories = ["tests/tables", "tests/corpus", "../../fuzz/cases/inject"].map(|name| here.join(name));
    let paths = directories.iter().flat_map(|directory| inputs(directory));
    let inputs = paths.filter(|path| path.extension().is_none_or(|ending| ending != "says"));
    inputs.map(|path| fs::read(path).unwrap()).collect()
}

#[test]
fn elided_documents_have_the_same_result() {
    let mut count = Counts::default();
    for text in stored_inputs().into_iter().chain([POD.into(), JSON.into()]) {
        for min in [1, 24] {
            check_all(&text, min, &mut count);
        }
    }
    println!("elision: {} of {} texts", count.elided, count.texts);
    assert!(
        count.elided > count.texts / 8,
        "{} of {}",
        count.elided,
        count.texts
    );
}

#[test]
fn changed_documents_have_the_same_result() {
    const CASES: usize = 1_000;
    let mut state: u64 = 0x2545_F491_4F6C_DD1D;
    let mut below = |limit: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % limit.max(1) as u64) as usize
    };
    let parts: [&[u8]; 18] = [
        b"\n",
        b" ",
        b"# c\n",
        b"- ",
        b"  ",
        b"x: y\n",
        b" # mainstay:injected",
        b"|+",
        b"|",
        b"name: contrast-initializer\n",
        b"\n\n",
        b"contrast-",
        b"\"",
        b", ",
        b"volumeMounts:\n",
        b"{}",
        b"null",
        b"env:\n",
    ];
    let mut seeds: Vec<Vec<u8>> = stored_inputs()
        .into_iter()
        .filter(|text| text.len() < 4_000)
        .collect();
    seeds.extend(std::iter::repeat_n([POD, JSON].map(Vec::from), 20).flatten());
    let mut count = Counts::default();
    for _ in 0..CASES {
        let mut text = seeds.get(below(seeds.len())).unwrap().clone();
        for _ in 0..=below(2) {
            let mut lines: Vec<Vec<u8>> = text
                .split_inclusive(|byte| *byte == b'\n')
                .map(<[u8]>::to_vec)
                .collect();
            match below(4) {
                0 if lines.len() > 1 => {
                    let line = lines.remove(below(lines.len()));
                    let at = below(lines.len() + 1);
                    lines.insert(at, line);
                    text = lines.concat();
                }
                1 if !lines.is_empty() => {
                    let line = lines.get(below(lines.len())).unwrap().clone();
                    let at = below(lines.len() + 1);
                    lines.insert(at, line);
                    text = lines.concat();
                }
                2 if !text.is_empty() => {
                    text.remove(below(text.len()));
                }
                _ => {
                    let at = below(text.len() + 1);
                    text.splice(at..at, parts.get(below(parts.len())).unwrap().iter().copied());
                }
            }
        }
        check_all(&text, 1 + below(40), &mut count);
    }
    println!(
        "elision of changed documents: {} of {} texts",
        count.elided, count.texts
    );
    assert!(
        count.elided > count.texts / 20,
        "{} of {}",
        count.elided,
        count.texts
    );
}

#[test]
fn long_lists_are_elided_before_they_are_divided() {
    let pod = POD.trim_end_matches("---\n").trim_end();
    let items = format!("- {}\n", pod.replace('\n', "\n  ")).repeat(400);
    let text = format!("apiVersion: v1\nkind: List\nitems:\n{items}");
    let options = Options::default();
    let elided = process_elided(text.as_bytes(), &[], 1, |text| process_long(text, &options)).unwrap();
    let whole = process_long(text.as_bytes(), &options);
    assert_eq!(elided.text, whole.text);
    assert!(elided.text.is_some_and(|new| new.len() > text.len()));
    assert_eq!(format!("{:?}", elided.reports), format!("{:?}", whole.reports));
}
