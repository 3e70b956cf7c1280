//! Resolves version names to charts and profiles, in layers: embedded charts, the user's catalog, a given
//! directory.

use std::path::PathBuf;

use crate::derive::Files;
use crate::directory::Directory;
use crate::error::CatalogError;
use crate::flavour::Flavour;
use crate::names::{VersionName, VersionState, known_names, nearest_names, parse_latest};
use crate::pack::Pack;
use crate::version::Version;

/// Source of a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// Embedded in the binary.
    Embedded,
    /// In the user's catalog, written by `charts pull`.
    Pulled,
    /// In a directory given by the caller.
    Directory,
}

impl Origin {
    /// Returns the name shown to users.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Embedded => "embedded",
            Self::Pulled => "pulled",
            // Part of the output of `charts list -o json`.
            Self::Directory => "folder",
        }
    }
}

/// An installable version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Installable {
    /// Istio version of the charts.
    pub version: Version,
    /// Layer that contains the version.
    pub origin: Origin,
    /// Aliases that resolve to the version.
    pub aliases: Vec<String>,
    /// Whether the version is used when none is given.
    pub default: bool,
}

/// Change of an alias caused by adding a version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AliasChange {
    /// Alias that changes, for example `v1.29-latest`.
    pub alias: String,
    /// Version that the alias resolves to at present, if any.
    pub current: Option<Version>,
}

/// The installable versions of all layers. A later layer hides the same version of an earlier one.
#[derive(Debug)]
pub struct Catalog {
    embedded: Option<Pack<'static>>,
    directories: Vec<(Origin, Directory)>,
    names: Vec<VersionName>,
    versions: Vec<(Version, Layer)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Layer {
    Embedded,
    Directory(usize),
}

static EMBEDDED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/charts.pack"));

impl Catalog {
    /// Opens the embedded catalog. Reads only a table of contents.
    pub fn embedded() -> Result<Self, CatalogError> {
        let embedded = if EMBEDDED.is_empty() {
            None
        } else {
            Some(Pack::open(EMBEDDED)?)
        };
        Ok(Self::from_pack(embedded))
    }

    fn from_pack(embedded: Option<Pack<'static>>) -> Self {
        let mut versions: Vec<Version> = embedded
            .iter()
            .flat_map(Pack::directories)
            .filter_map(version_in_path)
            .collect();
        versions.sort();
        versions.dedup();
        let versions = versions
            .into_iter()
            .map(|version| (version, Layer::Embedded))
            .collect();
        Self {
            embedded,
            directories: Vec::new(),
            names: known_names(),
            versions,
        }
    }

    /// Adds a directory as the last layer. A directory that does not exist is ignored.
    pub fn with_directory(mut self, origin: Origin, path: impl Into<PathBuf>) -> Result<Self, CatalogError> {
        let directory = Directory(path.into());
        let layer = Layer::Directory(self.directories.len());
        for version in directory.versions()? {
            self.versions.retain(|(known, _)| *known != version);
            self.versions.push((version, layer));
        }
        self.versions.sort_by(|(a, _), (b, _)| a.cmp(b));
        self.directories.push((origin, directory));
        Ok(self)
    }

    /// Returns the installable versions, newest first.
    #[must_use]
    pub fn installable(&self) -> Vec<Installable> {
        let default = self.default_version().ok();
        let describe = |(version, layer): &(Version, Layer)| Installable {
            version: version.clone(),
            origin: self.origin(*layer),
            aliases: self.aliases(version),
            default: default.as_ref() == Some(version),
        };
        self.versions.iter().rev().map(describe).collect()
    }

    /// Returns all known version names in upstream's order.
    #[must_use]
    pub fn names(&self) -> &[VersionName] {
        &self.names
    }

    fn origin(&self, layer: Layer) -> Origin {
        match layer {
            Layer::Embedded => Origin::Embedded,
            Layer::Directory(index) => self
                .directories
                .get(index)
                .map_or(Origin::Directory, |(origin, _)| *origin),
        }
    }

    fn aliases(&self, version: &Version) -> Vec<String> {
        let (major, minor) = version.minor();
        let latest = format!("v{major}.{minor}-latest");
        let listed = self
            .names
            .iter()
            .filter(|name| matches!(name.state, VersionState::Alias(_)) && name.name != latest);
        let listed = listed
            .map(|name| name.name.clone())
            .filter(|name| self.resolve(name).is_ok_and(|found| found == *version));
        let newest = (self.newest_of_minor((major, minor)) == Some(version)).then_some(latest.clone());
        newest.into_iter().chain(listed).collect()
    }

