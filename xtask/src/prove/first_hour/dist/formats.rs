//! Verifies each format with the tool that reads it.

#![allow(clippy::indexing_slicing, reason = "a missing key of a JSON value is null")]

use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, ensure};
use mainstay_testkit::{peer, repository_root};
use mainstay_yaml::{Budget, parse};

use super::release::{Release, TARGET, run};
use crate::dist::{self, OPERATOR_FEATURES, Packages, sha256};

/// Checks that packaging the same input twice produces equal files.
pub(super) fn equal_files(release: &Release) -> anyhow::Result<(String, bool)> {
    let again = release.again()?;
    let equal = release.files.iter().zip(&again).filter(|(one, other)| {
        let is_equal = one.path == other.path && one.content == other.content;
        if !is_equal {
            println!("differs: {}", one.path);
        }
        is_equal
    });
    let (equal, total) = (equal.count(), release.files.len().max(again.len()));
    Ok((format!("{equal} of {total}"), equal == total))
}

/// Runs a command of the peer `packaging`, which reads a file with upstream libraries, and returns the
/// printed lines.
fn run_validator(command: &str, path: &Path) -> anyhow::Result<Vec<String>> {
    let output = run(Command::new(peer("packaging")?).arg(command).arg(path))?;
    let text = String::from_utf8(output.stdout)?;
    println!("{text}");
    Ok(text.lines().map(ToOwned::to_owned).collect())
}

/// Checks the links of the pages in the archive.
pub(super) fn links(release: &Release) -> anyhow::Result<(String, bool)> {
    let archive = dist::archive_name(TARGET);
    let pages = entries(&release.path(&archive))?;
    let pages = pages
        .keys()
        .filter(|path| Path::new(path).extension().is_some_and(|ending| ending == "md"))
        .count();
    let directory = release.unpack(&archive)?;
    let dead = crate::tidy::check_links(directory.path())?;
    for link in &dead {
        println!("{link}");
    }
    let holds = pages > 20 && dead.is_empty();
    Ok((format!("{pages} pages, {} dead links", dead.len()), holds))
}

pub(super) fn image(release: &Release) -> anyhow::Result<(String, bool)> {
    let path = release.path(&dist::image_name(TARGET));
    let lines = run_validator("image", &path)?;
    let reference = dist::image_reference();
    let is_read = lines.len() == 2 && lines.iter().all(|line| line.contains(&reference));
    let (content, holds) = image_content(&path)?;
    Ok((format!("{}; {content}", lines.join("; ")), is_read && holds))
}

/// Labels that the image must have.
const LABELS: [&str; 5] = ["title", "description", "version", "licenses", "source"];
/// Path of the CA certificates, which Rust's TLS library reads.
const CERTIFICATES: &str = "etc/ssl/certs/ca-certificates.crt";

/// Checks the image's user, labels and CA certificates.
fn image_content(path: &Path) -> anyhow::Result<(String, bool)> {
    let archive = entries_of(fs::File::open(path)?)?;
    let blob = |path: &serde_json::Value| {
        let path = path.as_str().context("a path of a blob")?;
        archive.get(path).with_context(|| format!("no {path}"))
    };
    let manifest = archive.get("manifest.json").context("no manifest.json")?;
    let manifest: serde_json::Value = serde_json::from_slice(manifest)?;
    let config: serde_json::Value = serde_json::from_slice(blob(&manifest[0]["Config"])?)?;
    let config = &config["config"];
    let layer = blob(&manifest[0]["Layers"][0])?;
    let files = entries_of(flate2::read::GzDecoder::new(layer.as_slice()))?;
    let label = |name: &&str| {
        let label = config["Labels"][format!("org.opencontainers.image.{name}")].as_str();
        label.is_some_and(|value| !value.is_empty() && (*name != "version" || value == dist::VERSION))
    };
    let labels = LABELS.iter().filter(|name| label(name)).count();
    let user = config["User"].as_str().unwrap_or_default();
    let certificates = files
        .get(CERTIFICATES)
        .map(|bytes| String::from_utf8_lossy(bytes));
    let certificates = certificates.map_or(0, |text| text.matches("-----BEGIN CERTIFICATE-----").count());
    let variable = serde_json::json!(format!("SSL_CERT_FILE=/{CERTIFICATES}"));
    let is_set = config["Env"]
        .as_array()
        .is_some_and(|all| all.contains(&variable));
    let figure = format!("user {user}, {labels} labels, {certificates} CA certificates");
    let holds = user == "65532:65532" && labels == LABELS.len() && certificates > 100 && is_set;
    Ok((figure, holds))
}

pub(super) fn bundle(release: &Release) -> anyhow::Result<(String, bool)> {
    let directory = release.unpack(&dist::bundle_name())?;
    let lines = run_validator("bundle", &directory.path().join("bundle"))?;
    let last = lines.last().context("no output")?.clone();
    let holds = last.contains(", 0 errors, ");
    Ok((last, holds))
}

