//! Golden tests of every profile with each configuration in `tests/golden`, and of every pinned version with
//! each configuration in `tests/minors`. The stored files contain the changes relative to the profile alone;
//! `MAINSTAY_BLESS=1` writes them.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "tests fail by panicking, and read and write stored files"
)]

#[path = "support/mod.rs"]
mod support;

use std::fs;

use mainstay_catalog::Catalog;
use mainstay_manifest::{CatalogPackage, Profiles};
use support::{Case, Objects, VERSION, differences, identified, with_package, with_version};

/// Expression that excludes CRDs. They do not depend on the configuration and would take most of the time.
const WITHOUT_CRDS: &str = "values.base.enableIstioConfigCRDs=false";

/// Generates a profile with an optional configuration. Returns the objects and the printed diagnostics.
fn generate(version: &str, profile: &str, case: Option<&Case>) -> (Objects, String) {
    with_version(version, |package: &CatalogPackage<'_>| {
        let mut request = match case {
            Some(case) => case.request(package),
            None => mainstay_manifest::Request::new(package),
        };
        request.sets = vec![format!("profile={profile}"), WITHOUT_CRDS.into()];
        match mainstay_manifest::generate(&request) {
            Ok(rendered) => {
                let objects = rendered
                    .sorted_objects()
                    .into_iter()
                    .map(|object| object.0.clone());
                (identified(objects), rendered.warnings.to_string())
            }
            Err(problems) => (Objects::new(), problems.to_string()),
        }
    })
}

/// Returns the changes of a configuration in a profile, one per line.
fn changes(version: &str, profile: &str, base: &Objects, case: &Case) -> String {
    let (objects, printed) = generate(version, profile, Some(case));
    let mut text = String::new();
    for line in differences(&objects, base) {
        let line = line
            .replace("only in istioctl", "removed")
            .replace("only here", "added");
        text.push_str(
            &line
                .replace(" here, ", " instead of ")
                .replace(" in istioctl", ""),
        );
        text.push('\n');
    }
    text.extend(printed.lines().flat_map(|line| ["! ", line, "\n"]));
    text
}

/// Compares text with the stored file of a case, or writes the file.
fn equals_stored(case: &Case, found: &str) -> bool {
    let stored = case.path.with_extension("txt");
    if std::env::var_os("MAINSTAY_BLESS").is_some() {
        fs::write(&stored, found).unwrap();
    }
    fs::read_to_string(&stored).unwrap_or_default() == found
}

#[test]
fn every_profile_with_every_configuration() {
    let cases = Case::read_all("golden");
    let profiles = with_package(|package| package.profile_names().unwrap());
    let bases: Vec<(&String, Objects)> = profiles
        .iter()
        .map(|name| (name, generate(VERSION, name, None).0))
        .collect();
    let mut wrong = Vec::new();
    for case in &cases {
        let found = bases.iter().flat_map(|(profile, base)| {
            let changes = changes(VERSION, profile, base, case);
            [format!("== {profile}\n"), changes]
        });
        if !equals_stored(case, &found.collect::<String>()) {
            wrong.push(case.name.clone());
        }
    }
    let count = cases.len() * profiles.len();
    println!(
        "golden manifests: {count} run, {} equal",
        count - wrong.len() * profiles.len()
    );
    assert!(cases.len() >= 8 && profiles.len() >= 10, "{} cases", cases.len());
    assert!(wrong.is_empty(), "changed: {}", wrong.join(", "));
}

/// Rules of translation may differ between minor versions.
#[test]
fn every_version_with_every_configuration() {
    let versions = Catalog::embedded().unwrap().installable();
    let versions: Vec<String> = versions.iter().map(|one| one.version.to_string()).collect();
    let cases = Case::read_all("minors");
    for case in &cases {
        let found = versions.iter().flat_map(|version| {
            let (base, _) = generate(version, "minimal", None);
            let changes = changes(version, "minimal", &base, case);
            [format!("== {version}\n"), changes]
        });
        assert!(equals_stored(case, &found.collect::<String>()), "{}", case.name);
    }
    assert!(!cases.is_empty() && versions.len() >= 7, "{versions:?}");
}
