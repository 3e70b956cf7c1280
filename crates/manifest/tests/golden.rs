//! Golden test of every profile with each configuration in `tests/golden`. The stored files contain the
//! changes relative to the profile alone; `MAINSTAY_BLESS=1` writes them.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "tests fail by panicking, and read and write stored files"
)]

#[path = "support/mod.rs"]
mod support;

use std::fs;

use mainstay_manifest::Profiles;
use support::{Case, Objects, differences, identified, with_package};

/// Expression that excludes CRDs. They do not depend on the configuration and would take most of the time.
const WITHOUT_CRDS: &str = "values.base.enableIstioConfigCRDs=false";

/// Generates a profile with an optional configuration. Returns the objects and the printed diagnostics.
fn generate(profile: &str, case: Option<&Case>) -> (Objects, String) {
    with_package(|package| {
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
fn changes(profile: &str, base: &Objects, case: &Case) -> String {
    let (objects, printed) = generate(profile, Some(case));
    let mut text = format!("== {profile}\n");
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

#[test]
fn every_profile_with_every_configuration() {
    let cases = Case::read_all("golden");
    let profiles = with_package(|package| package.profile_names().unwrap());
    let bases: Vec<(&String, Objects)> = profiles
        .iter()
        .map(|name| (name, generate(name, None).0))
        .collect();
    let mut wrong = Vec::new();
    for case in &cases {
        let found: String = bases
            .iter()
            .map(|(profile, base)| changes(profile, base, case))
            .collect();
        let stored = case.path.with_extension("txt");
        if std::env::var_os("MAINSTAY_BLESS").is_some() {
            fs::write(&stored, &found).unwrap();
        }
        if fs::read_to_string(&stored).unwrap_or_default() != found {
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
