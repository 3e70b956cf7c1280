//! Compares generated objects with those of the real `istioctl manifest generate`, for the same charts.
//!
//! The results for `tests/inputs` must be equal object for object. Those for `tests/deviations` differ on
//! purpose: the headers of these files (`# differs: …`) list every difference, and COMPATIBILITY.md states
//! the reasons.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    reason = "tests fail by panicking"
)]

#[path = "support/mod.rs"]
mod support;

use std::path::Path;
use std::process::Command;
use std::sync::Mutex;

use mainstay_catalog::{Catalog, Flavour, Version};
use mainstay_testkit::peer;
use support::{Case, Objects, VERSION, differences, identified, parse_objects};

/// Directories of the charts in the upstream repository.
const CHARTS: &[(&str, &str)] = &[
    ("base", "base"),
    ("istiod", "istio-control/istio-discovery"),
    ("istio-ingress", "gateways/istio-ingress"),
    ("istio-egress", "gateways/istio-egress"),
    ("cni", "istio-cni"),
    ("ztunnel", "ztunnel"),
];

/// Writes profiles and charts in the layout that `istioctl --manifests` expects.
fn write_package(directory: &Path) {
    let catalog = Catalog::embedded().unwrap();
    let version: Version = VERSION.parse().unwrap();
    for (chart, path) in CHARTS {
        for (name, data) in catalog.chart(&version, Flavour::Installer, chart).unwrap() {
            let file = directory.join("charts").join(path).join(name);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, data).unwrap();
        }
    }
    std::fs::create_dir_all(directory.join("profiles")).unwrap();
    for profile in catalog.profiles(&version, Flavour::Installer).unwrap() {
        let text = catalog.profile(&version, Flavour::Installer, &profile).unwrap();
        std::fs::write(directory.join(format!("profiles/{profile}.yaml")), text).unwrap();
    }
}

struct Istioctl {
    program: std::path::PathBuf,
    package: tempfile::TempDir,
}

impl Istioctl {
    fn new() -> Self {
        let package = tempfile::tempdir().unwrap();
        write_package(package.path());
        Self {
            program: peer("istioctl").unwrap(),
            package,
        }
    }

    fn generate(&self, case: &Case) -> Result<Objects, String> {
        let mut command = Command::new(&self.program);
        command
            .args(["manifest", "generate", "--manifests"])
            .arg(self.package.path());
        for file in case.files() {
            command.arg("-f").arg(file);
        }
        for set in case.all("set") {
            command.args(["--set", &set]);
        }
        if let Some(revision) = case.one("revision") {
            command.args(["--revision", &revision]);
        }
        if case.one("force").is_some() {
            command.arg("--force");
        }
        let output = command.output().unwrap();
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned());
        }
        Ok(identified(parse_objects(&String::from_utf8_lossy(
            &output.stdout,
        ))))
    }
}

/// Returns the differences of a case. An error of either program counts as a difference.
fn compare(istioctl: &Istioctl, case: &Case) -> Vec<String> {
    let ours = case.generate();
    match (ours, istioctl.generate(case)) {
        (Ok(ours), Ok(theirs)) => {
            assert!(
                !theirs.is_empty() || case.one("empty").is_some(),
                "{}: no objects",
                case.name
            );
            let objects = ours.sorted_objects().into_iter().map(|object| object.0.clone());
            differences(&identified(objects), &theirs)
        }
        (Err(error), Ok(_)) => error.to_string().lines().map(ToOwned::to_owned).collect(),
        (Ok(_), Err(error)) => vec![format!(
            "istioctl fails: {}",
            error.lines().next().unwrap_or_default()
        )],
        (Err(ours), Err(theirs)) => vec![format!("both fail: {ours} / {theirs}")],
    }
}

/// Compares all cases on two threads.
fn compare_all(cases: Vec<Case>) -> Vec<(Case, Vec<String>)> {
    let istioctl = Istioctl::new();
    let (queue, results) = (Mutex::new(cases), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let next = queue.lock().unwrap().pop();
                    let Some(case) = next else { break };
                    let found = compare(&istioctl, &case);
                    results.lock().unwrap().push((case, found));
                }
            });
        }
    });
    results.into_inner().unwrap()
}

#[test]
fn inputs_are_equal_object_for_object() {
    let results = compare_all(Case::read_all("inputs"));
    let different: Vec<_> = results.iter().filter(|(_, found)| !found.is_empty()).collect();
    println!(
        "differential manifest generate and istioctl: {} run, {} equal",
        results.len(),
        results.len() - different.len()
    );
    for (case, found) in &different {
        println!("== {}", case.name);
        found.iter().take(12).for_each(|line| println!("   {line}"));
    }
    assert!(different.is_empty(), "{} inputs differ", different.len());
    assert!(results.len() >= 60, "only {} inputs", results.len());
}

#[test]
fn deviations_differ_exactly_as_listed() {
    let cases = Case::read_all("deviations");
    assert!(!cases.is_empty());
    let (count, mut wrong) = (cases.len(), 0);
    for (case, found) in compare_all(cases) {
        let mut listed = case.all("differs");
        let mut found = found;
        listed.sort();
        found.sort();
        if std::env::var_os("MAINSTAY_BLESS").is_some() {
            case.write_headers("differs", &found);
            continue;
        }
        assert!(!listed.is_empty(), "{}: lists no difference", case.name);
        if listed != found {
            wrong += 1;
            println!("== {}", case.name);
            for line in &found {
                println!("# differs: {line}");
            }
        }
    }
    println!(
        "deviations from istioctl: {count} run, {} as listed",
        count - wrong
    );
    assert_eq!(wrong, 0);
}
