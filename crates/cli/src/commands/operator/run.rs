//! `mainstay operator run`: assembles the operator from flags and runs it until it is stopped.

use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use mainstay_cluster::admission::WebhookAddress;
use mainstay_operator::delivery::DeliveryOptions;
use mainstay_operator::health::Health;
use mainstay_operator::istio_operator::IstioOperatorOptions;
use mainstay_operator::istio_operator::webhook::WebhookOptions;
use mainstay_operator::log::{self, PlanLog};
use mainstay_operator::metrics::Metrics;
use mainstay_operator::probe::{HttpsProber, SystemResolver};
use mainstay_operator::server::{
    Bind, CertificateError, Certificates, ClusterAuthorizer, Server, serve_health, serve_metrics,
};
use mainstay_operator::settings::{self, ClusterSettings};
use mainstay_operator::{Clock, Observer, Operator, Options, tls};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

use super::args::Args;
use super::start;
use crate::commands::print;
use crate::error::{CliError, Kind, chain};

const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Time after which a missing initial list is diagnosed.
const STARTUP_CHECK_DELAY: Duration = Duration::from_secs(10);
/// Name of the metrics Service.
const METRICS_SERVICE: &str = "sail-operator-metrics-service";

/// Runs the command.
pub(super) fn run(args: &Args) -> Result<(), CliError> {
    if args.version {
        return print(format!("mainstay {VERSION}\n").as_bytes());
    }
    log::init(args.zap.options());
    tracing::info!(version = VERSION, "mainstay operator");
    let inputs = start::inputs(args)?;
    let catalog = start::open_catalog(args)?;
    // One thread does everything but rendering: a plan takes less than a millisecond, and memory stays small.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let done = runtime.block_on(async {
        let stop = Stop::on_signals()?;
        let prepare = async {
            let client = start::client(args).await?;
            let found = settings::detect(&client, inputs)
                .await
                .map_err(|error| start::unsettled(&error))?;
            Ok::<_, CliError>((client, found))
        };
        let mut stopped = stop.receiver.clone();
        let (client, found) = tokio::select! {
            prepared = prepare => prepared?,
            _ = stopped.wait_for(|stop| *stop) => return Ok(()),
        };
        operate(args, client, catalog, found, &stop).await
    });
    // Renders in progress are no longer needed.
    runtime.shutdown_background();
    done
}

async fn operate(
    args: &Args,
    client: Client,
    catalog: Arc<mainstay_catalog::Catalog>,
    found: ClusterSettings,
    stop: &Stop,
) -> Result<(), CliError> {
    let parts = Parts {
        health: Arc::default(),
        metrics: Arc::new(Metrics::new(VERSION)),
    };
    let servers = parts.serve(args, &client, &found, &stop.receiver).await?;
    tokio::spawn(warn_if_definitions_are_missing(
        client.clone(),
        parts.health.clone(),
    ));
    if let Some(start) = found.tls {
        let (client, sender) = (client.clone(), stop.sender.clone());
        tokio::spawn(async move {
            tracing::info!("{}", tls::wait_for_change(client, start).await);
            let _ = sender.send(true);
        });
    }
    let options = Options {
        namespace: found.settings.operator_namespace.clone(),
        identity: identity()?,
        max_concurrent: usize::try_from(args.max_concurrent_reconciles)
            .unwrap_or(1)
            .max(1),
        leader_elect: args.leader_elect,
        observer: parts.observer(args),
        prober: Arc::new(HttpsProber::new(SystemResolver)),
        delivery: args
            .delivery
            .then(|| DeliveryOptions::for_network(args.allow_local_clusters)),
        istio_operator: args.istio_operator.then(|| IstioOperatorOptions {
            revision: args.istio_operator_revision.clone(),
            ..IstioOperatorOptions::default()
        }),
        webhook: webhook(args, &found.settings.operator_namespace),
        ..Options::default()
    };
    tracing::info!(
        namespace = options.namespace,
        identity = options.identity,
        "starting"
    );
    let mut stopped = stop.receiver.clone();
    let until = async move {
        let _ = stopped.wait_for(|stop| *stop).await;
    };
    let ended = Operator {
        client,
        catalog,
        settings: found.settings,
        options,
        clock: Clock::system(),
    }
    .run(until)
    .await;
    let _ = stop.sender.send(true);
    for server in servers {
        server.ended().await;
    }
    match &ended {
        Ok(()) => tracing::info!("stopped"),
        Err(error) => tracing::error!(error = error as &dyn std::error::Error, "ended"),
    }
    ended.map_err(|error| {
        CliError::new(Kind::Cluster, chain(&error))
            .hint("restart this process: another process is the leader")
    })
}

