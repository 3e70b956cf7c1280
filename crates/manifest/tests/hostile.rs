//! Tests that hostile input results in an error or in bounded output. The bounds are those of `limits`, and
//! are verified by counters and messages, not by time.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::format_push_string,
    clippy::format_collect,
    reason = "tests fail by panicking"
)]

#[path = "support/mod.rs"]
mod support;

use mainstay_manifest::limits::{MAX_DIAGNOSTICS, MAX_STEPS};
use mainstay_manifest::{Diagnostics, InputFile, Rendered, Request, generate};
use support::with_package;

const HEAD: &str = "apiVersion: install.istio.io/v1alpha1\nkind: IstioOperator\nspec:\n  profile: empty\n";

/// A case: a file, `--set` expressions, and a part of the expected error message, or `None` if the case
/// succeeds.
struct Hostile {
    name: &'static str,
    text: Vec<u8>,
    sets: Vec<String>,
    message: Option<&'static str>,
}

fn file(name: &'static str, text: impl Into<Vec<u8>>, message: Option<&'static str>) -> Hostile {
    Hostile {
        name,
        text: text.into(),
        sets: Vec::new(),
        message,
    }
}

fn spec(name: &'static str, spec: &str, message: Option<&'static str>) -> Hostile {
    file(name, format!("{HEAD}{spec}"), message)
}

fn sets(name: &'static str, sets: Vec<String>, message: Option<&'static str>) -> Hostile {
    Hostile {
        sets,
        ..spec(name, "", message)
    }
}

fn set(name: &'static str, text: &str, message: Option<&'static str>) -> Hostile {
    sets(name, vec![text.to_owned()], message)
}

/// Returns a case with overlays of ztunnel, because its chart is small.
fn overlay(name: &'static str, patches: &str, message: Option<&'static str>) -> Hostile {
    let text = format!(
        "  components:\n    ztunnel:\n      enabled: true\n      k8s:\n        overlays:\n        - kind: DaemonSet\n          name: ztunnel\n          patches: {patches}\n"
    );
    spec(name, &text, message)
}

fn patch(name: &'static str, path: &str, message: Option<&'static str>) -> Hostile {
    let path = mainstay_yaml::to_json(&path.into()).unwrap();
    overlay(name, &format!("[{{path: {path}, value: 1}}]"), message)
}

fn nested(open: &str, close: &str, depth: usize) -> String {
    format!("{}1{}", open.repeat(depth), close.repeat(depth))
}

fn billion_laughs() -> String {
    let mut text = String::from("  values:\n    a0: &a0 [x, x, x, x, x, x, x, x, x]\n");
    for level in 1..12 {
        let item = format!("*a{}", level - 1);
        text.push_str(&format!(
            "    a{level}: &a{level} [{}]\n",
            vec![item; 9].join(", ")
        ));
    }
    text
}

fn files() -> Vec<Hostile> {
    vec![
        file("empty file", "", None),
        file("only null bytes", vec![0; 100], Some("not valid YAML")),
        file(
            "invalid UTF-8",
            vec![b'a', b':', 0xff, 0xfe],
            Some("not valid YAML"),
        ),
        file("a scalar", "just text", Some("not an IstioOperator")),
        file("a list", "[1, 2]", Some("not an IstioOperator")),
        file("too large", " ".repeat(5 << 20), Some("bytes")),
        file("too many documents", "---\na: b\n".repeat(200), Some("documents")),
        file(
            "too many nodes",
            format!("a: [{}]", "1,".repeat(250_000)),
            Some("nodes"),
        ),
        file(
            "deep flow",
            format!("a: {}", nested("[", "]", 5000)),
            Some("not valid YAML"),
        ),
        file(
            "deep maps",
            format!("a: {}", nested("{a: ", "}", 5000)),
            Some("not valid YAML"),
        ),
        file("an unknown alias", "a: *b", Some("unknown anchor")),
        file("a cyclic alias", "a: &a [*a]", Some("contains itself")),
        file("a map as a key", "{a: b}: c", Some("not valid YAML")),
        spec("exponential aliases", &billion_laughs(), Some("not valid YAML")),
        spec(
            "a spec of aliases",
            "  x: &x {}\n  components: *x\n",
            Some("unknown field"),
        ),
    ]
}

