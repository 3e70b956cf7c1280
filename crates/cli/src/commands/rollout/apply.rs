//! `mainstay rollout apply`: validates documents and applies them on the server's side.

use std::fmt::Write as _;

use kube::Client;
use serde_json::{Value, json};

use super::api::{Delivery, FIELD_MANAGER, ScopeFlags, call, rejected};
use super::documents::{FileFlags, Located, read};
use super::flags::DryRun;
use super::warnings;
use crate::commands::print_styled;
use crate::commands::revision::{Format, structured};
use crate::error::{CliError, Kind, chain};
use crate::ui::style::WARNING;

/// Arguments of `rollout apply`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  mainstay rollout apply -f deployment.yaml
  mainstay rollout apply -f applications/ -f deployment.yaml -n shop
  mainstay rollout apply -f deployment.yaml --dry-run=client
  kubectl get appdeployments -o yaml | mainstay rollout apply -f - --dry-run=server

Documents of the multi-cluster deployment proposal are accepted as they are printed there, and AppDeployment and
Cluster of core.oam.dev/v1beta1 are converted. All documents are validated before the first is written.

Exit codes: 0 applied, 1 a document is invalid or the cluster rejected it.")]
pub(crate) struct Args {
    #[command(flatten)]
    files: FileFlags,

    /// Only validate: `client` without a cluster, `server` with the cluster's admission
    #[arg(long, value_enum, value_name = "WHERE", num_args = 0..=1, default_missing_value = "client", require_equals = true)]
    dry_run: Option<DryRun>,

    /// Take over fields that another client has applied
    #[arg(long)]
    force_conflicts: bool,

    /// Output format; `json` and `yaml` print the applied objects
    #[arg(short, long, value_enum, default_value_t = Format::Text, value_name = "FORMAT")]
    output: Format,

    #[command(flatten)]
    scope: ScopeFlags,
}

/// Runs the command.
pub(super) async fn run(args: &Args) -> Result<(), CliError> {
    let mut objects = read(&args.files)?;
    super::validate_documents(&objects).await?;
    warnings::check_weights(&mut objects);
    let mut report = Report::new(args.output);
    if args.dry_run == Some(DryRun::Client) {
        for object in &mut objects {
            let namespace = args.scope.namespace.clone();
            set_namespace(object, namespace.as_deref(), None)?;
            report.add(object, "valid (client dry run)", object.object.clone())?;
        }
        return report.finish();
    }
    let delivery = Delivery::connect(&args.scope).await?;
    for object in &mut objects {
        set_namespace(object, args.scope.namespace.as_deref(), Some(&delivery.namespace))?;
    }
    warnings::check_references(&delivery, &mut objects).await;
    // Nothing is written unless the server accepts every document.
    let mut versions = Vec::new();
    for object in &objects {
        versions.push(
            Writer {
                args,
                client: &delivery.client,
            }
            .check(object)
            .await?,
        );
    }
    for (object, version) in objects.iter().zip(versions) {
        let writer = Writer {
            args,
            client: &delivery.client,
        };
        let (word, stored) = writer.write(object, version.as_deref()).await?;
        report.add(object, word, stored)?;
    }
    report.finish()
}

/// Sets the namespace of an object; another one than that of the flag is an error, as in kubectl.
fn set_namespace(located: &mut Located, flag: Option<&str>, default: Option<&str>) -> Result<(), CliError> {
    let own = located.text_at("/metadata/namespace");
    if let Some(flag) = flag.filter(|flag| !own.is_empty() && own != *flag) {
        let message = format!("{} is in namespace {own:?}, not in {flag:?}", located.reference());
        let error = located.error(message, "metadata.namespace");
        return Err(error.hint("remove -n, or metadata.namespace of the document"));
    }
    let chosen = flag.or(default).filter(|_| own.is_empty()).map(str::to_owned);
    if let (Some(name), Some(metadata)) = (
        chosen,
        located.object.get_mut("metadata").and_then(Value::as_object_mut),
    ) {
        metadata.insert("namespace".to_owned(), json!(name));
    }
    Ok(())
}

struct Writer<'a> {
    args: &'a Args,
    client: &'a Client,
}

