//! Memory of `mainstay generate` relative to its input, for lists in every layout. `MAINSTAY_LIST_MIB` sets
//! the size of the input and selects all layouts.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test that cannot set up its directory fails")]

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use nix::sys::resource::{UsageWho, getrusage};

/// Maximum memory above that of an empty run, as a multiple of the input size.
const MAX_RATIO: f64 = 8.0;

/// Peak memory of all child processes so far, in bytes.
fn peak() -> f64 {
    getrusage(UsageWho::RUSAGE_CHILDREN).unwrap().max_rss() as f64 * 1024.0
}

fn object(number: usize) -> String {
    let mut text = format!(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: app-{number}\n  labels:\n    app: app-{number}\nspec:\n  \
         replicas: 3\n  selector:\n    matchLabels:\n      app: app-{number}\n  template:\n    metadata:\n      \
         labels:\n        app: app-{number}\n    spec:\n      runtimeClassName: contrast-cc\n      containers:\n      \
         - name: app\n        image: registry.example/app:1.0\n        env:\n"
    );
    for key in 0..12 {
        let _ = writeln!(text, "        - name: KEY_{key}\n          value: value {key}");
    }
    text
}

/// Returns the object as an item of a list.
fn item(number: usize) -> String {
    let mut text = String::new();
    for (line, content) in object(number).lines().enumerate() {
        let _ = writeln!(text, "{}{content}", if line == 0 { "- " } else { "  " });
    }
    text
}

const HEAD: &str = "apiVersion: v1\nkind: List\nitems:\n";

/// Returns objects with a total length of at least `size` bytes.
fn repeated(size: usize, one: impl Fn(usize) -> String) -> Vec<String> {
    let mut len = 0;
    let objects = (0..).map(one);
    objects
        .take_while(|object| {
            len += object.len();
            len <= size
        })
        .collect()
}

/// Returns an input in each layout, with the name of the layout.
fn layouts(size: usize) -> Vec<(&'static str, String)> {
    let items = repeated(size, item);
    let whole = format!("{HEAD}{}", items.concat());
    let last = items.len() - 1;
    let shared = whole
        .replacen("app: app-0", "app: &x app-0", 1)
        .replace(&format!("app: app-{last}"), "app: *x");
    let nested: Vec<String> = items
        .chunks(20)
        .map(|items| {
            let inner = items.concat().replace('\n', "\n  ");
            format!(
                "- apiVersion: v1\n  kind: List\n  items:\n  {}\n",
                inner.trim_end()
            )
        })
        .collect();
    let json = repeated(size, |number| {
        let object = mainstay_yaml::parse(object(number), &mainstay_yaml::Budget::default()).unwrap();
        mainstay_yaml::to_json(&object).unwrap()
    });
    let failing = "containers: 7\n        other:\n        - name: app\n";
    vec![
        ("documents", repeated(size, object).join("---\n")),
        ("list", whole.clone()),
        (
            "list in JSON",
            format!(
                "{{\"apiVersion\":\"v1\",\"kind\":\"List\",\"items\":[{}]}}\n",
                json.join(",")
            ),
        ),
        ("list with a shared anchor", shared),
        (
            "list with an object that fails",
            whole.replacen("containers:\n        - name: app\n", failing, 1),
        ),
        ("list of lists", format!("{HEAD}{}", nested.concat())),
        ("list without pods", whole.replace("contrast-cc", "kata")),
    ]
}

fn run(file: &Path, arguments: &[&str]) -> Option<i32> {
    let status = Command::new(env!("CARGO_BIN_EXE_mainstay"))
        .args(["generate", "-q", "--keep-going"])
        .arg(file)
        .args(arguments)
        .status();
    status.unwrap().code()
}

/// Runs the command on every file and returns the highest ratio. The kernel reports the peak of all child
/// processes so far, so the inputs of one pass must have about the same size.
fn check_pass(files: &[(&str, PathBuf)], arguments: &[&str], base: f64) -> f64 {
    let mut highest: f64 = 0.0;
    for (name, file) in files {
        let input = fs::metadata(file).unwrap().len();
        assert_eq!(run(file, arguments), Some(0), "{name} {arguments:?}");
        let ratio = (peak() - base) / input as f64;
        assert!(ratio <= MAX_RATIO, "{name} {arguments:?}: {ratio:.1} × the input");
        highest = highest.max(ratio);
    }
    highest
}

#[test]
fn memory_is_bounded_by_the_input() {
    let requested = std::env::var("MAINSTAY_LIST_MIB").ok();
    // Every third layout unless a size is requested.
    let step = if requested.is_some() { 1 } else { 3 };
    let mebibytes: usize = requested.map_or(2, |text| text.parse().unwrap());
    let here = tempfile::tempdir().unwrap();
    let empty = here.path().join("empty.yaml");
    fs::write(&empty, "").unwrap();
    assert_eq!(run(&empty, &[]), Some(0));
    let base = peak();
    let layouts: Vec<_> = layouts(mebibytes << 20).into_iter().step_by(step).collect();
    let mut files = Vec::new();
    for (number, (name, text)) in layouts.iter().enumerate() {
        let file = here.path().join(format!("{number}.yaml"));
        fs::write(&file, text).unwrap();
        files.push((*name, file));
    }
    let injected = check_pass(&files, &[], base);
    let restored = check_pass(&files, &["--uninject"], base);
    for ((name, text), (_, file)) in layouts.iter().zip(&files) {
        assert!(
            fs::read(file).unwrap() == text.as_bytes(),
            "{name} is not restored"
        );
    }
    let highest = injected.max(restored);
    let count = layouts.len();
    println!("harden generate-memory: {mebibytes} MiB in {count} layouts, at most {highest:.1} × the input");
}
