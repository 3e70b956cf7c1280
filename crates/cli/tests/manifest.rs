//! `mainstay manifest` and `mainstay profile` as processes.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, Mutex};

use mainstay_testkit::http;

const HEAD: &str = "apiVersion: install.istio.io/v1alpha1\nkind: IstioOperator\nspec:\n  profile: empty\n";

/// Runs the command with a text on stdin.
fn run(arguments: &[&str], stdin: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_mainstay"))
        .args(arguments)
        .env("NO_COLOR", "1")
        .env("XDG_DATA_HOME", "/nonexistent")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(stdin.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn generate_prints_documents_in_order_of_installation() {
    let file = format!("{HEAD}  components:\n    ztunnel:\n      enabled: true\n");
    let output = run(
        &["manifest", "generate", "-f", "-", "--istio-version", "1.29.1"],
        &file,
    );
    assert!(output.status.success(), "{}", err(&output));
    let text = out(&output);
    let kinds: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("kind: "))
        .collect();
    assert_eq!(kinds, ["ServiceAccount", "DaemonSet"]);
}

#[test]
fn generate_writes_json_and_directories() {
    let file = format!("{HEAD}  components:\n    ztunnel:\n      enabled: true\n");
    let output = run(&["manifest", "generate", "-f", "-", "-o", "json"], &file);
    assert!(out(&output).starts_with("{\n"), "{}", err(&output));
    assert!(out(&output).contains("\"kind\": \"List\""));
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().to_str().unwrap();
    let output = run(
        &[
            "manifest",
            "generate",
            "-f",
            "-",
            "-o",
            "dir",
            "--output-dir",
            path,
        ],
        &file,
    );
    assert!(output.status.success(), "{}", err(&output));
    let written = directory.path().join("Base/Cni/Ztunnel/Ztunnel.yaml");
    assert!(
        std::fs::read_to_string(written)
            .unwrap()
            .contains("kind: DaemonSet")
    );
}

#[test]
fn errors_show_the_line_and_exit_with_one() {
    let file = format!("{HEAD}  hub: a b\n  component: {{}}\n");
    let output = run(&["manifest", "validate", "-f", "-"], &file);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        err(&output),
        "error: spec.component: unknown field
  --> stdin:6:3
  |
6 |   component: {}
  |   ^
hint: did you mean \"components\"?
error: spec.hub: is not a registry with a path (value \"a b\")
  --> stdin:5:3
  |
5 |   hub: a b
  |   ^
hint: write it like registry.example.com/istio
Error: 2 errors in the configuration
hint: fix the configuration, or continue with --force
"
    );
}

#[test]
fn force_prints_errors_as_warnings() {
    let file = format!("{HEAD}  hub: a b\n");
    let output = run(&["manifest", "validate", "-f", "-", "--force"], &file);
    assert!(output.status.success(), "{}", err(&output));
    assert!(err(&output).starts_with("warning: spec.hub:"), "{}", err(&output));
    assert_eq!(out(&output), "1 warning, no errors\n");
}

#[test]
fn a_profile_flag_is_overridden_by_files() {
    let output = run(&["manifest", "generate", "--profile", "empty"], "");
    assert!(
        output.status.success() && out(&output).is_empty(),
        "{}",
        err(&output)
    );
    let output = run(&["manifest", "validate", "--profile", "missing", "-f", "-"], HEAD);
    assert_eq!(out(&output), "No problems found\n", "{}", err(&output));
}

#[test]
fn profiles_are_listed_printed_and_compared() {
    let output = run(&["profile", "list", "--istio-version", "1.29.1"], "");
    assert_eq!(
        out(&output),
        "ambient\ndefault\ndemo\nempty\nminimal\nopenshift\nopenshift-ambient\npreview\nremote\nstable\n"
    );
    let output = run(
        &["profile", "dump", "demo", "-p", "components.egressGateways"],
        "",
    );
    assert_eq!(
        out(&output),
        "- enabled: true\n  name: istio-egressgateway\n",
        "{}",
        err(&output)
    );
    let output = run(
        &[
            "profile",
            "dump",
            "ambient",
            "-p",
            "components.cni",
            "-o",
            "flags",
        ],
        "",
    );
    assert_eq!(out(&output), "enabled=true\n", "{}", err(&output));
    let output = run(&["profile", "diff", "default", "minimal"], "");
    assert_eq!(output.status.code(), Some(1));
    assert!(
        out(&output).contains("-    - enabled: true\n+    - enabled: false\n"),
        "{}",
        out(&output)
    );
    let output = run(&["profile", "diff", "demo", "demo"], "");
    assert_eq!(
        (output.status.code(), out(&output).as_str()),
        (Some(0), "The profiles are equal\n")
    );
}

#[test]
fn stdin_must_be_the_last_file() {
    let output = run(&["manifest", "generate", "-f", "-", "-f", "x.yaml"], "");
    assert_eq!(output.status.code(), Some(1));
    assert!(
        err(&output).contains("-f - must be the last file"),
        "{}",
        err(&output)
    );
}

#[test]
fn charts_of_helm_are_converted_with_their_comments() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("istiod.yaml");
    std::fs::write(
        &file,
        "# two zones\nautoscaleMin: 2\nglobal:\n  logAsJson: true # for the collector\n",
    )
    .unwrap();
    let values = format!("istiod={}", file.display());
    let version = ["--istio-version", "1.29.1"];
    let migrate = |more: &[&str]| run(&[&["manifest", "migrate"], more, &version].concat(), "");
    let output = migrate(&["--helm-values", &values]);
    assert!(output.status.success(), "{}", err(&output));
    let text = out(&output);
    let operator = text.split_once("---\n").unwrap().1;
    assert_eq!(
        operator,
        "apiVersion: install.istio.io/v1alpha1\nkind: IstioOperator\nspec:\n  profile: minimal\n  values:\n    \
         defaultRevision: default\n    global:\n      logAsJson: true # for the collector\n    pilot:\n      # two zones\n      \
         autoscaleMin: 2\n"
    );
    let from_directory = migrate(&["--helm-release", &directory.path().to_string_lossy()]);
    assert_eq!(out(&from_directory), text.as_str(), "{}", err(&from_directory));
    let sail = migrate(&["--helm-values", &values, "--to", "sail"]);
    assert!(sail.status.success(), "{}", err(&sail));
    assert!(out(&sail).contains("kind: Istio\n"), "{}", out(&sail));
    assert!(
        out(&sail).contains("      # two zones\n      autoscaleMin: 2\n"),
        "{}",
        out(&sail)
    );
    let wrong = migrate(&["--helm-values", "pilot=x.yaml"]);
    assert!(err(&wrong).contains("expected CHART=FILE"), "{}", err(&wrong));
    let none = migrate(&["--to", "istio-operator"]);
    assert!(err(&none).contains("needs charts of Helm"), "{}", err(&none));
}

