//! Errors of loading and rendering, with Helm's messages. A source is not repeated in the text of an error:
//! joining the chain with `: ` produces Helm's line.

use mainstay_gostd::quote::quote;

use crate::dialect::Dialect;
use crate::load::fields::DecodeError;
use crate::load::ignore::IgnoreError;
use crate::strvals::SetError;

/// An error of loading, preparing, rendering or printing a chart.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ChartError {
    /// The archive is unsafe, broken or too large.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// The directory or file cannot be read.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The chart has no `Chart.yaml`.
    #[error("Chart.yaml file is missing")]
    NoMetadata,
    /// `apiVersion` is neither `v1` nor `v2`.
    #[error("unsupported chart version")]
    UnsupportedVersion,
    /// `apiVersion: v3`, which Helm 4 recognizes and does not install.
    #[error("invalid chart apiVersion")]
    FutureVersion,
    /// A file is not valid YAML.
    #[error("cannot load {file}")]
    Yaml {
        /// File name in the chart.
        file: String,
        /// The syntax error and its position.
        source: Box<mainstay_yaml::Error>,
    },
    /// A field of a YAML file has the wrong type.
    #[error("cannot load {file}")]
    Decode {
        /// File name in the chart.
        file: String,
        /// The message of Go's decoder.
        source: DecodeError,
    },
    /// `values.yaml` is not a map of values.
    #[error("cannot load {file}")]
    Values {
        /// File name in the chart.
        file: String,
        /// The error and its position.
        source: ValuesError,
    },
    /// The metadata violates a rule.
    #[error("validation: {0}")]
    Validation(String),
    /// `charts/x.tgz` is a directory.
    #[error("error unpacking subchart tar in {chart}: expected {expected}, got {got}")]
    SubchartArchive {
        /// The parent chart.
        chart: String,
        /// Name of the archive.
        expected: String,
        /// The first file found instead.
        got: String,
    },
    /// A subchart cannot be loaded.
    #[error("error unpacking subchart {name} in {chart}")]
    Subchart {
        /// Directory or archive under `charts/`.
        name: String,
        /// The parent chart.
        chart: String,
        /// The subchart's error.
        source: Box<ChartError>,
    },
    /// Subcharts are nested too deeply.
    #[error("charts are nested more deeply than {0} levels")]
    TooDeep(usize),
    /// The chart is a library or has an unknown type.
    #[error("{0} charts are not installable")]
    NotInstallable(String),
    /// `dependencies` names charts that are not in `charts/`.
    #[error("{} found in Chart.yaml, but missing in charts/ directory: {}", .dialect.missing_dependencies_prefix(), .names.join(", "))]
    MissingDependencies {
        /// Names of the missing charts.
        names: Vec<String>,
        /// The Helm version whose message applies.
        dialect: Dialect,
    },
    /// Dependencies cannot be enabled, disabled or imported from.
    #[error("chart dependencies processing failed")]
    Dependencies(#[source] Box<ChartError>),
    /// The values of a subchart are not a table.
    #[error("type mismatch on {name}: {value}")]
    TypeMismatch {
        /// The subchart.
        name: String,
        /// The value, as Go's `%t` prints it.
        value: String,
    },
    /// The cluster's version does not match the chart's constraint.
    #[error("chart requires kubeVersion: {wanted} which is incompatible with Kubernetes {got}")]
    KubeVersion {
        /// The chart's constraint.
        wanted: String,
        /// The cluster's version.
        got: String,
    },
    /// Values violate a schema; the text lists the violations by chart, as Helm formats them.
    #[error("values don't meet the specifications of the schema(s) in the following chart(s):\n{0}")]
    Schema(String),
    /// A template cannot be parsed or executed.
    #[error("{text}")]
    Template {
        /// Helm's message.
        text: String,
        /// The innermost position in a file of the chart.
        location: Option<Box<SourceLocation>>,
    },
    /// The output of a template is not a manifest.
    #[error("YAML parse error on {path}: {problem}")]
    Manifest {
        /// Path of the template.
        path: String,
        /// The message of Go's decoder.
        problem: String,
        /// Position in the output.
        location: Option<Box<SourceLocation>>,
        /// The output of all templates, for `--debug`.
        rendered: Vec<u8>,
    },
    /// `--show-only` matches no rendered template.
    #[error("could not find template {0} in chart")]
    NoSuchTemplate(String),
    /// The post-renderer failed.
    #[error("error while running post render on files: {0}")]
    PostRender(CallbackError),
}

