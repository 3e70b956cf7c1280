//! `mainstay generate` with files that change during the run, with pipes, and after a SIGKILL.

use std::fs;
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::directory::{INJECTED, POD, check, directory, generate, outcome, owned, piped, tree};

fn command(directory: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mainstay"));
    command
        .arg("generate")
        .current_dir(directory)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Starts a run that has read and staged `a.yaml` and waits for the rest of standard input.
fn start_staged_run(directory: &Path) -> Child {
    let mut child = command(directory).args(["-q", "a.yaml", "-"]).spawn().unwrap();
    let long = format!("kind: ConfigMap\ndata: {{a: {}}}\n", "x".repeat(5 << 20));
    let mut input = child.stdin.take().unwrap();
    input.write_all(long.as_bytes()).unwrap();
    child.stdin = Some(input);
    let is_staged = || fs::read_dir(directory).unwrap().count() > 1;
    while !is_staged() {
        assert!(child.try_wait().unwrap().is_none(), "the process ended early");
        std::thread::yield_now();
    }
    child
}

type Edit = fn(&Path, &str);

#[test]
fn a_file_modified_between_read_and_write_is_kept() {
    let own = format!("{POD}# changed by an editor\n");
    let edits: [Edit; 2] = [
        |path, text| fs::write(path, text).unwrap(),
        |path, text| {
            let new = path.with_file_name("new");
            fs::write(&new, text).unwrap();
            fs::rename(new, path).unwrap();
        },
    ];
    for edit in edits {
        let here = directory(&[("a.yaml", POD)]);
        let child = start_staged_run(here.path());
        edit(&here.path().join("a.yaml"), &own);
        let output = child.wait_with_output().unwrap();
        let (code, _, stderr) = outcome(&output);
        let path = fs::canonicalize(here.path()).unwrap().join("a.yaml");
        assert_eq!(code, 2, "{stderr}");
        assert_eq!(
            stderr,
            format!(
                "Error: {}: the file was modified after it was read; nothing was written\nhint: run the command again\n",
                path.display()
            )
        );
        assert_eq!(tree(here.path()), owned(&[("a.yaml", &own)]));
    }
}

#[test]
fn the_run_after_a_kill_removes_temporary_files() {
    let here = directory(&[("a.yaml", POD)]);
    let mut child = start_staged_run(here.path());
    child.kill().unwrap();
    child.wait().unwrap();
    let left: Vec<_> = tree(here.path()).into_iter().map(|(name, _)| name).collect();
    assert!(left.iter().any(|name| name.starts_with(".mainstay-")), "{left:?}");
    assert_eq!(fs::read_to_string(here.path().join("a.yaml")).unwrap(), POD);
    check(&generate(here.path(), &["-q", "a.yaml"]), 0, "", "");
    assert_eq!(tree(here.path()), owned(&[("a.yaml", INJECTED)]));
}

/// Kills runs after each number of staged files: every file is complete, and the next run finishes the work.
#[test]
fn a_kill_at_any_point_leaves_complete_files() {
    let here = directory(&[]);
    let names: Vec<_> = (0..20).map(|number| format!("{number}.yaml")).collect();
    let mut left = 0;
    for staged in 0..=names.len() {
        for name in &names {
            fs::write(here.path().join(name), POD).unwrap();
        }
        let mut child = command(here.path()).args(["-q", "."]).spawn().unwrap();
        let count = || fs::read_dir(here.path()).unwrap().count();
        while count() < names.len() + staged && child.try_wait().unwrap().is_none() {
            std::thread::yield_now();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        left += count() - names.len();
        for name in &names {
            let text = fs::read_to_string(here.path().join(name)).unwrap();
            assert!(text == POD || text == INJECTED, "{name}: {text}");
        }
        assert!(generate(here.path(), &["-q", "."]).status.success());
        let wanted: Vec<_> = names.iter().map(|name| (name.as_str(), INJECTED)).collect();
        let mut wanted = owned(&wanted);
        wanted.sort();
        assert_eq!(tree(here.path()), wanted);
    }
    assert!(left > 0, "no process was killed in time");
    println!(
        "harden files: {} kills, {left} temporary files left and removed, nothing lost",
        names.len() + 1
    );
}

/// Runs a command line in bash.
fn bash(directory: &Path, script: &str) -> (i32, String, String) {
    let output = Command::new("bash")
        .args(["-c", script, "bash", env!("CARGO_BIN_EXE_mainstay")])
        .current_dir(directory)
        .output()
        .unwrap();
    outcome(&output)
}

#[test]
fn process_substitution_and_named_standard_input_are_pipes() {
    let here = directory(&[("p.yaml", POD)]);
    let cases = [
        "\"$1\" generate -q <(cat p.yaml)",
        "cat p.yaml | \"$1\" generate -q /dev/stdin",
        "\"$1\" generate -q /dev/stdin < p.yaml",
        "\"$1\" generate -q /dev/fd/0 < p.yaml",
        "mkfifo pipe; (cat p.yaml > pipe &) ; \"$1\" generate -q pipe; rm pipe",
    ];
    for script in cases {
        assert_eq!(
            bash(here.path(), script),
            (0, INJECTED.to_owned(), String::new()),
            "{script}"
        );
        assert_eq!(tree(here.path()), owned(&[("p.yaml", POD)]), "{script}");
    }
    let (code, stdout, _) = bash(here.path(), "\"$1\" generate -q <(cat p.yaml) <(cat p.yaml) -o -");
    assert_eq!((code, stdout), (0, format!("{INJECTED}---\n{INJECTED}")));
    let (code, stdout, _) = bash(here.path(), "\"$1\" generate -q <(cat p.yaml) -o out.yaml");
    assert_eq!((code, stdout.as_str()), (0, ""));
    assert_eq!(
        fs::read_to_string(here.path().join("out.yaml")).unwrap(),
        INJECTED
    );
}

#[test]
fn a_device_or_an_endless_document_is_an_error() {
    let here = directory(&[]);
    check(
        &generate(here.path(), &["/dev/zero"]),
        2,
        "",
        "Error: /dev/zero: not a file, directory or pipe\n",
    );
    let (code, stdout, stderr) = bash(here.path(), "yes 'a: b' | \"$1\" generate -q -");
    assert_eq!((code, stdout.as_str()), (2, ""));
    assert!(
        stderr.starts_with("Error: -: a document is longer than 64 MiB\n"),
        "{stderr}"
    );
}

#[test]
fn links_out_of_a_directory_are_not_followed() {
    let here = directory(&[("in/a.yaml", POD), ("in/deep/b.yaml", POD), ("out/c.yaml", POD)]);
    symlink("../out/c.yaml", here.path().join("in/file.yaml")).unwrap();
    symlink("../out", here.path().join("in/directory")).unwrap();
    symlink("deep/b.yaml", here.path().join("in/own.yaml")).unwrap();
    check(
        &generate(here.path(), &["-q", "in"]),
        0,
        "",
        "Warning: in/file.yaml: skipped: the symbolic link leaves the directory\n",
    );
    let read = |name: &str| fs::read_to_string(here.path().join(name)).unwrap();
    assert_eq!(read("out/c.yaml"), POD);
    assert_eq!(
        (read("in/a.yaml").as_str(), read("in/deep/b.yaml").as_str()),
        (INJECTED, INJECTED)
    );
    assert!(here.path().join("in/own.yaml").is_symlink());
}

#[test]
fn check_reports_planned_changes() {
    let here = directory(&[("a.yaml", POD), ("b.yaml", INJECTED)]);
    check(
        &generate(here.path(), &["--check", "."]),
        1,
        "./a.yaml\n",
        "./a.yaml:2: Pod p: would be injected (initializer)\n./b.yaml:2: Pod p: unchanged (initializer)\n2 inputs, 2 workloads: 1 would be injected, 1 unchanged\n",
    );
    check(
        &piped(here.path(), &["--check", "--uninject", "-"], INJECTED),
        1,
        "-\n",
        "-:2: Pod p: would be removed (uninject)\n1 input, 1 workload: 1 would be removed\n",
    );
}