#[test]
fn components_are_selected_by_name() {
    let generate = |more: &[&str]| {
        run(
            &[&["manifest", "generate", "--profile", "ambient"], more].concat(),
            "",
        )
    };
    let kinds = |output: &Output| {
        let text = out(output);
        let lines = text.lines().filter_map(|line| line.strip_prefix("kind: "));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let output = generate(&["--component", "ztunnel"]);
    assert!(output.status.success(), "{}", err(&output));
    assert!(
        kinds(&output).contains(&"DaemonSet".to_owned()),
        "{}",
        out(&output)
    );
    assert!(
        !kinds(&output).contains(&"Deployment".to_owned()),
        "{}",
        out(&output)
    );
    let all: usize = ["Base", "Pilot", "Cni", "Ztunnel"]
        .map(|name| kinds(&generate(&["--component", name])).len())
        .iter()
        .sum();
    assert_eq!(all, kinds(&generate(&[])).len());
    let two = generate(&["--component", "Pilot,Cni"]);
    let one_by_one = generate(&["--component", "Pilot", "--component", "Cni"]);
    assert!(
        two.status.success() && out(&two) == out(&one_by_one),
        "{}",
        err(&two)
    );
    let disabled = generate(&["--component", "EgressGateways"]);
    assert_eq!(disabled.status.code(), Some(1), "{}", err(&disabled));
    assert!(
        err(&disabled).contains("component EgressGateways is not enabled"),
        "{}",
        err(&disabled)
    );
    let unknown = generate(&["--component", "Pilots"]);
    assert_eq!(unknown.status.code(), Some(2), "{}", err(&unknown));
    assert!(err(&unknown).contains("Pilot"), "{}", err(&unknown));
}

/// Requests to a server, as their lines.
type Requests = Arc<Mutex<Vec<String>>>;

/// Serves an empty cluster on GKE, writes its kubeconfig to `path`, and returns the requests.
fn serve_gke(path: &Path) -> Requests {
    let requests = Requests::default();
    let recorded = requests.clone();
    let address = http::serve(move |head, stream| {
        recorded.lock().unwrap().push(format!("{head:?}"));
        let (status, body) = match head.path() {
            "/version" => (
                "200 OK",
                "{\"major\": \"1\", \"minor\": \"36+\", \"gitVersion\": \"v1.36.1-gke.100\"}",
            ),
            path if path.starts_with("/apis/apps/v1/deployments") => ("200 OK", "{\"items\": []}"),
            _ => (
                "404 Not Found",
                "{\"kind\": \"Status\", \"code\": 404, \"reason\": \"NotFound\"}",
            ),
        };
        stream.write_all(&http::response(status, body.as_bytes()))
    })
    .unwrap();
    let text = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: a\nclusters: [{{name: a, cluster: {{server: \"http://{address}\"}}}}]\n\
         contexts: [{{name: a, context: {{cluster: a, user: a}}}}]\nusers: [{{name: a, user: {{as: other, as-groups: [other]}}}}]\n"
    );
    std::fs::write(path, text).unwrap();
    requests
}

#[test]
fn the_platform_of_a_cluster_is_detected() {
    let directory = tempfile::tempdir().unwrap();
    let kubeconfig = directory.path().join("kubeconfig");
    let requests = serve_gke(&kubeconfig);
    let kubeconfig = kubeconfig.to_str().unwrap();
    let generate = ["manifest", "generate", "--profile=ambient", "--component=Cni"];
    let cluster = ["--cluster-specific", "--kubeconfig", kubeconfig];
    let detected = run(&[&generate[..], &cluster].concat(), "");
    assert!(detected.status.success(), "{}", err(&detected));
    assert!(
        out(&detected).contains("namespace: kube-system"),
        "{}",
        out(&detected)
    );
    assert!(!requests.lock().unwrap().is_empty());
    let usual = run(&generate, "");
    assert!(!out(&usual).contains("namespace: kube-system"), "{}", out(&usual));
    let ignored = run(&[&generate[..], &["--kubeconfig", kubeconfig]].concat(), "");
    assert_eq!(ignored.status.code(), Some(1), "{}", err(&ignored));
    assert!(
        err(&ignored).contains("require --cluster-specific"),
        "{}",
        err(&ignored)
    );
}

#[test]
fn requests_impersonate_the_given_user() {
    let directory = tempfile::tempdir().unwrap();
    let kubeconfig = directory.path().join("kubeconfig");
    let requests = serve_gke(&kubeconfig);
    let generate = |flags: &[&str]| {
        requests.lock().unwrap().clear();
        let cluster = ["--cluster-specific", "--kubeconfig", kubeconfig.to_str().unwrap()];
        let command = ["manifest", "generate", "--profile=empty"];
        let output = run(&[&command[..], &cluster, flags].concat(), "");
        (output, requests.lock().unwrap().clone())
    };
    let flags = ["--as=jane", "--as-group=a", "--as-group=b", "--as-uid=42"];
    let (output, sent) = generate(&flags);
    assert!(output.status.success(), "{}", err(&output));
    let headers = [
        "impersonate-user: jane",
        "impersonate-group: a",
        "impersonate-group: b",
        "impersonate-uid: 42",
    ];
    for request in &sent {
        for header in headers {
            assert!(request.contains(header), "no {header}: {request}");
        }
        assert!(!request.contains("other"), "{request}");
    }
    let (_, configured) = generate(&[]);
    assert!(
        configured
            .iter()
            .all(|request| request.contains("impersonate-user: other")),
        "{configured:#?}"
    );
    assert!(!sent.is_empty() && !configured.is_empty());
    for flag in ["--as-group=a", "--as-uid=42"] {
        let (output, sent) = generate(&[flag]);
        assert_eq!(
            (output.status.code(), sent.len()),
            (Some(2), 0),
            "{}",
            err(&output)
        );
    }
}
