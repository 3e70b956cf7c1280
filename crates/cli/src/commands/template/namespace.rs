//! The release's namespace: the flag's, the environment's, the kubeconfig context's, or `default`.

use std::env;
use std::path::PathBuf;

use mainstay_yaml::{Budget, Value, parse};

use super::Args;
use crate::input::read_file;

/// Returns the namespace like Helm; an unreadable kubeconfig is ignored.
pub(super) fn namespace(args: &Args) -> String {
    let given = args
        .release
        .namespace
        .clone()
        .or_else(|| env::var("HELM_NAMESPACE").ok());
    given
        .filter(|name| !name.is_empty())
        .or_else(|| context_namespace(args))
        .unwrap_or_else(|| "default".into())
}

fn context_namespace(args: &Args) -> Option<String> {
    let configs: Vec<Value> = paths(args).iter().filter_map(read).collect();
    let wanted = args
        .cluster
        .kube_context
        .clone()
        .or_else(|| env::var("HELM_KUBECONTEXT").ok());
    let current = || {
        configs.iter().find_map(|config| {
            config
                .get("current-context")?
                .as_str()
                .filter(|it| !it.is_empty())
        })
    };
    let context = wanted.as_deref().filter(|it| !it.is_empty()).or_else(current)?;
    let contexts = configs
        .iter()
        .filter_map(|config| config.get("contexts")?.as_list())
        .flatten();
    let entry = contexts
        .into_iter()
        .find(|entry| entry.get("name").and_then(Value::as_str) == Some(context))?;
    let namespace = entry.at(&["context", "namespace"])?.as_str()?;
    (!namespace.is_empty()).then(|| namespace.to_owned())
}

fn paths(args: &Args) -> Vec<PathBuf> {
    if let Some(path) = &args.cluster.kubeconfig {
        return vec![path.clone()];
    }
    if let Some(list) = env::var_os("KUBECONFIG").filter(|list| !list.is_empty()) {
        return env::split_paths(&list).collect();
    }
    env::home_dir()
        .map(|home| home.join(".kube/config"))
        .into_iter()
        .collect()
}

fn read(path: &PathBuf) -> Option<Value> {
    parse(read_file(path).ok()?, &Budget::default()).ok()
}
