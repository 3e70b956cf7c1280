//! Selects a context of the kubeconfig files, with errors that name the file, its contexts and the remedy.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use kube::Config;
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};

use crate::error::{CliError, Kind, chain};
use crate::input::{MAX_FILE, read_file};
use crate::ui::table::one_line;

const SELECT_HINT: &str = "select a cluster with --kubeconfig or $KUBECONFIG";
const NO_CLUSTER_HINT: &str =
    "select a cluster with --kubeconfig or $KUBECONFIG, or run `mainstay sandbox` to start a simulated one";

/// Kubeconfig files that exist, merged.
pub(super) struct Files {
    merged: Kubeconfig,
    names: String,
}

/// Reads `named`, or the files of `$KUBECONFIG`, or `~/.kube/config`. Returns `None` if none is named and the
/// default does not exist.
pub(super) fn files(named: Option<&Path>) -> Result<Option<Files>, CliError> {
    if let Some(path) = named {
        return read(&[path.to_owned()], Origin::Flag).map(Some);
    }
    let listed = std::env::var_os("KUBECONFIG").unwrap_or_default();
    let mut paths: Vec<PathBuf> = std::env::split_paths(&listed)
        .filter(|path| !path.as_os_str().is_empty())
        .collect();
    if !paths.is_empty() {
        // Like kubectl: files of the list that do not exist are skipped, unless none does.
        if paths.iter().any(|path| path.exists()) {
            paths.retain(|path| path.exists());
        }
        return read(&paths, Origin::Variable).map(Some);
    }
    match default_path().filter(|path| path.exists()) {
        Some(path) => read(&[path], Origin::Default).map(Some),
        None => Ok(None),
    }
}

fn default_path() -> Option<PathBuf> {
    std::env::home_dir().map(|home| home.join(".kube/config"))
}

/// Where the path of a kubeconfig comes from.
#[derive(Clone, Copy)]
enum Origin {
    /// `--kubeconfig`.
    Flag,
    /// `$KUBECONFIG`.
    Variable,
    /// The default path in the home directory.
    Default,
}

impl Origin {
    /// Returns the remedy if the file cannot be read.
    fn remedy(self, path: &Path) -> String {
        let other = "or name another file with --kubeconfig";
        match self {
            _ if path.is_dir() => format!("name a file in {} with --kubeconfig", path.display()),
            Self::Flag => {
                "correct the path in --kubeconfig, or remove the flag to use $KUBECONFIG".to_owned()
            }
            Self::Variable => format!("correct the path in $KUBECONFIG, {other}"),
            Self::Default => format!("make the file readable, {other}"),
        }
    }
}

fn read(paths: &[PathBuf], origin: Origin) -> Result<Files, CliError> {
    let names: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    let mut merged = Kubeconfig::default();
    for path in paths {
        check_size(path)?;
        let next = Kubeconfig::read_from(path).map_err(|error| unreadable(path, origin, error))?;
        merged = merged
            .merge(next)
            .map_err(|error| unreadable(path, origin, error))?;
    }
    Ok(Files {
        merged,
        names: names.join(":"),
    })
}

/// Fails for a file or an endless device that is too large for a kubeconfig. Other errors are reported when
/// the file is read. A pipe is not read, because it cannot be read twice.
fn check_size(path: &Path) -> Result<(), CliError> {
    let Ok(metadata) = std::fs::metadata(path) else {
        return Ok(());
    };
    let is_large = if is_device(&metadata) {
        read_file(path).is_err_and(|error| error.kind() == ErrorKind::FileTooLarge)
    } else {
        metadata.len() > MAX_FILE
    };
    if !is_large {
        return Ok(());
    }
    let message = format!(
        "cannot read {}: larger than {} MiB",
        path.display(),
        MAX_FILE >> 20
    );
    Err(CliError::new(Kind::Config, message).hint(SELECT_HINT))
}

#[cfg(unix)]
fn is_device(metadata: &std::fs::Metadata) -> bool {
    std::os::unix::fs::FileTypeExt::is_char_device(&metadata.file_type())
}

#[cfg(not(unix))]
fn is_device(_: &std::fs::Metadata) -> bool {
    false
}

