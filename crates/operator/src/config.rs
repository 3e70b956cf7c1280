//! The operator's configuration file: the images of each version.
//!
//! Kubernetes writes the file from the pod's annotations (downward API), so unrelated keys are ignored:
//!
//! ```text
//! images.v1_29_1.istiod="registry.example.com/istiod@sha256:…"
//! kubectl.kubernetes.io/restartedAt="2026-11-15T16:48:00Z"
//! ```

mod properties;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use mainstay_mesh::Images;

use properties::{Pair, Properties};

/// Default path of the file.
pub const DEFAULT_FILE: &str = "/etc/sail-operator/config.properties";
/// Maximum size of the file in bytes.
const MAX_BYTES: u64 = 1 << 20;

/// Images by version (`v1.29.1`).
pub type ImagesByVersion = BTreeMap<String, Images>;

/// Error of reading the configuration file.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read or is larger than 1 MiB.
    #[error("unable to read config file at {}", path.display())]
    Read {
        /// Path of the file.
        path: PathBuf,
        /// I/O error.
        source: io::Error,
    },
    /// A line is invalid.
    #[error("unable to read config file at {}: {problem}", path.display())]
    Line {
        /// Path of the file.
        path: PathBuf,
        /// Description of the problem.
        problem: String,
        /// Position of the problem.
        position: Position,
    },
}

/// A position in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Position {
    /// Line number, starting at 1.
    pub line: usize,
    /// Column in characters, starting at 1.
    pub column: usize,
    /// Text of the line, truncated to 120 characters.
    pub source: String,
}

/// A syntax error or an invalid image entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ParseError {
    problem: String,
    /// Byte offset of the problem.
    offset: usize,
}

/// Reads the images of each version. A missing file has no images; it is an error only if `required` is set.
pub fn read(path: &Path, required: bool) -> Result<ImagesByVersion, ConfigError> {
    let bytes = match read_bytes(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound && !required => return Ok(BTreeMap::new()),
        Err(source) => {
            let path = path.to_owned();
            return Err(ConfigError::Read { path, source });
        }
    };
    let text = String::from_utf8_lossy(&bytes);
    parse(&text).map_err(|error| ConfigError::Line {
        path: path.to_owned(),
        position: position(&text, error.offset),
        problem: error.problem,
    })
}

fn read_bytes(path: &Path) -> io::Result<Vec<u8>> {
    use io::Read as _;
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path)?;
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "more than 1 MiB"));
    }
    Ok(bytes)
}

/// Parses the images of each version. Fails if an image of a version is missing.
pub(crate) fn parse(text: &str) -> Result<ImagesByVersion, ParseError> {
    let mut drafts = BTreeMap::<String, PartialImages>::new();
    for pair in Properties::new(text) {
        let pair = pair?;
        let Some((version, part)) = image_key(&pair) else {
            continue;
        };
        let draft = drafts
            .entry(version.to_owned())
            .or_insert_with(|| PartialImages::new(pair.offset));
        draft.set(part, parse_image(&pair)?);
    }
    drafts
        .into_iter()
        .map(|(version, draft)| Ok((version.replace('_', "."), draft.finish(&version)?)))
        .collect()
}

/// Splits the key `images.VERSION.PART` into version and part. Returns `None` for other keys.
fn image_key(pair: &Pair) -> Option<(&str, &str)> {
    let rest = pair.key.strip_prefix("images.")?;
    Some(rest.split_once('.').unwrap_or((rest, "")))
}

/// Returns the value without quotes. Fails if it contains a `${…}` reference.
fn parse_image(pair: &Pair) -> Result<String, ParseError> {
    if pair.value.contains("${") {
        return Err(ParseError {
            problem: format!("{} refers to another value, which is not supported", pair.key),
            offset: pair.offset,
        });
    }
    Ok(pair.value.trim_matches('"').to_owned())
}

/// Images of one version while the file is parsed. Some may be missing.
struct PartialImages {
    offset: usize,
    parts: [(&'static str, Option<String>); 4],
}

impl PartialImages {
    fn new(offset: usize) -> Self {
        let parts = ["istiod", "proxy", "cni", "ztunnel"].map(|name| (name, None));
        Self { offset, parts }
    }

    /// Sets the image of a part. The last value wins; unknown parts are ignored.
    fn set(&mut self, part: &str, image: String) {
        if let Some((_, slot)) = self.parts.iter_mut().find(|(name, _)| *name == part) {
            *slot = Some(image);
        }
    }

    fn finish(self, version: &str) -> Result<Images, ParseError> {
        let offset = self.offset;
        let images = self.parts.map(|(name, image)| {
            image.ok_or_else(|| ParseError {
                problem: format!("missing required key images.{version}.{name}"),
                offset,
            })
        });
        let [istiod, proxy, cni, ztunnel] = images;
        Ok(Images {
            istiod: istiod?,
            proxy: proxy?,
            cni: cni?,
            ztunnel: ztunnel?,
        })
    }
}

/// Maximum length in characters of a line that an error quotes.
const MAX_LINE_LEN: usize = 120;

fn position(text: &str, offset: usize) -> Position {
    let before = text.get(..offset).unwrap_or(text);
    let start = before.rfind('\n').map_or(0, |at| at + 1);
    let rest = text.get(start..).unwrap_or_default();
    Position {
        line: before.matches('\n').count() + 1,
        column: before.get(start..).unwrap_or_default().chars().count() + 1,
        source: rest
            .lines()
            .next()
            .unwrap_or_default()
            .chars()
            .take(MAX_LINE_LEN)
            .collect(),
    }
}

#[cfg(test)]
mod tests;
