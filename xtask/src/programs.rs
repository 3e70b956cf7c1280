//! The test programs of the workspace. `cargo test --workspace --no-run` builds them once, with one set of
//! features; the test step and the quick proofs run the same files.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use mainstay_testkit::{SAMPLE, repository_root};
use serde_json::Value;

use crate::build::cargo;

/// Number of programs that the test step runs at the same time: many of them mostly wait for real servers.
const TEST_CONCURRENCY: usize = 3;

/// Number of programs that a proof runs at the same time. Two proofs run at the same time.
const PROOF_CONCURRENCY: usize = 2;

/// The test step runs every N-th test case of suites that support sampling.
pub(crate) const SAMPLING_INTERVAL: &str = "3";

/// Programs that take longest. They are started first, so that no slow program runs alone at the end.
const SLOWEST: &[&str] = &[
    "real",
    "istio_operator_real",
    "adoption",
    "rollout_servers",
    "deploy",
    "takeover",
    "install",
    "simulated",
    "formats",
    "operator",
];

/// Identifies a test program: the package and the name of the test target, or of the crate for unit tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ProgramName {
    pub(crate) package: &'static str,
    pub(crate) target: &'static str,
}

/// Environment variables of a test program.
pub(crate) type Environment = Vec<(&'static str, String)>;

/// One test program.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    pub(crate) package: String,
    pub(crate) target: String,
    executable: PathBuf,
    /// Directory of the package, where cargo would start the program.
    directory: PathBuf,
}

/// Everything that `cargo test --workspace --no-run` builds.
pub(crate) struct Programs {
    pub(crate) tests: Vec<Program>,
    /// The `mainstay` binary of the same build.
    pub(crate) mainstay: PathBuf,
}

/// Builds the test programs of the workspace, or finds them if they are up to date.
pub(crate) fn build() -> anyhow::Result<Programs> {
    let output = cargo()
        .args([
            "test",
            "--locked",
            "--workspace",
            "--no-run",
            "--message-format=json-render-diagnostics",
        ])
        .current_dir(repository_root())
        .stderr(Stdio::inherit())
        .output()
        .context("starting cargo")?;
    if !output.status.success() {
        bail!("the workspace does not build");
    }
    let messages: Vec<Value> = String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect();
    let mainstay = messages
        .iter()
        .find_map(mainstay_binary)
        .context("cargo built no binary `mainstay`")?;
    Ok(Programs {
        tests: messages.iter().filter_map(test_program).collect(),
        mainstay,
    })
}

fn is_test(message: &Value) -> bool {
    message.pointer("/profile/test").and_then(Value::as_bool) == Some(true)
}

fn mainstay_binary(message: &Value) -> Option<PathBuf> {
    let is_ours = !is_test(message) && message.pointer("/target/name")? == "mainstay";
    let path = message.get("executable")?.as_str()?;
    is_ours.then(|| PathBuf::from(path))
}

fn test_program(message: &Value) -> Option<Program> {
    let executable = message.get("executable")?.as_str()?;
    let manifest = Path::new(message.get("manifest_path")?.as_str()?);
    let directory = manifest.parent()?.to_owned();
    is_test(message).then(|| Program {
        package: package_name(message).unwrap_or_default(),
        target: text(message, "/target/name"),
        executable: executable.into(),
        directory,
    })
}

/// Returns the package name from an identifier such as `path+file:///src/crates/cli#mainstay@0.1.0`; the name
/// is omitted if it equals the directory's.
fn package_name(message: &Value) -> Option<String> {
    let id = message.get("package_id")?.as_str()?;
    let (path, fragment) = id.rsplit_once('#')?;
    let name = match fragment.split_once('@') {
        Some((name, _)) => name,
        None => path.rsplit('/').next()?,
    };
    Some(name.to_owned())
}

fn text(message: &Value, pointer: &str) -> String {
    let value = message.pointer(pointer).and_then(Value::as_str);
    value.unwrap_or_default().to_owned()
}

/// Output and duration of a run of one program.
pub(crate) struct TestRun {
    pub(crate) name: String,
    pub(crate) output: String,
    pub(crate) passed: bool,
    duration: Duration,
}

impl TestRun {
    /// Whether this is a run of the program called `name`.
    pub(crate) fn is(&self, name: ProgramName) -> bool {
        self.name == format!("{} {}", name.package, name.target)
    }

    /// Sums up the lines `MARK N run, M WORD` that the program printed. Fails if there is none, or if the
    /// program failed although all counted cases are good.
    pub(crate) fn counts(&self, mark: &str) -> anyhow::Result<(usize, usize)> {
        let (mut total, mut good) = (0, 0);
        for (_, counts) in self.output.lines().filter_map(|line| line.split_once(mark)) {
            let words = counts.split_whitespace();
            let mut numbers = words.filter_map(|word| word.parse::<usize>().ok());
            total += numbers.next().context("no number of runs")?;
            good += numbers.next().context("no number of good runs")?;
        }
        ensure!(total > 0, "{} prints no count", self.name);
        ensure!(self.passed || good < total, "{} failed", self.name);
        Ok((total, good))
    }
}