fn trees() -> Vec<Hostile> {
    let gateways = format!("  components:\n    ingressGateways: [{}]\n", "{name: a},");
    let many: String = (0..300)
        .map(|index| format!("{{name: g{index}, enabled: true}},"))
        .collect();
    let unknown: String = (0..1000).map(|index| format!("  field{index}: 1\n")).collect();
    vec![
        spec(
            "a list of components",
            "  components: []\n",
            Some("expected a map"),
        ),
        spec(
            "a string of components",
            "  components: x\n",
            Some("expected a map"),
        ),
        spec(
            "a map of gateways",
            "  components: {ingressGateways: {a: b}}\n",
            Some("expected a list"),
        ),
        spec(
            "a gateway that is a number",
            "  components: {egressGateways: [5]}\n",
            Some("expected a map"),
        ),
        spec(
            "values that are a list",
            "  values: [1]\n",
            Some("expected a map"),
        ),
        spec(
            "a profile that is a map",
            "  values: {profile: {a: b}}\n",
            Some("expected a string"),
        ),
        spec("a profile outside", "", None),
        spec(
            "a long profile",
            &format!("  revision: {}\n", "a".repeat(100_000)),
            Some("is not a label"),
        ),
        spec(
            "many gateways",
            &format!("  components:\n    ingressGateways: [{many}]\n"),
            Some("more than 200 gateways"),
        ),
        spec(
            "a gateway with a name only",
            &gateways.replace("{name: a}", "{name: a, enabled: false}"),
            None,
        ),
        spec("many unknown fields", &unknown, Some("more")),
        spec(
            "a deep value",
            &format!("  unvalidatedValues: {{a: {}}}\n", nested("[", "]", 80)),
            None,
        ),
        spec(
            "a null everywhere",
            "  components: {pilot: null, cni: null, ingressGateways: null}\n  values: null\n",
            None,
        ),
        spec(
            "a file as a profile",
            "  meshConfig: {trustDomain: \"../../etc/passwd\"}\n",
            Some("domain name"),
        ),
    ]
}

fn expressions() -> Vec<Hostile> {
    let many = (0..1500)
        .map(|index| format!("values.global.network=n{index}"))
        .collect();
    vec![
        set("no value", "values", Some("expected PATH=VALUE")),
        set("an empty path", "=1", Some("the path is empty")),
        set("an open bracket", "a[0=1", Some("'[' without ']'")),
        set(
            "a huge index",
            "values.global.imagePullSecrets[99999999999]=x",
            None,
        ),
        set(
            "an index beyond 64 bits",
            "values.global.imagePullSecrets[99999999999999999999999]=x",
            Some("no item"),
        ),
        set("a long path", &format!("{}=1", "a.".repeat(5000)), Some("bytes")),
        set(
            "many segments",
            &format!("{}a=1", "a.".repeat(100)),
            Some("64 segments"),
        ),
        set(
            "a long expression",
            &format!("a={}", "x".repeat(70_000)),
            Some("65536 bytes"),
        ),
        set(
            "deep JSON",
            &format!("unvalidatedValues.a={}", nested("[", "]", 30_000)),
            None,
        ),
        set(
            "a deep list",
            &format!("unvalidatedValues.a={}", nested("{", "}", 30_000)),
            None,
        ),
        sets("many expressions", many, Some("more than 1000 --set expressions")),
        set("a step into a string", "profile.x.y=1", Some("not a map")),
        set(
            "a profile outside",
            "profile=../../../etc/passwd",
            Some("a profile is a name"),
        ),
        set(
            "an absolute profile",
            "profile=/etc/passwd",
            Some("a profile is a name"),
        ),
        set("a hidden profile", "profile=.hidden", Some("a profile is a name")),
    ]
}

