//! `mainstay sandbox`: serves a simulated Kubernetes cluster on loopback until it is stopped.

mod kubeconfig_file;
mod webhooks;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use mainstay_harness::Injectors;
use mainstay_sim::auth::User;
use mainstay_sim::script::Script;
use mainstay_sim::serve::{ServeError, ServeOptions, Server};
use mainstay_sim::snapshot;
use mainstay_sim::{Cluster, Options, clock};
use serde_json::{Value, json};
use tokio::signal::unix::{SignalKind, signal};

use super::print;
use crate::commands::verify::Output;
use crate::error::{CliError, Kind, chain};
use crate::flag_value::{FlagError, number_in};
use crate::snapshot::{read_objects, unreadable};
use kubeconfig_file::KubeconfigFile;

/// Arguments of `sandbox`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  mainstay sandbox                                     # three nodes, until Ctrl-C
  mainstay sandbox --kubeconfig ./kubeconfig &         # in a script; then: kubectl --kubeconfig ./kubeconfig get nodes
  kubectl get all -A -o yaml > cluster.yaml            # work on a copy of a real cluster:
  mainstay sandbox --snapshot cluster.yaml --dump after
  kubectl get all -A -o yaml | mainstay sandbox -f -
  mainstay sandbox --speed 60                          # 60 times as fast
  mainstay sandbox --inject                            # try the operator, an upgrade and a migration
  mainstay sandbox -o json | jq -r .kubeconfig")]
pub(crate) struct Args {
    /// Load these objects: a file (`kubectl get -A -o yaml`), a directory, or `-` for stdin
    #[arg(short = 'f', long, visible_alias = "filename", value_name = "FILE|DIR")]
    snapshot: Option<PathBuf>,

    /// Number of nodes to add [default: 3, or none if the snapshot has nodes]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(0..=1000))]
    nodes: Option<u16>,

    /// Where to write the kubeconfig; other files are not overwritten [default: a new file in the runtime or
    /// temporary directory]
    #[arg(long, value_name = "PATH")]
    kubeconfig: Option<PathBuf>,

    /// Port on 127.0.0.1; 0 selects a free port
    #[arg(long, default_value_t = 0)]
    port: u16,

    /// Speed of the cluster's clock relative to the wall clock
    #[arg(long, default_value_t = 1.0, value_name = "FACTOR", value_parser = speed)]
    speed: f64,

    /// Random seed of names and addresses
    #[arg(long, default_value_t = 0)]
    seed: u64,

    /// Inject sidecars on behalf of every istiod: pods get the annotation of their revision, but no proxy
    #[arg(long)]
    inject: bool,

    /// Write every object to this directory when it stops; the directory must be empty or not exist
    #[arg(long, value_name = "DIR")]
    dump: Option<PathBuf>,

    /// Output format; `json` is one line
    #[arg(short, long, value_enum, default_value_t = Output::Text, value_name = "FORMAT")]
    output: Output,
}

/// Running time of pods that end by themselves, such as those of Jobs.
const COMPLETION_TIME: Duration = Duration::from_secs(1);

/// Accepted speeds: 0 stops the clock, and the simulation cannot keep up with more than the maximum.
const SPEEDS: std::ops::RangeInclusive<f64> = 0.0..=10_000.0;

fn speed(text: &str) -> Result<f64, FlagError> {
    number_in(SPEEDS, text)
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), CliError> {
    let started = Instant::now();
    if let Some(directory) = &args.dump {
        snapshot::check_dump_directory(directory).map_err(|error| unreadable(&error))?;
    }
    let (cluster, ready) = prepare(args)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let done = runtime.block_on(serve(args, &cluster, ready, started));
    if let Some(directory) = &args.dump {
        dump(&cluster, directory)?;
    }
    done
}

/// Facts about the cluster that are printed.
struct Ready {
    nodes: usize,
    objects: usize,
    skipped: Vec<String>,
}

