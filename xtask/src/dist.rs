//! `cargo xtask dist`: builds the files of a release in `target/dist/files`. Equal sources produce equal
//! bytes.
//!
//! | module | content |
//! |---|---|
//! | `toolchain` | the static binary, built with pinned compilers |
//! | `target`, `elf` | supported machines; recognition of static executables |
//! | `package` | tar, gzip and digests with fixed times and order |
//! | `contents` | manual pages, completions and the archive for a manual installation |
//! | `image` | the operator's image as an archive |
//! | `debian` | the Debian package |
//! | `chart` | the operator's Helm chart |
//! | `bundle` | the bundle for the Operator Lifecycle Manager |
//! | `indexes` | a Homebrew formula and a krew manifest |
//! | `sbom` | the bill of materials |

mod bundle;
mod chart;
mod contents;
mod debian;
mod elf;
mod image;
mod indexes;
mod package;
mod sbom;
mod target;
mod toolchain;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use mainstay_testkit::repository_root;

pub(crate) use self::elf::is_static;
pub(crate) use self::package::{Entry, sha256};
pub(crate) use self::sbom::Packages;
pub(crate) use self::target::Target;
pub(crate) use self::toolchain::Build;

use self::contents::Contents;
use self::image::Image;
use self::indexes::Download;

/// The version that is released.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The image's name after it has been loaded: the default of the chart. No registry serves it.
pub(crate) const IMAGE: &str = "localhost/mainstay";

/// Excludes the simulator from the operator's image.
pub(crate) const OPERATOR_FEATURES: &[&str] = &["--no-default-features"];

/// A package that the operator's image must not contain.
const SIMULATOR: &str = "mainstay-sim";

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Machines to build for; the first must be able to run here
    #[arg(long = "target", value_enum, default_values_t = [Target::X86])]
    targets: Vec<Target>,
    /// Directory of the build [default: target/dist/build]
    #[arg(long, value_name = "DIR")]
    build_directory: Option<PathBuf>,
    /// Directory of the files [default: target/dist/files]
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,
}

/// The binaries of one machine.
pub(crate) struct Binaries {
    /// Machine that the binaries run on.
    pub(crate) target: Target,
    /// The `mainstay` binary with all commands.
    pub(crate) mainstay: Vec<u8>,
    /// The binary for the operator's image, without the simulator.
    pub(crate) operator: Vec<u8>,
}

/// Builds all files and prints their sizes and digests.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let build = arguments.build_directory.clone();
    let build = build.unwrap_or_else(build_directory);
    let output = arguments.output.clone();
    let output = output.unwrap_or_else(|| target_directory().join("dist/files"));
    write(&output, &release(&arguments.targets, &build)?)
}

/// Builds the static `mainstay` of a release for this machine, with all commands, and returns its path.
pub(crate) fn binary() -> anyhow::Result<PathBuf> {
    let build = Build {
        target: Target::host()?,
        root: &repository_root(),
        directory: &std::path::absolute(build_directory())?,
    };
    build.binary(&[])
}

/// Builds the binaries below `directory` and returns all files of a release.
pub(crate) fn release(targets: &[Target], directory: &Path) -> anyhow::Result<Vec<Entry>> {
    crate::charts::run(&crate::charts::Arguments::default())?;
    let (root, directory) = (repository_root(), std::path::absolute(directory)?);
    let mut binaries = Vec::new();
    let mut runnable = None;
    for target in targets {
        let build = Build {
            target: *target,
            root: &root,
            directory: &directory,
        };
        let operator = fs::read(build.binary(OPERATOR_FEATURES)?)?;
        let path = build.binary(&[])?;
        let mainstay = fs::read(&path)?;
        runnable.get_or_insert(path);
        binaries.push(Binaries {
            target: *target,
            mainstay,
            operator,
        });
    }
    files(&binaries, &runnable.context("no target")?)
}

