//! Flags of `mainstay generate`.

use std::path::PathBuf;

/// Arguments of `generate`.
#[derive(clap::Args)]
#[command(after_help = HELP, arg_required_else_help = true)]
#[allow(clippy::struct_excessive_bools, reason = "each is a flag")]
pub(crate) struct Args {
    /// Files, directories (searched for .yaml, .yml and .json), patterns such as 'k8s/**/*.yaml', or - for
    /// standard input
    #[arg(required = true, value_name = "PATH")]
    pub(super) paths: Vec<PathBuf>,

    /// Destination: - (standard output), a file, or a directory with a trailing slash, which mirrors the
    /// input [default: in place; standard input goes to standard output]
    #[arg(short, long, value_name = "WHERE", allow_hyphen_values = true)]
    pub(super) output: Option<PathBuf>,

    /// Write nothing; exit with 1 if files would change, with 2 on an error
    #[arg(long, conflicts_with = "output")]
    pub(super) check: bool,

    /// Write nothing; show a unified diff
    #[arg(long, conflicts_with = "output")]
    pub(super) diff: bool,

    /// Remove injected parts and restore the original bytes
    #[arg(long)]
    pub(super) uninject: bool,

    /// Inject no initializer, regardless of annotations
    #[arg(long)]
    pub(super) skip_initializer: bool,

    /// Inject no service mesh, regardless of annotations
    #[arg(long)]
    pub(super) skip_service_mesh: bool,

    /// Pod template path of an additional kind, such as Rollout=spec.template or
    /// argoproj.io/Rollout=spec.template
    #[arg(long = "pod-template-path", value_name = "KIND=PATH")]
    pub(super) pod_template_paths: Vec<String>,

    /// Naming profile: rfc (RFC 005) or later (current releases of Contrast)
    #[arg(long, value_name = "NAME", default_value = "rfc")]
    pub(super) profile: String,

    /// Namespace of the coordinator, if the profile uses it [default: namespace of a coordinator in the
    /// input]
    #[arg(long, value_name = "NAMESPACE")]
    pub(super) coordinator_namespace: Option<String>,

    /// Leave failed inputs unchanged and process the others
    #[arg(long)]
    pub(super) keep_going: bool,

    /// Report format; json is written to standard output unless manifests or a diff are written there
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = ReportFormat::Text)]
    pub(super) report: ReportFormat,

    /// Report warnings and errors only
    #[arg(short, long)]
    pub(super) quiet: bool,

    /// Image replacements: a file with lines IMAGE = REPLACEMENT
    #[arg(long, value_name = "FILE", hide = true)]
    pub(super) image_replacements: Option<PathBuf>,
}

/// Report format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ReportFormat {
    /// One line per workload on standard error
    Text,
    /// One JSON document
    Json,
}

const HELP: &str = "\
Injected into pods whose runtimeClassName starts with contrast-cc:
  initializer    always, as first init container, unless opted out
  service mesh   as last init container, if the pod has one of the annotations
                 contrast.edgeless.systems/servicemesh-ingress
                 contrast.edgeless.systems/servicemesh-egress
                 contrast.edgeless.systems/servicemesh-admin-interface-port

Precedence:
  1. --skip-initializer and --skip-service-mesh
  2. annotations of the pod template, such as contrast.edgeless.systems/skip-initializer: \"true\"
  3. the same annotations on the object (profile rfc only)
Skipped parts are also removed if an earlier run injected them.

Only added or replaced lines change; all other bytes are kept. Either all files are written or none.

Exit codes:
  0  success, or with --check: no changes
  1  with --check: changes found
  2  error

Examples:
  mainstay generate k8s/                         inject in place
  mainstay generate --check --diff k8s/          check in CI
  mainstay generate -o - deploy.yaml | kubectl apply -f -
  helm template my-release ./chart | mainstay generate - | kubectl apply -f -
  mainstay generate --uninject k8s/              restore the original bytes
  mainstay generate --pod-template-path Rollout=spec.template rollout.yaml";
