//! `mainstay cluster add`: stores the kubeconfig of a cluster in a Secret and creates a Cluster.

use std::fmt::Write as _;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use mainstay_api::delivery::API_VERSION;
use mainstay_cluster::remote::{Kubeconfig, account_objects};
use serde_json::{Value, json};

use super::account::{self, object_path, reference};
use super::check::{Checked, findings_text, inspect};
use super::member::{MemberFlags, credential_name};
use crate::commands::revision::{Format, structured};
use crate::commands::rollout::api::{Delivery, FIELD_MANAGER, ScopeFlags, call, failed, merge};
use crate::commands::{print, print_styled};
use crate::error::{CliError, Kind};

/// Arguments of `cluster add`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  mainstay cluster add prod-1 --cluster-kubeconfig prod-1.yaml -l usage=production
  mainstay cluster add prod-1 --cluster-context prod --create-account      # for kubeconfigs with exec, e.g. of clouds
  mainstay cluster add kind-1 --cluster-context kind-1 --server https://10.0.0.7:6443
  mainstay cluster add prod-1 --cluster-kubeconfig prod-1.yaml --dry-run -o yaml
  mainstay cluster add prod-1 --cluster-context prod --print-commands > add.sh

Only the server, the CA and the credential of the context are stored. Files, commands, proxies and everything else that
the operator rejects is rejected here, with the key and what to do. The cluster is checked before anything is written.

Exit codes: 0 added, 1 rejected or not written.")]
#[allow(clippy::struct_excessive_bools, reason = "independent switches")]
pub(super) struct Args {
    /// Name of the Cluster
    name: String,

    #[command(flatten)]
    member: MemberFlags,

    /// Label of the Cluster, for placements; can be repeated
    #[arg(short = 'l', long = "label", value_name = "KEY=VALUE", value_parser = crate::flag_value::label)]
    labels: Vec<(String, String)>,

    /// Create a ServiceAccount in the cluster, with the role that the operator needs, and store its token
    #[arg(long)]
    create_account: bool,

    /// Print a shell script that does the same as --create-account with kubectl
    #[arg(long, conflicts_with = "create_account")]
    print_commands: bool,

    /// Namespace of the ServiceAccount
    #[arg(long, value_name = "NAME", default_value = "mainstay-system")]
    account_namespace: String,

    /// Name of the Secret [default: kubeconfig-NAME]
    #[arg(long, value_name = "NAME")]
    secret: Option<String>,

    /// Replace an existing Secret and Cluster
    #[arg(long)]
    overwrite: bool,

    /// Do not check the cluster, for example if only the operator can reach it
    #[arg(long)]
    skip_check: bool,

    /// Show what would be written
    #[arg(long)]
    dry_run: bool,

    /// Output format; `json` and `yaml` print the objects without the credential
    #[arg(short, long, value_enum, default_value_t = Format::Text, value_name = "FORMAT")]
    output: Format,

    #[command(flatten)]
    scope: ScopeFlags,
}

/// Runs the command.
pub(super) async fn run(args: &Args) -> Result<(), CliError> {
    if args.print_commands {
        let script = account::script(&args.name, &args.member, &args.account_namespace)?;
        return print(script.as_bytes());
    }
    let delivery = Delivery::connect(&args.scope).await?;
    check_absent(args, &delivery).await?;
    if args.create_account && args.dry_run {
        return show_account(args);
    }
    let (kubeconfig, expires) = if args.create_account {
        let account = account::create(&args.member, &args.account_namespace).await?;
        (account.kubeconfig, account.expires)
    } else {
        (args.member.read()?, None)
    };
    let checked = if args.skip_check {
        None
    } else {
        Some(check(args, &kubeconfig).await?)
    };
    let objects = objects(args, &delivery.namespace, &kubeconfig);
    for object in &objects {
        write(args, &delivery, object, true).await?;
    }
    let mut stored = Vec::new();
    for object in &objects {
        stored.push(write(args, &delivery, object, args.dry_run).await?);
    }
    let added = Added {
        kubeconfig: &kubeconfig,
        expires,
        checked,
        objects: stored,
    };
    print_styled(&added.text(args)?)
}

/// Returns an error if the Secret or the Cluster exists, unless existing objects are overwritten.
async fn check_absent(args: &Args, delivery: &Delivery) -> Result<(), CliError> {
    if args.overwrite {
        return Ok(());
    }
    let [secret, cluster] = paths(args, &delivery.namespace);
    for (path, what) in [(secret, "secret"), (cluster, "cluster")] {
        match call(&delivery.client, "GET", &path, None).await {
            Ok(_) => {
                let name = path.rsplit('/').next().unwrap_or_default();
                return Err(
                    CliError::new(Kind::Cluster, format!("{what} {name:?} already exists"))
                        .hint("choose another name, or replace it with --overwrite"),
                );
            }
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            Err(error) => return Err(failed(&error, "clusters")),
        }
    }
    Ok(())
}

fn paths(args: &Args, namespace: &str) -> [String; 2] {
    [
        format!("/api/v1/namespaces/{namespace}/secrets/{}", secret_name(args)),
        format!(
            "/apis/{API_VERSION}/namespaces/{namespace}/clusters/{}",
            args.name
        ),
    ]
}

