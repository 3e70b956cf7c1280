//! Hostile `IstioOperator` files, `--set` expressions and directories of profiles.

#[path = "../../../crates/manifest/tests/hostile/cases.rs"]
mod engine;

use super::Hostile;

/// Beginning of the names of all cases.
pub(super) const PREFIX: &str = "manifest: ";

/// A default profile that installs nothing.
const DEFAULT: &str = "apiVersion: install.istio.io/v1alpha1\nkind: IstioOperator\nspec:\n  components:\n    \
    base: {enabled: false}\n    pilot: {enabled: false}\n    \
    ingressGateways: [{name: istio-ingressgateway, enabled: false}]\n";

/// Returns all cases.
pub(super) fn all() -> Vec<Hostile> {
    let mut cases: Vec<Hostile> = engine::all().into_iter().map(through_the_binary).collect();
    cases.extend(files());
    cases.extend(profiles());
    cases.extend(directories());
    cases
}

/// Returns a case with the arguments of `mainstay manifest generate`.
fn generate(
    name: &str,
    files: Vec<(String, Vec<u8>)>,
    arguments: &[&str],
    expected: Option<&'static str>,
) -> Hostile {
    let case = Hostile::new(
        format!("{PREFIX}{name}"),
        files,
        arguments,
        expected.unwrap_or_default(),
    );
    let case = Hostile {
        command: &["manifest", "generate"],
        ..case
    };
    match expected {
        Some(_) => case,
        None => case.accepted(),
    }
}

/// Returns a case of the engine with its file and its `--set` expressions as arguments.
fn through_the_binary(case: engine::Hostile) -> Hostile {
    let empty = case.text.is_empty().then(|| "profile=empty".to_owned());
    let files = vec![("hostile.yaml".to_owned(), case.text)];
    let mut result = generate(case.name, files, &["-f", "@hostile.yaml"], case.message);
    for set in case.sets.into_iter().chain(empty) {
        result.arguments.extend(["--set".to_owned(), set]);
    }
    result
}

/// Returns cases with devices in place of files.
fn files() -> Vec<Hostile> {
    let device =
        |name: &str, arguments: &[&str], expected| generate(name, Vec::new(), arguments, Some(expected));
    vec![
        device("-f /dev/zero", &["-f", "/dev/zero"], "exceeds 4194304 bytes"),
        device("a directory as a file", &["-f", "/"], "cannot read /"),
        device(
            "--profiles /dev/zero",
            &["--profiles", "/dev/zero"],
            "no such directory",
        ),
        device(
            "--manifests /dev/zero",
            &["--manifests", "/dev/zero"],
            "no directory `charts`",
        ),
    ]
}

/// Returns the files of a directory of profiles with a default profile.
fn with_default(name: &str, text: impl Into<Vec<u8>>) -> Vec<(String, Vec<u8>)> {
    let file = |name: &str, text: Vec<u8>| (format!("profiles/{name}.yaml"), text);
    vec![file("default", DEFAULT.into()), file(name, text.into())]
}

const SELECT: [&str; 4] = ["--profiles", "@profiles", "--profile", "x"];

/// Returns cases with one hostile profile.
fn profiles() -> Vec<Hostile> {
    let profile =
        |name: &str, text: Vec<u8>, expected| generate(name, with_default("x", text), &SELECT, expected);
    let spec = |name: &str, spec: String, expected| {
        let text = format!("apiVersion: install.istio.io/v1alpha1\nkind: IstioOperator\nspec: {spec}\n");
        profile(name, text.into_bytes(), expected)
    };
    let deep = format!("{{values: {{a: {}}}}}", "[".repeat(1_000_000));
    let aliases = (1..12).fold(
        "{values: {a0: &a0 [x, x, x, x, x, x, x, x, x]".to_owned(),
        |text, level| {
            let item = format!("*a{}", level - 1);
            format!("{text}, a{level}: &a{level} [{}]", vec![item; 9].join(", "))
        },
    );
    vec![
        spec("a profile nested 1,000,000 deep", deep, Some("not valid YAML")),
        spec("a profile of aliases", format!("{aliases}}}}}"), Some("not valid YAML")),
        profile("a profile of 15 MB of newlines", vec![b'\n'; 15 << 20], Some("bytes")),
        profile("a profile of 17 MB", vec![b'#'; 17 << 20], Some("exceeds")),
        profile("a profile that is a list", b"[1, 2]".to_vec(), Some("not an IstioOperator")),
        profile("a profile of bad UTF-8", b"spec: {hub: \xff\xfe}".to_vec(), Some("not valid YAML")),
        // The profile of a profile has no effect, so that there are no loops.
        spec("a profile of itself", "{profile: x}".into(), None),
        spec("a profile with a hostile overlay", "{components: {ztunnel: {enabled: true, k8s: {overlays: [{kind: DaemonSet, name: ztunnel, patches: {a: b}}]}}}}".into(), Some("expected a list")),
    ]
}

/// Returns cases with hostile directories of profiles.
fn directories() -> Vec<Hostile> {
    let only_default = || vec![("profiles/default.yaml".to_owned(), DEFAULT.as_bytes().to_vec())];
    let crowded = || {
        let mut files = only_default();
        let name = "n".repeat(200);
        files.extend((0..10_000).map(|number| (format!("profiles/{name}{number}.yaml"), b"[".to_vec())));
        files
    };
    let link = |name: &str, target| Hostile {
        links: vec![("profiles/x.yaml", target)],
        ..generate(name, only_default(), &SELECT, Some("not a regular file"))
    };
    let in_a_crowd = ["--profiles", "@profiles", "--profile", "default"];
    vec![
        Hostile {
            pipes: vec!["profiles/x.yaml"],
            ..generate(
                "a pipe as a profile",
                only_default(),
                &SELECT,
                Some("not a regular file"),
            )
        },
        link("a profile that links to another directory", "/etc/passwd"),
        link("a profile that links to a device", "/dev/zero"),
        link("a profile that links to itself", "x.yaml"),
        generate(
            "a directory as a profile",
            with_default("x.yaml/y", "a"),
            &SELECT,
            Some("not a regular file"),
        ),
        generate(
            "no default profile",
            vec![("profiles/x.yaml".into(), Vec::new())],
            &SELECT,
            Some("default"),
        ),
        generate("a profile of 10,000", crowded(), &in_a_crowd, None),
        generate(
            "an unknown profile beside 10,000",
            crowded(),
            &SELECT,
            Some("more"),
        ),
    ]
}
