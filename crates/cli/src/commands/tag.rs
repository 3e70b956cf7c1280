//! `mainstay tag`: lists, sets, generates and removes revision tags.

use std::time::Duration;

use mainstay_cluster::install::{Installer, LiveRevisionTag};
use mainstay_manifest::{CanonicalWebhook, Object, TagRequest, find_overlaps, tag_objects};
use mainstay_yaml::{Budget, Map, Numbers, Value, parse_json, to_yaml_v2};

use super::install::confirm;
use super::manifest::inputs::ChartFlags;
use super::verify::Output;
use crate::commands::{print, print_styled};
use crate::error::{CliError, Kind, chain};
use crate::kubeconfig::{ClusterFlags, block_on};
use crate::ui::table;

/// Arguments of `tag`.
#[derive(clap::Args)]
#[command(arg_required_else_help = true)]
#[command(after_help = "Examples:
  mainstay tag list
  mainstay tag set prod --revision 1-29-1
  mainstay tag remove prod")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Create or move a tag
    #[command(after_help = "Examples:
  mainstay tag set prod --revision 1-29-1
  mainstay tag set prod --revision 1-30-0 --overwrite
  mainstay tag set default --revision canary --overwrite")]
    Set(Box<SetArgs>),
    /// Print the objects of a tag
    #[command(after_help = "Examples:
  mainstay tag generate prod --revision 1-29-1 | kubectl apply -f -")]
    Generate(Box<SetArgs>),
    /// List tags
    #[command(
        visible_alias = "show",
        after_help = "Examples:
  mainstay tag list
  mainstay tag list -o json"
    )]
    List(ListArgs),
    /// Remove a tag
    #[command(
        visible_alias = "delete",
        after_help = "Examples:
  mainstay tag remove prod"
    )]
    Remove(RemoveArgs),
}

#[derive(clap::Args)]
struct SetArgs {
    /// Name of the tag
    tag: String,
    /// Revision that the tag points to
    #[arg(short, long, value_name = "NAME")]
    revision: String,
    /// Move a tag that exists
    #[arg(long)]
    overwrite: bool,
    /// Name of the webhook configuration [default: istio-revision-tag-TAG]
    #[arg(long, value_name = "NAME")]
    webhook_name: Option<String>,
    /// Inject into all namespaces that do not opt out (tag `default`)
    #[arg(long)]
    auto_inject_namespaces: bool,
    /// Namespace of the control plane
    #[arg(
        short = 'i',
        visible_short_alias = 'n',
        long,
        visible_alias = "namespace",
        value_name = "NAME",
        default_value = "istio-system"
    )]
    istio_namespace: String,
    /// Do not ask for confirmation
    #[arg(short = 'y', long)]
    skip_confirmation: bool,
    #[command(flatten)]
    charts: ChartFlags,
    #[command(flatten)]
    cluster: ClusterFlags,
}

#[derive(clap::Args)]
struct ListArgs {
    /// Output format
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,
    #[command(flatten)]
    cluster: ClusterFlags,
}

#[derive(clap::Args)]
struct RemoveArgs {
    /// Name of the tag
    tag: String,
    /// Do not ask for confirmation
    #[arg(short = 'y', long)]
    skip_confirmation: bool,
    #[command(flatten)]
    cluster: ClusterFlags,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), CliError> {
    match &args.command {
        Command::Set(args) => block_on(set(args)),
        Command::Generate(args) => block_on(generate(args)),
        Command::List(args) => block_on(list(args)),
        Command::Remove(args) => block_on(remove(args)),
    }
}

fn installer(client: kube::Client) -> Installer {
    Installer::new(client, Duration::ZERO)
}

async fn set(args: &SetArgs) -> Result<(), CliError> {
    let installer = installer(args.cluster.client().await?);
    let tags = installer.tags().await?;
    check_name(args, &installer, &tags).await?;
    let objects = objects(args, &installer).await?;
    check_overlaps(args, &installer, &objects).await?;
    if args.tag == "default" {
        installer.deactivate_default_injector().await?;
    }
    installer.set_tag(&args.istio_namespace, &objects).await?;
    let (tag, revision) = (&args.tag, &args.revision);
    let text = format!(
        "Tag {tag} points to revision {revision}\nLabel namespaces with istio.io/rev={tag} to use it, then restart their workloads\n"
    );
    print(text.as_bytes())
}

async fn generate(args: &SetArgs) -> Result<(), CliError> {
    let installer = installer(args.cluster.client().await?);
    let mut text = String::new();
    for object in objects(args, &installer).await? {
        if !text.is_empty() {
            text.push_str("---\n");
        }
        let yaml = to_yaml_v2(&object.0).map_err(|error| CliError::new(Kind::Manifest, chain(&error)))?;
        text.push_str(&yaml);
    }
    print(text.as_bytes())
}

/// Checks that the tag does not have the name of a revision, and that it may be moved if it exists.
async fn check_name(args: &SetArgs, installer: &Installer, tags: &[LiveRevisionTag]) -> Result<(), CliError> {
    if args.overwrite {
        return Ok(());
    }
    let tag = &args.tag;
    if tags.iter().any(|one| one.tag == *tag) {
        let message = format!("tag {tag:?} already exists");
        return Err(CliError::new(Kind::Cluster, message).hint("move it with --overwrite"));
    }
    if tag != "default" && !installer.injectors(tag).await?.is_empty() {
        let message = format!("a revision is called {tag:?}");
        return Err(CliError::new(Kind::Cluster, message).hint("choose another name for the tag"));
    }
    Ok(())
}

