//! Flags of `operator run`: those of the Sail Operator, and a few more.

use std::ffi::OsString;
use std::path::PathBuf;

use mainstay_mesh::Platform;
use mainstay_operator::config::DEFAULT_FILE;
use mainstay_operator::log::{Encoder, Level, LogOptions, TimeEncoding};
use mainstay_operator::server::Bind;

/// Arguments of `operator run`.
#[allow(clippy::struct_excessive_bools, reason = "each is a flag")]
#[derive(clap::Args)]
#[command(
    after_help = "Flags are those of the Sail Operator, in all spellings of Go (-flag, --flag, --flag=value).

Environment: POD_NAMESPACE (else the service account's), KUBECONFIG (else the service account, else ~/.kube/config).

Exits with 0 after SIGTERM or SIGINT (a second signal exits immediately), and with 1 when the lease is lost.

Examples:
  mainstay operator run                                       # in a pod
  POD_NAMESPACE=sail-operator mainstay operator run --leader-elect=false   # locally, with the current kubeconfig
  mainstay operator run -zap-encoder=json -zap-log-level=debug
  mainstay operator run --metrics-bind-address 0 --health-probe-bind-address 127.0.0.1:8081"
)]
pub(super) struct Args {
    /// Address of /metrics over HTTPS; 0 disables it
    #[arg(long, default_value = ":8443", value_name = "ADDRESS")]
    pub(super) metrics_bind_address: Bind,

    /// Address of /healthz and /readyz; 0 disables it
    #[arg(long, default_value = ":8081", value_name = "ADDRESS")]
    pub(super) health_probe_bind_address: Bind,

    /// Directory with tls.crt and tls.key for /metrics, reloaded on change [default: a self-signed
    /// certificate]
    #[arg(long, value_name = "DIR")]
    pub(super) metrics_cert_dir: Option<PathBuf>,

    /// Images by version, as a pod's annotations dumped into a file; may be missing unless named
    #[arg(long, value_name = "FILE", help = format!("Images by version (images.v1_29_1.istiod=…), as a pod's annotations dumped into a file [default: {DEFAULT_FILE}, if there is one]"))]
    pub(super) config_file: Option<PathBuf>,

    /// Directory with charts (DIR/VERSION/charts/CHART); takes precedence over embedded charts
    #[arg(long, value_name = "DIR", default_value = "", hide_default_value = true)]
    pub(super) resource_directory: OsString,

    /// Default values of a distributor by version and kind
    #[arg(long, value_name = "FILE")]
    pub(super) vendor_defaults: Option<PathBuf>,

    /// Platform of the cluster [default: detected at startup]
    #[arg(long, value_name = "PLATFORM", value_parser = platform)]
    pub(super) platform: Option<Platform>,

    /// Maximum number of concurrent reconciliations
    #[arg(long, default_value_t = 5, value_name = "N")]
    pub(super) max_concurrent_reconciles: i64,

    /// Use leader election; disable it only for a single process
    #[arg(long, action = clap::ArgAction::Set, num_args = 0..=1, require_equals = true, default_value = "true", default_missing_value = "true", value_parser = crate::flag_value::go_bool, value_name = "BOOL")]
    pub(super) leader_elect: bool,

    /// Run application delivery if its definitions are installed
    #[arg(long, action = clap::ArgAction::Set, num_args = 0..=1, require_equals = true, default_value = "true", default_missing_value = "true", value_parser = crate::flag_value::go_bool, value_name = "BOOL")]
    pub(super) delivery: bool,

    /// Run the controller for IstioOperator resources if its definition is installed
    #[arg(long, action = clap::ArgAction::Set, num_args = 0..=1, require_equals = true, default_value = "true", default_missing_value = "true", value_parser = crate::flag_value::go_bool, value_name = "BOOL")]
    pub(super) istio_operator: bool,

    /// Only IstioOperators of this revision, `default` for those without one [default: all]
    #[arg(long, value_name = "REVISION")]
    pub(super) istio_operator_revision: Option<String>,

    /// Address of the validating webhook for IstioOperators; 0 disables it
    #[arg(long, default_value = "0", value_name = "ADDRESS")]
    pub(super) webhook_bind_address: Bind,

    /// Service of the webhook in the operator's namespace
    #[arg(long, default_value = mainstay_cluster::admission::SERVICE, value_name = "NAME")]
    pub(super) webhook_service: String,

    /// URL at which the API server reaches the webhook, instead of a Service
    #[arg(long, value_name = "URL", value_parser = https_url)]
    pub(super) webhook_url: Option<String>,

    /// Allow loopback, link-local and metadata addresses in kubeconfigs of Clusters and in queries of metrics
    #[arg(long)]
    pub(super) allow_local_clusters: bool,

    /// Log each request sent to the Kubernetes API
    #[arg(long)]
    pub(super) log_api_requests: bool,

    /// Log the cause of each enqueued object
    #[arg(long)]
    pub(super) log_enqueue_events: bool,

    /// Kubeconfig to use
    #[arg(long, value_name = "FILE", default_value = "", hide_default_value = true)]
    pub(super) kubeconfig: OsString,

    /// Print the version and exit
    #[arg(long)]
    pub(super) version: bool,

    #[command(flatten)]
    pub(super) zap: Zap,
}

fn https_url(text: &str) -> Result<String, String> {
    if text.starts_with("https://") {
        Ok(text.to_owned())
    } else {
        Err("must start with https://".to_owned())
    }
}

fn platform(text: &str) -> Result<Platform, String> {
    match text {
        "kubernetes" => Ok(Platform::Kubernetes),
        "openshift" => Ok(Platform::OpenShift),
        _ => Err("must be kubernetes or openshift".to_owned()),
    }
}

/// Flags of zap, the logger of the Sail Operator.
#[derive(clap::Args)]
pub(super) struct Zap {
    /// Development mode (console, debug); false: JSON, info [default: console, info]
    #[arg(long = "zap-devel", action = clap::ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = crate::flag_value::go_bool, value_name = "BOOL")]
    devel: Option<bool>,

    /// json or console
    #[arg(long = "zap-encoder", value_name = "ENCODER")]
    encoder: Option<Encoder>,

    /// debug, info, error, panic, or a number greater than 0 for more verbosity
    #[arg(long = "zap-log-level", value_name = "LEVEL")]
    log_level: Option<Level>,

    /// Accepted for compatibility (info, error, panic), without effect
    #[arg(long = "zap-stacktrace-level", value_name = "LEVEL", value_parser = ["info", "error", "panic"], ignore_case = true)]
    stacktrace_level: Option<String>,

    /// epoch, millis, nanos, iso8601, rfc3339 or rfc3339nano
    #[arg(
        long = "zap-time-encoding",
        default_value = "rfc3339",
        value_name = "ENCODING"
    )]
    time_encoding: TimeEncoding,
}

impl Zap {
    /// Returns the log options.
    pub(super) fn options(&self) -> LogOptions {
        let default = LogOptions::default();
        let (encoder, level) = match self.devel {
            None => (default.encoder, default.level),
            Some(true) => (Encoder::Console, Level::DEBUG),
            Some(false) => (Encoder::Json, default.level),
        };
        LogOptions {
            level: self.log_level.unwrap_or(level),
            encoder: self.encoder.unwrap_or(encoder),
            time: self.time_encoding,
        }
    }
}
