//! Executes every shell block of the README and of `docs/` with the binary, the real `kubectl` and a sandbox.
//!
//! The blocks of a page run in order in one shell, as a reader would type them, in a new directory and with a
//! new sandbox in `$KUBECONFIG`. `blocks.rs` describes the format of markers. `PAGE=NAME,...` runs single
//! pages. `MAINSTAY_BOOK_ROOT` names an unpacked archive of a release, whose pages and binary are used.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::indexing_slicing,
    reason = "tests"
)]

mod blocks;
mod session;

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use blocks::Step;
use session::{Session, Source};

fn root() -> PathBuf {
    Source::from_environment().root
}

/// The README and the pages of `docs/`, ordered by name.
fn pages() -> Vec<PathBuf> {
    let mut pages = vec![root().join("README.md")];
    let entries = std::fs::read_dir(root().join("docs")).unwrap();
    let files = entries.map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> = files
        .filter(|path| path.extension().is_some_and(|extension| extension == "md"))
        .collect();
    files.sort();
    pages.append(&mut files);
    pages
}

fn steps(page: &Path) -> Vec<Step> {
    let text = std::fs::read_to_string(page).unwrap();
    blocks::parse(&text).unwrap_or_else(|problem| panic!("{}: {problem}", page.display()))
}

#[test]
fn every_command_is_in_a_shell_block() {
    let mut hidden = Vec::new();
    for page in pages() {
        let text = std::fs::read_to_string(&page).unwrap();
        let lines = blocks::indented_commands(&text);
        hidden.extend(lines.into_iter().map(|line| format!("{}:{line}", page.display())));
    }
    assert!(
        hidden.is_empty(),
        "indented commands are not executed: {hidden:#?}"
    );
}

/// A page with its steps.
struct Page {
    name: String,
    steps: Vec<Step>,
}

impl Page {
    fn read(path: &Path) -> Self {
        Self {
            name: path.file_name().unwrap().to_string_lossy().into_owned(),
            steps: steps(path),
        }
    }

    /// Number of shell blocks that are executed.
    fn count(&self) -> usize {
        let is_shell = |step: &&Step| matches!(step, Step::Shell { .. });
        self.steps.iter().filter(is_shell).count()
    }

    fn skipped(&self) -> impl Iterator<Item = String> {
        self.steps.iter().filter_map(|step| match step {
            Step::Skipped { line, reason } => Some(format!("{}:{line}: {reason}", self.name)),
            _ => None,
        })
    }

    /// Whether the page needs an operator or a mesh, which take most of the time.
    fn is_slow(&self) -> bool {
        let is_slow = |text: &str| SLOW.iter().any(|word| text.contains(word));
        self.steps.iter().any(|step| match step {
            Step::Setup { command, .. } => is_slow(command),
            Step::Shell { text, .. } => is_slow(text),
            _ => false,
        })
    }

    fn run(&self) -> Result<(), String> {
        let started = std::time::Instant::now();
        let result = Session::start(&Source::from_environment(), &self.name).run(&self.steps);
        println!(
            "{}: {} blocks in {:.1} s",
            self.name,
            self.count(),
            started.elapsed().as_secs_f64()
        );
        let blocks = result.map_err(|problem| format!("{}: {problem}", self.name))?;
        assert_eq!(blocks.len(), self.count(), "{}: {blocks:?}", self.name);
        for block in blocks {
            println!("{}, {block}", self.name);
        }
        Ok(())
    }
}

/// Commands of slow pages.
const SLOW: &[&str] = &[
    "start_mesh",
    "start_operator",
    "operator run",
    "mainstay demo",
    "mainstay install",
];
/// Pages that run at the same time.
const THREADS: usize = 4;

/// Runs the fast pages, or all of them with `MAINSTAY_BOOK=all`, as `cargo xtask prove first-hour` does.
#[test]
fn every_shell_block_runs_as_printed() {
    let only = std::env::var("PAGE").ok();
    let all = std::env::var("MAINSTAY_BOOK").is_ok_and(|value| value == "all");
    let pages: Vec<Page> = pages().iter().map(|path| Page::read(path)).collect();
    let wanted = |page: &&Page| match &only {
        Some(only) => only.split(',').any(|name| name == page.name),
        None => page.count() > 0 && (all || !page.is_slow()),
    };
    let queue = Mutex::new(pages.iter().filter(wanted).collect::<Vec<&Page>>());
    let results = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                while let Some(page) = { queue.lock().unwrap().pop() } {
                    let result = page.run();
                    results.lock().unwrap().push((page.count(), result));
                }
            });
        }
    });
    let results = results.into_inner().unwrap();
    let failed: Vec<&String> = results
        .iter()
        .filter_map(|(_, result)| result.as_ref().err())
        .collect();
    assert!(failed.is_empty(), "{failed:#?}");
    report(&pages, results.iter().map(|(count, _)| count).sum());
}

/// Prints the totals.
fn report(pages: &[Page], executed: usize) {
    let skipped: Vec<String> = pages.iter().flat_map(Page::skipped).collect();
    for skipped in &skipped {
        println!("not executed: {skipped}");
    }
    let total = pages.iter().map(Page::count).sum::<usize>();
    assert!(executed > 0, "no block was found");
    println!(
        "{executed} of {total} shell blocks executed, {} more are marked with a reason",
        skipped.len()
    );
}

#[test]
fn markers_are_parsed_and_invalid_ones_rejected() {
    let page = "<!-- file: a.yaml -->\n```yaml\nx: 1\n```\n\n<!-- setup: true -->\n<!-- exit: 2 -->\n```sh\nfalse\n```\n\n<!-- not executed: needs root -->\n\n   ```sh\n   sudo x\n   ```\n";
    assert_eq!(
        blocks::parse(page).unwrap(),
        [
            Step::File {
                path: "a.yaml".into(),
                text: "x: 1\n".into()
            },
            Step::Setup {
                line: 6,
                command: "true".into()
            },
            Step::Shell {
                line: 8,
                text: "false\n".into(),
                exit: 2
            },
            Step::Skipped {
                line: 14,
                reason: "needs root".into()
            },
        ]
    );
    for wrong in [
        "<!-- not executed: x -->\ntext\n",
        "```sh\ntrue\n",
        "```\nmainstay status\n```\n",
        "<!-- skip: x -->\n",
        "<!-- exit: 2 -->\n```yaml\n```\n",
    ] {
        assert!(blocks::parse(wrong).is_err(), "{wrong}");
    }
    assert_eq!(blocks::indented_commands("a\n\n    mainstay status\n"), [3]);
}
