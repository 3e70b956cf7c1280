//! Flags: kinds with a pod template path, profiles, images, and usage errors.

use crate::directory::{INJECTED, POD, check, directory, generate, outcome, piped};

#[test]
fn flags_override_annotations() {
    let here = directory(&[]);
    let mesh = POD.replace(
        "  name: p  # the name\n",
        "  name: p\n  annotations: {contrast.edgeless.systems/servicemesh-ingress: ''}\n",
    );
    let names = |args: &[&str], text: &str| -> Vec<String> {
        let (code, stdout, stderr) = outcome(&piped(here.path(), args, text));
        assert_eq!(code, 0, "{stderr}");
        let names = stdout
            .lines()
            .filter_map(|line| line.trim().strip_prefix("- name: contrast-"));
        names
            .filter_map(|line| line.split("  #").next())
            .filter(|it| *it != "tls-certs")
            .map(str::to_owned)
            .collect()
    };
    assert_eq!(names(&["-"], &mesh), ["initializer", "service-mesh"]);
    assert_eq!(names(&["-", "--skip-service-mesh"], &mesh), ["initializer"]);
    assert_eq!(names(&["-", "--skip-initializer"], &mesh), ["service-mesh"]);
    assert_eq!(
        names(&["-", "--skip-initializer", "--skip-service-mesh"], &mesh),
        Vec::<String>::new()
    );
    // Skipping a container also removes one that was injected before.
    assert_eq!(
        names(&["-", "--skip-initializer"], INJECTED),
        Vec::<String>::new()
    );
}

#[test]
fn custom_kinds_are_injected_by_pod_template_path() {
    let here = directory(&[]);
    let rollout = format!(
        "apiVersion: argoproj.io/v1alpha1\nkind: Rollout\nmetadata: {{name: r}}\nspec:\n  template:\n{}",
        POD.lines()
            .skip(5)
            .flat_map(|line| ["    ", line, "\n"])
            .collect::<String>()
    );
    let (code, _, stderr) = outcome(&piped(here.path(), &["-"], &rollout));
    assert_eq!(code, 2, "{stderr}");
    assert!(stderr.contains("Rollout r: failed (unknown-kind)"), "{stderr}");
    let (code, stdout, stderr) = outcome(&piped(
        here.path(),
        &["--pod-template-path", "Rollout=spec.template", "-"],
        &rollout,
    ));
    assert_eq!(code, 0, "{stderr}");
    assert!(stdout.contains("contrast-initializer"), "{stdout}");
    let (code, _, stderr) = outcome(&piped(
        here.path(),
        &["--pod-template-path", "Rollout", "-"],
        &rollout,
    ));
    assert_eq!(code, 2);
    assert_eq!(
        stderr,
        "Error: pod template path \"Rollout\": no `=`; write KIND=path.to.template, such as Rollout=spec.template\n"
    );
}

#[test]
fn profiles_change_names_images_and_addresses() {
    let here = directory(&[]);
    let (code, stdout, _) = outcome(&piped(here.path(), &["-q", "--profile", "later", "-"], POD));
    assert_eq!(code, 0);
    assert!(stdout.contains("value: coordinator-ready.default\n"), "{stdout}");
    assert!(
        stdout.contains("initializer:v1.23.1\n") && stdout.contains("contrast-secrets"),
        "{stdout}"
    );
    let coordinator = "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: c, namespace: trust}\nspec:\n  template:\n    metadata: {labels: {contrast.edgeless.systems/pod-role: coordinator}}\n    spec: {runtimeClassName: contrast-cc}\n";
    let (_, stdout, stderr) = outcome(&piped(
        here.path(),
        &["--profile", "later", "-"],
        &format!("{POD}---\n{coordinator}"),
    ));
    assert!(
        stdout.contains("value: coordinator-ready.trust\n"),
        "{stdout}{stderr}"
    );
    let args = ["--profile", "later", "--coordinator-namespace", "x", "-"];
    let (_, stdout, _) = outcome(&piped(here.path(), &args, POD));
    assert!(stdout.contains("value: coordinator-ready.x\n"), "{stdout}");
    check(
        &piped(here.path(), &["--profile", "nope", "-"], POD),
        2,
        "",
        "Error: unknown profile \"nope\"\nhint: use rfc or later\n",
    );
}

#[test]
fn images_can_be_replaced() {
    let here = directory(&[
        (
            "images",
            "# mine\nghcr.io/edgelesssys/contrast/initializer:latest = my/init@sha256:00\n",
        ),
        ("bad", "a = b\n  # c\nd\n"),
    ]);
    let (code, stdout, _) = outcome(&piped(
        here.path(),
        &["-q", "--image-replacements", "images", "-"],
        POD,
    ));
    assert_eq!(code, 0);
    assert_eq!(
        stdout,
        INJECTED.replace(
            "ghcr.io/edgelesssys/contrast/initializer:v0.7.0",
            "my/init@sha256:00"
        )
    );
    check(
        &piped(here.path(), &["--image-replacements", "bad", "-"], POD),
        2,
        "",
        "Error: invalid image line: a comment must begin in the first column (and 1 more)\n --> bad:2:3 (usage error)\n  |\n2 |   # c\n  |   ^\n",
    );
    check(
        &piped(here.path(), &["--image-replacements", "nope", "-"], POD),
        2,
        "",
        "Error: nope: no such file or directory\nhint: name a file with image replacements that exists and can be read\n",
    );
}

#[test]
fn usage_errors_exit_with_2() {
    let here = directory(&[("notes.txt", "")]);
    check(
        &generate(here.path(), &["nope"]),
        2,
        "",
        "Error: nope: no such file or directory\nhint: name files or directories that exist and can be read, or `-` for stdin\n",
    );
    check(
        &generate(here.path(), &["."]),
        2,
        "",
        "Error: no .yaml, .yml or .json files found\n",
    );
    check(
        &generate(here.path(), &["--bogus", "."]),
        2,
        "",
        "Error: unknown flag: --bogus\nhint: remove it; run `mainstay generate --help` to list the flags\n",
    );
    assert_eq!(
        generate(here.path(), &["--check", "-o", "-", "."]).status.code(),
        Some(2)
    );
    assert_eq!(generate(here.path(), &[]).status.code(), Some(2));
}
