//! Flags that select files, settings, profile and charts, and the generation of objects from them.

use std::io::Read;
use std::path::PathBuf;

use mainstay_catalog::{Catalog, Version};
use mainstay_manifest::{
    CatalogPackage, Charts, Diagnostics, GatewayLists, InputFile, InstallationPlan, Object, Package,
    Profiles, Rendered, Request, generate, install_package_path, platform_file,
};

use super::package::DirectoryPackage;
use super::report;
use crate::catalog::{ChartsFlag, version_or_default};
use crate::error::{CliError, Kind};

/// Maximum size of an input file in bytes.
const MAX_BYTES: u64 = 4 << 20;

/// Flags that all commands on `IstioOperator` files share.
#[derive(clap::Args, Debug, Default)]
pub(crate) struct InputFlags {
    /// `IstioOperator` file, `-` for stdin (several: repeat; later files override earlier ones)
    #[arg(short, long, value_name = "FILE")]
    filename: Vec<String>,
    /// Set a field below spec: PATH=VALUE, for example values.global.hub=x or components.cni.enabled=true
    #[arg(short, long, value_name = "PATH=VALUE", allow_hyphen_values = true)]
    set: Vec<String>,
    /// Profile, unless a file or --set names one
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
    /// Namespace of the control plane: short for --set values.global.istioNamespace=NAME
    #[arg(short, long, visible_alias = "istio-namespace", value_name = "NAME")]
    namespace: Option<String>,
    /// Revision of the control plane
    #[arg(short, long, value_name = "NAME")]
    revision: Option<String>,
    /// How lists of gateways in files and profile are combined
    #[arg(long, value_enum, default_value_t = Lists::Merge, value_name = "HOW")]
    gateway_lists: Lists,
    /// Continue in spite of validation errors
    #[arg(long)]
    force: bool,
    /// Kubernetes version that templates see (default: the oldest that this Istio supports)
    #[arg(long, value_name = "VERSION")]
    kube_version: Option<String>,
    #[command(flatten)]
    sources: ChartFlags,
}

/// Flags that select charts and profiles.
#[derive(clap::Args, Clone, Debug, Default)]
pub(crate) struct ChartFlags {
    /// Istio version of charts and profiles
    #[arg(long, value_name = "VERSION")]
    istio_version: Option<String>,
    /// Directory with `charts` and `profiles` of an Istio release
    #[arg(short = 'd', long, value_name = "DIR")]
    manifests: Option<PathBuf>,
    /// Directory with profiles (NAME.yaml), instead of those of the charts
    #[arg(long, value_name = "DIR")]
    profiles: Option<PathBuf>,
    #[command(flatten)]
    charts: ChartsFlag,
}