/// An error of a callback, such as a reader of files or a post-renderer. The text is shown to the user as it
/// is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct CallbackError(pub String);

/// A position in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceLocation {
    /// Path in the chart, or name of a values file.
    pub file: String,
    /// Line, counted from 1.
    pub line: u32,
    /// Column in characters, counted from 1.
    pub column: Option<u32>,
    /// Text of the line.
    pub source: Option<String>,
}

impl ChartError {
    /// Whether the chart was being rendered: Helm then mentions `--debug`.
    #[must_use]
    pub fn is_from_render(&self) -> bool {
        matches!(
            self,
            Self::Template { .. } | Self::Manifest { .. } | Self::KubeVersion { .. } | Self::PostRender(_)
        )
    }

    /// The output that `--debug` prints in spite of the error.
    #[must_use]
    pub fn rendered(&self) -> &[u8] {
        match self {
            Self::Manifest { rendered, .. } => rendered,
            _ => b"\n",
        }
    }

    /// The position of the error, if it is known.
    #[must_use]
    pub fn location(&self) -> Option<&SourceLocation> {
        match self {
            Self::Template { location, .. } | Self::Manifest { location, .. } => location.as_deref(),
            _ => None,
        }
    }
}

/// An error of reading a chart from disk.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SourceError {
    /// A system call failed.
    #[error("{what} {path}: {}", go_io(.reason))]
    Io {
        /// The system call, as Go names it.
        what: &'static str,
        /// Its path.
        path: String,
        /// The system's error, which is part of the message.
        reason: std::io::Error,
    },
    /// The directory has no `Chart.yaml`.
    #[error("unable to detect chart at {chart}")]
    NoChart {
        /// Expected path of the file.
        chart: String,
        /// The error of opening it.
        source: Box<ChartError>,
    },
    /// The file is not gzip data.
    #[error("file '{name}' does not appear to be a valid chart file (details: gzip: invalid header)")]
    NotAChart {
        /// File name.
        name: String,
    },
    /// The archive cannot be unpacked; used by Helm 4.
    #[error("unable to load chart archive")]
    Archive {
        /// The archive's error.
        source: ArchiveError,
    },
    /// A YAML file instead of an archive.
    #[error("file '{name}' seems to be a YAML file, but expected a gzipped archive")]
    YamlNotArchive {
        /// File name.
        name: String,
    },
    /// Another type of file instead of an archive.
    #[error("file '{name}' does not appear to be a gzipped archive; got '{found}'")]
    NotAnArchive {
        /// File name.
        name: String,
        /// The content type, as Go guesses it.
        found: &'static str,
    },
    /// `.helmignore` has an invalid rule.
    #[error(transparent)]
    Ignore(IgnoreError),
    /// The file is a device, socket or pipe.
    #[error("cannot load irregular file {path} as it has file mode type bits set")]
    Irregular {
        /// Path of the file.
        path: String,
    },
    /// The file exceeds Helm's limit.
    #[error("chart file {} is larger than the maximum file size {limit}", quote(.name))]
    TooLarge {
        /// File name.
        name: String,
        /// Maximum size in bytes.
        limit: u64,
    },
    /// The files together exceed the limit.
    #[error("chart directory {path} is larger than the maximum size {limit}")]
    DirectoryTooLarge {
        /// Path of the directory.
        path: String,
        /// Maximum size in bytes.
        limit: u64,
    },
    /// A link without a target.
    #[error("error evaluating symlink {path}: lstat {target}: {}", go_io(.reason))]
    Link {
        /// Path of the link.
        path: String,
        /// Its target.
        target: String,
        /// The system's error, which is part of the message.
        reason: std::io::Error,
    },
    /// Links form a cycle, or directories are nested too deeply.
    #[error("chart directory {path} links back to itself or is nested too deeply")]
    Endless {
        /// Path of the directory.
        path: String,
    },
    /// A file name is not UTF-8.
    #[error("chart directory has a file name that is not UTF-8: {}", quote(.path))]
    NameNotText {
        /// Path of the file.
        path: String,
    },
}