    /// Returns the alias that resolves to `version` after its charts are added, which is the case for the
    /// latest patch of a minor version. Returns `None` if no alias changes.
    #[must_use]
    pub fn alias_change(&self, version: &Version) -> Option<AliasChange> {
        let (major, minor) = version.minor();
        let current = self.newest_of_minor((major, minor));
        let is_newer = |current: &Version| match (version.is_release(), current.is_release()) {
            (true, false) => true,
            (false, true) => false,
            _ => version > current,
        };
        current.is_none_or(is_newer).then(|| AliasChange {
            alias: format!("v{major}.{minor}-latest"),
            current: current.cloned(),
        })
    }

    /// Returns the version to use when none is given: the first pinned version, or else the newest one.
    pub fn default_version(&self) -> Result<Version, CatalogError> {
        let pinned = self.names.iter().find_map(|name| match &name.state {
            VersionState::Pinned(version) if self.contains_version(version) => Some(version),
            _ => None,
        });
        let newest = || self.versions.iter().rev().map(|(version, _)| version);
        let newest = newest()
            .find(|version| version.is_release())
            .or_else(|| newest().next());
        pinned.or(newest).cloned().ok_or(CatalogError::Empty)
    }

    fn contains_version(&self, version: &Version) -> bool {
        self.versions.iter().any(|(known, _)| known == version)
    }

    /// Returns the newest available version with this major and minor number. Releases take precedence over
    /// snapshots.
    fn newest_of_minor(&self, minor: (u64, u64)) -> Option<&Version> {
        let of_minor = || {
            self.versions
                .iter()
                .rev()
                .map(|(version, _)| version)
                .filter(|version| version.minor() == minor)
        };
        of_minor()
            .find(|version| version.is_release())
            .or_else(|| of_minor().next())
    }

    /// Resolves a version or an alias, with or without a leading `v`, to an installable version.
    pub fn resolve(&self, name: &str) -> Result<Version, CatalogError> {
        if let Some(newest) = parse_latest(name).and_then(|minor| self.newest_of_minor(minor)) {
            return Ok(newest.clone());
        }
        let parsed = name.parse::<Version>();
        if let Some(version) = parsed
            .as_ref()
            .ok()
            .filter(|version| self.contains_version(version))
        {
            return Ok(version.clone());
        }
        if self.versions.is_empty() {
            return Err(CatalogError::Empty);
        }
        let bare = |name: &str| name.strip_prefix('v').unwrap_or(name).to_owned();
        let state = self
            .names
            .iter()
            .find(|known| bare(&known.name) == bare(name))
            .map(|known| &known.state);
        match state {
            Some(VersionState::EndOfLife) => Err(self.end_of_life(name)),
            Some(VersionState::Alias(target)) => self.resolve(target),
            Some(VersionState::Pinned(version) | VersionState::Known(version)) => {
                Err(CatalogError::NotAvailable(version.clone()))
            }
            None => {
                let version = parsed.ok();
                let minor = version.as_ref().map(Version::minor).or(parse_latest(name));
                if minor.is_some_and(|minor| self.is_older_than_pinned(minor)) {
                    return Err(self.end_of_life(name));
                }
                Err(self.unknown_version(name, version))
            }
        }
    }

    /// Whether all versions of a minor version have reached their end of life: it is older than the oldest
    /// pinned one.
    fn is_older_than_pinned(&self, minor: (u64, u64)) -> bool {
        let pinned = self.names.iter().filter_map(|name| match &name.state {
            VersionState::Pinned(version) => Some(version.minor()),
            _ => None,
        });
        pinned.min().is_some_and(|oldest| minor < oldest)
    }

    fn end_of_life(&self, name: &str) -> CatalogError {
        CatalogError::EndOfLife {
            name: name.to_owned(),
            oldest: self.versions.first().map(|(version, _)| version.clone()),
        }
    }

    fn unknown_version(&self, name: &str, version: Option<Version>) -> CatalogError {
        let available: Vec<String> = self
            .installable()
            .iter()
            .flat_map(|one| one.aliases.iter().cloned().chain([one.version.name()]))
            .collect();
        CatalogError::UnknownVersion {
            name: name.to_owned(),
            version,
            nearest: nearest_names(name, available.iter().map(String::as_str)),
        }
    }

    /// Returns the chart names of a version, sorted.
    pub fn charts(&self, version: &Version, flavour: Flavour) -> Result<Vec<String>, CatalogError> {
        match self.layer(version)? {
            Layer::Embedded => {
                let prefix = format!("{version}/{flavour}/charts/");
                let packed = self
                    .embedded
                    .iter()
                    .flat_map(Pack::directories)
                    .filter_map(|directory| directory.strip_prefix(&prefix));
                let mut charts: Vec<String> = packed.map(ToOwned::to_owned).collect();
                charts.sort();
                Ok(charts)
            }
            Layer::Directory(index) => self.directory(index)?.list(version, flavour, "charts"),
        }
    }