fn overlays() -> Vec<Hostile> {
    let patches = format!("[{}]", "{path: a, value: 1},".repeat(11_000));
    let growing: String = (0..3000)
        .map(|_| "{path: \"spec.template.spec.containers[-1]\", value: {name: x}},")
        .collect();
    let scanning = "{path: \"metadata.list[name:x6999].x\", value: 1},".repeat(7000);
    let list: String = (0..7000).map(|index| format!("{{name: x{index}}},")).collect();
    vec![
        overlay("many patches", &patches, Some("10000 patches")),
        overlay("a growing list", &format!("[{growing}]"), None),
        overlay(
            "scans of a long list",
            &format!("[{{path: metadata.list, value: [{list}]}}, {scanning}]"),
            Some("visit more than"),
        ),
        overlay("patches that are a map", "{a: b}", Some("expected a list")),
        patch(
            "an expensive pattern",
            "spec.template.spec.containers[name:istio-proxy].args[(((a{1,99}){1,99}){1,99})]",
            Some("not a valid pattern"),
        ),
        patch(
            "a backtracking pattern",
            "spec.template.spec.containers[name:istio-proxy].args[(a+)+$]",
            Some("no item"),
        ),
        patch(
            "a pattern that is open",
            "spec.template.spec.containers[name:istio-proxy].args[(]",
            Some("not a valid pattern"),
        ),
        patch("a long path", &"a.".repeat(3000), Some("4096 bytes")),
        patch("many segments", &"a.".repeat(65), Some("64 segments")),
        patch("an empty path", "", Some("the path is empty")),
        patch(
            "a huge index",
            "spec.template.spec.containers[9223372036854775807].x",
            None,
        ),
        patch(
            "a negative index",
            "spec.template.spec.containers[-9223372036854775808].x",
            Some("no item"),
        ),
        patch(
            "into a scalar",
            "spec.template.spec.containers[0].name.x.y",
            Some("not a map"),
        ),
        patch("control characters", "spec.\u{1b}[2J", Some("")),
        patch("the object itself", ".", Some("the path is empty")),
        patch("the kind", "kind", None),
    ]
}

fn run(case: &Hostile) -> Result<Rendered, Diagnostics> {
    with_package(|package| {
        let mut request = Request::new(package);
        request.files = vec![InputFile {
            name: "hostile.yaml".into(),
            text: case.text.clone(),
        }];
        request.sets.clone_from(&case.sets);
        if case.text.is_empty() {
            request.sets.push("profile=empty".into());
        }
        generate(&request)
    })
}

/// Returns a description of the problem if the outcome of a case is not as expected.
fn problem(case: &Hostile) -> Option<String> {
    match (run(case), case.message) {
        (Ok(rendered), None) => (rendered.steps > MAX_STEPS).then(|| format!("{} steps", rendered.steps)),
        (Ok(_), Some(message)) => Some(format!("succeeds instead of {message:?}")),
        (Err(found), None) => Some(format!("fails: {found}")),
        (Err(found), Some(message)) => {
            let text = found.to_string();
            let is_bounded = found.list().len() <= MAX_DIAGNOSTICS && text.len() < 1 << 20;
            (!text.contains(message) || !is_bounded).then(|| text.chars().take(600).collect())
        }
    }
}

#[test]
fn hostile_input_is_bounded() {
    let cases: Vec<Hostile> = [files(), trees(), expressions(), overlays()]
        .into_iter()
        .flatten()
        .collect();
    let found: Vec<String> = cases
        .iter()
        .filter_map(|case| Some(format!("{}: {}", case.name, problem(case)?)))
        .collect();
    println!(
        "hostile manifests: {} run, {} bounded",
        cases.len(),
        cases.len() - found.len()
    );
    assert!(cases.len() >= 40, "{} cases", cases.len());
    assert!(found.is_empty(), "{}", found.join("\n"));
}
