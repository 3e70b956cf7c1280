//! The catalog: takes a name of a version, gives what can be installed. Layers: embedded, the user's, a given directory.

use std::path::PathBuf;

use crate::derive::Files;
use crate::directory::Directory;
use crate::error::CatalogError;
use crate::flavour::Flavour;
use crate::names::{VersionName, VersionState, known_names, latest_of, nearest};
use crate::pack::Pack;
use crate::version::Version;

/// Where a version comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// In the binary.
    Embedded,
    /// In the user's catalog, where `charts pull` puts it.
    Pulled,
    /// In a directory the caller named.
    Directory,
}

impl Origin {
    /// One word for tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Embedded => "embedded",
            Self::Pulled => "pulled",
            // Machine-readable output; the value predates the type's name.
            Self::Directory => "folder",
        }
    }
}

/// A version that can be installed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Installable {
    /// Which.
    pub version: Version,
    /// The layer it is taken from.
    pub origin: Origin,
    /// Other names it goes by.
    pub aliases: Vec<String>,
    /// Is it taken when nobody names one?
    pub default: bool,
}

/// What can be installed, over all layers. A later layer hides the same version of an earlier one.
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
    /// What this binary carries. Reads only a table of contents.
    pub fn embedded() -> Result<Self, CatalogError> {
        let embedded = if EMBEDDED.is_empty() {
            None
        } else {
            Some(Pack::open(EMBEDDED)?)
        };
        Ok(Self::over(embedded))
    }

    fn over(embedded: Option<Pack<'static>>) -> Self {
        let mut versions: Vec<Version> = embedded
            .iter()
            .flat_map(Pack::directories)
            .filter_map(version_of)
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

    /// Adds a layer. A directory that does not exist adds nothing.
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

    /// Every version that can be installed, newest first.
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

    /// Every name this build knows and what it stands for, in upstream's order.
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
        let newest = (self.newest((major, minor)) == Some(version)).then_some(latest.clone());
        newest.into_iter().chain(listed).collect()
    }

    /// What is installed when nobody names a version: the first pinned one, or else the newest there is.
    pub fn default_version(&self) -> Result<Version, CatalogError> {
        let pinned = self.names.iter().find_map(|name| match &name.state {
            VersionState::Pinned(version) if self.has(version) => Some(version),
            _ => None,
        });
        let newest = || self.versions.iter().rev().map(|(version, _)| version);
        let newest = newest()
            .find(|version| version.is_release())
            .or_else(|| newest().next());
        pinned.or(newest).cloned().ok_or(CatalogError::Empty)
    }

    fn has(&self, version: &Version) -> bool {
        self.versions.iter().any(|(known, _)| known == version)
    }

    /// The newest version of a minor that is here; releases before snapshots.
    fn newest(&self, minor: (u64, u64)) -> Option<&Version> {
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

    /// The installable version that `name` stands for: a version or an alias, with or without `v`.
    pub fn resolve(&self, name: &str) -> Result<Version, CatalogError> {
        if let Some(newest) = latest_of(name).and_then(|minor| self.newest(minor)) {
            return Ok(newest.clone());
        }
        let spelled = name.parse::<Version>();
        if let Some(version) = spelled.as_ref().ok().filter(|version| self.has(version)) {
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
            Some(VersionState::EndOfLife) => Err(CatalogError::EndOfLife {
                name: name.to_owned(),
                oldest: self.oldest(),
            }),
            Some(VersionState::Alias(target)) => self.resolve(target),
            Some(VersionState::Pinned(version) | VersionState::Known(version)) => {
                Err(CatalogError::NotAvailable(version.clone()))
            }
            None => Err(self.unknown(name, spelled.ok())),
        }
    }

    fn oldest(&self) -> Option<Version> {
        self.versions.first().map(|(version, _)| version.clone())
    }

    fn unknown(&self, name: &str, version: Option<Version>) -> CatalogError {
        let here: Vec<String> = self
            .installable()
            .iter()
            .flat_map(|one| one.aliases.iter().cloned().chain([one.version.name()]))
            .collect();
        CatalogError::UnknownVersion {
            name: name.to_owned(),
            version,
            nearest: nearest(name, here.iter().map(String::as_str)),
        }
    }

    /// The charts of a version, sorted.
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

    /// The profiles of a version, sorted.
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

    /// The files of a chart, by their path in it.
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

    /// The text of a profile.
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

    /// The profiles (by file name) of the version nearest to `version` from below, or else of the newest; none if there are no
    /// versions at all.
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

fn version_of(directory: &str) -> Option<Version> {
    directory.split('/').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pack::pack;

    /// A catalog that embeds one chart `c` (and a profile) in each of these versions.
    fn catalog(versions: &[&str]) -> Catalog {
        let file = |name: &str| Files::from([(name.to_owned(), b"x".to_vec())]);
        let directories = versions.iter().flat_map(|version| {
            [
                (format!("{version}/installer/charts/c"), file("Chart.yaml")),
                (format!("{version}/installer/profiles"), file("p.yaml")),
            ]
        });
        let bytes = pack(&directories.collect::<Vec<_>>());
        Catalog::over(Some(Pack::open(bytes.leak()).unwrap()))
    }

    fn check(catalog: &Catalog, name: &str, expected: Result<&str, (&str, &str)>) {
        let found = catalog.resolve(name).map(|version| version.to_string());
        match (found, expected) {
            (Ok(found), Ok(expected)) => assert_eq!(found, expected, "{name}"),
            (Err(error), Err((message, hint))) => {
                assert_eq!(
                    (
                        error.to_string().as_str(),
                        error.hint().unwrap_or_default().as_str()
                    ),
                    (message, hint),
                    "{name}"
                );
            }
            (found, _) => panic!("{name} gives {found:?}"),
        }
    }

    #[test]
    fn names_and_aliases_resolve_with_or_without_v() {
        let catalog = catalog(&["1.28.2", "1.29.1", "1.31.0-alpha.eed52ebb"]);
        for name in ["1.29.1", "v1.29.1", "v1.29-latest", "1.29-latest"] {
            check(&catalog, name, Ok("1.29.1"));
        }
        check(&catalog, "master", Ok("1.31.0-alpha.eed52ebb"));
        check(&catalog, "v1.31-latest", Ok("1.31.0-alpha.eed52ebb"));
        assert_eq!(catalog.default_version().unwrap().to_string(), "1.29.1");
    }

    #[test]
    fn a_name_that_cannot_be_installed_says_why_and_what_to_do() {
        let catalog = catalog(&["1.28.2", "1.29.1"]);
        check(
            &catalog,
            "v1.23.4",
            Err((
                "Istio version \"v1.23.4\" has reached its end of life and cannot be installed",
                "the oldest that can be installed is 1.28.2",
            )),
        );
        check(
            &catalog,
            "v1.22-latest",
            Err((
                "Istio version \"v1.22-latest\" has reached its end of life and cannot be installed",
                "the oldest that can be installed is 1.28.2",
            )),
        );
        check(
            &catalog,
            "1.30.3",
            Err((
                "the charts of Istio 1.30.3 are not here",
                "`mainstay charts pull 1.30.3` adds them",
            )),
        );
        check(
            &catalog,
            "v1.30-latest",
            Err((
                "the charts of Istio 1.30.3 are not here",
                "`mainstay charts pull 1.30.3` adds them",
            )),
        );
        check(
            &catalog,
            "1.29.7",
            Err((
                "Istio version \"1.29.7\" is not in the catalog",
                "did you mean v1.29.1 or v1.28.2? `mainstay charts pull 1.29.7` adds it if it exists",
            )),
        );
        check(
            &catalog,
            "newest",
            Err((
                "Istio version \"newest\" is not in the catalog",
                "`mainstay charts list` shows what is there.",
            )),
        );
    }

    #[test]
    fn an_empty_catalog_says_which_command_to_run() {
        let empty = Catalog::over(None);
        let hint = "run `cargo xtask charts` and build again, or `mainstay charts pull VERSION`, or name a directory with --charts";
        check(
            &empty,
            "1.29.1",
            Err((
                "there are no charts: this build embeds none, and the catalog is empty",
                hint,
            )),
        );
        assert!(matches!(empty.default_version(), Err(CatalogError::Empty)));
        assert_eq!(empty.installable(), []);
    }

    #[test]
    fn a_newer_patch_takes_the_alias() {
        let catalog = catalog(&["1.29.1", "1.29.3", "1.29.4-rc.1"]);
        check(&catalog, "v1.29-latest", Ok("1.29.3"));
        let shown: Vec<_> = catalog
            .installable()
            .iter()
            .map(|one| format!("{} {:?} {}", one.version, one.aliases, one.default))
            .collect();
        assert_eq!(
            shown,
            [
                "1.29.4-rc.1 [] false",
                "1.29.3 [\"v1.29-latest\"] false",
                "1.29.1 [] true"
            ]
        );
    }

    #[test]
    fn charts_and_profiles_are_found_or_told() {
        let catalog = catalog(&["1.29.1"]);
        let version = catalog.default_version().unwrap();
        assert_eq!(catalog.charts(&version, Flavour::Installer).unwrap(), ["c"]);
        assert_eq!(catalog.profiles(&version, Flavour::Installer).unwrap(), ["p"]);
        assert_eq!(catalog.profile(&version, Flavour::Installer, "p").unwrap(), b"x");
        let error = catalog.chart(&version, Flavour::Installer, "d").unwrap_err();
        assert_eq!(
            (error.to_string().as_str(), error.hint().as_deref()),
            (
                "Istio 1.29.1 has no chart \"d\" for the installer",
                Some("it has c")
            )
        );
        let error = catalog.profile(&version, Flavour::Installer, "../p").unwrap_err();
        assert_eq!(
            error.to_string(),
            "Istio 1.29.1 has no profile \"../p\" for the installer"
        );
    }
}
