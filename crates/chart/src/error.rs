//! Errors of loading and rendering, with Helm's messages. The text of an error does not include its source:
//! joining the chain with `: ` produces Helm's line.

use mainstay_gostd::quote::quote;

use crate::dialect::Dialect;
use crate::load::fields::DecodeError;
use crate::load::ignore::IgnoreError;
use crate::strvals::SetError;

/// Error of loading, preparing, rendering or printing a chart.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ChartError {
    /// The archive is unsafe, damaged or too large.
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
    /// `apiVersion` is `v3`, which Helm 4 recognizes but does not install.
    #[error("invalid chart apiVersion")]
    FutureVersion,
    /// A file is not valid YAML.
    #[error("cannot load {file}")]
    Yaml {
        /// File name in the chart.
        file: String,
        /// Syntax error with its position.
        source: Box<mainstay_yaml::Error>,
    },
    /// A field of a YAML file has the wrong type.
    #[error("cannot load {file}")]
    Decode {
        /// File name in the chart.
        file: String,
        /// Message of Go's decoder.
        source: DecodeError,
    },
    /// `values.yaml` is not a map of values.
    #[error("cannot load {file}")]
    Values {
        /// File name in the chart.
        file: String,
        /// Error with its position.
        source: ValuesError,
    },
    /// The metadata violates a rule.
    #[error("validation: {0}")]
    Validation(String),
    /// An entry such as `charts/x.tgz` is a directory.
    #[error("error unpacking subchart tar in {chart}: expected {expected}, got {got}")]
    SubchartArchive {
        /// Name of the parent chart.
        chart: String,
        /// Name of the archive.
        expected: String,
        /// Name of the first file that was found instead.
        got: String,
    },
    /// A subchart cannot be loaded.
    #[error("error unpacking subchart {name} in {chart}")]
    Subchart {
        /// Directory or archive in `charts/`.
        name: String,
        /// Name of the parent chart.
        chart: String,
        /// Error of the subchart.
        source: Box<ChartError>,
    },
    /// Subcharts are nested too deeply.
    #[error("charts are nested more deeply than {0} levels")]
    TooDeep(usize),
    /// The chart is a library or its type is unknown.
    #[error("{0} charts are not installable")]
    NotInstallable(String),
    /// `dependencies` names charts that are not in `charts/`.
    #[error("{} found in Chart.yaml, but missing in charts/ directory: {}", .dialect.missing_dependencies_prefix(), .names.join(", "))]
    MissingDependencies {
        /// Names of the missing charts.
        names: Vec<String>,
        /// Helm version that determines the message.
        dialect: Dialect,
    },
    /// Dependencies cannot be enabled, disabled or imported from.
    #[error("chart dependencies processing failed")]
    Dependencies(#[source] Box<ChartError>),
    /// The values of a subchart are not a table.
    #[error("type mismatch on {name}: {value}")]
    TypeMismatch {
        /// Name of the subchart.
        name: String,
        /// The value as Go's `%t` prints it.
        value: String,
    },
    /// The cluster's version does not match the chart's constraint.
    #[error("chart requires kubeVersion: {wanted} which is incompatible with Kubernetes {got}")]
    KubeVersion {
        /// Constraint of the chart.
        wanted: String,
        /// Version of the cluster.
        got: String,
    },
    /// Values violate a schema. The text lists the violations by chart, in Helm's format.
    #[error("values don't meet the specifications of the schema(s) in the following chart(s):\n{0}")]
    Schema(String),
    /// A template cannot be parsed or executed.
    #[error("{text}")]
    Template {
        /// Message of Helm.
        text: String,
        /// Innermost position in a file of the chart.
        location: Option<Box<SourceLocation>>,
    },
    /// The output of a template is not a manifest.
    #[error("YAML parse error on {path}: {problem}")]
    Manifest {
        /// Path of the template.
        path: String,
        /// Message of Go's decoder.
        problem: String,
        /// Position in the output.
        location: Option<Box<SourceLocation>>,
        /// Output of all templates, for `--debug`.
        rendered: Vec<u8>,
    },
    /// `--show-only` does not match any rendered template.
    #[error("could not find template {0} in chart")]
    NoSuchTemplate(String),
    /// The post-renderer failed.
    #[error("error while running post render on files: {0}")]
    PostRender(CallbackError),
}

/// Error of a callback, such as a reader of files or a post-renderer. Its text is shown to users unchanged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct CallbackError(pub String);

/// Position in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceLocation {
    /// Path in the chart, or name of a values file.
    pub file: String,
    /// Line, starting at 1.
    pub line: u32,
    /// Column in characters, starting at 1.
    pub column: Option<u32>,
    /// Text of the line.
    pub source: Option<String>,
}

impl ChartError {
    /// Whether the error occurred during rendering. In this case, Helm mentions `--debug`.
    #[must_use]
    pub fn is_from_render(&self) -> bool {
        matches!(
            self,
            Self::Template { .. } | Self::Manifest { .. } | Self::KubeVersion { .. } | Self::PostRender(_)
        )
    }

    /// Returns the output that `--debug` prints in addition to the error.
    #[must_use]
    pub fn rendered(&self) -> &[u8] {
        match self {
            Self::Manifest { rendered, .. } => rendered,
            _ => b"\n",
        }
    }

