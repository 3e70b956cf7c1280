//! Why a chart could not be loaded or its values put together, in Helm's words. An error's source is not repeated in its
//! text: an edge joins the chain with `: `, which gives Helm's whole line.

use crate::dialect::Dialect;
use crate::go::quote;
use crate::load::ignore::IgnoreError;
use crate::strvals::SetError;

/// A failed load, or values that do not fit.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ChartError {
    /// The archive is unsafe, broken or too large.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// The folder or file could not be read.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// No `Chart.yaml` among the files.
    #[error("Chart.yaml file is missing")]
    NoMetadata,
    /// `apiVersion` is neither `v1` nor `v2`.
    #[error("unsupported chart version")]
    UnsupportedVersion,
    /// `apiVersion: v3`, which Helm 4 knows and does not install.
    #[error("invalid chart apiVersion")]
    FutureVersion,
    /// A file is not YAML.
    #[error("cannot load {file}")]
    Yaml {
        /// Its name in the chart.
        file: String,
        /// What is wrong, and where.
        source: Box<mainstay_yaml::Error>,
    },
    /// A file is YAML, but its fields do not fit.
    #[error("cannot load {file}: {text}")]
    Decode {
        /// Its name in the chart.
        file: String,
        /// What Go says.
        text: String,
    },
    /// `values.yaml` is no map of values.
    #[error("cannot load {file}")]
    Values {
        /// Its name in the chart.
        file: String,
        /// What is wrong, and where.
        source: ValuesError,
    },
    /// The metadata breaks a rule.
    #[error("validation: {0}")]
    Validation(String),
    /// `charts/x.tgz` is a folder.
    #[error("error unpacking subchart tar in {chart}: expected {expected}, got {got}")]
    SubchartArchive {
        /// The chart that holds it.
        chart: String,
        /// The archive's name.
        expected: String,
        /// The first file found in its place.
        got: String,
    },
    /// A subchart could not be loaded.
    #[error("error unpacking subchart {name} in {chart}")]
    Subchart {
        /// The folder or archive under `charts/`.
        name: String,
        /// The chart that holds it.
        chart: String,
        /// Why.
        source: Box<ChartError>,
    },
    /// Charts within charts within charts.
    #[error("charts are nested more deeply than {0} levels")]
    TooDeep(usize),
    /// A library chart, or a type that is none.
    #[error("{0} charts are not installable")]
    NotInstallable(String),
    /// `dependencies` names charts that `charts/` does not have.
    #[error("{} found in Chart.yaml, but missing in charts/ directory: {}", ask_for_build(*.dialect), .names.join(", "))]
    MissingDependencies {
        /// Their names.
        names: Vec<String>,
        /// Whose words.
        dialect: Dialect,
    },
    /// Dependencies could not be switched on or off.
    #[error("chart dependencies processing failed")]
    Dependencies(#[source] Box<ChartError>),
    /// A subchart's values are not a table.
    #[error("type mismatch on {name}: {value}")]
    TypeMismatch {
        /// The subchart.
        name: String,
        /// What is there, as Go's `%t` prints it.
        value: String,
    },
    /// The cluster is too old or too new.
    #[error("chart requires kubeVersion: {wanted} which is incompatible with Kubernetes {got}")]
    KubeVersion {
        /// The chart's constraint.
        wanted: String,
        /// The cluster's version.
        got: String,
    },
    /// Values break a schema; each chart's complaints, as Helm lays them out.
    #[error("values don't meet the specifications of the schema(s) in the following chart(s):\n{0}")]
    Schema(String),
    /// A template could not be parsed or run; the text is the one Helm prints.
    #[error("{text}")]
    Template {
        /// What went wrong, in the words of the dialect asked for.
        text: String,
        /// The innermost place in the chart's own files.
        place: Option<Box<SourceLocation>>,
    },
    /// What a template made is not a manifest.
    #[error("YAML parse error on {path}: {problem}")]
    Manifest {
        /// The template.
        path: String,
        /// What is wrong with its output.
        problem: String,
        /// Where in its output.
        place: Option<Box<SourceLocation>>,
        /// What all templates made, for whoever wants to see it nevertheless.
        rendered: Vec<u8>,
    },
    /// `--show-only` names nothing that was rendered.
    #[error("could not find template {0} in chart")]
    NoSuchTemplate(String),
    /// The post-renderer failed.
    #[error("error while running post render on files: {0}")]
    PostRender(String),
}

