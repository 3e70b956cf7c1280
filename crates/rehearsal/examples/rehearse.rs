//! Measures time and memory of `mainstay rehearse` for a snapshot of many workloads: `rehearse [WORKLOADS
//! [embedded]]` prints one line per step and a total such as `rehearse 10000 workloads: 1.23 s, 456 MiB`,
//! from reading the file to writing the report as JSON and as a page. Generating the snapshot is not
//! included, because another process does it. With `REPORT=FILE` the JSON is stored; with `SNAPSHOT=FILE`
//! the snapshot is read from that file, which is created if it does not exist.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "the example prints its results"
)]

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

use mainstay_catalog::Catalog;
use mainstay_rehearsal::report::{Method, Outcome, Report};
use mainstay_rehearsal::{Input, RehearsalRequest, html, rehearse};
use mainstay_testkit::Usage;

#[path = "../tests/support/many.rs"]
mod many;

/// First argument of the process that generates the snapshot.
const MAKE: &str = "--make";

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let [make, count, file] = args.as_slice()
        && make == MAKE
    {
        return make_file(count.parse()?, Path::new(file));
    }
    let count = args.first().map_or(Ok(10_000), |count| count.parse())?;
    let method = args.get(1).map(|_| Method::Embedded);
    let kept = std::env::var_os("SNAPSHOT").map(PathBuf::from);
    let own = std::env::temp_dir().join(format!("rehearsal-{}.yaml", std::process::id()));
    let file = kept.as_ref().unwrap_or(&own);
    if !file.exists() {
        let mut maker = Command::new(std::env::current_exe()?);
        maker.args([MAKE, &count.to_string()]).arg(file);
        if !maker.status()?.success() {
            return Err("the snapshot could not be made".into());
        }
    }
    let done = measure(file, count, method);
    if kept.is_none() {
        std::fs::remove_file(file)?;
    }
    done
}

fn make_file(count: usize, file: &Path) -> Result<(), Box<dyn Error>> {
    let mut objects = many::many(count);
    // Objects are grouped by kind, as `kubectl get` prints them.
    objects.sort_by_key(|object| object.get("kind").map(ToString::to_string));
    let text = match file.extension().and_then(|end| end.to_str()) {
        Some("json") => serde_json::to_string_pretty(
            &serde_json::json!({"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": ""}, "items": objects}),
        )?,
        _ => mainstay_sim::snapshot::to_yaml(&objects)?,
    };
    Ok(std::fs::write(file, text)?)
}

/// Measures wall-clock and CPU time.
struct Watch(Instant, f64);

impl Watch {
    fn start() -> Self {
        Self(Instant::now(), busy_seconds())
    }

    fn elapsed(&self) -> String {
        let (took, busy) = (self.0.elapsed().as_secs_f64(), busy_seconds() - self.1);
        format!("{took:.2} s, {busy:.2} s of CPU time")
    }
}

fn measure(file: &Path, count: usize, method: Option<Method>) -> Result<(), Box<dyn Error>> {
    let mebibytes = std::fs::metadata(file)?.len() >> 20;
    let whole = Watch::start();
    let catalog = Arc::new(Catalog::embedded()?);
    let watch = Watch::start();
    let input = Input::from_path(file)?;
    println!(
        "read {} objects of {mebibytes} MiB: {}",
        input.object_count(),
        watch.elapsed()
    );
    let request = RehearsalRequest {
        to: Some("v1.29.1".into()),
        method,
        ..RehearsalRequest::default()
    };
    let watch = Watch::start();
    let mut report = rehearse(&catalog, input, &request)?;
    println!(
        "rehearsed {} of virtual time, {} batches, {:?}: {}",
        report.totals.duration,
        report.totals.batches,
        report.method,
        watch.elapsed()
    );
    let watch = Watch::start();
    let page = html::page(&report, None);
    let json = serde_json::to_string_pretty(&report)?;
    println!(
        "wrote {} KiB of JSON and {} KiB of HTML: {}",
        json.len() >> 10,
        page.len() >> 10,
        watch.elapsed()
    );
    println!("CPU time: {:.2} s", busy_seconds() - whole.1);
    println!(
        "rehearse {count} workloads: {:.2} s, {:.0} MiB",
        whole.0.elapsed().as_secs_f64(),
        Usage::for_self().peak()
    );
    keep(&mut report)?;
    if report.outcome != Outcome::Completed || report.totals.migrated != count {
        return Err(format!("unexpected outcome: {:?} {:?}", report.outcome, report.totals).into());
    }
    Ok(())
}

/// Stores the report for comparisons, without the location of its input.
fn keep(report: &mut Report) -> Result<(), Box<dyn Error>> {
    if let Some(file) = std::env::var_os("REPORT") {
        report.input.source = "a bench".into();
        std::fs::write(file, serde_json::to_string_pretty(report)?)?;
    }
    Ok(())
}

/// Returns the CPU time of all threads of this process. It does not depend on the load of the machine.
fn busy_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = text.rsplit(')').next().unwrap_or_default();
    let ticks = after_name.split_whitespace().skip(11).take(2);
    ticks.filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / 100.0
}
