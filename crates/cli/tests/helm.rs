//! `mainstay generate` as a post-renderer of the real Helm: an executable in Helm 3, a plugin in Helm 4.
#![allow(clippy::unwrap_used, reason = "a test that cannot set up its directory fails")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use mainstay_testkit::{peer, repository_root};

const DEPLOYMENT: &str = "apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .Release.Name }}  # from the release
spec:
  template:
    metadata:
      annotations:
        contrast.edgeless.systems/servicemesh-ingress: {{ .Values.ingress | quote }}
    spec:
      runtimeClassName: contrast-cc
      containers:
      - name: app
        image: nginx
";

const HOOK: &str = "apiVersion: batch/v1
kind: Job
metadata:
  name: migrate
  annotations: {helm.sh/hook: pre-install}
spec:
  template:
    spec:
      runtimeClassName: contrast-cc
      restartPolicy: Never
      containers: [{name: migrate, image: busybox}]
";

/// Creates a directory with a chart (a workload and a hook), the plugin, and a home directory for Helm.
fn directory() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| {
        let path = directory.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    write(
        "chart/Chart.yaml",
        "apiVersion: v2\nname: chart\nversion: 1.0.0\n",
    );
    write("chart/values.yaml", "ingress: web#8080#false\n");
    write("chart/templates/deployment.yaml", DEPLOYMENT);
    write(
        "chart/templates/service.yaml",
        "apiVersion: v1\nkind: Service\nmetadata: {name: s}\n",
    );
    write("chart/templates/hook.yaml", HOOK);
    let plugin = fs::read_to_string(repository_root().join("deploy/helm-plugin/plugin.yaml")).unwrap();
    write("data/plugins/mainstay/plugin.yaml", &plugin);
    directory
}

fn helm(name: &str, directory: &Path, args: &[&str]) -> Output {
    let binary = PathBuf::from(env!("CARGO_BIN_EXE_mainstay"));
    let path = std::env::join_paths([binary.parent().unwrap()]).unwrap();
    Command::new(peer(name).unwrap())
        .args(["template", "shop", "chart"])
        .args(args)
        .current_dir(directory)
        .env("PATH", path)
        .env("HELM_DATA_HOME", directory.join("data"))
        .env("HELM_CONFIG_HOME", directory.join("config"))
        .env("HELM_CACHE_HOME", directory.join("cache"))
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

const HELM3: [&str; 6] = [
    "--post-renderer",
    "mainstay",
    "--post-renderer-args",
    "generate",
    "--post-renderer-args",
    "-",
];

#[test]
fn helm_3_runs_it_as_an_executable() {
    let here = directory();
    let plain = text(&helm("helm3", here.path(), &["--no-hooks"]).stdout);
    let output = helm("helm3", here.path(), &[&HELM3[..], &["--no-hooks"]].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let injected = text(&output.stdout);
    assert_eq!(
        injected
            .matches("- name: contrast-initializer  # mainstay:injected\n")
            .count(),
        1,
        "{injected}"
    );
    assert!(injected.contains("value: \"web#8080#false\"\n"), "{injected}");
    assert!(injected.contains("kind: Service\n"), "{injected}");
    let (mut rest, kept) = (injected.lines(), plain.lines().filter(|line| !line.is_empty()));
    let missing: Vec<_> = kept.filter(|line| !rest.any(|other| other == *line)).collect();
    assert_eq!(missing, Vec::<&str>::new(), "{plain}\n{injected}");
}

#[test]
fn helm_3_stops_if_the_post_renderer_fails() {
    let here = directory();
    let output = helm(
        "helm3",
        here.path(),
        &[&HELM3[..], &["--set", "ingress=web#x#false"]].concat(),
    );
    let stderr = text(&output.stderr);
    assert!(!output.status.success() && output.stdout.is_empty(), "{stderr}");
    assert!(stderr.contains("port \"x\" is not a number"), "{stderr}");
}

#[test]
fn helm_4_runs_it_as_a_plugin_and_sends_hooks_too() {
    let here = directory();
    let output = helm("helm4", here.path(), &["--post-renderer", "mainstay"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let injected = text(&output.stdout);
    assert_eq!(
        injected.matches("name: contrast-initializer").count(),
        2,
        "{injected}"
    );
    assert_eq!(
        injected.matches("name: contrast-service-mesh").count(),
        1,
        "{injected}"
    );
    assert!(injected.contains("helm.sh/hook: pre-install"), "{injected}");
    assert!(injected.contains("# from the release"), "{injected}");
    assert!(!injected.contains("postrenderer.helm.sh/"), "{injected}");
}

#[test]
fn helm_4_passes_arguments_and_stops_if_the_post_renderer_fails() {
    let here = directory();
    let args = [
        "--post-renderer",
        "mainstay",
        "--post-renderer-args",
        "--skip-service-mesh",
    ];
    let injected = text(&helm("helm4", here.path(), &args).stdout);
    assert_eq!(
        injected.matches("name: contrast-initializer").count(),
        2,
        "{injected}"
    );
    assert!(!injected.contains("contrast-service-mesh"), "{injected}");
    let output = helm(
        "helm4",
        here.path(),
        &["--post-renderer", "mainstay", "--set", "ingress=web#x#false"],
    );
    assert!(!output.status.success() && output.stdout.is_empty());
}
