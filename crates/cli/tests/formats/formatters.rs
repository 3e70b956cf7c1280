//! Formatters: prettier, kyaml, Helm 4 and yq.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use mainstay_inject::{Action, Options, run};
use mainstay_testkit::formats::YamlReaders;
use mainstay_testkit::peer;
use mainstay_yaml::{Budget, parse_spanned_values};

use crate::{Manifest, injected_corpus, write_all};

/// Runs a command with `stdin`; returns its output if it succeeds.
fn output(command: &mut Command, stdin: &[u8]) -> Option<Vec<u8>> {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut pipe = child.stdin.take().unwrap();
    let stdin = stdin.to_owned();
    let writer = std::thread::spawn(move || drop(pipe.write_all(&stdin)));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    output.status.success().then_some(output.stdout)
}

/// Counts of one formatter.
#[derive(Default)]
struct Counts {
    formatted: usize,
    changed: usize,
    rejected: usize,
}

/// Checks that injecting into a formatted text leaves it unchanged.
#[track_caller]
fn check_unchanged(formatter: &str, name: &str, output: &[u8]) {
    let outcome = run(output, &Options::default()).unwrap();
    let text = String::from_utf8_lossy(output);
    for report in &outcome.reports {
        assert!(
            matches!(report.action, Action::Unchanged | Action::Skipped),
            "{formatter} {name}: {report:#?}\n{text}"
        );
    }
    assert!(&*outcome.text == output, "{formatter} {name}\n{text}");
}

/// Whether a text is valid YAML; kyaml writes invalid YAML when it moves an anchor behind its aliases.
fn is_yaml(text: &[u8]) -> bool {
    parse_spanned_values(text, &Budget::default())
        .is_ok_and(|documents| documents.iter().all(|document| document.value.is_ok()))
}

/// Formats every manifest with `format`. Manifests that the formatter rejects or breaks before injection are
/// not checked.
fn check(formatter: &str, manifests: &[Manifest], format: impl Fn(&str, &[u8]) -> Option<Vec<u8>>) -> Counts {
    let mut counts = Counts::default();
    for manifest in manifests {
        let format = |text: &[u8]| format(&manifest.name, text).filter(|output| is_yaml(output));
        let Some(output) = format(&manifest.injected) else {
            let plain = format(&manifest.plain);
            assert!(
                plain.is_none(),
                "{formatter} {}: rejected after injection",
                manifest.name
            );
            counts.rejected += 1;
            continue;
        };
        check_unchanged(formatter, &manifest.name, &output);
        counts.formatted += 1;
        counts.changed += usize::from(output != manifest.injected);
    }
    counts
}

#[test]
fn reformatted_output_is_unchanged() {
    let manifests = injected_corpus();
    let (kyaml, yq) = (peer("formats").unwrap(), peer("yq").unwrap());
    let counts = [
        (
            "kyaml",
            check("kyaml", &manifests, |_, text| {
                output(Command::new(&kyaml).arg("fmt"), text)
            }),
        ),
        (
            "yq",
            check("yq", &manifests, |name, text| {
                let kind = if Path::new(name).extension().is_some_and(|it| it == "json") {
                    "json"
                } else {
                    "yaml"
                };
                output(Command::new(&yq).args(["-P", "-p", kind, "-o", kind, "."]), text)
            }),
        ),
        ("prettier", prettier(&manifests)),
        ("helm 4", helm(&manifests)),
    ];
    let shown = counts.map(|(formatter, counts)| {
        assert!(
            counts.changed > 20,
            "{formatter} changed {} files",
            counts.changed
        );
        let Counts {
            formatted, changed, ..
        } = counts;
        format!("{formatter} {formatted} ({changed} reformatted)")
    });
    println!("harden formatters: {}", shown.join(", "));
}

/// Formats the whole directory in one prettier process, because starting it takes longer than formatting.
fn prettier(manifests: &[Manifest]) -> Counts {
    let directory = tempfile::tempdir().unwrap();
    let formatted = |kind: &str, text: fn(&Manifest) -> &[u8]| {
        let directory = directory.path().join(kind);
        write_all(&directory, manifests, text);
        // prettier fails if it rejects a file, but writes the others.
        let _ = YamlReaders::fetch()
            .unwrap()
            .prettier()
            .args(["--write", "--log-level", "error", "."])
            .current_dir(&directory)
            .output()
            .unwrap();
        directory
    };
    let (plain, injected) = (
        formatted("plain", |one| &one.plain),
        formatted("injected", |one| &one.injected),
    );
    let mut counts = Counts::default();
    for manifest in manifests {
        let read = |directory: &Path| fs::read(directory.join(&manifest.name)).unwrap();
        let text = read(&injected);
        check_unchanged("prettier", &manifest.name, &text);
        let is_changed = text != manifest.injected;
        // A file that prettier formats before injection must also be formatted after it.
        assert!(
            is_changed || read(&plain) == manifest.plain,
            "prettier {}: not formatted after injection",
            manifest.name
        );
        counts.formatted += 1;
        counts.changed += usize::from(is_changed);
    }
    counts
}

const PLUGIN: &str = "apiVersion: v1
type: postrenderer/v1
name: copy
version: 0.1.0
runtime: subprocess
runtimeConfig:
  platformCommand:
  - command: cat
";
const TEMPLATE: &str = "{{ range $path, $_ := .Files.Glob \"manifests/*\" }}
---
{{ $.Files.Get $path }}
{{ end }}
";

/// Formats with Helm 4, which reformats the input and the output of a post-renderer.
fn helm(manifests: &[Manifest]) -> Counts {
    let directory = tempfile::tempdir().unwrap();
    let at = |path: &str| directory.path().join(path);
    fs::create_dir_all(at("chart/templates")).unwrap();
    fs::create_dir_all(at("data/plugins/copy")).unwrap();
    fs::write(
        at("chart/Chart.yaml"),
        "apiVersion: v2\nname: c\nversion: 1.0.0\n",
    )
    .unwrap();
    fs::write(at("chart/templates/all.yaml"), TEMPLATE).unwrap();
    fs::write(at("data/plugins/copy/plugin.yaml"), PLUGIN).unwrap();
    let (helm, kyaml) = (peer("helm4").unwrap(), peer("formats").unwrap());
    // Helm rejects all manifests if it cannot read one of them.
    let readable = |manifest: &&Manifest| {
        let text = &manifest.injected;
        !text.starts_with(b"%") && output(Command::new(&kyaml).arg("fmt"), text).is_some()
    };
    let mut counts = Counts::default();
    for manifest in manifests.iter().filter(readable) {
        let path = at("chart/manifests");
        fs::create_dir_all(&path).unwrap();
        fs::write(path.join(&manifest.name), &manifest.injected).unwrap();
        counts.formatted += 1;
    }
    let mut command = Command::new(&helm);
    command
        .args(["template", "c", "chart", "--post-renderer", "copy"])
        .current_dir(directory.path());
    for (variable, path) in [("DATA", "data"), ("CONFIG", "config"), ("CACHE", "cache")] {
        command.env(format!("HELM_{variable}_HOME"), at(path));
    }
    let done = command.output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    check_unchanged("helm 4", "stream", &done.stdout);
    counts.changed = counts.formatted;
    counts
}
