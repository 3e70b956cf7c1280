//! Hostile `IstioOperator` files and `--set` expressions: of the tests of the engine, and of
//! `cargo xtask hostile`, which runs the binary on them.

use std::fmt::Write as _;

const HEAD: &str = "apiVersion: install.istio.io/v1alpha1\nkind: IstioOperator\nspec:\n  profile: empty\n";

/// A case: a file, `--set` expressions, and a part of the expected error message, or `None` if the case
/// succeeds.
pub(crate) struct Hostile {
    pub(crate) name: &'static str,
    pub(crate) text: Vec<u8>,
    pub(crate) sets: Vec<String>,
    pub(crate) message: Option<&'static str>,
}

/// Returns all cases.
pub(crate) fn all() -> Vec<Hostile> {
    [files(), trees(), expressions(), overlays()]
        .into_iter()
        .flatten()
        .collect()
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
    let path = mainstay_yaml::to_json(&path.into()).unwrap_or_default();
    overlay(name, &format!("[{{path: {path}, value: 1}}]"), message)
}

fn nested(open: &str, close: &str, depth: usize) -> String {
    format!("{}1{}", open.repeat(depth), close.repeat(depth))
}

fn concatenated(count: usize, part: impl Fn(usize) -> String) -> String {
    (0..count).map(part).collect::<Vec<_>>().concat()
}

fn billion_laughs() -> String {
    let mut text = String::from("  values:\n    a0: &a0 [x, x, x, x, x, x, x, x, x]\n");
    for level in 1..12 {
        let item = format!("*a{}", level - 1);
        let items = vec![item; 9].join(", ");
        let _ = writeln!(text, "    a{level}: &a{level} [{items}]");
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
        Hostile {
            sets: vec!["profile=empty".to_owned()],
            ..file("only newlines", "\n".repeat(4 << 20), None)
        },
        file(
            "newlines before an error",
            format!("{}a: *b", "\n".repeat(4_000_000)),
            Some("unknown anchor"),
        ),
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
    let many = concatenated(300, |index| format!("{{name: g{index}, enabled: true}},"));
    let unknown = concatenated(1000, |index| format!("  field{index}: 1\n"));
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
    let growing = "{path: \"spec.template.spec.containers[-1]\", value: {name: x}},".repeat(3000);
    let scanning = "{path: \"metadata.list[name:x6999].x\", value: 1},".repeat(7000);
    let list = concatenated(7000, |index| format!("{{name: x{index}}},"));
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
