//! A directory with the `charts` and `profiles` of an Istio release, in upstream's layout.

use std::fs;
use std::path::{Path, PathBuf};

use mainstay_catalog::Version;
use mainstay_catalog::derive::Files;
use mainstay_manifest::{Charts, Minor, PackageError, Profiles};

use crate::error::{CliError, Kind};

/// Charts and their directories in an Istio release.
const CHARTS: &[(&str, &str)] = &[
    ("base", "base"),
    ("istiod", "istio-control/istio-discovery"),
    ("istio-ingress", "gateways/istio-ingress"),
    ("istio-egress", "gateways/istio-egress"),
    ("cni", "istio-cni"),
    ("ztunnel", "ztunnel"),
    ("default", "default"),
];

/// Maximum number of files of a chart.
const MAX_FILES: usize = 2000;

/// Maximum size of a file in bytes.
const MAX_BYTES: u64 = 16 << 20;

/// A directory with charts and profiles.
#[derive(Debug)]
pub(crate) struct DirectoryPackage {
    charts: PathBuf,
    profiles: PathBuf,
    minor: Minor,
}

impl DirectoryPackage {
    /// Opens a directory that contains `charts` and `profiles`.
    pub(crate) fn open(path: &Path, version: &Version) -> Result<Self, CliError> {
        if !path.join("charts").is_dir() {
            let message = format!("{}: no directory `charts`", path.display());
            let hint = "name the directory `manifests` of an Istio release";
            return Err(CliError::new(Kind::Chart, message).hint(hint));
        }
        Ok(Self::new(path.join("charts"), path.join("profiles"), version))
    }

    /// Opens a directory of profiles.
    pub(crate) fn for_profiles(path: PathBuf, version: &Version) -> Result<Self, CliError> {
        if !path.is_dir() {
            let message = format!("--profiles {}: no such directory", path.display());
            return Err(CliError::new(Kind::Usage, message).hint("name a directory with NAME.yaml files"));
        }
        Ok(Self::new(PathBuf::new(), path, version))
    }

    fn new(charts: PathBuf, profiles: PathBuf, version: &Version) -> Self {
        let (major, minor) = version.minor();
        Self {
            charts,
            profiles,
            minor: Minor { major, minor },
        }
    }
}

impl Profiles for DirectoryPackage {
    fn profile_names(&self) -> Result<Vec<String>, PackageError> {
        let failed = |error| read_error("profile", "", error);
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.profiles).map_err(failed)? {
            let name = entry.map_err(failed)?.file_name();
            let name = name.to_string_lossy();
            names.extend(name.strip_suffix(".yaml").map(ToOwned::to_owned));
        }
        names.sort();
        Ok(names)
    }

    fn profile(&self, name: &str) -> Result<Vec<u8>, PackageError> {
        read_file(&self.profiles.join(format!("{name}.yaml")), "profile", name)
    }
}

impl Charts for DirectoryPackage {
    fn minor(&self) -> Minor {
        self.minor
    }

    fn chart(&self, name: &str) -> Result<Files, PackageError> {
        let known = CHARTS.iter().find(|(known, _)| *known == name);
        let top = known.map(|(_, path)| self.charts.join(path));
        let top = top
            .filter(|path| path.is_dir())
            .ok_or_else(|| PackageError::NotFound {
                kind: "chart",
                name: name.to_owned(),
            })?;
        let mut files = Files::new();
        read_tree(&top, name, &mut files)?;
        Ok(files)
    }

    /// Reads an add-on from `samples`, which a release has next to `manifests`.
    fn addon(&self, name: &str) -> Result<Vec<u8>, PackageError> {
        let release = self.charts.parent().unwrap_or(&self.charts).join("..");
        read_file(
            &release.join("samples/addons").join(format!("{name}.yaml")),
            "add-on",
            name,
        )
    }
}

/// Reads all files below `top`; links are not followed.
fn read_tree(top: &Path, chart: &str, files: &mut Files) -> Result<(), PackageError> {
    let failed = |error| read_error("chart", chart, error);
    let mut open = vec![top.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(&directory).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let path = entry.path();
            if entry.file_type().map_err(failed)?.is_dir() {
                open.push(path);
                continue;
            }
            let name = path.strip_prefix(top).unwrap_or(&path).to_string_lossy();
            let name = name.replace(std::path::MAIN_SEPARATOR, "/");
            files.insert(name, read_file(&path, "chart", chart)?);
            if files.len() > MAX_FILES {
                return Err(failed(std::io::Error::other(format!(
                    "more than {MAX_FILES} files"
                ))));
            }
        }
    }
    Ok(())
}

fn read_file(path: &Path, kind: &'static str, name: &str) -> Result<Vec<u8>, PackageError> {
    let not_found = || PackageError::NotFound {
        kind,
        name: name.to_owned(),
    };
    let failed = |error| read_error(kind, name, error);
    let length = match fs::symlink_metadata(path) {
        Ok(found) if found.is_file() => found.len(),
        Ok(_) => return Err(failed(std::io::Error::other("not a regular file"))),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Err(not_found()),
        Err(error) => return Err(failed(error)),
    };
    if length > MAX_BYTES {
        return Err(failed(std::io::Error::other(format!(
            "exceeds {MAX_BYTES} bytes"
        ))));
    }
    fs::read(path).map_err(failed)
}

fn read_error(kind: &'static str, name: &str, error: std::io::Error) -> PackageError {
    PackageError::Read {
        kind,
        name: name.to_owned(),
        source: Box::new(error),
    }
}
