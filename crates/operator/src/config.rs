//! The operator's configuration file: takes its text, gives the images of each version. Knows neither cluster nor flags.
//!
//! It is what Kubernetes writes when it dumps a pod's annotations into a file, so keys of others are passed over:
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

/// Where it is unless a flag says otherwise.
pub const DEFAULT_FILE: &str = "/etc/sail-operator/config.properties";
/// More than that is no configuration.
const MOST_BYTES: u64 = 1 << 20;

/// Images by version (`v1.29.1`).
pub type ImagesByVersion = BTreeMap<String, Images>;

/// Why a configuration was refused.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file.
    #[error("unable to read config file at {}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// A line of it.
    #[error("unable to read config file at {}: {what}", path.display())]
    Line {
        /// Which.
        path: PathBuf,
        /// What is wrong.
        what: String,
        /// Where.
        at: Spot,
    },
}

/// A place in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spot {
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1.
    pub column: usize,
    /// What stands on the line, cut where it gets long.
    pub source: String,
}

/// What is wrong with a text, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    what: String,
    /// In bytes.
    offset: usize,
}

/// Reads the file. Unless `named` by somebody it may be missing.
pub fn read(path: &Path, named: bool) -> Result<ImagesByVersion, ConfigError> {
    let bytes = match read_bytes(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound && !named => return Ok(BTreeMap::new()),
        Err(source) => {
            let path = path.to_owned();
            return Err(ConfigError::Read { path, source });
        }
    };
    let text = String::from_utf8_lossy(&bytes);
    parse(&text).map_err(|fault| ConfigError::Line {
        path: path.to_owned(),
        at: spot(&text, fault.offset),
        what: fault.what,
    })
}

fn read_bytes(path: &Path) -> io::Result<Vec<u8>> {
    use io::Read as _;
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path)?;
    file.take(MOST_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "more than 1 MiB"));
    }
    Ok(bytes)
}

/// The images a text names.
pub(crate) fn parse(text: &str) -> Result<ImagesByVersion, Fault> {
    let mut drafts = BTreeMap::<String, Draft>::new();
    for pair in Properties::new(text) {
        let pair = pair?;
        let Some((version, part)) = image_key(&pair) else {
            continue;
        };
        let draft = drafts
            .entry(version.to_owned())
            .or_insert_with(|| Draft::at(pair.offset));
        draft.take(part, image(&pair)?);
    }
    drafts
        .into_iter()
        .map(|(version, draft)| Ok((version.replace('_', "."), draft.finish(&version)?)))
        .collect()
}

/// Version and part of `images.VERSION.PART`.
fn image_key(pair: &Pair) -> Option<(&str, &str)> {
    let rest = pair.key.strip_prefix("images.")?;
    Some(rest.split_once('.').unwrap_or((rest, "")))
}

/// Without the quotes around it.
fn image(pair: &Pair) -> Result<String, Fault> {
    if pair.value.contains("${") {
        return Err(Fault {
            what: format!("{} refers to another value, which is not supported", pair.key),
            offset: pair.offset,
        });
    }
    Ok(pair.value.trim_matches('"').to_owned())
}

/// The images of one version as far as they were read.
struct Draft {
    offset: usize,
    parts: [(&'static str, Option<String>); 4],
}

impl Draft {
    fn at(offset: usize) -> Self {
        let parts = ["istiod", "proxy", "cni", "ztunnel"].map(|name| (name, None));
        Self { offset, parts }
    }

    /// The last of two wins; parts nobody knows are passed over.
    fn take(&mut self, part: &str, image: String) {
        if let Some((_, place)) = self.parts.iter_mut().find(|(name, _)| *name == part) {
            *place = Some(image);
        }
    }

    fn finish(self, version: &str) -> Result<Images, Fault> {
        let offset = self.offset;
        let whole = self.parts.map(|(name, image)| {
            image.ok_or_else(|| Fault {
                what: format!("missing required key images.{version}.{name}"),
                offset,
            })
        });
        let [istiod, proxy, cni, ztunnel] = whole;
        Ok(Images {
            istiod: istiod?,
            proxy: proxy?,
            cni: cni?,
            ztunnel: ztunnel?,
        })
    }
}

/// As much of a line as is shown.
const MOST_SHOWN: usize = 120;

fn spot(text: &str, offset: usize) -> Spot {
    let before = text.get(..offset).unwrap_or(text);
    let start = before.rfind('\n').map_or(0, |at| at + 1);
    let rest = text.get(start..).unwrap_or_default();
    Spot {
        line: before.matches('\n').count() + 1,
        column: before.get(start..).unwrap_or_default().chars().count() + 1,
        source: rest
            .lines()
            .next()
            .unwrap_or_default()
            .chars()
            .take(MOST_SHOWN)
            .collect(),
    }
}

#[cfg(test)]
mod tests;
