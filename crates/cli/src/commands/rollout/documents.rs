//! Reads the documents of `-f`: files, directories and stdin, each object with its location.

use std::path::{Path, PathBuf};

use kube::core::Status;
use mainstay_api::delivery::{
    API_VERSION, ActionSpec, AnalysisTemplateSpec, ApplicationDeploymentSpec, ApplicationSpec, ClusterSpec,
    Kind as DeliveryKind, Resource, RevisionSpec,
};
use mainstay_rollout::documents::{DocumentError, NormalizedObject, parse_documents};
use mainstay_yaml::{Budget, Document, NodeId, NodeKind, Position, parse_spanned};
use serde_json::Value;

use crate::error::{CliError, Kind, chain};
use crate::input::{read_all, read_file};

/// Endings of files that are read from a directory.
const ENDINGS: &[&str] = &["yaml", "yml", "json"];

/// Flags that select documents.
#[derive(clap::Args)]
pub(crate) struct FileFlags {
    /// File or directory with documents, `-` for stdin; can be repeated
    #[arg(short, long = "filename", value_name = "FILE|DIR")]
    pub(crate) files: Vec<String>,

    /// Read directories with their subdirectories
    #[arg(short = 'R', long)]
    pub(crate) recursive: bool,
}

/// An object with its location in the documents.
#[derive(Clone, Debug)]
pub(crate) struct Located {
    /// The object in the form that the API server accepts.
    pub(crate) object: Value,
    /// Descriptions of the conversions to that form, one sentence each.
    pub(crate) changes: Vec<String>,
    /// Descriptions of valid but probably unintended settings, one sentence each.
    pub(crate) warnings: Vec<String>,
    file: String,
    text: std::sync::Arc<str>,
    position: Position,
}

impl Located {
    /// Returns `kind/name`, in lower case like kubectl.
    pub(crate) fn reference(&self) -> String {
        let name = if self.name().is_empty() {
            self.text_at("/metadata/generateName")
        } else {
            self.name()
        };
        format!("{}/{name}", self.kind().to_lowercase())
    }

    /// Returns the kind.
    pub(crate) fn kind(&self) -> &str {
        self.text_at("/kind")
    }

    /// Returns the name; empty if the server generates it.
    pub(crate) fn name(&self) -> &str {
        self.text_at("/metadata/name")
    }

    /// Returns the API path of the object's collection in a namespace.
    pub(crate) fn collection(&self, namespace: &str) -> String {
        format!("/apis/{API_VERSION}/namespaces/{namespace}/{}", self.plural())
    }

    /// Returns the plural of the kind, as in URLs.
    pub(crate) fn plural(&self) -> String {
        plural(self.kind())
    }

    /// Converts a rejection of the API server; its first cause determines the location.
    pub(crate) fn invalid(&self, status: &Status) -> CliError {
        let causes = status.details.as_ref().map(|details| details.causes.as_slice());
        let field = causes
            .and_then(|causes| causes.first())
            .map(|cause| cause.field.as_str());
        let unknown = status
            .message
            .split_once("unknown field \"")
            .map(|(_, rest)| rest);
        let unknown = unknown.and_then(|rest| rest.split('"').next());
        let path = unknown.or(field).unwrap_or_default();
        self.error(status.message.clone(), path)
    }

    /// Returns the text at a JSON pointer, or an empty one.
    pub(crate) fn text_at(&self, pointer: &str) -> &str {
        self.object
            .pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or_default()
    }

    /// Returns the resource if it is of this kind.
    pub(crate) fn typed<S: DeliveryKind>(&self) -> Option<Result<Resource<S>, CliError>> {
        let read = || {
            serde_json::from_value(self.object.clone())
                .map_err(|error| self.error(format!("{}: {error}", self.reference()), ""))
        };
        (self.kind() == S::KIND).then(read)
    }

    /// Returns an error at the field `path`, such as `spec.traffic.http[0].weightedTargets`, or at the
    /// nearest field above it.
    pub(crate) fn error(&self, message: String, path: &str) -> CliError {
        let at = self.locate(path).unwrap_or(self.position);
        locate(CliError::new(Kind::Manifest, message), &self.file, &self.text, at)
    }

    fn locate(&self, path: &str) -> Option<Position> {
        let documents = parse_spanned(&*self.text, &Budget::default()).ok()?;
        let is_own = |document: &&Document<'_>| {
            let root = document.root().and_then(|id| document.nodes.get(id.0 as usize));
            root.is_some_and(|root| root.span.start.offset == self.position.offset)
        };
        let document = documents.iter().find(is_own)?;
        let mut at = document.root()?;
        for step in path.split(['.', '[']) {
            let Some(next) = child(document, at, step) else {
                break;
            };
            at = next;
        }
        Some(document.nodes.get(at.0 as usize)?.span.start)
    }
}

