//! Tests every rule with a passing and a failing fixture in `tests/validation`. The expected output of a
//! failing fixture is stored next to it; `MAINSTAY_BLESS=1` writes it.
//!
//! Headers of a fixture describe a cluster: `# calico: KEY=VALUE` and `# cilium: KEY=VALUE` are settings of
//! network plugins, `# live-webhook: FILE` is a webhook configuration in `tests/validation/files`. With
//! `# chart: NAME`, the fixture contains values of that chart instead of an `IstioOperator`.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::case_sensitive_file_extension_comparisons,
    reason = "tests fail by panicking"
)]

#[path = "support/mod.rs"]
mod support;

use std::collections::BTreeMap;
use std::fs;

use mainstay_catalog::{Catalog, Flavour};
use mainstay_chart::{Capabilities, Dialect, File, PrepareOptions, load_files, load_values, prepare};
use mainstay_gostd::error::chain;
use mainstay_manifest::{
    EligibilityFinding, InstallationPlan, NetworkSettings, Rendered, Severity, check_network, check_webhooks,
};
use mainstay_yaml::Value;
use support::{Case, VERSION, parse_objects};

/// Number and name of each rule. The names of its fixtures start with both.
const RULES: &[(usize, &str)] = &[
    (1, "unknown-field"),
    (2, "values"),
    (3, "mesh-config"),
    (4, "mesh-config-meaning"),
    (5, "hub"),
    (6, "tag"),
    (7, "revision"),
    (8, "gateway-name"),
    (9, "ip-ranges"),
    (10, "inbound-ports"),
    (11, "gateway-ports"),
    (12, "ingress-ports"),
    (13, "replicas"),
    (14, "deprecated-values"),
    (15, "removed-values"),
    (16, "certificate-provider"),
    (17, "kubernetes-types"),
    (18, "network-plugins"),
    (19, "several-objects"),
    (20, "set"),
    (21, "profile"),
    (22, "chart"),
    (23, "internal-defaults"),
    (24, "gateway-schema"),
    (25, "webhook-overlap"),
    // The rules above are also istioctl's or Helm's.
    (26, "kind"),
    (27, "yaml"),
    (28, "overlays"),
    (29, "settings-without-effect"),
    (30, "force"),
    (31, "features"),
    (32, "removed-fields"),
];

/// Result of a fixture.
struct Outcome {
    is_accepted: bool,
    /// Warnings, errors and findings with their hints, one per line.
    printed: String,
}

impl Outcome {
    fn new(is_accepted: bool, lines: &[String]) -> Self {
        let lines = lines.iter().filter(|line| !line.is_empty());
        Self {
            is_accepted,
            printed: lines.flat_map(|line| [line.as_str(), "\n"]).collect(),
        }
    }

    fn from_case(case: &Case) -> Self {
        if let Some(chart) = case.one("chart") {
            return match prepare_chart(&chart, case.text.as_bytes()) {
                Ok(()) => Self::new(true, &[]),
                Err(message) => Self::new(false, &[message]),
            };
        }
        match case.generate() {
            Ok(rendered) => {
                let warnings = rendered.warnings.to_string();
                let findings = check_cluster(case, rendered);
                let is_accepted = findings.iter().all(|one| one.severity < Severity::Error);
                let lines: Vec<String> = [warnings]
                    .into_iter()
                    .chain(findings.iter().map(print_finding))
                    .collect();
                Self::new(is_accepted, &lines)
            }
            Err(problems) => Self::new(false, &[problems.to_string()]),
        }
    }
}

/// Validates the values of a chart against its schema.
fn prepare_chart(name: &str, values: &[u8]) -> Result<(), String> {
    let dialect = Dialect::Helm3;
    let catalog = Catalog::embedded().unwrap();
    let files = catalog
        .chart(&VERSION.parse().unwrap(), Flavour::Installer, name)
        .unwrap();
    let files = files.iter().map(|(name, data)| File::new(name, data)).collect();
    let options = PrepareOptions {
        dialect,
        kube_version: Capabilities::offline(dialect).kube_version,
        skip_schema: false,
    };
    let values = load_values(values, dialect).unwrap();
    let loaded = load_files(files, dialect).unwrap();
    let prepared = prepare(&loaded, &values, &options, &mut Vec::new());
    prepared
        .map(drop)
        .map_err(|error| chain(&error).trim_end().to_owned())
}

/// Returns the findings about the cluster that the headers describe.
fn check_cluster(case: &Case, rendered: Rendered) -> Vec<EligibilityFinding> {
    let plan = InstallationPlan::new(rendered, VERSION);
    let settings = |key: &str| -> BTreeMap<String, String> {
        let pairs = case.all(key).into_iter();
        let pairs = pairs.map(|pair| {
            let (key, value) = pair.split_once('=').unwrap();
            (key.to_owned(), value.to_owned())
        });
        pairs.collect()
    };
    let network = NetworkSettings {
        calico: settings("calico"),
        cilium: settings("cilium"),
    };
    let directory = case.path.parent().unwrap().join("files");
    let files = case.all("live-webhook").into_iter();
    let live: Vec<Value> = files
        .flat_map(|name| parse_objects(&fs::read_to_string(directory.join(name)).unwrap()))
        .collect();
    let mut findings = check_network(&network, &plan);
    if !live.is_empty() {
        findings.extend(check_webhooks(&plan, live));
    }
    findings
}

fn print_finding(finding: &EligibilityFinding) -> String {
    let text = format!("{}: {}", finding.severity, finding.message);
    match &finding.hint {
        Some(hint) => format!("{text}\n  hint: {hint}"),
        None => text,
    }
}

#[test]
fn fixtures_print_the_stored_text() {
    let cases = Case::read_all("validation");
    let mut wrong = Vec::new();
    for case in &cases {
        let Outcome { is_accepted, printed } = Outcome::from_case(case);
        let stored = case.path.with_extension("txt");
        let prints = case.name.ends_with(".fail") || case.one("warns").is_some();
        assert_eq!(prints, !printed.is_empty(), "{}: {printed}", case.name);
        if case.name.ends_with(".pass") {
            assert!(is_accepted, "{}: {printed}", case.name);
        }
        if !prints {
            continue;
        }
        if std::env::var_os("MAINSTAY_BLESS").is_some() {
            fs::write(&stored, &printed).unwrap();
        }
        if fs::read_to_string(&stored).unwrap_or_default() != printed {
            wrong.push(format!("== {}\n{printed}", case.name));
        }
    }
    println!(
        "validation fixtures: {} run, {} equal",
        cases.len(),
        cases.len() - wrong.len()
    );
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_rule_has_a_passing_and_a_failing_fixture() {
    let cases = Case::read_all("validation");
    for case in &cases {
        let has_name = |rule: &&(usize, &str)| case.name.starts_with(&format!("{:02}-{}", rule.0, rule.1));
        assert!(
            RULES.iter().any(|rule| has_name(&rule)),
            "{}: no such rule",
            case.name
        );
    }
    for (index, (number, name)) in RULES.iter().enumerate() {
        assert_eq!(*number, index + 1, "{name}");
        let count = |result: &str| {
            let prefix = format!("{number:02}-");
            let named = cases.iter().filter(|case| case.name.starts_with(&prefix));
            named.filter(|case| case.name.ends_with(result)).count()
        };
        let (pass, fail) = (count(".pass"), count(".fail"));
        assert!(
            pass > 0 && fail > 0,
            "rule {number} {name}: {pass} pass, {fail} fail"
        );
    }
    assert_eq!(RULES.len(), 32);
}
