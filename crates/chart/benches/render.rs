//! Compares the render time of Helm's engine, which runs in the Go oracle, with that of this crate in one
//! run, without start-up. Both coalesce values, then parse and render every template of a chart in memory.
//! Prints one `bench {…}` line per figure.
#![allow(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a benchmark reads the clock and prints"
)]

use std::error::Error;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use mainstay_chart::{Dialect, Loaded, PrepareOptions, RenderOptions, load_path, prepare, render};
use mainstay_template::NoHost;
use mainstay_testkit::{Oracle, repository_root};
use mainstay_yaml::Map;
use serde::Deserialize;

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
    if ours.bytes != theirs.bytes {
        return Err(format!(
            "different output: {} bytes here, {} bytes in Helm",
            ours.bytes, theirs.bytes
        )
        .into());
    }
    report("render", &ours.render_nanos, &theirs.render_nanos, true);
    report("load", &ours.load_nanos, &theirs.load_nanos, false);
    Ok(())
}

#[derive(Default, Deserialize)]
struct Timing {
    render_nanos: Vec<u64>,
    load_nanos: Vec<u64>,
    bytes: usize,
}

impl Timing {
    fn extend(&mut self, more: Self) {
        self.render_nanos.extend(more.render_nanos);
        self.load_nanos.extend(more.load_nanos);
        self.bytes = more.bytes;
    }
}

fn measure_helm(oracle: &mut Oracle, chart: &std::path::Path, runs: usize) -> Result<Timing, Box<dyn Error>> {
    let response = oracle.query_raw(&serde_json::json!({"op": "bench", "chart": chart, "runs": runs}))?;
    if !response.err.is_empty() {
        return Err(response.err.into());
    }
    Ok(serde_json::from_slice(&response.out)?)
}

fn measure_mainstay(chart: &std::path::Path, runs: usize) -> Result<Timing, Box<dyn Error>> {
    let mut timing = Timing::default();
    for _ in 0..runs {
        let (loaded, load) = timed(|| load_path(chart, Dialect::Helm4))?;
        let (bytes, render) = timed(|| render_all(&loaded))?;
        timing.load_nanos.push(nanos(load));
        timing.render_nanos.push(nanos(render));
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
    let rendered = render(&prepared, &options, &mut NoHost)?;
    Ok(rendered.files.values().map(Vec::len).sum::<usize>() + rendered.notes.len())
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
