//! Construction of a [`Chart`] with its subcharts from files in memory, without access to disks or
//! networks.

pub(crate) mod archive;
pub(crate) mod fields;
pub(crate) mod ignore;
pub(crate) mod tar;

use std::collections::BTreeMap;
use std::sync::Arc;

use mainstay_yaml::{Numbers, Options, Value, parse_with};

use crate::budget::budget;
use crate::chart::{Chart, File};
use crate::dialect::Dialect;
use crate::error::{ArchiveError, ChartError};
use crate::metadata::Draft;
use crate::values::load_values;
use crate::warning::Warning;

use archive::{ArchiveLimits, unpack};
use fields::{DecodeError, Decoder};

/// Maximum nesting of subcharts.
const MAX_NESTING: usize = 32;

/// A loaded chart.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The chart with its subcharts.
    pub chart: Chart,
    /// Warnings that Helm writes to stderr.
    pub warnings: Vec<Warning>,
}

/// Creates a chart from its files. Their names are relative to the chart's directory.
pub fn load_files(files: Vec<File>, dialect: Dialect) -> Result<Loaded, ChartError> {
    let mut loader = Loader {
        dialect,
        warnings: Vec::new(),
        limits: ArchiveLimits::default(),
    };
    let chart = loader.load_root(files)?;
    Ok(Loaded {
        chart,
        warnings: loader.warnings,
    })
}

/// Creates a chart from a gzipped tar archive as written by `helm package`.
pub fn load_archive(bytes: &[u8], dialect: Dialect) -> Result<Loaded, ChartError> {
    let mut loader = Loader {
        dialect,
        warnings: Vec::new(),
        limits: ArchiveLimits::default(),
    };
    let files = unpack(bytes, &mut loader.limits)?;
    let chart = loader.load_root(files)?;
    Ok(Loaded {
        chart,
        warnings: loader.warnings,
    })
}

/// Returns the files of a gzipped tar archive with the names that [`load_files`] requires. Helm's rules for
/// names are enforced and all sizes are limited, so that the names are safe to use as paths.
pub fn read_archive(bytes: &[u8]) -> Result<Vec<File>, ArchiveError> {
    unpack(bytes, &mut ArchiveLimits::default())
}

/// State of one load.
struct Loader {
    dialect: Dialect,
    warnings: Vec<Warning>,
    /// Limits that an archive shares with the archives in it.
    limits: ArchiveLimits,
}

/// Files of one chart by purpose.
#[derive(Default)]
struct Parts {
    chart: Chart,
    draft: Option<Draft>,
    templates: Vec<File>,
    files: Vec<File>,
    /// Files of each subchart, by the name of its directory or archive. File names are relative to
    /// `charts/`.
    subcharts: BTreeMap<String, Vec<File>>,
}

impl Loader {
    fn load_root(&mut self, files: Vec<File>) -> Result<Chart, ChartError> {
        if self.dialect.selects_loader_by_api_version() {
            self.check_api_version(&files)?;
        }
        self.load_chart(files, 0)
    }

    fn load_chart(&mut self, files: Vec<File>, depth: usize) -> Result<Chart, ChartError> {
        if depth > MAX_NESTING {
            return Err(ChartError::TooDeep(MAX_NESTING));
        }
        let mut parts = Parts {
            draft: self.read_metadata(&files)?,
            ..Parts::default()
        };
        for file in files {
            self.add_file(&mut parts, file)?;
        }
        let Parts {
            mut chart,
            draft,
            templates,
            files,
            subcharts,
        } = parts;
        chart.metadata = draft.ok_or(ChartError::NoMetadata)?.finish()?;
        chart.templates = templates.into();
        chart.files = files.into();
        for (name, files) in subcharts {
            if !name.starts_with(['_', '.']) {
                let sub = self.load_subchart(&chart.metadata.name, &name, files, depth + 1)?;
                chart.dependencies.push(sub);
            }
        }
        Ok(chart)
    }

    fn read_metadata(&self, files: &[File]) -> Result<Option<Draft>, ChartError> {
        let mut draft = None;
        for file in files.iter().filter(|file| file.name == "Chart.yaml") {
            let draft = draft.get_or_insert_with(Draft::default);
            self.decode_metadata(draft, file)?;
            if draft.metadata.api_version.is_empty() {
                draft.metadata.api_version = "v1".into();
            }
        }
        Ok(draft)
    }

    fn decode_metadata(&self, draft: &mut Draft, file: &File) -> Result<(), ChartError> {
        let value = parse_file(file)?;
        Decoder::new(self.dialect)
            .metadata(draft, &value)
            .map_err(|source| decode_error(file, source))
    }