/// Generates the objects from the webhook configuration of the revision.
async fn objects(args: &SetArgs, installer: &Installer) -> Result<Vec<Object>, CliError> {
    let revision = &args.revision;
    let found = installer.injectors(revision).await?;
    let [injector] = found.as_slice() else {
        let message = match found.len() {
            0 => format!("no webhook configuration has the revision {revision:?}"),
            count => format!("{count} webhook configurations have the revision {revision:?}"),
        };
        return Err(CliError::new(Kind::Cluster, message)
            .hint("list revisions with `kubectl get mutatingwebhookconfigurations -L istio.io/rev`"));
    };
    let failed = |error: mainstay_manifest::TagError| CliError::new(Kind::Cluster, chain(&error));
    let canonical = CanonicalWebhook::from_configuration(&to_yaml(injector)?).map_err(failed)?;
    let validator = installer.default_validator().await?;
    let validator = validator.as_ref().map(to_yaml).transpose()?;
    args.charts.with_charts(|package| {
        let request = TagRequest {
            tag: &args.tag,
            namespace: &args.istio_namespace,
            webhook_name: args.webhook_name.as_deref(),
            injects_by_default: args.auto_inject_namespaces,
            is_user_managed: true,
            labels: Map::new(),
            validator: validator.as_ref(),
            charts: package.charts,
            profiles: package.profiles,
        };
        tag_objects(&request, &canonical).map_err(failed)
    })
}

fn to_yaml(object: &serde_json::Value) -> Result<Value, CliError> {
    let parsed = parse_json(object.to_string(), Numbers::Exact, &Budget::default());
    parsed.map_err(|error| CliError::new(Kind::Cluster, chain(&error)))
}

/// Asks before the tag handles the same pods as another webhook.
async fn check_overlaps(args: &SetArgs, installer: &Installer, objects: &[Object]) -> Result<(), CliError> {
    let is_new = |value: &Value| {
        let name = |value: &Value| value.at(&["metadata", "name"]).cloned();
        objects.iter().any(|object| name(&object.0) == name(value))
    };
    let mut all = installer.webhooks().await?;
    all.retain(|live| !is_new(live));
    if args.tag == "default" {
        // It is deactivated first.
        all.retain(|live| !is_default_injector(live));
    }
    all.extend(objects.iter().map(|object| object.0.clone()));
    let name = objects.first().map(Object::name).unwrap_or_default();
    let of_tag = |webhook: &str| webhook.starts_with(&format!("{name}/"));
    let found = find_overlaps(&all)
        .into_iter()
        .find(|one| of_tag(&one.first) || of_tag(&one.second));
    let Some(found) = found else { return Ok(()) };
    let message = format!(
        "webhooks {} and {} handle the same pods ({})",
        found.first, found.second, found.example
    );
    if args.skip_confirmation || confirm(&format!("{message}. Apply it anyway?"))? {
        return Ok(());
    }
    Err(CliError::new(Kind::Cluster, message)
        .hint("remove the other webhook, or continue with --skip-confirmation"))
}

fn is_default_injector(configuration: &Value) -> bool {
    let labels = configuration.at(&["metadata", "labels"]);
    let label = |name: &str| labels.and_then(|labels| labels.get(name)?.as_str());
    label("istio.io/rev") == Some("default") && label("istio.io/tag").is_none()
}

async fn list(args: &ListArgs) -> Result<(), CliError> {
    let tags = installer(args.cluster.client().await?).tags().await?;
    if args.output != Output::Text {
        let data = serde_json::to_value(&tags).map_err(|error| CliError::new(Kind::Io, error.to_string()))?;
        return print_styled(&args.output.format(&data)?);
    }
    if tags.is_empty() {
        return print(b"No tags found\n");
    }
    let mut rows = vec![vec![
        "TAG".to_owned(),
        "REVISION".to_owned(),
        "NAMESPACES".to_owned(),
    ]];
    rows.extend(
        tags.into_iter()
            .map(|tag| vec![tag.tag, tag.revision, tag.namespaces.join(",")]),
    );
    print_styled(&table::lines("", &rows))
}

async fn remove(args: &RemoveArgs) -> Result<(), CliError> {
    let installer = installer(args.cluster.client().await?);
    let tags = installer.tags().await?;
    let Some(tag) = tags.iter().find(|one| one.tag == args.tag) else {
        let message = format!("no tag is called {:?}", args.tag);
        return Err(CliError::new(Kind::Cluster, message).hint("list tags with `mainstay tag list`"));
    };
    let prompt = format!(
        "Injection stops in the namespaces that use tag {}: {}. Remove it?",
        tag.tag,
        tag.namespaces.join(", ")
    );
    if !tag.namespaces.is_empty() && !args.skip_confirmation && !confirm(&prompt)? {
        return Err(CliError::new(Kind::Usage, "canceled").unless_quiet_exit(1));
    }
    let count = installer.remove_tag(&args.tag).await?;
    print(format!("Tag {} removed: {count} objects deleted\n", args.tag).as_bytes())
}