impl Program {
    /// Whether `name` refers to this program.
    pub(crate) fn is(&self, name: ProgramName) -> bool {
        self.package == name.package && self.target == name.target
    }

    /// Returns the command that runs the program as cargo would.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(&self.executable);
        command
            .current_dir(&self.directory)
            .env("CARGO_MANIFEST_DIR", &self.directory)
            .stdin(Stdio::null());
        command
    }

    /// Runs the program with both of its output streams captured.
    pub(crate) fn run(&self, configure: impl FnOnce(&mut Command)) -> anyhow::Result<TestRun> {
        let mut command = self.command();
        configure(&mut command);
        let begin = Instant::now();
        let output = command
            .output()
            .with_context(|| format!("starting {}", self.executable.display()))?;
        let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
        if !output.status.success() {
            text.push_str(&String::from_utf8_lossy(&output.stderr));
        }
        Ok(TestRun {
            name: format!("{} {}", self.package, self.target),
            output: text,
            passed: output.status.success(),
            duration: begin.elapsed(),
        })
    }
}

impl Programs {
    /// Returns the program called `name`.
    pub(crate) fn find(&self, name: ProgramName) -> anyhow::Result<&Program> {
        self.tests
            .iter()
            .find(|program| program.is(name))
            .with_context(|| format!("package {} has no test {}", name.package, name.target))
    }

    /// Runs the programs called `names` with `configure` applied to each command.
    pub(crate) fn run(
        &self,
        names: &[ProgramName],
        configure: impl Fn(&mut Command) + Sync,
    ) -> anyhow::Result<Vec<TestRun>> {
        let programs: Vec<&Program> = names
            .iter()
            .map(|name| self.find(*name))
            .collect::<Result<_, _>>()?;
        run_concurrently(&programs, PROOF_CONCURRENCY, |_, command| configure(command))
    }

    /// Runs programs with environment variables for each of them and their output.
    pub(crate) fn run_with(&self, runs: &[(ProgramName, Environment)]) -> anyhow::Result<Vec<TestRun>> {
        let mut programs: Vec<&Program> = runs
            .iter()
            .map(|(name, _)| self.find(*name))
            .collect::<Result<_, _>>()?;
        programs.sort_by_key(|program| start_rank(&program.target));
        run_concurrently(&programs, PROOF_CONCURRENCY, |program, command| {
            let variables = runs.iter().find(|(name, _)| program.is(*name));
            command
                .arg("--nocapture")
                .envs(variables.into_iter().flat_map(|(_, variables)| variables.clone()));
        })
    }

    /// Runs the programs for which `filters` returns names of tests, with only those tests and their output.
    pub(crate) fn run_tests(
        &self,
        filters: impl Fn(&Program) -> Vec<&'static str> + Sync,
    ) -> anyhow::Result<Vec<TestRun>> {
        let mut programs: Vec<&Program> = self.tests.iter().filter(|it| !filters(it).is_empty()).collect();
        programs.sort_by_key(|program| start_rank(&program.target));
        run_concurrently(&programs, PROOF_CONCURRENCY, |program, command| {
            command
                .args(["--format=pretty", "--show-output"])
                .args(filters(program));
        })
    }

    /// Runs every program that is not in `skipped`, with a sample of the test cases that also run on the
    /// simulator. Prints the output of those that fail, the longest durations and the totals.
    pub(crate) fn run_all(&self, skipped: &BTreeSet<ProgramName>) -> anyhow::Result<()> {
        let is_skipped = |program: &&Program| skipped.iter().any(|name| program.is(*name));
        let mut wanted: Vec<&Program> = self.tests.iter().filter(|program| !is_skipped(program)).collect();
        wanted.sort_by_key(|program| start_rank(&program.target));
        let mut runs = run_concurrently(&wanted, TEST_CONCURRENCY, |_, command| {
            command.env(SAMPLE, SAMPLING_INTERVAL);
        })?;
        runs.sort_by_key(|run| std::cmp::Reverse(run.duration));
        println!("\nlongest test programs:");
        for run in runs.iter().take(12) {
            println!("{:>6.1} s  {}", run.duration.as_secs_f64(), run.name);
        }
        let totals: Totals = runs.iter().map(|run| Totals::parse(&run.output)).sum();
        let failed: Vec<&str> = runs
            .iter()
            .filter(|run| !run.passed)
            .map(|run| run.name.as_str())
            .collect();
        println!(
            "{} test programs: {} passed, {} failed, {} ignored",
            runs.len(),
            totals.passed,
            totals.failed,
            totals.ignored
        );
        if !failed.is_empty() || runs.len() != wanted.len() || totals.passed == 0 {
            bail!("failed test programs: {}", failed.join(", "));
        }
        Ok(())
    }
}

