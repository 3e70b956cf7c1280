//! The flags of `mainstay generate`: a table that parser, help and completions are made from.

use std::path::PathBuf;

/// Arguments of `generate`.
#[derive(clap::Args)]
#[command(after_help = HELP, arg_required_else_help = true)]
#[allow(clippy::struct_excessive_bools, reason = "each is a flag")]
pub(crate) struct Args {
    /// Files, folders (searched for .yaml, .yml and .json), patterns such as 'k8s/**/*.yaml', or - for standard input
    #[arg(required = true, value_name = "PATH")]
    pub(super) paths: Vec<PathBuf>,

    /// Where the result goes: - (standard output), a file, or a folder with a slash at its end, which mirrors the input
    /// [default: back to each file; standard input goes to standard output]
    #[arg(short, long, value_name = "WHERE", allow_hyphen_values = true)]
    pub(super) output: Option<PathBuf>,

    /// Write nothing; exit with 1 if something would change, with 2 on an error
    #[arg(long, conflicts_with = "output")]
    pub(super) check: bool,

    /// Write nothing; show what would change as a unified diff
    #[arg(long, conflicts_with = "output")]
    pub(super) diff: bool,

    /// Take away what was injected: gives the original bytes back
    #[arg(long)]
    pub(super) uninject: bool,

    /// Inject no initializer at all, whatever annotations say
    #[arg(long)]
    pub(super) skip_initializer: bool,

    /// Inject no service mesh at all, whatever annotations say
    #[arg(long)]
    pub(super) skip_service_mesh: bool,

    /// Where a further kind keeps its pod template, such as Rollout=spec.template or argoproj.io/Rollout=spec.template
    #[arg(long = "pod-template-path", value_name = "KIND=PATH")]
    pub(super) pod_template_paths: Vec<String>,

    /// How names, variables and paths are spelt: rfc (RFC 005) or later (current releases of Contrast)
    #[arg(long, value_name = "NAME", default_value = "rfc")]
    pub(super) profile: String,

    /// Namespace of the coordinator, where the profile names it [default: that of a coordinator in the input]
    #[arg(long, value_name = "NAMESPACE")]
    pub(super) coordinator_namespace: Option<String>,

    /// Leave what cannot be treated as it is, say so, and treat the rest
    #[arg(long)]
    pub(super) keep_going: bool,

    /// How to report; json goes to standard output unless that carries manifests or a diff
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = ReportFormat::Text)]
    pub(super) report: ReportFormat,

    /// Report warnings and errors only
    #[arg(short, long)]
    pub(super) quiet: bool,

    /// Images to use instead of this release's own: a file with lines IMAGE = REPLACEMENT
    #[arg(long, value_name = "FILE", hide = true)]
    pub(super) image_replacements: Option<PathBuf>,
}

/// How to report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ReportFormat {
    /// A line per workload on standard error
    Text,
    /// One document for programs
    Json,
}

const HELP: &str = "\
What is injected into pods whose runtimeClassName begins with contrast-cc:
  initializer    always, as first init container, unless opted out
  service mesh   as last init container, if the pod has one of the annotations
                 contrast.edgeless.systems/servicemesh-ingress
                 contrast.edgeless.systems/servicemesh-egress
                 contrast.edgeless.systems/servicemesh-admin-interface-port

Who wins:
  1. --skip-initializer and --skip-service-mesh: nothing is injected, nowhere
  2. annotations of the pod template, such as contrast.edgeless.systems/skip-initializer: \"true\"
  3. the same annotations on the object (profile rfc only)
What a skip leaves out is also taken away if an earlier run had injected it.

Only added or replaced lines change; everything else keeps its bytes. Files are written all together or not at all.

Exit codes:
  0  done, or with --check: nothing would change
  1  with --check: something would change
  2  an error: bad input, or something that should have been injected was not

Examples:
  mainstay generate k8s/                         inject in place
  mainstay generate --check --diff k8s/          what CI asks
  mainstay generate -o - deploy.yaml | kubectl apply -f -
  helm template my-release ./chart | mainstay generate - | kubectl apply -f -
  mainstay generate --uninject k8s/              back to the original bytes
  mainstay generate --pod-template-path Rollout=spec.template rollout.yaml";