/// Where in which text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceLocation {
    /// A path inside the chart, or the name of a values file.
    pub file: String,
    /// From 1.
    pub line: u32,
    /// From 1, in characters.
    pub column: Option<u32>,
    /// The text of that line.
    pub source: Option<String>,
}

impl ChartError {
    /// Whether the chart was being rendered: then Helm has something to show with `--debug`, and says so.
    #[must_use]
    pub fn is_from_render(&self) -> bool {
        matches!(
            self,
            Self::Template { .. } | Self::Manifest { .. } | Self::KubeVersion { .. } | Self::PostRender(_)
        )
    }

    /// What `--debug` prints nevertheless.
    #[must_use]
    pub fn rendered(&self) -> &[u8] {
        match self {
            Self::Manifest { rendered, .. } => rendered,
            _ => b"\n",
        }
    }

    /// Where it happened, as far as that is known.
    #[must_use]
    pub fn location(&self) -> Option<&SourceLocation> {
        match self {
            Self::Template { place, .. } | Self::Manifest { place, .. } => place.as_deref(),
            _ => None,
        }
    }
}

/// Why a chart could not be read from disk.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SourceError {
    /// The system refuses.
    #[error("{what} {path}: {}", go_io(.reason))]
    Io {
        /// The system call, as Go names it.
        what: &'static str,
        /// On what.
        path: String,
        /// Why; its words are part of the message.
        reason: std::io::Error,
    },
    /// No `Chart.yaml` in the folder.
    #[error("unable to detect chart at {chart}")]
    NoChart {
        /// Where it should be.
        chart: String,
        /// Why not.
        source: Box<ChartError>,
    },
    /// Not gzip inside.
    #[error("file '{name}' does not appear to be a valid chart file (details: gzip: invalid header)")]
    NotAChart {
        /// The file.
        name: String,
    },
    /// Helm 4 says only this; the source says why.
    #[error("unable to load chart archive")]
    Archive {
        /// Why.
        source: ArchiveError,
    },
    /// A YAML file where an archive should be.
    #[error("file '{name}' seems to be a YAML file, but expected a gzipped archive")]
    YamlNotArchive {
        /// The file.
        name: String,
    },
    /// Something else where an archive should be.
    #[error("file '{name}' does not appear to be a gzipped archive; got '{found}'")]
    NotAnArchive {
        /// The file.
        name: String,
        /// Its type, as Go guesses it.
        found: &'static str,
    },
    /// `.helmignore` has a rule Helm refuses.
    #[error(transparent)]
    Ignore(IgnoreError),
    /// A device, socket or pipe.
    #[error("cannot load irregular file {path} as it has file mode type bits set")]
    Irregular {
        /// Which.
        path: String,
    },
    /// A file over Helm's cap.
    #[error("chart file {} is larger than the maximum file size {limit}", quote(.name))]
    TooLarge {
        /// Its name.
        name: String,
        /// The cap.
        limit: u64,
    },
    /// More than any chart has.
    #[error("chart folder {path} is larger than the maximum size {limit}")]
    FolderTooLarge {
        /// Which.
        path: String,
        /// The cap.
        limit: u64,
    },
    /// A link that leads nowhere.
    #[error("error evaluating symlink {path}: lstat {target}: {}", go_io(.reason))]
    Link {
        /// The link.
        path: String,
        /// What it names.
        target: String,
        /// Why; its words are part of the message.
        reason: std::io::Error,
    },
    /// Links in a circle, or folders without end.
    #[error("chart folder never ends: {path} leads back to itself or is nested too deeply")]
    Endless {
        /// Where.
        path: String,
    },
    /// A name that is not text.
    #[error("chart folder has a file name that is not UTF-8: {}", quote(.path))]
    NameNotText {
        /// Where.
        path: String,
    },
}