    fn add_file(&mut self, parts: &mut Parts, file: File) -> Result<(), ChartError> {
        match file.name.as_str() {
            "Chart.yaml" => {}
            "Chart.lock" => self.read_lock(parts, &file)?,
            "values.yaml" => {
                let values = load_values(&file.data, self.dialect);
                let values = values.map_err(|source| ChartError::Values {
                    file: file.name,
                    source,
                })?;
                parts.chart.values = Arc::new(Value::Map(values));
                parts.chart.values_text = Some(file.data);
            }
            "values.schema.json" => parts.chart.schema = Some(file.data),
            "requirements.yaml" => {
                let draft = parts.draft.get_or_insert_with(Draft::default);
                let v1 = draft.metadata.api_version == "v1";
                if !v1 {
                    self.warnings.push(Warning::RequirementsFile);
                }
                self.decode_metadata(draft, &file)?;
                // Checked again, because the file may set `apiVersion`.
                if draft.metadata.api_version == "v1" {
                    parts.files.push(file);
                }
            }
            "requirements.lock" => {
                self.read_lock(parts, &file)?;
                let draft = parts.draft.get_or_insert_with(Draft::default);
                if draft.metadata.api_version == "v1" {
                    parts.files.push(file);
                } else {
                    self.warnings.push(Warning::RequirementsLock);
                }
            }
            name if name.starts_with("templates/") => parts.templates.push(file),
            name if name.starts_with("charts/") && extension(name) != "prov" => add_to_subchart(parts, &file),
            _ => parts.files.push(file),
        }
        Ok(())
    }

    fn check_api_version(&self, files: &[File]) -> Result<(), ChartError> {
        let file = files
            .iter()
            .find(|file| file.name == "Chart.yaml")
            .ok_or(ChartError::NoMetadata)?;
        let value = parse_file(file)?;
        let version = Decoder::new(self.dialect)
            .api_version(&value)
            .map_err(|source| decode_error(file, source))?;
        match version.as_str() {
            "" | "v1" | "v2" => Ok(()),
            "v3" => Err(ChartError::FutureVersion),
            _ => Err(ChartError::UnsupportedVersion),
        }
    }

    fn read_lock(&self, parts: &mut Parts, file: &File) -> Result<(), ChartError> {
        let value = parse_file(file)?;
        let lock = Decoder::new(self.dialect)
            .lock(&value)
            .map_err(|source| decode_error(file, source))?;
        parts.chart.lock = lock;
        Ok(())
    }

    fn load_subchart(
        &mut self,
        chart: &str,
        name: &str,
        files: Vec<File>,
        depth: usize,
    ) -> Result<Chart, ChartError> {
        let loaded = if extension(name) == "tgz" {
            match files.first() {
                Some(file) if file.name == name => {
                    let data = Arc::clone(&file.data);
                    unpack(&data, &mut self.limits)
                        .map_err(ChartError::from)
                        .and_then(|files| self.load_chart(files, depth))
                }
                other => {
                    return Err(ChartError::SubchartArchive {
                        chart: chart.into(),
                        expected: name.into(),
                        got: other.map(|file| file.name.clone()).unwrap_or_default(),
                    });
                }
            }
        } else {
            self.load_chart(
                files.into_iter().filter_map(relative_to_subchart).collect(),
                depth,
            )
        };
        loaded.map_err(|source| ChartError::Subchart {
            name: name.into(),
            chart: chart.into(),
            source: Box::new(source),
        })
    }
}

fn add_to_subchart(parts: &mut Parts, file: &File) {
    let inside = file.name.strip_prefix("charts/").unwrap_or(&file.name);
    let subchart = inside.split('/').next().unwrap_or_default();
    let file = File {
        name: inside.into(),
        data: Arc::clone(&file.data),
    };
    parts.subcharts.entry(subchart.into()).or_default().push(file);
}

/// Removes the first directory from the file's name. Returns `None` for a file outside of a directory,
/// which does not belong to a chart.
fn relative_to_subchart(file: File) -> Option<File> {
    let (_, name) = file.name.split_once('/')?;
    Some(File {
        name: name.into(),
        data: file.data,
    })
}

fn parse_file(file: &File) -> Result<Value, ChartError> {
    let options = Options {
        numbers: Numbers::Exact,
        strict: false,
        budget: budget(),
    };
    parse_with(&file.data, &options).map_err(|source| ChartError::Yaml {
        file: file.name.clone(),
        source: Box::new(source),
    })
}

/// Returns the text after the last dot of the file name.
pub(crate) fn extension(name: &str) -> &str {
    let base = name.rsplit('/').next().unwrap_or(name);
    base.rsplit_once('.').map_or("", |(_, extension)| extension)
}

fn decode_error(file: &File, source: DecodeError) -> ChartError {
    ChartError::Decode {
        file: file.name.clone(),
        source,
    }
}
