//! Readers: `PyYAML`, ruamel, js-yaml 4 and 5, Go yaml 3 and 4, jq; and yamllint.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use mainstay_testkit::formats::YamlReaders;
use mainstay_testkit::peer;
use mainstay_yaml::{Budget, parse_spanned_values, to_json};
use serde_json::Value;

use crate::{Manifest, injected_corpus, write_all};

/// Objects or error that a reader reported for a file.
struct Reading {
    documents: Vec<Value>,
    error: Option<String>,
}

/// Readings by reader and file name.
type Readings = BTreeMap<(String, String), Reading>;

/// Runs all readers over the files of a directory.
fn read_all(directory: &Path, manifests: &[Manifest]) -> Readings {
    let readers = YamlReaders::fetch().unwrap();
    let mut go = Command::new(peer("formats").unwrap());
    go.arg("read");
    let mut readings = Readings::new();
    for mut command in [readers.python(), readers.node(), go] {
        let files = manifests.iter().map(|manifest| directory.join(&manifest.name));
        let output = command.args(files).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{errors}");
        for line in String::from_utf8(output.stdout).unwrap().lines() {
            let (key, reading) = parse_line(line);
            readings.insert(key, reading);
        }
    }
    readings
}

fn parse_line(line: &str) -> ((String, String), Reading) {
    let value: Value = serde_json::from_str(line).unwrap();
    let text = |field: &str| value.get(field).and_then(Value::as_str).map(str::to_owned);
    let file = text("file").unwrap();
    let name = Path::new(&file)
        .file_name()
        .unwrap()
        .to_string_lossy()
        .into_owned();
    let documents = value.get("documents").and_then(Value::as_array).cloned();
    let reading = Reading {
        documents: documents.unwrap_or_default(),
        error: text("error"),
    };
    ((text("reader").unwrap(), name), reading)
}

/// Parses a text with our own parser.
fn own(text: &[u8]) -> Vec<Value> {
    let documents = parse_spanned_values(text, &Budget::default()).unwrap();
    let json = documents
        .into_iter()
        .map(|document| to_json(&document.value.unwrap()).unwrap());
    json.map(|json| serde_json::from_str(&json).unwrap()).collect()
}

/// Returns how often each scalar occurs, by path. List items are identified by their name.
fn scalars(documents: &[Value]) -> BTreeMap<String, i64> {
    let mut counts = BTreeMap::new();
    for document in documents {
        count(document, "", &mut counts);
    }
    counts
}

fn count(value: &Value, path: &str, counts: &mut BTreeMap<String, i64>) {
    match value {
        Value::Object(fields) => {
            for (key, item) in fields {
                count(item, &format!("{path}.{key}"), counts);
            }
        }
        Value::Array(items) => {
            for item in items {
                let name = item.get("name").and_then(Value::as_str).unwrap_or("*");
                count(item, &format!("{path}[{name}]"), counts);
            }
        }
        scalar => *counts.entry(format!("{path}={scalar}")).or_default() += 1,
    }
}

/// Returns the scalars that injection adds (positive) and removes (negative).
fn difference(plain: &[Value], injected: &[Value]) -> BTreeMap<String, i64> {
    let mut counts = scalars(injected);
    for (scalar, times) in scalars(plain) {
        *counts.entry(scalar).or_default() -= times;
    }
    counts.retain(|_, times| *times != 0);
    counts
}

#[test]
fn every_reader_finds_the_same_objects() {
    let manifests = injected_corpus();
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    write_all(&at("plain"), &manifests, |manifest| &manifest.plain);
    write_all(&at("injected"), &manifests, |manifest| &manifest.injected);
    let before = read_all(&at("plain"), &manifests);
    let after = read_all(&at("injected"), &manifests);
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for manifest in &manifests {
        let expected = difference(&own(&manifest.plain), &own(&manifest.injected));
        for ((reader, _), reading) in after.iter().filter(|((_, name), _)| *name == manifest.name) {
            let plain = &before[&(reader.clone(), manifest.name.clone())];
            let is_read = check(reader, manifest, [plain, reading], &expected);
            *counts.entry(reader).or_default() += usize::from(is_read);
        }
    }
    let shown: Vec<String> = counts
        .iter()
        .map(|(reader, count)| format!("{reader} {count}"))
        .collect();
    assert_eq!(counts.len(), 9, "{shown:?}");
    assert!(
        counts
            .iter()
            .all(|(reader, count)| *count > if *reader == "jq" { 10 } else { 100 }),
        "{shown:?}"
    );
    println!("harden parsers: {}", shown.join(", "));
}

/// Checks one reading; returns whether the reader understands the file.
fn check(
    reader: &str,
    manifest: &Manifest,
    [plain, injected]: [&Reading; 2],
    expected: &BTreeMap<String, i64>,
) -> bool {
    let name = &manifest.name;
    let text = String::from_utf8_lossy(&manifest.injected);
    if reader == "yamllint" {
        let new = injected
            .documents
            .iter()
            .find(|problem| !plain.documents.contains(problem));
        assert_eq!(new, None, "{reader} {name}\n{text}");
        return true;
    }
    if plain.error.is_some() {
        return false;
    }
    assert_eq!(injected.error, None, "{reader} {name}\n{text}");
    let found = difference(&plain.documents, &injected.documents);
    assert_eq!(&found, expected, "{reader} {name}\n{text}");
    true
}
