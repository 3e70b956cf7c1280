//! The flags of `helm template` of Helm 4 and Helm 3.

#![expect(clippy::struct_excessive_bools, reason = "each is a flag of Helm's")]

use std::path::PathBuf;

use clap::ValueEnum;

use crate::catalog::ChartsFlag;

/// Arguments of `template`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  mainstay template istiod ./charts/istiod --namespace istio-system
  mainstay template istiod ./istiod-1.29.1.tgz -f values.yaml --set pilot.replicaCount=2
  mainstay template mesh ./chart --show-only templates/deployment.yaml
  mainstay template mesh ./chart --output-dir out --include-crds
  mainstay template mesh ./chart --like helm3 | kubectl diff -f -

Errors start like Helm's (`Error: …`), followed by location, source line and hint.")]
pub(crate) struct Args {
    /// [NAME] CHART: the release name (default `release-name`) and a chart directory, a .tgz, or
    /// catalog:CHART[@VERSION]
    #[arg(value_name = "[NAME] CHART")]
    pub(super) positional: Vec<String>,

    /// Helm version to reproduce
    #[arg(long, value_enum, default_value_t = Like::Helm4, value_name = "HELM")]
    pub(super) like: Like,

    #[command(flatten)]
    pub(super) values: Values,
    #[command(flatten)]
    pub(super) release: Release,
    #[command(flatten)]
    pub(super) output: Output,
    #[command(flatten)]
    pub(super) network: Network,
    #[command(flatten)]
    pub(super) cluster: Cluster,
    #[command(flatten)]
    pub(super) catalog: ChartsFlag,
    #[command(flatten)]
    pub(super) ignored: Ignored,
}

impl Args {
    #[cfg(test)]
    pub(crate) fn is_include_crds(&self) -> bool {
        self.output.include_crds
    }
}

/// A Helm major version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Like {
    /// Helm 4: documents keep their trailing space, webhooks come last
    Helm4,
    /// Helm 3: documents are trimmed
    Helm3,
}

/// Sources of values, in Helm's order of precedence: files, JSON, set, string, file, literal.
#[derive(clap::Args, Debug)]
#[command(next_help_heading = "Values")]
pub(super) struct Values {
    /// Values in a YAML file, `-` for stdin (several: repeat or separate by commas)
    #[arg(short = 'f', long = "values", value_name = "FILE")]
    pub(super) files: Vec<String>,
    /// Set values: key1=val1,key2=val2
    #[arg(long, value_name = "K=V")]
    pub(super) set: Vec<String>,
    /// Set STRING values: key1=val1,key2=val2
    #[arg(long, value_name = "K=V")]
    pub(super) set_string: Vec<String>,
    /// Set values from files: key1=path1,key2=path2
    #[arg(long, value_name = "K=FILE")]
    pub(super) set_file: Vec<String>,
    /// Set JSON values: key1=jsonval1,key2=jsonval2, or one JSON object
    #[arg(long, value_name = "K=JSON")]
    pub(super) set_json: Vec<String>,
    /// Set one literal STRING value
    #[arg(long, value_name = "K=TEXT")]
    pub(super) set_literal: Vec<String>,
    /// Do not check values against values.schema.json
    #[arg(long)]
    pub(super) skip_schema_validation: bool,
}

/// Inputs of templates besides values.
#[derive(clap::Args, Debug)]
#[command(next_help_heading = "Release")]
pub(super) struct Release {
    /// Namespace of the release
    #[arg(short, long, value_name = "NAME")]
    pub(super) namespace: Option<String>,
    /// Generate the name (and omit NAME)
    #[arg(short, long)]
    pub(super) generate_name: bool,
    /// Template used to name the release
    #[arg(long, value_name = "TEXT")]
    pub(super) name_template: Option<String>,
    /// Set .Release.IsUpgrade instead of .Release.IsInstall
    #[arg(long)]
    pub(super) is_upgrade: bool,
    /// Kubernetes version used for Capabilities.KubeVersion
    #[arg(long, value_name = "VERSION")]
    pub(super) kube_version: Option<String>,
    /// Further API versions for Capabilities.APIVersions (several: repeat or separate by commas)
    #[arg(short, long, value_name = "VERSION")]
    pub(super) api_versions: Vec<String>,
    /// Enable DNS lookups when rendering templates
    #[arg(long)]
    pub(super) enable_dns: bool,
}

/// Output options.
#[derive(clap::Args, Debug)]
#[command(next_help_heading = "Output")]
pub(super) struct Output {
    /// Only show manifests rendered from the given templates (globs; may repeat)
    #[arg(short, long, value_name = "TEMPLATE")]
    pub(super) show_only: Vec<String>,
    /// Include the chart's crds/ directory
    #[arg(long)]
    pub(super) include_crds: bool,
    /// Omit test hooks
    #[arg(long)]
    pub(super) skip_tests: bool,
    /// Omit hooks
    #[arg(long)]
    pub(super) no_hooks: bool,
    /// Write files into this directory instead of stdout, all or none
    #[arg(long = "output-dir", value_name = "DIR")]
    pub(super) directory: Option<PathBuf>,
    /// Put the release name into the path under --output-dir
    #[arg(long)]
    pub(super) release_name: bool,
    /// Executable that post-processes the manifests
    #[arg(long, value_name = "PROGRAM")]
    pub(super) post_renderer: Vec<String>,
    /// An argument to the post-renderer (may repeat)
    #[arg(long, value_name = "ARG")]
    pub(super) post_renderer_args: Vec<String>,
    /// Print rendered text even if it is not valid YAML
    #[arg(long)]
    pub(super) debug: bool,
}