    /// Returns the position of the error, if it is known.
    #[must_use]
    pub fn location(&self) -> Option<&SourceLocation> {
        match self {
            Self::Template { location, .. } | Self::Manifest { location, .. } => location.as_deref(),
            _ => None,
        }
    }
}

/// Error of reading a chart from disk.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SourceError {
    /// A system call failed.
    #[error("{what} {path}: {}", go_io(.reason))]
    Io {
        /// Name of the system call in Go.
        what: &'static str,
        /// Path that was passed to it.
        path: String,
        /// Error of the system, which is part of the message.
        reason: std::io::Error,
    },
    /// The directory has no `Chart.yaml`.
    #[error("unable to detect chart at {chart}")]
    NoChart {
        /// Expected path of the file.
        chart: String,
        /// Error of opening that file.
        source: Box<ChartError>,
    },
    /// The file is not gzip data.
    #[error("file '{name}' does not appear to be a valid chart file (details: gzip: invalid header)")]
    NotAChart {
        /// File name.
        name: String,
    },
    /// The archive cannot be unpacked. Used by Helm 4.
    #[error("unable to load chart archive")]
    Archive {
        /// Error of the archive.
        source: ArchiveError,
    },
    /// The file is YAML instead of an archive.
    #[error("file '{name}' seems to be a YAML file, but expected a gzipped archive")]
    YamlNotArchive {
        /// File name.
        name: String,
    },
    /// The file is neither an archive nor named like a YAML file.
    #[error("file '{name}' does not appear to be a gzipped archive; got '{found}'")]
    NotAnArchive {
        /// File name.
        name: String,
        /// Content type, as guessed by Go.
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
    /// The total size of the files exceeds the limit.
    #[error("chart directory {path} is larger than the maximum size {limit}")]
    DirectoryTooLarge {
        /// Path of the directory.
        path: String,
        /// Maximum size in bytes.
        limit: u64,
    },
    /// The target of a link does not exist.
    #[error("error evaluating symlink {path}: lstat {target}: {}", go_io(.reason))]
    Link {
        /// Path of the link.
        path: String,
        /// Target of the link.
        target: String,
        /// Error of the system, which is part of the message.
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

/// Error of merging the user's values.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LayerError {
    /// A file cannot be read.
    #[error("{reason}")]
    Read {
        /// File name.
        file: String,
        /// Error of the reader, which is the whole message.
        reason: CallbackError,
    },
    /// A file is not a map of values.
    #[error("failed to parse {file}")]
    File {
        /// File name.
        file: String,
        /// Error with its position.
        source: ValuesError,
    },
    /// The argument of `--set-json` is an invalid object.
    #[error("failed parsing --set-json data JSON: {argument}")]
    JsonObject {
        /// Argument of the flag.
        argument: String,
        /// Syntax error, which Helm does not print.
        cause: Box<mainstay_yaml::Error>,
    },
    /// The argument of `--set-json` contains invalid assignments.
    #[error("failed parsing --set-json data {argument}")]
    Json {
        /// Argument of the flag.
        argument: String,
        /// Syntax error, which Helm does not print.
        cause: SetError,
    },
    /// The argument of another flag of the `--set` family is invalid.
    #[error("failed parsing {flag} data")]
    Set {
        /// Name of the flag.
        flag: &'static str,
        /// Argument of the flag.
        argument: String,
        /// Syntax error with its position.
        source: SetError,
    },
}

/// Error of parsing a text that must be a map of values.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ValuesError {
    /// A separator `---` is followed by text on the same line.
    #[error("error reading yaml document: invalid Yaml document separator: {text}")]
    Separator {
        /// Text after the separator.
        text: String,
        /// Line, starting at 1.
        line: usize,
    },
    /// A document is not YAML or not a map. The position is relative to the file, not to the document.
    #[error("cannot unmarshal yaml document")]
    Document(#[source] Box<mainstay_yaml::Error>),
    /// Like [`ValuesError::Document`], but in Helm 3, which reads only one document.
    #[error(transparent)]
    Plain(Box<mainstay_yaml::Error>),
}

/// Reason why an archive is rejected.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArchiveError {
    /// The file is not gzip data.
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
    /// An entry is a sparse file.
    #[error("archive/tar: sparse files are not supported")]
    Sparse,
    /// An extended header is longer than one mebibyte.
    #[error("archive/tar: header field too long")]
    FieldTooLong,
    /// A header is invalid.
    #[error("archive/tar: invalid tar header")]
    Header,
    /// A path is absolute.
    #[error("chart illegally contains absolute paths")]
    Absolute,
    /// A path is the base directory or outside of it.
    #[error("chart illegally contains content outside the base directory: {}", quote(.0))]
    Outside(String),
    /// A path contains `..`.
    #[error("chart illegally references parent directory")]
    Parent,
    /// A path contains a drive letter.
    #[error("chart contains illegally named files")]
    Drive,
    /// `Chart.yaml` is not in a directory.
    #[error("chart yaml not in base directory")]
    BaseDirectory,
    /// The total size of the files exceeds the limit.
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
    /// The archive contains no files.
    #[error("no files in chart archive")]
    Empty,
    /// The archive has too many entries.
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

/// Formats an error of the system as Go does.
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