/// Compares entries with those of `helm package`, which prints `Chart.yaml` again.
pub(super) fn chart(release: &Release) -> anyhow::Result<(String, bool)> {
    let ours = entries(&release.path(&dist::chart_name()))?;
    let mut equal = 0;
    for helm in ["helm3", "helm4"] {
        let scratch = tempfile::tempdir()?;
        let helm = peer(helm)?;
        let mut package = Command::new(&helm);
        package.arg("package").arg(repository_root().join("deploy/chart"));
        run(package.arg("--destination").arg(scratch.path()))?;
        run(Command::new(&helm)
            .arg("lint")
            .arg(release.path(&dist::chart_name())))?;
        let theirs = entries(&scratch.path().join(dist::chart_name()))?;
        ensure!(
            ours.keys().eq(theirs.keys()),
            "entries differ: {:?} and {:?}",
            ours.keys(),
            theirs.keys()
        );
        equal += ours
            .iter()
            .filter(|(path, bytes)| is_equal(path, bytes, &theirs))
            .count();
    }
    Ok((
        format!("{equal} of {} entries", 2 * ours.len()),
        equal == 2 * ours.len(),
    ))
}

fn is_equal(path: &str, bytes: &[u8], others: &BTreeMap<String, Vec<u8>>) -> bool {
    let Some(other) = others.get(path) else {
        return false;
    };
    let value = |text: &[u8]| parse(text, &Budget::default()).ok();
    let is_metadata = path.ends_with("/Chart.yaml");
    bytes == other || (is_metadata && value(bytes).is_some() && value(bytes) == value(other))
}

/// Returns the files of a compressed archive by path.
fn entries(path: &Path) -> anyhow::Result<BTreeMap<String, Vec<u8>>> {
    let file = fs::File::open(path).with_context(|| path.display().to_string())?;
    entries_of(flate2::read::GzDecoder::new(file))
}

/// Returns the files of an archive by path.
fn entries_of(archive: impl std::io::Read) -> anyhow::Result<BTreeMap<String, Vec<u8>>> {
    let mut archive = tar::Archive::new(archive);
    let mut entries = BTreeMap::new();
    for entry in archive.entries()? {
        let mut entry = entry?;
        if entry.header().entry_type().is_file() {
            let mut content = Vec::new();
            entry.read_to_end(&mut content)?;
            entries.insert(entry.path()?.display().to_string(), content);
        }
    }
    Ok(entries)
}

/// Installs the package into an empty root directory and removes it.
pub(super) fn debian(release: &Release) -> anyhow::Result<(String, bool)> {
    let root = tempfile::tempdir()?;
    let database = root.path().join("var/lib/dpkg");
    for directory in ["info", "updates", "triggers"] {
        fs::create_dir_all(database.join(directory))?;
    }
    for file in ["status", "available"] {
        fs::write(database.join(file), "")?;
    }
    let dpkg = |arguments: &[&str]| {
        let mut command = Command::new("dpkg");
        command.arg(format!("--root={}", root.path().display()));
        run(command
            .args(["--force-not-root", "--log=/dev/null"])
            .args(arguments))
    };
    let package = release.path(&dist::debian_name(TARGET)).display().to_string();
    dpkg(&["--install", &package])?;
    let installed = String::from_utf8(dpkg(&["--listfiles", "mainstay"])?.stdout)?;
    let is_file = |path: &&str| root.path().join(path.trim_start_matches('/')).is_file();
    let files = installed.lines().filter(is_file).count();
    let expected = ["usr/bin/mainstay", "usr/share/man/man1/mainstay.1.gz"];
    let complete = expected.iter().all(|path| root.path().join(path).is_file());
    dpkg(&["--purge", "mainstay"])?;
    let rest = installed.lines().filter(is_file).count();
    Ok((
        format!("{files} files installed, {rest} left"),
        complete && files > 20 && rest == 0,
    ))
}

pub(super) fn packages(release: &Release) -> anyhow::Result<(String, bool)> {
    let all = Packages::resolve(TARGET, &[])?;
    let operator = Packages::resolve(TARGET, OPERATOR_FEATURES)?;
    let simulators = ["mainstay-sim", "mainstay-rehearsal", "mainstay-harness"];
    let absent = simulators
        .iter()
        .all(|name| all.contains(name) && !operator.contains(name));
    let bill = dist::image_name(TARGET).replace(".tar", ".cdx.json");
    let bill: serde_json::Value = serde_json::from_slice(&fs::read(release.path(&bill))?)?;
    let listed = bill["dependencies"].as_array().map_or(0, Vec::len);
    let sums = fs::read_to_string(release.path("SHA256SUMS"))?;
    let summed = |file: &dist::Entry| {
        file.path == "SHA256SUMS" || sums.contains(&format!("{}  {}\n", sha256(&file.content), file.path))
    };
    let size = fs::metadata(release.path(&dist::image_name(TARGET)))?.len() as f64 / f64::from(1 << 20);
    let figure = format!(
        "{} of {} packages, {listed} in the bill, image {size:.1} MiB",
        operator.count(),
        all.count()
    );
    let holds = absent && listed == operator.count() && release.files.iter().all(summed);
    Ok((figure, holds))
}