impl Writer<'_> {
    /// Returns the stored version, after a dry run on the server; `None` if the object does not exist.
    async fn check(&self, located: &Located) -> Result<Option<String>, CliError> {
        self.send(located, true).await?;
        if located.name().is_empty() {
            return Ok(None);
        }
        match call(self.client, "GET", &path(located), None).await {
            Ok(stored) => Ok(Some(version(&stored))),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
            Err(error) => Err(self.failed(located, &error)),
        }
    }

    async fn write(
        &self,
        located: &Located,
        before: Option<&str>,
    ) -> Result<(&'static str, Value), CliError> {
        let is_dry = self.args.dry_run.is_some();
        let stored = self.send(located, is_dry).await?;
        let word = match before {
            None => "created",
            Some(before) if version(&stored) == before => "unchanged",
            Some(_) => "configured",
        };
        // A dry run does not report whether the object would change.
        let dry = match before {
            None => "created (server dry run)",
            Some(_) => "configured (server dry run)",
        };
        Ok((if is_dry { dry } else { word }, stored))
    }

    async fn send(&self, located: &Located, is_dry: bool) -> Result<Value, CliError> {
        let force = if self.args.force_conflicts {
            "&force=true"
        } else {
            ""
        };
        let dry = if is_dry { "&dryRun=All" } else { "" };
        let query = format!("fieldManager={FIELD_MANAGER}&fieldValidation=Strict{dry}");
        let sent = if located.name().is_empty() {
            let collection = located.collection(located.text_at("/metadata/namespace"));
            call(
                self.client,
                "POST",
                &format!("{collection}?{query}"),
                Some(&located.object),
            )
            .await
        } else {
            let path = format!("{}?{query}{force}", path(located));
            call(self.client, "PATCH", &path, Some(&located.object)).await
        };
        sent.map_err(|error| self.failed(located, &error))
    }

    fn failed(&self, located: &Located, error: &kube::Error) -> CliError {
        let kube::Error::Api(status) = error else {
            return CliError::new(
                Kind::Cluster,
                format!("{}: {}", located.reference(), chain(error)),
            );
        };
        match status.code {
            422 | 400 => located.invalid(status),
            409 if !self.args.force_conflicts => CliError::new(
                Kind::Cluster,
                format!("{}: {}", located.reference(), status.message),
            )
            .hint("take the fields over with --force-conflicts, or remove them from the document"),
            404 if status.message.starts_with("namespaces ") => CliError::new(
                Kind::Cluster,
                format!("{}: {}", located.reference(), status.message),
            )
            .hint("create the namespace, or select another one with -n"),
            _ => rejected(status, &located.plural()),
        }
    }
}

fn path(located: &Located) -> String {
    let collection = located.collection(located.text_at("/metadata/namespace"));
    format!("{collection}/{}", located.name())
}

fn version(object: &Value) -> String {
    let version = object
        .pointer("/metadata/resourceVersion")
        .and_then(Value::as_str);
    version.unwrap_or_default().to_owned()
}

/// Prints one line per object, or all objects at the end.
struct Report {
    output: Format,
    objects: Vec<Value>,
}

impl Report {
    fn new(output: Format) -> Self {
        Self {
            output,
            objects: Vec::new(),
        }
    }

    fn add(&mut self, located: &Located, word: &str, mut object: Value) -> Result<(), CliError> {
        if !matches!(self.output, Format::Text | Format::Wide) {
            if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
                metadata.remove("managedFields");
            }
            self.objects.push(object);
            return Ok(());
        }
        let mut text = String::new();
        for change in located.changes.iter().chain(&located.warnings) {
            let _ = writeln!(text, "{WARNING}{}{WARNING:#}: {change}", located.reference());
        }
        let name = object.pointer("/metadata/name").and_then(Value::as_str);
        let reference = match name {
            Some(name) => format!("{}/{name}", located.kind().to_lowercase()),
            None => located.reference(),
        };
        let _ = writeln!(text, "{reference} {word}");
        print_styled(&text)
    }

    fn finish(self) -> Result<(), CliError> {
        match (self.output, self.objects.as_slice()) {
            (Format::Text | Format::Wide, _) => Ok(()),
            (format, [object]) => print_styled(&structured(object, format)?),
            (format, objects) => {
                let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
                print_styled(&structured(&list, format)?)
            }
        }
    }
}