/// Returns the options of the webhook, if it is enabled.
fn webhook(args: &Args, namespace: &str) -> Option<WebhookOptions> {
    if !args.istio_operator || args.webhook_bind_address == Bind::Disabled {
        return None;
    }
    let service = || WebhookAddress::Service {
        namespace: namespace.to_owned(),
        name: args.webhook_service.clone(),
    };
    Some(WebhookOptions {
        bind: args.webhook_bind_address.clone(),
        address: args.webhook_url.clone().map_or_else(service, WebhookAddress::Url),
    })
}

/// Logs the most common cause of a missing initial list.
async fn warn_if_definitions_are_missing(client: Client, health: Arc<Health>) {
    tokio::time::sleep(STARTUP_CHECK_DELAY).await;
    if health.ready().is_ok() {
        return;
    }
    let group = format!("{}/v1", mainstay_api::names::GROUP);
    match client.list_api_group_resources(&group).await {
        Err(kube::Error::Api(status)) if status.code == 404 => {
            tracing::warn!(
                group,
                "custom resource definitions are missing; run `mainstay crds install`"
            );
        }
        _ => tracing::warn!("initial lists are not complete; use --zap-log-level=debug for details"),
    }
}

/// Observers of the reconciler.
struct Parts {
    health: Arc<Health>,
    metrics: Arc<Metrics>,
}

impl Parts {
    fn observer(&self, args: &Args) -> Arc<dyn Observer> {
        let log = PlanLog {
            log_enqueues: args.log_enqueue_events,
        };
        let all: Vec<Arc<dyn Observer>> = vec![self.health.clone(), self.metrics.clone(), Arc::new(log)];
        Arc::new(all)
    }

    async fn serve(
        &self,
        args: &Args,
        client: &Client,
        found: &ClusterSettings,
        stop: &watch::Receiver<bool>,
    ) -> Result<Vec<Server>, CliError> {
        let mut servers = Vec::new();
        let bind = &args.health_probe_bind_address;
        if *bind != Bind::Disabled {
            let started = serve_health(bind, self.health.clone(), stop.clone()).await;
            let server = started.map_err(|error| {
                unserved(&error).hint("choose another address with --health-probe-bind-address")
            })?;
            tracing::info!(address = %server.address, "serving /healthz and /readyz");
            servers.push(server);
        }
        let bind = &args.metrics_bind_address;
        if *bind != Bind::Disabled {
            let certificates = certificates(args, found).map_err(|error| unserved(&error))?;
            let authorizer = Arc::new(ClusterAuthorizer::new(client.clone()));
            let started =
                serve_metrics(bind, certificates, authorizer, self.metrics.clone(), stop.clone()).await;
            let server = started.map_err(|error| {
                unserved(&error)
                    .hint("choose another address with --metrics-bind-address, or 0 to disable metrics")
            })?;
            tracing::info!(address = %server.address, "serving /metrics over HTTPS, without HTTP/2");
            servers.push(server);
        }
        Ok(servers)
    }
}

fn unserved(error: &dyn std::error::Error) -> CliError {
    CliError::new(Kind::Io, chain(error))
}

fn certificates(args: &Args, found: &ClusterSettings) -> Result<Certificates, CertificateError> {
    let profile = found.settings.tls.as_ref();
    if let Some(directory) = &args.metrics_cert_dir {
        return Certificates::from_directory(directory, profile);
    }
    let service = format!("{METRICS_SERVICE}.{}.svc", found.settings.operator_namespace);
    let names = vec!["localhost".into(), "127.0.0.1".into(), service];
    Certificates::self_signed(names, profile)
}

/// Returns the leader election identity: the pod's name and a random suffix.
fn identity() -> Result<String, CliError> {
    let set = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    let host = || {
        std::fs::read_to_string("/proc/sys/kernel/hostname")
            .ok()
            .map(|name| name.trim().to_owned())
    };
    let name = set("POD_NAME")
        .or_else(|| set("HOSTNAME"))
        .or_else(host)
        .unwrap_or_else(|| "mainstay".into());
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|_| CliError::new(Kind::Io, "cannot read random bytes"))?;
    Ok(format!("{name}_{:032x}", u128::from_be_bytes(bytes)))
}

/// Channel with the value `true` once the process must stop.
struct Stop {
    sender: watch::Sender<bool>,
    receiver: watch::Receiver<bool>,
}

impl Stop {
    /// Stops on SIGTERM or SIGINT; a second signal exits immediately.
    fn on_signals() -> Result<Self, CliError> {
        let (sender, receiver) = watch::channel(false);
        let (mut terminate, mut interrupt) =
            (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        let stop = sender.clone();
        tokio::spawn(async move {
            either(&mut terminate, &mut interrupt).await;
            tracing::info!("received signal, finishing plans in progress");
            let _ = stop.send(true);
            either(&mut terminate, &mut interrupt).await;
            std::process::exit(1);
        });
        Ok(Self { sender, receiver })
    }
}

async fn either(first: &mut Signal, second: &mut Signal) {
    tokio::select! {
        _ = first.recv() => {}
        _ = second.recv() => {}
    }
}