/// Returns all files of a release. `runnable` is a `mainstay` that runs here.
pub(crate) fn files(binaries: &[Binaries], runnable: &Path) -> anyhow::Result<Vec<Entry>> {
    let contents = Contents::generate(runnable)?;
    let mut files = vec![
        Entry::file(chart_name(), chart::package()?),
        Entry::file(bundle_name(), bundle::archive(runnable)?),
    ];
    let mut downloads = Vec::new();
    for one in binaries {
        let archive = contents.archive(one.target, &one.mainstay)?;
        downloads.push(Download {
            target: one.target,
            archive: archive_name(one.target),
            digest: sha256(&archive),
        });
        let bill = contents::bill(one.target, &[])?;
        files.push(Entry::file(archive_name(one.target), archive));
        files.push(Entry::file(format!("{}.cdx.json", base_name(one.target)), bill));
        files.extend(system_packages(one, &contents)?);
    }
    files.push(Entry::file("mainstay.rb", indexes::homebrew(VERSION, &downloads)));
    files.push(Entry::file(
        "mainstay.krew.yaml",
        indexes::krew(VERSION, &downloads),
    ));
    files.sort_by(|a, b| a.path.cmp(&b.path));
    files.push(Entry::file("SHA256SUMS", checksums(&files)));
    Ok(files)
}

/// Returns the Debian package and the operator's image with its bill of materials.
fn system_packages(binaries: &Binaries, contents: &Contents) -> anyhow::Result<[Entry; 3]> {
    let target = binaries.target;
    let packages = Packages::resolve(target, OPERATOR_FEATURES)?;
    ensure!(
        !packages.contains(SIMULATOR),
        "the operator's image contains {SIMULATOR}"
    );
    let image = Image {
        binary: &binaries.operator,
        version: VERSION,
        architecture: target.architecture(),
        reference: &image_reference(),
    };
    let bill = contents::bill(target, OPERATOR_FEATURES)?;
    let debian = debian::package(
        VERSION,
        target.architecture(),
        &contents.system_files(&binaries.mainstay)?,
    )?;
    Ok([
        Entry::file(debian_name(target), debian),
        Entry::file(image_name(target), image.archive()?),
        Entry::file(
            format!("{}.cdx.json", image_name(target).trim_end_matches(".tar")),
            bill,
        ),
    ])
}

/// Replaces `directory` by these files and prints them.
pub(crate) fn write(directory: &Path, files: &[Entry]) -> anyhow::Result<()> {
    if directory.exists() {
        fs::remove_dir_all(directory)?;
    }
    fs::create_dir_all(directory)?;
    for file in files {
        fs::write(directory.join(&file.path), &file.content)?;
        let size = file.content.len() as f64 / f64::from(1 << 20);
        println!("{:>8.2} MiB  {}  {}", size, sha256(&file.content), file.path);
    }
    println!("dist: {}", directory.display());
    Ok(())
}

/// Returns repository and tag of the loaded image.
pub(crate) fn image_reference() -> String {
    format!("{IMAGE}:{VERSION}")
}

fn base_name(target: Target) -> String {
    format!("mainstay-{VERSION}-{}", target.triple())
}

/// Returns the name of the archive for a manual installation.
pub(crate) fn archive_name(target: Target) -> String {
    format!("{}.tar.gz", base_name(target))
}

/// Returns the name of the Debian package.
pub(crate) fn debian_name(target: Target) -> String {
    format!("mainstay_{VERSION}_{}.deb", target.architecture())
}

/// Returns the name of the image's archive.
pub(crate) fn image_name(target: Target) -> String {
    format!("mainstay-{VERSION}-image-{}.tar", target.architecture())
}

/// Returns the name of the chart's archive.
pub(crate) fn chart_name() -> String {
    format!("mainstay-{VERSION}.tgz")
}

/// Returns the name of the bundle's archive.
pub(crate) fn bundle_name() -> String {
    format!("mainstay-{VERSION}-olm-bundle.tar.gz")
}

fn checksums(files: &[Entry]) -> String {
    let line = |file: &Entry| format!("{}  {}\n", sha256(&file.content), file.path);
    files.iter().map(line).collect()
}

/// Returns the default directory of the build of a release.
fn build_directory() -> PathBuf {
    target_directory().join("dist/build")
}

/// Returns the directory of cargo's output.
pub(crate) fn target_directory() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| repository_root().join("target"), PathBuf::from)
}
