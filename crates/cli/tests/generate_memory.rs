//! Memory of `mainstay generate` relative to its input: lists in every layout, single large objects, and the
//! list of a KRM function. `MAINSTAY_LIST_MIB` sets the size of the input and selects all layouts of lists.
#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test that cannot set up its directory fails; figures are printed"
)]

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use nix::sys::resource::{UsageWho, getrusage};

/// Maximum memory above that of an empty run, as a multiple of the input size.
const MAX_RATIO: f64 = 8.0;

/// Returns the limit of a layout. Those above [`MAX_RATIO`] are stated in docs/generate.md: the undo record
/// of a single large object with CRLF is read with the parser, and a function holds its input, its output
/// and the results.
fn limit(layout: &str, flags: &[&str]) -> f64 {
    match layout {
        "one object with CRLF" if flags.contains(&"--uninject") => 90.0,
        layout if layout.starts_with("function") => 13.0,
        _ => MAX_RATIO,
    }
}

/// Set for the process that starts a measured run: the file and the flags, one per line. The kernel adds the
/// memory of the starting process to the peak of its child, and the test itself holds large inputs.
const MEASURED_RUN: &str = "MAINSTAY_MEASURED_RUN";

/// Prefix of the line that a measured run prints, before its peak memory in bytes and its exit code.
const REPORT: &str = "measured run: ";

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

/// Returns lines with a total length of at least `size` bytes.
fn lines(size: usize, line: impl Fn(usize) -> String) -> String {
    repeated(size, line).concat()
}

/// Returns inputs that are one object.
fn single_objects(size: usize) -> Vec<(&'static str, String)> {
    let entry = |number| format!("        - name: KEY_{number}\n          value: value {number}\n");
    let large = format!("{}{}", object(0), lines(size, entry));
    let value = mainstay_yaml::parse(&large, &mainstay_yaml::Budget::default()).unwrap();
    let json = mainstay_yaml::to_json_pretty(&value).unwrap() + "\n";
    let other = |line: &dyn Fn(usize) -> String| {
        format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: contrast-settings\ndata:\n{}",
            lines(size, line)
        )
    };
    let data = other(&|number| format!("  key-{number}: value {number}\n"));
    let anchored = data
        .replacen("value 0\n", "&x value 0\n", 1)
        .replacen("value 1\n", "*x\n", 1);
    vec![
        ("one object", large.clone()),
        ("one object with CRLF", large.replace('\n', "\r\n")),
        ("one object in JSON", json),
        ("one object without pods", data),
        ("one object without pods that needs the parser", anchored),
        (
            "one object without pods that names the runtime class often",
            other(&|number| format!("  key-{number}: contrast-cc {number}\n")),
        ),
    ]
}

/// Returns the list of a KRM function in each style.
fn resource_lists(size: usize) -> Vec<(&'static str, String)> {
    let path = |number| {
        format!("metadata:\n    annotations:\n      internal.config.kubernetes.io/path: a/{number}.yaml\n")
    };
    let items = lines(size, |number| {
        item(number).replacen("metadata:\n", &path(number), 1)
    });
    let list = format!("apiVersion: config.kubernetes.io/v1\nkind: ResourceList\nitems:\n{items}");
    let value = mainstay_yaml::parse(&list, &mainstay_yaml::Budget::default()).unwrap();
    let json = mainstay_yaml::to_json(&value).unwrap();
    vec![
        ("function", list.clone()),
        (
            "function with earlier results",
            format!("{list}results:\n- message: earlier\n"),
        ),
        ("function in JSON", json),
    ]
}

/// Starts `mainstay generate` on a file, or as a KRM function if there are no flags, and prints its peak
/// memory and exit code.
fn start_measured(settings: &str) {
    let mut lines = settings.lines();
    let file = Path::new(lines.next().unwrap());
    let mut command = Command::new(env!("CARGO_BIN_EXE_mainstay"));
    command.args(["generate", "-q"]);
    let flags: Vec<&str> = lines.collect();
    if flags.is_empty() {
        command
            .arg("-")
            .stdin(fs::File::open(file).unwrap())
            .stdout(fs::File::create(file.with_extension("out")).unwrap());
    } else {
        command.args(flags).arg(file);
    }
    let code = command.status().unwrap().code().unwrap();
    let peak = getrusage(UsageWho::RUSAGE_CHILDREN).unwrap().max_rss() * 1024;
    println!("\n{REPORT}{peak} {code}");
}

