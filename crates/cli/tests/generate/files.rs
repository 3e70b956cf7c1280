//! Writing files: edits in place, output directories, and no change to any file after an error.

use std::fs;

use crate::directory::{
    BAD, BAD_MESSAGE, INJECTED, POD, UNREADABLE, check, directory, generate, owned, piped, tree,
};

#[test]
fn files_are_edited_in_place_and_restored() {
    let here = directory(&[("p.yaml", POD)]);
    check(
        &generate(here.path(), &["p.yaml"]),
        0,
        "",
        "p.yaml:2: Pod p: injected (initializer)\n1 input, 1 workload: 1 injected\n",
    );
    assert_eq!(tree(here.path()), owned(&[("p.yaml", INJECTED)]));
    check(
        &generate(here.path(), &["p.yaml"]),
        0,
        "",
        "p.yaml:2: Pod p: unchanged (initializer)\n1 input, 1 workload: 1 unchanged\n",
    );
    assert_eq!(tree(here.path()), owned(&[("p.yaml", INJECTED)]));
    check(
        &generate(here.path(), &["--uninject", "p.yaml"]),
        0,
        "",
        "p.yaml:2: Pod p: removed (uninject)\n1 input, 1 workload: 1 removed\n",
    );
    assert_eq!(tree(here.path()), owned(&[("p.yaml", POD)]));
}

#[test]
fn a_file_that_does_not_change_is_not_written() {
    let here = directory(&[("p.yaml", INJECTED), ("c.yaml", "kind: ConfigMap\n")]);
    let times =
        || ["p.yaml", "c.yaml"].map(|name| fs::metadata(here.path().join(name)).unwrap().modified().unwrap());
    let before = times();
    assert!(generate(here.path(), &["."]).status.success());
    assert_eq!(times(), before);
}

#[test]
fn several_inputs_become_one_stream() {
    let config = "kind: ConfigMap\n";
    let here = directory(&[
        ("a.yaml", POD),
        ("b.yaml", config),
        ("c.yaml", "---\nkind: Secret"),
    ]);
    let both = format!("{INJECTED}---\n{config}---\nkind: Secret");
    check(
        &generate(here.path(), &["-q", "-o", "-", "a.yaml", "b.yaml", "c.yaml"]),
        0,
        &both,
        "",
    );
    check(&generate(here.path(), &["-q", "-o", "all.yaml", "."]), 0, "", "");
    assert_eq!(fs::read_to_string(here.path().join("all.yaml")).unwrap(), both);
    assert_eq!(fs::read_to_string(here.path().join("a.yaml")).unwrap(), POD);
}

#[test]
fn a_directory_mirrors_its_input() {
    let config = "kind: ConfigMap\n";
    let here = directory(&[
        ("k8s/a.yaml", POD),
        ("k8s/x/b.yml", config),
        ("k8s/x/notes.txt", "?"),
        ("k8s/.git/c.yaml", POD),
    ]);
    check(&generate(here.path(), &["-q", "-o", "out/", "k8s"]), 0, "", "");
    assert_eq!(
        tree(&here.path().join("out")),
        owned(&[("a.yaml", INJECTED), ("x/b.yml", config)])
    );
    let output = generate(
        here.path(),
        &["-o", "other/", "k8s/a.yaml", "k8s/x", "out/a.yaml"],
    );
    check(
        &output,
        2,
        "",
        "Error: k8s/a.yaml and out/a.yaml would both be written to other/a.yaml\nhint: pass the directory that contains both\n",
    );
    assert!(!here.path().join("other").exists());
    check(
        &piped(here.path(), &["-", "-o", "out"], POD),
        2,
        "",
        "Error: --output out: standard input has no file name\nhint: use a file, or - for standard output\n",
    );
}

#[test]
fn patterns_that_the_shell_did_not_expand_are_matched() {
    let here = directory(&[("k8s/a.yaml", POD), ("k8s/x/b.yaml", POD), ("k8s/x/c.json", "{}")]);
    let output = generate(here.path(), &["k8s/**/*.yaml"]);
    check(
        &output,
        0,
        "",
        "k8s/a.yaml:2: Pod p: injected (initializer)\nk8s/x/b.yaml:2: Pod p: injected (initializer)\n2 inputs, 2 workloads: 2 injected\n",
    );
    check(
        &generate(here.path(), &["k8s/*.yml"]),
        2,
        "",
        "Error: k8s/*.yml: no file matches\n",
    );
}

#[test]
fn a_file_named_twice_is_processed_once() {
    let here = directory(&[("p.yaml", POD)]);
    let log = "p.yaml:2: Pod p: injected (initializer)\n1 input, 1 workload: 1 injected\n";
    check(
        &generate(here.path(), &["p.yaml", "./p.yaml", ".", "*.yaml"]),
        0,
        "",
        log,
    );
    assert_eq!(tree(here.path()), owned(&[("p.yaml", INJECTED)]));
}