fn unreadable(path: &Path, origin: Origin, error: KubeconfigError) -> CliError {
    let fix = "fix the file, or name another one with --kubeconfig";
    let (what, cause, hint) = match error {
        KubeconfigError::ReadConfig(cause, _) => ("read", cause.to_string(), origin.remedy(path)),
        KubeconfigError::Parse(cause) => ("parse", first_line(&cause.to_string()), fix.to_owned()),
        other => ("use", chain(&other), fix.to_owned()),
    };
    let cause = one_line(&cause);
    CliError::new(
        Kind::Cluster,
        format!("cannot {what} kubeconfig {}: {cause}", path.display()),
    )
    .hint(hint)
}

/// Returns the first line of a parser's message. The following lines quote the source, which may contain
/// credentials.
fn first_line(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    line.strip_prefix("error: ").unwrap_or(line).to_owned()
}

impl Files {
    /// Returns the configuration of a context, or of the current one.
    pub(super) async fn select(self, context: Option<&str>) -> Result<(Config, String), CliError> {
        let name = self.context_name(context)?;
        let origin = format!("context {name:?} of kubeconfig {}", self.names);
        self.check_context(&name, &origin)?;
        let options = KubeConfigOptions {
            context: Some(name),
            ..KubeConfigOptions::default()
        };
        match Config::from_custom_kubeconfig(self.merged, &options).await {
            Ok(config) => Ok((config, origin)),
            Err(error) => {
                let cause = one_line(&chain(&error));
                Err(
                    CliError::new(Kind::Cluster, format!("cannot use {origin}: {cause}"))
                        .hint("fix the kubeconfig, or select another context with --context"),
                )
            }
        }
    }

    fn context_name(&self, context: Option<&str>) -> Result<String, CliError> {
        let current = self.merged.current_context.as_deref();
        let name = context.or(current).filter(|name| !name.is_empty());
        name.map(str::to_owned).ok_or_else(|| {
            let message = format!("kubeconfig {} sets no current context", self.names);
            self.wrong_context(&message)
        })
    }

    /// Checks that the context, its cluster and the server's address exist.
    fn check_context(&self, name: &str, origin: &str) -> Result<(), CliError> {
        let context = self.merged.contexts.iter().find(|it| it.name == name);
        let Some(context) = context.and_then(|it| it.context.as_ref()) else {
            let message = format!("context {name:?} does not exist in kubeconfig {}", self.names);
            return Err(self.wrong_context(&message));
        };
        let cluster = self.merged.clusters.iter().find(|it| it.name == context.cluster);
        let server = cluster.and_then(|it| it.cluster.as_ref()?.server.as_deref());
        let problem = match (cluster, server) {
            (None, _) => format!(
                "{origin} names cluster {:?}, which does not exist",
                context.cluster
            ),
            (_, None | Some("")) => format!("cluster {:?} of {origin} has no server", context.cluster),
            _ => return Ok(()),
        };
        Err(CliError::new(Kind::Cluster, problem)
            .hint("add it with `kubectl config set-cluster`, or select another context with --context"))
    }

    /// Returns an error that lists the contexts that exist.
    fn wrong_context(&self, message: &str) -> CliError {
        let names: Vec<&str> = self.merged.contexts.iter().map(|it| it.name.as_str()).collect();
        if names.is_empty() {
            let message = format!("kubeconfig {} has no contexts", self.names);
            return CliError::new(Kind::Cluster, message).hint(SELECT_HINT);
        }
        let listed = names.join(", ");
        CliError::new(Kind::Cluster, format!("{message} (contexts: {listed})"))
            .hint("select one of them with --context, or another file with --kubeconfig")
    }
}

/// Returns the configuration of a pod.
pub(super) fn service_account(context: Option<&str>) -> Result<(Config, String), CliError> {
    let default = default_path().map_or_else(
        || "the home directory is unknown".to_owned(),
        |path| format!("{} does not exist", path.display()),
    );
    if let Some(context) = context {
        let message = format!("cannot select context {context:?}: $KUBECONFIG is not set and {default}");
        return Err(CliError::new(Kind::Cluster, message).hint(SELECT_HINT));
    }
    match Config::incluster() {
        Ok(config) => Ok((config, "the pod's service account".to_owned())),
        Err(_) => Err(CliError::new(
            Kind::Cluster,
            format!("no cluster is configured: $KUBECONFIG is not set, {default} and this is not a pod"),
        )
        .hint(NO_CLUSTER_HINT)),
    }
}