/// Position in the order of starting: the slowest programs first, in the order of the list.
fn start_rank(target: &str) -> usize {
    let rank = SLOWEST.iter().position(|name| *name == target);
    rank.unwrap_or(SLOWEST.len())
}

fn run_concurrently(
    programs: &[&Program],
    concurrency: usize,
    configure: impl Fn(&Program, &mut Command) + Sync,
) -> anyhow::Result<Vec<TestRun>> {
    let next = AtomicUsize::new(0);
    let results = Mutex::new(Vec::new());
    let worker = || {
        while let Some(program) = programs.get(next.fetch_add(1, Ordering::Relaxed)) {
            let run = program.run(|command| configure(program, command));
            if let Ok(run) = &run {
                print_run(run);
            }
            if let Ok(mut results) = results.lock() {
                results.push(run);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..concurrency {
            scope.spawn(worker);
        }
    });
    results.into_inner().unwrap_or_default().into_iter().collect()
}

fn print_run(run: &TestRun) {
    let totals = Totals::parse(&run.output);
    let result = if run.passed { "ok" } else { "FAILED" };
    println!(
        "{result:<6} {:>6.1} s {:>5} passed  {}",
        run.duration.as_secs_f64(),
        totals.passed,
        run.name
    );
    if !run.passed {
        println!("{}", run.output);
    }
}

/// Number of test cases by result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Totals {
    passed: usize,
    failed: usize,
    ignored: usize,
}

impl Totals {
    /// Sums up the lines `test result: ok. 3 passed; 0 failed; 1 ignored; …`.
    fn parse(output: &str) -> Self {
        output.lines().filter_map(Self::parse_line).sum()
    }

    fn parse_line(line: &str) -> Option<Self> {
        let counts = line.strip_prefix("test result: ")?.split_once(". ")?.1;
        let count = |word: &str| {
            let part = counts.split("; ").find_map(|part| part.strip_suffix(word));
            part.and_then(|number| number.trim().parse().ok()).unwrap_or(0)
        };
        Some(Self {
            passed: count(" passed"),
            failed: count(" failed"),
            ignored: count(" ignored"),
        })
    }
}

impl std::iter::Sum for Totals {
    fn sum<I: Iterator<Item = Self>>(totals: I) -> Self {
        totals.fold(Self::default(), |sum, next| Self {
            passed: sum.passed + next.passed,
            failed: sum.failed + next.failed,
            ignored: sum.ignored + next.ignored,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn totals_sum_all_result_lines() {
        let output = "test a ... ok\ntest result: ok. 3 passed; 0 failed; 1 ignored; 0 measured\n\
            test result: FAILED. 2 passed; 1 failed; 0 ignored; 0 measured\n";
        let expected = Totals {
            passed: 5,
            failed: 1,
            ignored: 1,
        };
        assert_eq!(Totals::parse(output), expected);
    }

    #[test]
    fn counts_sum_all_marked_lines() {
        let run = |output: &str, passed| TestRun {
            name: "mainstay-manifest istioctl".into(),
            output: output.into(),
            passed,
            duration: Duration::ZERO,
        };
        let check = |output: &str, passed, expected: Option<(usize, usize)>| {
            assert_eq!(run(output, passed).counts("inputs: ").ok(), expected, "{output}");
        };
        check(
            "inputs: 3 run, 2 equal\ntest a ... inputs: 4 run, 4 equal\n",
            false,
            Some((7, 6)),
        );
        check("others: 3 run, 3 equal\n", true, None);
        check("inputs: 3 run, 3 equal\n", false, None);
        check("inputs: 3 run, 3 equal\n", true, Some((3, 3)));
    }

    #[test]
    fn programs_are_recognized_in_cargo_messages() {
        let message = json!({
            "package_id": "path+file:///src/crates/cli#mainstay@0.1.0",
            "manifest_path": "/src/crates/cli/Cargo.toml",
            "target": {"name": "generate"},
            "profile": {"test": true},
            "executable": "/src/target/debug/deps/generate-1",
        });
        let program = test_program(&message).unwrap();
        assert!(program.is(ProgramName {
            package: "mainstay",
            target: "generate",
        }));
        assert_eq!(mainstay_binary(&message), None);
    }

    #[test]
    fn a_package_named_like_its_directory_is_recognized() {
        let message = json!({"package_id": "path+file:///src/xtask#0.1.0"});
        assert_eq!(package_name(&message).as_deref(), Some("xtask"));
    }
}