/// Why the user's values could not be put together.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LayerError {
    /// A file could not be read.
    #[error("{text}")]
    Read {
        /// Its name.
        file: String,
        /// Why, as the reader of files says it.
        text: String,
    },
    /// A file is no map of values.
    #[error("failed to parse {file}")]
    File {
        /// Its name.
        file: String,
        /// What is wrong, and where.
        source: ValuesError,
    },
    /// `--set-json` with an object that is none.
    #[error("failed parsing --set-json data JSON: {argument}")]
    JsonObject {
        /// The argument.
        argument: String,
        /// What is wrong, which Helm keeps to itself.
        cause: Box<mainstay_yaml::Error>,
    },
    /// `--set-json` with assignments that are none.
    #[error("failed parsing --set-json data {argument}")]
    Json {
        /// The argument.
        argument: String,
        /// What is wrong, which Helm keeps to itself.
        cause: SetError,
    },
    /// Another flag of the family.
    #[error("failed parsing {flag} data")]
    Set {
        /// The flag.
        flag: &'static str,
        /// The argument.
        argument: String,
        /// What is wrong, and after how many bytes.
        source: SetError,
    },
}

/// Why a text is no map of values.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ValuesError {
    /// Something follows `---` on its line.
    #[error("error reading yaml document: invalid Yaml document separator: {text}")]
    Separator {
        /// What follows.
        text: String,
        /// The line, from 1.
        line: usize,
    },
    /// A document is not YAML, or not a map. The position is counted from the start of the file, not of the document.
    #[error("cannot unmarshal yaml document")]
    Document(#[source] Box<mainstay_yaml::Error>),
    /// The same in Helm 3, which reads one document only.
    #[error(transparent)]
    Plain(Box<mainstay_yaml::Error>),
}

/// Why an archive was refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArchiveError {
    /// Not gzip.
    #[error("gzip: invalid header")]
    NotGzip,
    /// The compressed stream ends early or is damaged.
    #[error("{0}")]
    Gzip(String),
    /// The archive ends in the middle of an entry.
    #[error("unexpected EOF")]
    Truncated,
    /// No bytes at all.
    #[error("EOF")]
    NoData,
    /// A file with holes, which no chart needs.
    #[error("archive/tar: sparse files are not supported")]
    Sparse,
    /// An extended header of more than a mebibyte.
    #[error("archive/tar: header field too long")]
    FieldTooLong,
    /// A header that is none.
    #[error("archive/tar: invalid tar header")]
    Header,
    /// A path from the root.
    #[error("chart illegally contains absolute paths")]
    Absolute,
    /// A path that is the base folder itself, or not in it.
    #[error("chart illegally contains content outside the base directory: {}", quote(.0))]
    Outside(String),
    /// A path that climbs.
    #[error("chart illegally references parent directory")]
    Parent,
    /// A path with a drive letter.
    #[error("chart contains illegally named files")]
    Drive,
    /// `Chart.yaml` outside a folder.
    #[error("chart yaml not in base directory")]
    BaseDirectory,
    /// The whole is too large.
    #[error("decompressed chart is larger than the maximum size {0}")]
    TooLarge(u64),
    /// One file is too large.
    #[error("decompressed chart file {} is larger than the maximum file size {limit}", quote(.name))]
    FileTooLarge {
        /// Its name in the archive.
        name: String,
        /// The limit.
        limit: u64,
    },
    /// Nothing in it.
    #[error("no files in chart archive")]
    Empty,
    /// More entries than any chart has.
    #[error("chart archive has more than {0} entries")]
    TooManyEntries(usize),
    /// A name longer than any file system takes.
    #[error("chart archive has a file name longer than {0} bytes")]
    NameTooLong(usize),
    /// A name that is not text.
    #[error("chart archive has a file name that is not UTF-8: {}", quote(.0))]
    NameNotText(String),
    /// A few bytes that unpack to very many.
    #[error("chart archive expands to more than {0} times its size")]
    Ratio(u64),
}

/// The system's reason in Go's words.
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

fn ask_for_build(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Helm3 => {
            "An error occurred while checking for chart dependencies. You may need to run `helm dependency build` to fetch missing dependencies:"
        }
        Dialect::Helm4 => {
            "an error occurred while checking for chart dependencies. You may need to run 'helm dependency build' to fetch missing dependencies:"
        }
    }
}