/// Runs `mainstay generate` in a measured run and returns its peak memory in bytes.
fn run(file: &Path, flags: &[&str]) -> f64 {
    let lines: Vec<&str> = [file.to_str().unwrap()]
        .into_iter()
        .chain(flags.iter().copied())
        .collect();
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "memory_is_bounded_by_the_input", "--nocapture"])
        .env(MEASURED_RUN, lines.join("\n"))
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let report = text.lines().find_map(|line| line.strip_prefix(REPORT)).unwrap();
    let (peak, code) = report.split_once(' ').unwrap();
    assert_eq!(code, "0", "{}: {text}", file.display());
    peak.parse().unwrap()
}

/// Compares the memory of runs with that of a run on an empty file.
struct Meter {
    base: f64,
    highest: f64,
    highest_of_exceptions: f64,
}

impl Meter {
    /// Runs on a file and checks the memory.
    fn run(&mut self, name: &str, file: &Path, flags: &[&str]) {
        let size = fs::metadata(file).unwrap().len();
        let ratio = (run(file, flags) - self.base) / size as f64;
        let limit = limit(name, flags);
        assert!(
            ratio <= limit,
            "{name} {flags:?}: {ratio:.1} × the input, at most {limit}"
        );
        let highest = if limit > MAX_RATIO {
            &mut self.highest_of_exceptions
        } else {
            &mut self.highest
        };
        *highest = highest.max(ratio);
    }
}

#[test]
fn memory_is_bounded_by_the_input() {
    if let Ok(settings) = std::env::var(MEASURED_RUN) {
        return start_measured(&settings);
    }
    let requested = std::env::var("MAINSTAY_LIST_MIB").ok();
    // Every third layout of lists unless a size is requested.
    let step = if requested.is_some() { 1 } else { 3 };
    let mebibytes: usize = requested.map_or(2, |text| text.parse().unwrap());
    let size = mebibytes << 20;
    let here = tempfile::tempdir().unwrap();
    let empty = here.path().join("empty.yaml");
    fs::write(&empty, "").unwrap();
    let mut meter = Meter {
        base: run(&empty, &["--keep-going"]),
        highest: 0.0,
        highest_of_exceptions: 0.0,
    };
    let write = |name: &str, text: &str| -> PathBuf {
        let file = here.path().join(format!("{}.yaml", name.replace(' ', "-")));
        fs::write(&file, text).unwrap();
        file
    };
    let inputs: Vec<_> = layouts(size)
        .into_iter()
        .step_by(step)
        .chain(single_objects(size))
        .collect();
    for (name, text) in &inputs {
        let file = write(name, text);
        meter.run(name, &file, &["--keep-going"]);
        let expects_change = !name.contains("without pods");
        assert_eq!(
            fs::read(&file).unwrap() != text.as_bytes(),
            expects_change,
            "{name}"
        );
        meter.run(name, &file, &["--keep-going", "--uninject"]);
        assert!(is_restored(name, text, &file), "{name} is not restored");
    }
    let functions = resource_lists(size);
    for (name, text) in &functions {
        let file = write(name, text);
        meter.run(name, &file, &[]);
        let out = fs::read_to_string(file.with_extension("out")).unwrap();
        let count = |text: &str, part: &str| text.matches(part).count();
        let objects = count(text, "internal.config.kubernetes.io/path");
        assert_eq!(count(&out, "injected (initializer)"), objects, "{name}");
        assert_eq!(count(&out, "\"file\":{\"path\":\"a/"), objects, "{name}");
    }
    let count = inputs.len() + functions.len();
    let (highest, exceptions) = (meter.highest, meter.highest_of_exceptions);
    println!(
        "harden generate-memory: {mebibytes} MiB in {count} layouts, at most {highest:.1} × the input; documented \
         exceptions {exceptions:.1} ×"
    );
}

/// Whether a file is the original again: its bytes, or the same object in JSON.
fn is_restored(name: &str, original: &str, file: &Path) -> bool {
    let text = fs::read_to_string(file).unwrap();
    let value = |text: &str| mainstay_yaml::parse(text, &mainstay_yaml::Budget::default()).ok();
    text == original || (name == "one object in JSON" && value(&text) == value(original))
}
