//! Compares the render time of Helm's engine, which runs in the Go oracle, with that of this crate in one
//! run, without start-up. Both resolve dependencies, coalesce values, then parse and render every template of
//! a chart in memory. Prints one `bench {…}` line per figure.
#![allow(
    clippy::print_stdout,
    clippy::disallowed_methods,
    clippy::expect_used,
    reason = "a benchmark reads the clock and random bytes, and prints"
)]

use std::error::Error;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use mainstay_chart::{Dialect, Loaded, PrepareOptions, RenderOptions, load_path, prepare, render};
use mainstay_template::Host;
use mainstay_testkit::{Oracle, repository_root};
use mainstay_yaml::Map;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;
use serde::Deserialize;

/// Ratio of the sizes of two outputs that contain random certificates.
const RANDOM_SIZES: f64 = 0.01;

fn main() -> Result<(), Box<dyn Error>> {
    let chart = std::env::var_os("MAINSTAY_BENCH_CHART").map_or_else(
        || repository_root().join("resources/1.29.1/installer/charts/istiod"),
        PathBuf::from,
    );
    let runs = std::env::var("MAINSTAY_BENCH_RUNS")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(100);
    let mut oracle = Oracle::start()?;
    let (mut ours, mut theirs) = (Timing::default(), Timing::default());
    // Rounds alternate, so that other load on the machine affects both.
    let per_round = usize::max(1, runs / 10);
    for _ in 0..10 {
        theirs.extend(measure_helm(&mut oracle, &chart, per_round)?);
        ours.extend(measure_mainstay(&chart, per_round)?);
    }
    let difference = ours.bytes.abs_diff(theirs.bytes) as f64 / theirs.bytes as f64;
    let is_random = std::env::var_os("MAINSTAY_BENCH_RANDOM").is_some();
    if difference > if is_random { RANDOM_SIZES } else { 0.0 } {
        return Err(format!(
            "different output: {} bytes here, {} bytes in Helm",
            ours.bytes, theirs.bytes
        )
        .into());
    }
    report("render", &ours.render_nanos, &theirs.render_nanos, true);
    report(
        "render, CPU time",
        &ours.render_cpu_nanos,
        &theirs.render_cpu_nanos,
        true,
    );
    report("load", &ours.load_nanos, &theirs.load_nanos, false);
    Ok(())
}

#[derive(Default, Deserialize)]
struct Timing {
    render_nanos: Vec<u64>,
    render_cpu_nanos: Vec<u64>,
    load_nanos: Vec<u64>,
    bytes: usize,
}

impl Timing {
    fn extend(&mut self, more: Self) {
        self.render_nanos.extend(more.render_nanos);
        self.render_cpu_nanos.extend(more.render_cpu_nanos);
        self.load_nanos.extend(more.load_nanos);
        self.bytes = more.bytes;
    }
}

fn measure_helm(oracle: &mut Oracle, chart: &Path, runs: usize) -> Result<Timing, Box<dyn Error>> {
    let response = oracle.query_raw(&serde_json::json!({"op": "bench", "chart": chart, "runs": runs}))?;
    if !response.err.is_empty() {
        return Err(response.err.into());
    }
    Ok(serde_json::from_slice(&response.out)?)
}

fn measure_mainstay(chart: &Path, runs: usize) -> Result<Timing, Box<dyn Error>> {
    let mut timing = Timing::default();
    for _ in 0..runs {
        let (loaded, load) = timed(|| load_path(chart, Dialect::Helm4))?;
        let busy = cpu_time()?;
        let (bytes, render) = timed(|| render_all(&loaded))?;
        let busy = cpu_time()?.saturating_sub(busy);
        timing.load_nanos.push(nanos(load));
        timing.render_nanos.push(nanos(render));
        timing.render_cpu_nanos.push(nanos(busy));
        timing.bytes = bytes;
    }
    Ok(timing)
}

fn render_all(loaded: &Loaded) -> Result<usize, mainstay_chart::ChartError> {
    let mut options = RenderOptions::new(Dialect::Helm4);
    options.release.name = "istiod".into();
    options.release.namespace = "istio-system".into();
    let prepare_options = PrepareOptions {
        dialect: Dialect::Helm4,
        kube_version: options.capabilities.kube_version.clone(),
        skip_schema: false,
    };
    let prepared = prepare(loaded, &Map::new(), &prepare_options, &mut Vec::new())?;
    let rendered = render(&prepared, &options, &mut SystemHost)?;
    Ok(rendered.files.values().map(Vec::len).sum::<usize>() + rendered.notes.len())
}

/// Clock and random source of the system, for charts with certificates.
struct SystemHost;

impl Host for SystemHost {
    fn entropy(&mut self, buffer: &mut [u8]) {
        File::open("/dev/urandom")
            .and_then(|mut source| source.read_exact(buffer))
            .expect("the system has random bytes");
    }

    fn now(&mut self) -> i128 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        since.map_or(0, |since| since.as_nanos() as i128)
    }
}

/// Returns the CPU time of all threads of this process so far.
fn cpu_time() -> Result<Duration, Box<dyn Error>> {
    let duration = |time: TimeVal| Duration::new(time.tv_sec() as u64, time.tv_usec() as u32 * 1_000);
    let usage = getrusage(UsageWho::RUSAGE_SELF)?;
    Ok(duration(usage.user_time()) + duration(usage.system_time()))
}

fn timed<T, E>(work: impl FnOnce() -> Result<T, E>) -> Result<(T, Duration), E> {
    let begin = Instant::now();
    let result = work()?;
    Ok((result, begin.elapsed()))
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Prints the times of all runs in milliseconds. `compared` states whether the figure has a target.
fn report(name: &str, ours: &[u64], theirs: &[u64], compared: bool) {
    let millis = |nanos: &[u64]| nanos.iter().map(|nanos| *nanos as f64 / 1e6).collect::<Vec<_>>();
    let figure = serde_json::json!({
        "name": name, "ours": millis(ours), "theirs": millis(theirs), "compared": compared,
    });
    println!("bench {figure}");
}