/// Flags for chart repositories: rejected with a hint, unless they have no effect.
#[derive(clap::Args, Debug)]
#[command(next_help_heading = "Chart repositories (not supported: rendering works offline)")]
pub(super) struct Network {
    /// Chart repository URL
    #[arg(long, value_name = "URL")]
    pub(super) repo: Option<String>,
    /// Check the chart's provenance
    #[arg(long)]
    pub(super) verify: bool,
    /// Fetch missing dependencies
    #[arg(long)]
    pub(super) dependency_update: bool,
    /// Version of a catalog chart (default: the catalog's default version)
    #[arg(long)]
    pub(super) version: Option<String>,
    #[arg(long, hide = true)]
    pub(super) devel: bool,
    #[arg(long, hide = true)]
    pub(super) ca_file: Option<String>,
    #[arg(long, hide = true)]
    pub(super) cert_file: Option<String>,
    #[arg(long, hide = true)]
    pub(super) key_file: Option<String>,
    #[arg(long, hide = true)]
    pub(super) keyring: Option<String>,
    #[arg(long, hide = true)]
    pub(super) insecure_skip_tls_verify: bool,
    #[arg(long, hide = true)]
    pub(super) pass_credentials: bool,
    #[arg(long, hide = true)]
    pub(super) password: Option<String>,
    #[arg(long, hide = true)]
    pub(super) username: Option<String>,
    #[arg(long, hide = true)]
    pub(super) plain_http: bool,
    #[arg(long, hide = true)]
    pub(super) content_cache: Option<String>,
    #[arg(long, hide = true)]
    pub(super) registry_config: Option<String>,
    #[arg(long, hide = true)]
    pub(super) repository_cache: Option<String>,
    #[arg(long, hide = true)]
    pub(super) repository_config: Option<String>,
}

/// Flags for clusters: rejected with a hint, except connection flags, which have no effect.
#[derive(clap::Args, Debug)]
#[command(next_help_heading = "Clusters (not supported: rendering works offline)")]
pub(super) struct Cluster {
    /// `client` or `server`; only `client` is supported
    #[arg(long, value_name = "WHERE", num_args = 0..=1, require_equals = true, default_missing_value = "unset")]
    pub(super) dry_run: Option<String>,
    /// Validate against the cluster
    #[arg(long)]
    pub(super) validate: bool,
    /// Path to a kubeconfig, read only for the context's namespace
    #[arg(long, value_name = "FILE")]
    pub(super) kubeconfig: Option<PathBuf>,
    /// Context whose namespace is used
    #[arg(long, value_name = "NAME")]
    pub(super) kube_context: Option<String>,
    #[arg(long, hide = true)]
    pub(super) kube_apiserver: Option<String>,
    #[arg(long, hide = true)]
    pub(super) kube_as_group: Vec<String>,
    #[arg(long, hide = true)]
    pub(super) kube_as_user: Option<String>,
    #[arg(long, hide = true)]
    pub(super) kube_ca_file: Option<String>,
    #[arg(long, hide = true)]
    pub(super) kube_insecure_skip_tls_verify: bool,
    #[arg(long, hide = true)]
    pub(super) kube_tls_server_name: Option<String>,
    #[arg(long, hide = true)]
    pub(super) kube_token: Option<String>,
    #[arg(long, hide = true)]
    pub(super) burst_limit: Option<String>,
    #[arg(long, hide = true)]
    pub(super) qps: Option<String>,
}

/// Flags of `helm install` that `helm template` accepts and that have no effect on its output.
#[derive(clap::Args, Debug)]
pub(super) struct Ignored {
    #[arg(long, hide = true)]
    pub(super) atomic: bool,
    #[arg(long, hide = true)]
    pub(super) create_namespace: bool,
    #[arg(long, hide = true)]
    pub(super) description: Option<String>,
    #[arg(long, hide = true)]
    pub(super) disable_openapi_validation: bool,
    #[arg(long, hide = true)]
    pub(super) force: bool,
    #[arg(long, hide = true)]
    pub(super) force_conflicts: bool,
    #[arg(long, hide = true)]
    pub(super) force_replace: bool,
    #[arg(long, hide = true)]
    pub(super) hide_notes: bool,
    #[arg(short = 'l', long, hide = true)]
    pub(super) labels: Vec<String>,
    #[arg(long, hide = true)]
    pub(super) render_subchart_notes: bool,
    #[arg(long, hide = true)]
    pub(super) replace: bool,
    #[arg(long, hide = true)]
    pub(super) rollback_on_failure: bool,
    #[arg(long, hide = true)]
    pub(super) server_side: bool,
    #[arg(long, hide = true)]
    pub(super) skip_crds: bool,
    #[arg(long, hide = true)]
    pub(super) take_ownership: bool,
    #[arg(long, hide = true)]
    pub(super) timeout: Option<String>,
    #[arg(long, hide = true, num_args = 0..=1, require_equals = true, default_missing_value = "watcher")]
    pub(super) wait: Option<String>,
    #[arg(long, hide = true)]
    pub(super) wait_for_jobs: bool,
}
