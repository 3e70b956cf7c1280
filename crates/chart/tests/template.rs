//! Compares whole renders with the stored output of Helm 4.2.4 and 3.21.4. Also tests that hostile
//! templates end within their limits.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "tests read fixtures and fail by panicking"
)]

use std::path::{Path, PathBuf};

use mainstay_chart::{
    ChartError, Dialect, File, KubeVersion, Loaded, Release, RenderEnvironment, Request, load_files,
    load_path, template,
};
use mainstay_template::NoHost;
use mainstay_yaml::{Budget, parse_map};

const BOTH: [(Dialect, &str); 2] = [(Dialect::Helm4, "helm4"), (Dialect::Helm3, "helm3")];

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/template")
}

fn run(loaded: &Loaded, request: &Request) -> Result<Vec<u8>, ChartError> {
    let environment = RenderEnvironment {
        host: &mut NoHost,
        warn: &mut |_| {},
        post_renderer: None,
    };
    template(loaded, request, environment).map(|output| output.text)
}

/// Renders the fixture chart and compares the result with Helm's output.
fn check(name: &str, change: impl Fn(&mut Request)) {
    for (dialect, helm) in BOTH {
        let loaded = load_path(&fixtures().join("all-features"), dialect).unwrap();
        let mut request = Request::new(dialect);
        request.render.release = Release {
            name: "rel".into(),
            ..Release::default()
        };
        change(&mut request);
        let expected = std::fs::read(fixtures().join(format!("{name}.{helm}.yaml"))).unwrap();
        let found = run(&loaded, &request).unwrap();
        assert_eq!(
            String::from_utf8_lossy(&found),
            String::from_utf8_lossy(&expected),
            "{name} as {helm}"
        );
    }
}

#[test]
fn chart_with_hooks_notes_and_subcharts_renders_as_in_helm() {
    check("all", |request| request.render.release.namespace = "ns".into());
}

#[test]
fn options_and_values_render_as_in_helm() {
    check("options", |request| {
        request.print.include_crds = true;
        request.print.skip_tests = true;
        request.render.release.is_upgrade = true;
        request.render.capabilities.api_versions.push("foo/v1".into());
        request.render.capabilities.kube_version =
            KubeVersion::parse("v1.25.3-gke.1", request.render.dialect).unwrap();
        request.values = parse_map("sub: {v: x}\nglobal: {g: 2}\n", &Budget::default()).unwrap();
    });
}

#[test]
fn print_options_select_manifests() {
    check("chosen", |request| {
        request.print.no_hooks = true;
        request.print.show_only = vec!["templates/*.yaml".into(), "charts/sub/templates/s.yaml".into()];
    });
}

/// Creates a chart with one template.
fn chart_with(text: &str, dialect: Dialect) -> Loaded {
    let files = [
        ("Chart.yaml", "apiVersion: v2\nname: head\nversion: 1.0.0\n"),
        ("templates/a.yaml", text),
    ];
    let files = files
        .iter()
        .map(|(name, text)| File::new(*name, text.as_bytes()))
        .collect();
    load_files(files, dialect).unwrap()
}

fn failure(text: &str, dialect: Dialect) -> ChartError {
    run(&chart_with(text, dialect), &Request::new(dialect)).expect_err(text)
}

/// Every file in `failures/` contains a template, the message of Helm 4 and the message of Helm 3.
#[test]
fn failures_have_helms_messages() {
    let mut count = 0;
    for entry in std::fs::read_dir(fixtures().join("failures")).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        let (source, rest) = text.split_once("\n==== helm4\n").unwrap();
        let (helm4, helm3) = rest.split_once("\n==== helm3\n").unwrap();
        assert_eq!(failure(source, Dialect::Helm4).to_string(), helm4, "{source}");
        assert_eq!(
            failure(source, Dialect::Helm3).to_string(),
            helm3.trim_end_matches('\n'),
            "{source}"
        );
        count += 1;
    }
    assert!(count >= 60, "{count} failures");
}

#[test]
fn failures_have_a_location() {
    let error = failure(
        "a: 1\nb: {{ include \"x\" . }}\n{{ define \"x\" }}\n  é{{ .Values.a.b }}\n{{ end }}",
        Dialect::Helm4,
    );
    let location = error.location().unwrap();
    assert_eq!(
        (location.file.as_str(), location.line, location.column),
        ("head/templates/a.yaml", 4, Some(14))
    );
    assert_eq!(location.source.as_deref(), Some("  é{{ .Values.a.b }}"));
    let error = failure("a: 1\n---\nb: c: d\n", Dialect::Helm4);
    let location = error.location().unwrap();
    assert_eq!((location.line, location.source.as_deref()), (3, Some("b: c: d")));
}

#[test]
fn hostile_templates_end_in_an_error() {
    let check = |text: &str, expected: &str| {
        let message = failure(text, Dialect::Helm4).to_string();
        assert!(
            message.ends_with(expected),
            "{text}: {}",
            message.get(..300).unwrap_or(&message)
        );
    };
    let depth = "templates or values are nested more deeply than the limit";
    check(
        "{{ define \"a\" }}{{ template \"a\" . }}{{ end }}{{ template \"a\" . }}",
        depth,
    );
    check("{{ $t := \"{{ tpl . . }}\" }}{{ tpl $t $t }}", depth);
    check(
        "{{ define \"a\" }}{{ include \"a\" . }}{{ end }}{{ include \"a\" . }}",
        "rendering template has a nested reference name: a: unable to execute template",
    );
    check(
        "{{ repeat 1000000000 \"x\" }}",
        "a function made a string longer than the limit",
    );
}