/// Returns the plural of a kind that documents may contain.
fn plural(kind: &str) -> String {
    let kinds: [(&str, &str); 6] = [
        (AnalysisTemplateSpec::KIND, AnalysisTemplateSpec::PLURAL),
        (ApplicationSpec::KIND, ApplicationSpec::PLURAL),
        (ApplicationDeploymentSpec::KIND, ApplicationDeploymentSpec::PLURAL),
        (RevisionSpec::KIND, RevisionSpec::PLURAL),
        (ClusterSpec::KIND, ClusterSpec::PLURAL),
        (ActionSpec::KIND, ActionSpec::PLURAL),
    ];
    let own = kinds.iter().find(|(name, _)| *name == kind);
    own.map_or_else(|| kind.to_lowercase(), |(_, plural)| (*plural).to_owned())
}

fn child(document: &Document<'_>, at: NodeId, step: &str) -> Option<NodeId> {
    let Some(index) = step.strip_suffix(']') else {
        return document.get(at, step);
    };
    match &document.nodes.get(at.0 as usize)?.kind {
        NodeKind::List { items, .. } => items.get(index.parse::<usize>().ok()?).copied(),
        _ => document.get(at, index.trim_matches('"')),
    }
}

fn locate(error: CliError, file: &str, text: &str, at: Position) -> CliError {
    let source = text.lines().nth(at.line.saturating_sub(1)).unwrap_or_default();
    error.at(file, at.line, at.column, source.to_owned())
}

/// Reads all documents of the flags in their order.
pub(crate) fn read(flags: &FileFlags) -> Result<Vec<Located>, CliError> {
    if flags.files.is_empty() {
        return Err(CliError::new(Kind::Usage, "no files given").hint("name files with -f, or - for stdin"));
    }
    let mut objects = Vec::new();
    for name in &flags.files {
        if name == "-" {
            let bytes = read_all(std::io::stdin()).map_err(|error| unreadable("stdin", &error))?;
            objects.extend(parse("stdin", bytes)?);
            continue;
        }
        for path in expand(Path::new(name), flags.recursive)? {
            let file = path.display().to_string();
            let bytes = read_file(&path).map_err(|error| unreadable(&file, &error))?;
            objects.extend(parse(&file, bytes)?);
        }
    }
    if objects.is_empty() {
        let message = format!("no documents found in {}", flags.files.join(", "));
        return Err(CliError::new(Kind::Manifest, message).hint(
            "add an ApplicationDeployment, a Cluster or another kind of delivery.mainstay.dev/v1alpha1",
        ));
    }
    Ok(objects)
}

fn unreadable(file: &str, error: &std::io::Error) -> CliError {
    let result = CliError::new(Kind::Io, format!("cannot read {file}: {error}"));
    match error.kind() {
        std::io::ErrorKind::NotFound => result.hint("check the name, or use - for stdin"),
        _ => result,
    }
}

/// Returns a file itself, or the documents of a directory in the order of their names.
fn expand(path: &Path, recursive: bool) -> Result<Vec<PathBuf>, CliError> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let failed = |error: std::io::Error| unreadable(&path.display().to_string(), &error);
    let mut entries = Vec::new();
    for entry in std::fs::read_dir(path).map_err(failed)? {
        entries.push(entry.map_err(failed)?.path());
    }
    entries.sort();
    let mut files = Vec::new();
    for entry in entries {
        if entry.is_dir() {
            if recursive {
                files.extend(expand(&entry, true)?);
            }
        } else if has_ending(&entry) {
            files.push(entry);
        }
    }
    Ok(files)
}

fn has_ending(path: &Path) -> bool {
    let ending = path.extension().and_then(std::ffi::OsStr::to_str);
    ending.is_some_and(|ending| ENDINGS.contains(&ending))
}

fn parse(file: &str, bytes: Vec<u8>) -> Result<Vec<Located>, CliError> {
    let text = String::from_utf8(bytes)
        .map_err(|_| CliError::new(Kind::Manifest, format!("{file}: the text is not UTF-8")))?;
    let objects = parse_documents(&text).map_err(|error| rejected(file, &text, &error))?;
    let text: std::sync::Arc<str> = text.into();
    let located = |object: NormalizedObject| Located {
        object: object.object,
        changes: object.changes,
        warnings: Vec::new(),
        file: file.to_owned(),
        text: text.clone(),
        position: object.position,
    };
    Ok(objects.into_iter().map(located).collect())
}

fn rejected(file: &str, text: &str, error: &DocumentError) -> CliError {
    let result = CliError::new(Kind::Manifest, format!("{file}: {}", chain(error)));
    let place = match error {
        DocumentError::NoKind { line, column }
        | DocumentError::NoName { line, column }
        | DocumentError::UnknownKind { line, column, .. } => Some((*line, *column)),
        DocumentError::NoJson { line } | DocumentError::DocumentTooLarge { line, .. } => Some((*line, 1)),
        DocumentError::Syntax(error) if error.at.line > 0 => Some((error.at.line, error.at.column)),
        DocumentError::Syntax(_) | DocumentError::TooLong(_) => None,
    };
    match place {
        Some((line, column)) => {
            let at = Position {
                offset: 0,
                line,
                column,
            };
            locate(result, file, text, at)
        }
        None => result,
    }
}