fn prepare(args: &Args) -> Result<(Cluster, Ready), CliError> {
    let cluster = Cluster::new(Options {
        seed: args.seed,
        start: wall_clock(),
        trace: false,
        events: true,
        ..Options::default()
    });
    cluster.set_webhook_transport(Arc::new(webhooks::Loopback::new()));
    let mut loaded = snapshot::Loaded::default();
    if let Some(path) = &args.snapshot {
        let objects = read_objects(path)?;
        loaded = cluster.with(|state| snapshot::load(state, objects));
    }
    if args.inject {
        cluster.add_controller(Box::new(Injectors::default()));
    }
    cluster.with(|state| {
        state
            .scripts
            .set_completion(Script::completes_after(COMPLETION_TIME));
    });
    let there = cluster.with(|state| state.store.count("nodes"));
    let more = args.nodes.map_or(if there > 0 { 0 } else { 3 }, usize::from);
    cluster.run_workloads(more);
    let ready = Ready {
        nodes: cluster.with(|state| state.store.count("nodes")),
        objects: loaded.objects,
        skipped: loaded.skipped,
    };
    Ok((cluster, ready))
}

fn wall_clock() -> clock::Instant {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    clock::Instant::default().plus(since.unwrap_or(Duration::ZERO))
}

async fn serve(args: &Args, cluster: &Cluster, ready: Ready, started: Instant) -> Result<(), CliError> {
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let options = ServeOptions {
        port: args.port,
        speed: args.speed,
        ..ServeOptions::default()
    };
    let server = Server::start(cluster, &options)
        .await
        .map_err(|error| unserved(&error))?;
    let kubeconfig = KubeconfigFile::create(args.kubeconfig.as_deref())?;
    let admin = User::admin();
    server
        .write_kubeconfig(admin, kubeconfig.path())
        .map_err(|error| unserved(&error))?;
    announce(args.output, &server, &kubeconfig, &ready, started.elapsed())?;
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    server.stop().await;
    Ok(())
}

fn announce(
    format: Output,
    server: &Server,
    kubeconfig: &KubeconfigFile,
    ready: &Ready,
    took: Duration,
) -> Result<(), CliError> {
    let path = kubeconfig.path().display();
    match format {
        Output::Text => {
            let mut text = format!(
                "Kubernetes API with {} nodes ready at {} after {} ms\n\n  export KUBECONFIG={path}\n  kubectl get nodes\n\n",
                ready.nodes,
                server.url(),
                took.as_millis(),
            );
            if ready.objects > 0 {
                let _ = writeln!(text, "Loaded {} objects from the snapshot", ready.objects);
            }
            for kind in count(&ready.skipped) {
                let _ = writeln!(text, "Skipped unsupported kind: {kind}");
            }
            text.push_str("Press Ctrl-C to stop\n");
            print(text.as_bytes())
        }
        Output::Json => print(format!("{}\n", data(server, &path.to_string(), ready)).as_bytes()),
        Output::Yaml => print(format.format(&data(server, &path.to_string(), ready))?.as_bytes()),
    }
}

fn data(server: &Server, path: &str, ready: &Ready) -> Value {
    json!({
        "kubeconfig": path,
        "nodes": ready.nodes,
        "objects": ready.objects,
        "pid": std::process::id(),
        "server": server.url(),
        "skipped": count(&ready.skipped),
    })
}

/// Returns each text once, with its count.
fn count(texts: &[String]) -> Vec<String> {
    let mut counts = std::collections::BTreeMap::<&str, usize>::new();
    for text in texts {
        *counts.entry(text).or_default() += 1;
    }
    counts
        .into_iter()
        .map(|(text, times)| format!("{text} ({times})"))
        .collect()
}

fn dump(cluster: &Cluster, directory: &Path) -> Result<(), CliError> {
    let written = cluster.with(|state| snapshot::write_directory(state, directory));
    written.map(drop).map_err(|error| unreadable(&error))
}

fn unserved(error: &ServeError) -> CliError {
    let result = CliError::new(Kind::Io, chain(error));
    match error {
        ServeError::Listen { .. } => result.hint("use --port 0 to select a free port"),
        _ => result,
    }
}