/// An error of merging the user's values.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LayerError {
    /// A file cannot be read.
    #[error("{reason}")]
    Read {
        /// File name.
        file: String,
        /// The error of the reader, which is the whole message.
        reason: CallbackError,
    },
    /// A file is not a map of values.
    #[error("failed to parse {file}")]
    File {
        /// File name.
        file: String,
        /// The error and its position.
        source: ValuesError,
    },
    /// `--set-json` with an invalid object.
    #[error("failed parsing --set-json data JSON: {argument}")]
    JsonObject {
        /// The argument.
        argument: String,
        /// The syntax error, which Helm does not print.
        cause: Box<mainstay_yaml::Error>,
    },
    /// `--set-json` with invalid assignments.
    #[error("failed parsing --set-json data {argument}")]
    Json {
        /// The argument.
        argument: String,
        /// The syntax error, which Helm does not print.
        cause: SetError,
    },
    /// Another flag of the `--set` family.
    #[error("failed parsing {flag} data")]
    Set {
        /// The flag.
        flag: &'static str,
        /// The argument.
        argument: String,
        /// The syntax error and its position.
        source: SetError,
    },
}

/// A text that is not a map of values.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ValuesError {
    /// Text follows `---` on the same line.
    #[error("error reading yaml document: invalid Yaml document separator: {text}")]
    Separator {
        /// The text after the separator.
        text: String,
        /// Line, counted from 1.
        line: usize,
    },
    /// A document is not YAML or not a map. The position is relative to the file, not to the document.
    #[error("cannot unmarshal yaml document")]
    Document(#[source] Box<mainstay_yaml::Error>),
    /// The same in Helm 3, which reads one document only.
    #[error(transparent)]
    Plain(Box<mainstay_yaml::Error>),
}

/// An archive that is rejected.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArchiveError {
    /// Not gzip data.
    #[error("gzip: invalid header")]
    NotGzip,
    /// The compressed stream is truncated or damaged.
    #[error("{0}")]
    Gzip(String),
    /// The archive ends inside an entry.
    #[error("unexpected EOF")]
    Truncated,
    /// The archive is empty.
    #[error("EOF")]
    NoData,
    /// A sparse file.
    #[error("archive/tar: sparse files are not supported")]
    Sparse,
    /// An extended header of more than a mebibyte.
    #[error("archive/tar: header field too long")]
    FieldTooLong,
    /// An invalid header.
    #[error("archive/tar: invalid tar header")]
    Header,
    /// An absolute path.
    #[error("chart illegally contains absolute paths")]
    Absolute,
    /// A path that is the base directory or outside it.
    #[error("chart illegally contains content outside the base directory: {}", quote(.0))]
    Outside(String),
    /// A path with `..`.
    #[error("chart illegally references parent directory")]
    Parent,
    /// A path with a drive letter.
    #[error("chart contains illegally named files")]
    Drive,
    /// `Chart.yaml` is not inside a directory.
    #[error("chart yaml not in base directory")]
    BaseDirectory,
    /// The files together exceed the limit.
    #[error("decompressed chart is larger than the maximum size {0}")]
    TooLarge(u64),
    /// A file exceeds the limit.
    #[error("decompressed chart file {} is larger than the maximum file size {limit}", quote(.name))]
    FileTooLarge {
        /// Name in the archive.
        name: String,
        /// Maximum size in bytes.
        limit: u64,
    },
    /// The archive has no files.
    #[error("no files in chart archive")]
    Empty,
    /// Too many entries.
    #[error("chart archive has more than {0} entries")]
    TooManyEntries(usize),
    /// A file name is too long for any file system.
    #[error("chart archive has a file name longer than {0} bytes")]
    NameTooLong(usize),
    /// A file name is not UTF-8.
    #[error("chart archive has a file name that is not UTF-8: {}", quote(.0))]
    NameNotText(String),
    /// The compression ratio is too high.
    #[error("chart archive expands to more than {0} times its size")]
    Ratio(u64),
}

/// Formats a system error as Go does.
fn go_io(error: &std::io::Error) -> String {
    use std::io::ErrorKind;
    match error.kind() {
        ErrorKind::NotFound => "no such file or directory".into(),
        ErrorKind::PermissionDenied => "permission denied".into(),
        ErrorKind::NotADirectory => "not a directory".into(),
        ErrorKind::IsADirectory => "is a directory".into(),
        _ => {
            let text = error.to_string();
            text.split(" (os error").next().unwrap_or(&text).to_lowercase()
        }
    }
}