    /// Returns the profile names of a version, sorted.
    pub fn profiles(&self, version: &Version, flavour: Flavour) -> Result<Vec<String>, CatalogError> {
        let names = match self.layer(version)? {
            Layer::Embedded => self
                .pack()?
                .files(&format!("{version}/{flavour}/profiles"))?
                .into_keys()
                .collect(),
            Layer::Directory(index) => self.directory(index)?.list(version, flavour, "profiles")?,
        };
        let bare = names.iter().filter_map(|name| name.strip_suffix(".yaml"));
        let mut profiles: Vec<String> = bare.map(ToOwned::to_owned).collect();
        profiles.sort();
        Ok(profiles)
    }

    /// Returns the files of a chart by path.
    pub fn chart(&self, version: &Version, flavour: Flavour, chart: &str) -> Result<Files, CatalogError> {
        let charts = self.charts(version, flavour)?;
        if !charts.iter().any(|known| known == chart) {
            return Err(CatalogError::UnknownChart {
                version: version.clone(),
                flavour,
                chart: chart.to_owned(),
                charts,
            });
        }
        match self.layer(version)? {
            Layer::Embedded => self.pack()?.files(&format!("{version}/{flavour}/charts/{chart}")),
            Layer::Directory(index) => {
                self.directory(index)?
                    .files(version, flavour, &format!("charts/{chart}"))
            }
        }
    }

    /// Returns the text of a profile.
    pub fn profile(
        &self,
        version: &Version,
        flavour: Flavour,
        profile: &str,
    ) -> Result<Vec<u8>, CatalogError> {
        let mut files = match self.layer(version)? {
            Layer::Embedded => self.pack()?.files(&format!("{version}/{flavour}/profiles"))?,
            Layer::Directory(index) => self.directory(index)?.files(version, flavour, "profiles")?,
        };
        let unknown = || CatalogError::UnknownProfile {
            version: version.clone(),
            flavour,
            profile: profile.to_owned(),
        };
        files.remove(&format!("{profile}.yaml")).ok_or_else(unknown)
    }

    /// Returns the manifest of an add-on, such as `prometheus` or `extras/zipkin`.
    pub fn addon(&self, version: &Version, addon: &str) -> Result<Vec<u8>, CatalogError> {
        let unknown = || CatalogError::UnknownAddon {
            version: version.clone(),
            addon: addon.to_owned(),
        };
        let flavour = Flavour::Installer;
        let mut files = match self.layer(version)? {
            Layer::Embedded => {
                let directory = format!("{version}/{flavour}/addons");
                let mut packed = self.embedded.iter().flat_map(Pack::directories);
                if !packed.any(|known| known == directory) {
                    return Err(unknown());
                }
                self.pack()?.files(&directory)?
            }
            Layer::Directory(index) => {
                let directory = self.directory(index)?;
                if directory.list(version, flavour, "addons")?.is_empty() {
                    return Err(unknown());
                }
                directory.files(version, flavour, "addons")?
            }
        };
        files.remove(&format!("{addon}.yaml")).ok_or_else(unknown)
    }

    /// Returns the profiles, by file name, of the latest release that is not newer than `version`, or else
    /// of the newest release. Empty if there are no releases.
    pub fn nearest_profiles(&self, version: &Version) -> Result<Files, CatalogError> {
        let mut known = self
            .versions
            .iter()
            .rev()
            .map(|(known, _)| known)
            .filter(|known| known.is_release());
        let newest = known.clone().next();
        match known.find(|known| *known <= version).or(newest) {
            None => Ok(Files::new()),
            Some(near) => match self.layer(near)? {
                Layer::Embedded => self
                    .pack()?
                    .files(&format!("{near}/{}/profiles", Flavour::Installer)),
                Layer::Directory(index) => self.directory(index)?.files(near, Flavour::Installer, "profiles"),
            },
        }
    }

    fn layer(&self, version: &Version) -> Result<Layer, CatalogError> {
        let found = self.versions.iter().find(|(known, _)| known == version);
        found
            .map(|(_, layer)| *layer)
            .ok_or_else(|| CatalogError::NotAvailable(version.clone()))
    }

    fn pack(&self) -> Result<&Pack<'static>, CatalogError> {
        self.embedded.as_ref().ok_or(CatalogError::Empty)
    }

    fn directory(&self, index: usize) -> Result<&Directory, CatalogError> {
        self.directories
            .get(index)
            .map(|(_, directory)| directory)
            .ok_or(CatalogError::Empty)
    }
}

fn version_in_path(directory: &str) -> Option<Version> {
    directory.split('/').next()?.parse().ok()
}

#[cfg(test)]
mod tests;