#[cfg(unix)]
#[test]
fn links_are_written_through() {
    let here = directory(&[("real/p.yaml", POD)]);
    std::os::unix::fs::symlink("real/p.yaml", here.path().join("link.yaml")).unwrap();
    std::os::unix::fs::symlink("..", here.path().join("real/up")).unwrap();
    let log = "link.yaml:2: Pod p: injected (initializer)\n1 input, 1 workload: 1 injected\n";
    check(&generate(here.path(), &["link.yaml", "real"]), 0, "", log);
    assert!(here.path().join("link.yaml").is_symlink());
    let output = generate(
        here.path(),
        &["-q", "--uninject", "-o", "link.yaml", "real/p.yaml"],
    );
    check(&output, 0, "", "");
    assert!(here.path().join("link.yaml").is_symlink());
    assert_eq!(fs::read_to_string(here.path().join("real/p.yaml")).unwrap(), POD);
    assert!(generate(here.path(), &["-q", "link.yaml"]).status.success());
    assert_eq!(
        fs::read_to_string(here.path().join("real/p.yaml")).unwrap(),
        INJECTED
    );
}

#[cfg(unix)]
#[test]
fn the_mode_of_a_file_is_kept() {
    use std::os::unix::fs::PermissionsExt;
    let here = directory(&[("p.yaml", POD)]);
    let path = here.path().join("p.yaml");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o751)).unwrap();
    assert!(generate(here.path(), &["p.yaml"]).status.success());
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o751);
}

#[test]
fn a_failure_leaves_every_file_as_it_was() {
    let files = [("a.yaml", POD), ("bad.yaml", BAD), ("z.yaml", POD)];
    let here = directory(&files);
    let log = format!(
        "a.yaml:2: Pod p: injected (initializer)\nbad.yaml:1: Pod bad: failed (refused)\n{BAD_MESSAGE}z.yaml:2: Pod p: injected (initializer)\n3 inputs, 3 workloads: 2 injected, 1 failed\nError: 1 object failed; nothing was written\nhint: use --keep-going to leave such inputs unchanged and continue\n"
    );
    check(&generate(here.path(), &["."].map(|_| "*.yaml")), 2, "", &log);
    assert_eq!(tree(here.path()), owned(&files));
}

#[test]
fn a_bad_document_in_the_last_file_leaves_every_file_as_it_was() {
    let files = [("a.yaml", POD), ("z.yaml", UNREADABLE)];
    let here = directory(&files);
    let output = generate(here.path(), &["-q", "a.yaml", "z.yaml"]);
    check(
        &output,
        2,
        "",
        "Error: yaml: mapping values are not allowed in this context\n --> z.yaml:4:14 (syntax)\n  |\n4 |    containers: []\n  |              ^\nError: 1 object failed; nothing was written\nhint: use --keep-going to leave such inputs unchanged and continue\n",
    );
    assert_eq!(tree(here.path()), owned(&files));
    let output = generate(here.path(), &["-q", "-o", "out/", "a.yaml", "z.yaml"]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(tree(here.path()), owned(&files));
    let output = generate(here.path(), &["-q", "-o", "-", "a.yaml", "z.yaml"]);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0));
}

#[test]
fn a_file_that_cannot_be_written_leaves_every_file_as_it_was() {
    let here = directory(&[("a.yaml", POD), ("b.yaml", POD)]);
    let path = here.path().join("b.yaml");
    let mut permissions = fs::metadata(&path).unwrap().permissions();
    permissions.set_readonly(true);
    fs::set_permissions(&path, permissions).unwrap();
    let output = generate(here.path(), &["-q", "a.yaml", "b.yaml"]);
    check(
        &output,
        2,
        "",
        "Error: b.yaml: the file is read-only\nError: 1 input failed; nothing was written\nhint: use --keep-going to leave such inputs unchanged and continue\n",
    );
    assert_eq!(tree(here.path()), owned(&[("a.yaml", POD), ("b.yaml", POD)]));
    let output = generate(here.path(), &["-q", "--keep-going", "a.yaml", "b.yaml"]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(tree(here.path()), owned(&[("a.yaml", POD), ("b.yaml", POD)]));
}

#[test]
fn keep_going_processes_the_other_files() {
    let here = directory(&[("a.yaml", POD), ("bad.yaml", BAD)]);
    let output = generate(here.path(), &["-q", "--keep-going", "a.yaml", "bad.yaml"]);
    check(&output, 0, "", BAD_MESSAGE);
    assert_eq!(
        tree(here.path()),
        owned(&[("a.yaml", INJECTED), ("bad.yaml", BAD)])
    );
}
