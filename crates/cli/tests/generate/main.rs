//! `mainstay generate` as a process: output streams, exit codes and files on disk.
#![allow(clippy::unwrap_used, reason = "a test that cannot set up its directory fails")]

#[cfg(unix)]
mod concurrent;
mod directory;
mod files;
mod flags;
mod reports;

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

use directory::{INJECTED, POD, check, directory, generate, owned, piped, tree};

#[test]
fn standard_input_goes_to_standard_output() {
    let here = directory(&[]);
    let log = "-:2: Pod p: injected (initializer)\n1 input, 1 workload: 1 injected\n";
    check(&piped(here.path(), &["-"], POD), 0, INJECTED, log);
    check(
        &piped(here.path(), &["-", "--output", "-"], POD),
        0,
        INJECTED,
        log,
    );
    check(&piped(here.path(), &["-", "-", "-q"], POD), 0, INJECTED, "");
    check(&piped(here.path(), &["-"], ""), 0, "", "1 input, 0 workloads\n");
    check(
        &piped(here.path(), &["-q", "-", "-o", "out.yaml"], POD),
        0,
        "",
        "",
    );
    assert_eq!(tree(here.path()), owned(&[("out.yaml", INJECTED)]));
}

#[test]
fn a_long_stream_is_processed_in_chunks() {
    let here = directory(&[]);
    let filler = format!("---\nkind: ConfigMap\ndata: {{a: {}}}\n", "x".repeat(100_000));
    let text = format!("{}---\n{POD}", filler.repeat(60));
    let expected = format!("{}---\n{INJECTED}", filler.repeat(60));
    fs::write(here.path().join("long.yaml"), &text).unwrap();
    let log = "long.yaml:183: Pod p: injected (initializer)\n1 input, 1 workload: 1 injected\n";
    check(&generate(here.path(), &["long.yaml"]), 0, "", log);
    assert!(fs::read_to_string(here.path().join("long.yaml")).unwrap() == expected);
    let output = piped(here.path(), &["-q", "-"], &text);
    assert!(output.status.success() && output.stdout == expected.as_bytes());
    let output = generate(here.path(), &["-q", "--uninject", "-o", "-", "long.yaml"]);
    assert!(output.status.success() && output.stdout == text.as_bytes());
    assert_eq!(fs::read_dir(here.path()).unwrap().count(), 1);
}

#[cfg(unix)]
#[test]
fn an_interrupt_leaves_nothing_behind() {
    let here = directory(&[]);
    // A file that is long enough to be staged, then standard input that never ends.
    let filler = format!("---\nkind: ConfigMap\ndata: {{a: {}}}\n", "x".repeat(100_000));
    let text = format!("{}---\n{POD}", filler.repeat(60));
    fs::write(here.path().join("a.yaml"), POD).unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_mainstay"))
        .args(["generate", "a.yaml", "-", "-o", "out/x.yaml"])
        .current_dir(here.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(text.as_bytes()).unwrap();
    let kill = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status()
        .unwrap();
    assert!(kill.success());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    drop(input);
    assert_eq!(tree(here.path()), owned(&[("a.yaml", POD)]));
}

#[test]
fn a_closed_pipe_is_not_reported() {
    let here = directory(&[("p.yaml", &format!("{POD}# {}\n", "x".repeat(200_000)))]);
    let mut child = Command::new(env!("CARGO_BIN_EXE_mainstay"))
        .args(["generate", "-q", "-o", "-", "p.yaml"])
        .current_dir(here.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr.len()), (Some(141), 0));
}