fn secret_name(args: &Args) -> String {
    let default = || format!("kubeconfig-{}", args.name);
    args.secret.clone().unwrap_or_else(default)
}

fn show_account(args: &Args) -> Result<(), CliError> {
    let objects = account_objects(&args.account_namespace);
    if !matches!(args.output, Format::Text | Format::Wide) {
        let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
        return print_styled(&structured(&list, args.output)?);
    }
    let mut text = String::new();
    for object in &objects {
        let _ = writeln!(
            text,
            "{} applied in the other cluster (dry run)",
            reference(object)
        );
    }
    let _ = writeln!(text, "secret/{} created (dry run)", secret_name(args));
    let _ = writeln!(text, "cluster/{} created (dry run)", args.name);
    print_styled(&text)
}

async fn check(args: &Args, kubeconfig: &Kubeconfig) -> Result<Checked, CliError> {
    let checked = inspect(&args.name, kubeconfig, args.member.policy()).await;
    if checked.is_usable() {
        return Ok(checked);
    }
    let message = format!(
        "cluster {:?} cannot be used: {}",
        args.name,
        checked.first_problem()
    );
    Err(CliError::new(Kind::Cluster, message).hint(
        "fix it, create an account with --create-account, or use --skip-check if only the operator reaches it",
    ))
}

/// Returns the Secret and the Cluster.
fn objects(args: &Args, namespace: &str, kubeconfig: &Kubeconfig) -> [Value; 2] {
    let labels: serde_json::Map<String, Value> = args
        .labels
        .iter()
        .map(|(key, value)| (key.clone(), json!(value)))
        .collect();
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
        "metadata": {"name": secret_name(args), "namespace": namespace},
        "data": {"config": STANDARD.encode(kubeconfig.to_text())},
    });
    let mut cluster = json!({
        "apiVersion": API_VERSION, "kind": "Cluster",
        "metadata": {"name": args.name, "namespace": namespace},
        "spec": {"kubeconfigSecretRef": {"name": secret_name(args)}},
    });
    if let (false, Some(metadata)) = (
        labels.is_empty(),
        cluster.pointer_mut("/metadata").and_then(Value::as_object_mut),
    ) {
        metadata.insert("labels".to_owned(), Value::Object(labels));
    }
    [secret, cluster]
}

/// Writes an object. An existing Cluster keeps its other labels and settings: placements depend on them.
async fn write(args: &Args, delivery: &Delivery, object: &Value, is_dry: bool) -> Result<Value, CliError> {
    let is_cluster = object.get("kind").and_then(Value::as_str) == Some("Cluster");
    if is_cluster
        && call(&delivery.client, "GET", &object_path(object), None)
            .await
            .is_ok()
    {
        let dry = if is_dry { "?dryRun=All" } else { "" };
        let change = json!({
            "metadata": {"labels": object.pointer("/metadata/labels")},
            "spec": object.get("spec"),
        });
        let sent = merge(
            &delivery.client,
            &format!("{}{dry}", object_path(object)),
            &without_null(change),
        )
        .await;
        return sent.map_err(|error| failed(&error, "clusters"));
    }
    let force = if args.overwrite { "&force=true" } else { "" };
    let dry = if is_dry { "&dryRun=All" } else { "" };
    let path = format!("{}?fieldManager={FIELD_MANAGER}{force}{dry}", object_path(object));
    let sent = call(&delivery.client, "PATCH", &path, Some(object)).await;
    sent.map_err(|error| failed(&error, "clusters"))
}

/// Drops labels that are not set: null would remove all of them.
fn without_null(mut change: Value) -> Value {
    if change.pointer("/metadata/labels") == Some(&Value::Null)
        && let Some(change) = change.as_object_mut()
    {
        change.remove("metadata");
    }
    change
}

/// Added Secret and Cluster, for output.
struct Added<'a> {
    kubeconfig: &'a Kubeconfig,
    expires: Option<String>,
    checked: Option<Checked>,
    objects: Vec<Value>,
}

impl Added<'_> {
    fn text(&self, args: &Args) -> Result<String, CliError> {
        if !matches!(args.output, Format::Text | Format::Wide) {
            let items: Vec<Value> = self.objects.iter().map(without_secret).collect();
            let list = json!({"apiVersion": "v1", "kind": "List", "items": items});
            return structured(&list, args.output);
        }
        let mut text = String::new();
        let credential = credential_name(&self.kubeconfig.credential);
        let _ = writeln!(text, "server {}, {credential}", self.kubeconfig.server);
        if let Some(expires) = &self.expires {
            let _ = writeln!(
                text,
                "the token expires at {expires}; add the cluster again before, with --overwrite"
            );
        }
        if let Some(checked) = &self.checked {
            text.push_str(&findings_text(&checked.findings));
        }
        let verb = if args.overwrite { "configured" } else { "created" };
        let dry = if args.dry_run { " (dry run)" } else { "" };
        for object in &self.objects {
            let _ = writeln!(text, "{} {verb}{dry}", reference(object));
        }
        Ok(text)
    }
}

/// Returns an object without the credential and without the fields that the server sets.
fn without_secret(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(data) = object.get_mut("data").and_then(Value::as_object_mut) {
        for value in data.values_mut() {
            *value = json!("REDACTED");
        }
    }
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    object
}