impl ChartFlags {
    /// Runs `action` on the charts and profiles.
    pub(crate) fn with_charts<T>(
        &self,
        action: impl FnOnce(&Package<'_>) -> Result<T, CliError>,
    ) -> Result<T, CliError> {
        self.open(None)?.with_package(|package, _| action(package))
    }

    /// Generates the objects of one `IstioOperator` file.
    pub(crate) fn generate_file(&self, name: &str, text: Vec<u8>) -> Result<Vec<Object>, CliError> {
        let file = InputFile {
            name: name.to_owned(),
            text,
        };
        let named = install_package_path(std::slice::from_ref(&file), &[]).map(PathBuf::from);
        self.open(named)?.with_package(|package, _| {
            let request = Request {
                files: vec![file],
                sets: Vec::new(),
                revision: None,
                force: false,
                gateway_lists: GatewayLists::default(),
                kube_version: None,
                is_confined: false,
                profiles: package.profiles,
                charts: package.charts,
            };
            let rendered = generate(&request).map_err(|problems| report::failure(&problems))?;
            Ok(rendered.sorted_objects().into_iter().cloned().collect())
        })
    }

    /// Opens charts and profiles; `named` is the package directory from an input file.
    fn open(&self, named: Option<PathBuf>) -> Result<Sources, CliError> {
        let catalog = self.charts.open()?;
        let version = version_or_default(&catalog, self.istio_version.as_deref())?;
        let directory = self.manifests.clone().or(named);
        let open = |path: PathBuf| DirectoryPackage::open(&path, &version);
        Ok(Sources {
            directory: directory.map(open).transpose()?,
            profiles: self
                .profiles
                .clone()
                .map(|path| DirectoryPackage::for_profiles(path, &version))
                .transpose()?,
            catalog,
            version,
        })
    }
}

impl Sources {
    fn with_package<T>(
        &self,
        action: impl FnOnce(&Package<'_>, &Version) -> Result<T, CliError>,
    ) -> Result<T, CliError> {
        let package = CatalogPackage::new(&self.catalog, self.version.clone());
        let charts: &dyn Charts = match &self.directory {
            Some(directory) => directory,
            None => &package,
        };
        let profiles: &dyn Profiles = match (&self.profiles, &self.directory) {
            (Some(directory), _) | (None, Some(directory)) => directory,
            (None, None) => &package,
        };
        action(&Package { charts, profiles }, &self.version)
    }
}

#[derive(Clone, Copy, Debug, Default, clap::ValueEnum)]
enum Lists {
    /// By name, as before Istio 1.24
    #[default]
    Merge,
    /// The last list wins, as in istioctl 1.24 and later
    Replace,
}

/// Sources of charts and profiles.
struct Sources {
    catalog: Catalog,
    directory: Option<DirectoryPackage>,
    profiles: Option<DirectoryPackage>,
    version: mainstay_catalog::Version,
}

impl InputFlags {
    /// Returns the flags that select these files; `force` continues in spite of validation errors.
    pub(crate) fn for_files(filename: Vec<String>, force: bool) -> Self {
        Self {
            filename,
            force,
            ..Self::default()
        }
    }

    /// Opens the catalog and resolves the version of the charts.
    pub(crate) fn catalog(&self) -> Result<(Catalog, mainstay_catalog::Version), CliError> {
        let catalog = self.sources.charts.open()?;
        let version = version_or_default(&catalog, self.sources.istio_version.as_deref())?;
        Ok((catalog, version))
    }

    /// Reads all input files.
    fn read_files(&self) -> Result<Vec<InputFile>, CliError> {
        let stdin = self.filename.iter().position(|name| name == "-");
        if stdin.is_some_and(|at| at + 1 != self.filename.len()) {
            return Err(CliError::new(Kind::Usage, "-f - must be the last file")
                .hint("name `-f -` after the other files"));
        }
        self.filename.iter().map(|name| read_file(name)).collect()
    }

    /// Runs `action` on the request of these flags.
    pub(crate) fn with_request<T>(
        &self,
        action: impl FnOnce(&Request<'_>) -> Result<T, Diagnostics>,
    ) -> Result<T, CliError> {
        let run = |request: &Request<'_>, _: &Version| action(request).map_err(|it| report::failure(&it));
        self.with_package(&ClusterDefaults::default(), run)
    }

    /// Plans an installation on a cluster, prints warnings, and runs `action` on the plan.
    pub(crate) fn plan<T>(
        &self,
        defaults: &ClusterDefaults,
        action: impl FnOnce(InstallationPlan, &Package<'_>) -> Result<T, CliError>,
    ) -> Result<T, CliError> {
        self.with_package(defaults, |request, version| {
            let rendered = generate(request).map_err(|problems| report::failure(&problems))?;
            report::print(&rendered.warnings);
            let package = Package {
                charts: request.charts,
                profiles: request.profiles,
            };
            action(InstallationPlan::new(rendered, &version.to_string()), &package)
        })
    }

    /// Whether neither files nor settings are given.
    pub(crate) fn is_empty(&self) -> bool {
        self.filename.is_empty() && self.set.is_empty() && self.profile.is_none() && self.namespace.is_none()
    }

    /// Returns the settings; an explicit one overrides `--namespace`.
    fn sets(&self) -> Vec<String> {
        let namespace = self.namespace.iter();
        let namespace = namespace.map(|name| format!("values.global.istioNamespace={name}"));
        namespace.chain(self.set.iter().cloned()).collect()
    }

    /// Whether `--force` is given.
    pub(crate) fn is_forced(&self) -> bool {
        self.force
    }

    /// Returns `--revision`.
    pub(crate) fn revision(&self) -> Option<&str> {
        self.revision.as_deref().filter(|revision| !revision.is_empty())
    }

    fn with_package<T>(
        &self,
        defaults: &ClusterDefaults,
        action: impl FnOnce(&Request<'_>, &Version) -> Result<T, CliError>,
    ) -> Result<T, CliError> {
        let mut files: Vec<InputFile> = defaults.stored.iter().cloned().collect();
        files.extend(self.read_files()?);
        if let Some(profile) = &self.profile {
            files.insert(0, profile_file(profile));
        }
        if let Some(platform) = platform_file(&defaults.kube_version) {
            files.insert(0, platform);
        }
        let detected = Some(&defaults.kube_version).filter(|version| !version.is_empty());
        let sets = self.sets();
        let named = install_package_path(&files, &sets).map(PathBuf::from);
        let sources = self.sources.open(named)?;
        sources.with_package(|package, version| {
            let request = Request {
                files,
                sets,
                revision: self.revision.clone(),
                force: self.force,
                gateway_lists: match self.gateway_lists {
                    Lists::Merge => GatewayLists::MergeByName,
                    Lists::Replace => GatewayLists::Replace,
                },
                kube_version: self.kube_version.clone().or_else(|| detected.cloned()),
                is_confined: false,
                profiles: package.profiles,
                charts: package.charts,
            };
            action(&request, version)
        })
    }

    /// Generates the objects for a cluster and prints warnings.
    pub(crate) fn generate(&self, defaults: &ClusterDefaults) -> Result<Rendered, CliError> {
        let run = |request: &Request<'_>, _: &Version| generate(request).map_err(|it| report::failure(&it));
        let rendered = self.with_package(defaults, run)?;
        report::print(&rendered.warnings);
        Ok(rendered)
    }
}

/// Defaults that a cluster determines.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClusterDefaults {
    /// Its version, unless a flag sets one.
    pub(crate) kube_version: String,
    /// The configuration of an earlier installation.
    pub(crate) stored: Option<InputFile>,
}

/// Returns the profile of a flag as a file of the lowest layer, so that other files override it.
fn profile_file(name: &str) -> InputFile {
    let name = mainstay_gostd::quote::quote(name);
    InputFile {
        name: "--profile".into(),
        text: format!("spec: {{profile: {name}}}\n").into_bytes(),
    }
}

/// Reads an input file, `-` for stdin, within the limit.
pub(crate) fn read_file(name: &str) -> Result<InputFile, CliError> {
    let mut text = Vec::new();
    let failed = |error: std::io::Error| {
        CliError::new(Kind::Io, format!("cannot read {name}: {error}"))
            .hint("name an IstioOperator file that exists, or `-` for stdin")
    };
    let count = if name == "-" {
        std::io::stdin().take(MAX_BYTES + 1).read_to_end(&mut text)
    } else {
        let file = std::fs::File::open(name).map_err(failed)?;
        file.take(MAX_BYTES + 1).read_to_end(&mut text)
    };
    let count = count.map_err(failed)?;
    if count as u64 > MAX_BYTES {
        let message = format!("{name} exceeds {MAX_BYTES} bytes");
        return Err(CliError::new(Kind::Config, message).hint("name a smaller file"));
    }
    let name = if name == "-" { "stdin" } else { name };
    Ok(InputFile {
        name: name.to_owned(),
        text,
    })
}
