//! Installs the browser: unpacks the npm package pinned by `tools/chromium` into the user's cache
//! directory, without running code of the package.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::peer::{PeerError, cache_home, file_error, hash_of, lock, repository_root};

/// Name of the browser in tests and in `cargo xtask peers`.
const NAME: &str = "chromium";
/// Environment variable with the path of a browser to use instead of the pinned one.
const BROWSER_PATH: &str = "MAINSTAY_CHROMIUM";
/// Files from which the key of the cache entry is computed.
const SOURCES: [&str; 3] = ["package.json", "package-lock.json", "unpack.mjs"];

/// Returns the path of the browser. Installs the pinned one if it is not cached.
pub fn chromium() -> Result<PathBuf, PeerError> {
    match std::env::var_os(BROWSER_PATH).filter(|path| !path.is_empty()) {
        Some(path) => Ok(PathBuf::from(path)),
        None => fetch_chromium(),
    }
}

/// Returns the path of the pinned browser, installing it if necessary. A lock ensures that only one process
/// installs it.
pub fn fetch_chromium() -> Result<PathBuf, PeerError> {
    let sources = repository_root().join("tools").join(NAME);
    let files = SOURCES.map(|name| sources.join(name));
    let home = cache_home()?
        .join("peers")
        .join(format!("{NAME}-{}", hash_of("", &files)?));
    let tree = home.join("tree");
    let binary = tree.join(NAME);
    if binary.exists() {
        return Ok(binary);
    }
    fs::create_dir_all(&home).map_err(file_error(&home))?;
    let _lock = lock(&home.join("lock"))?;
    if !binary.exists() {
        fetch(&files, &home, &tree)?;
    }
    Ok(binary)
}

fn fetch(sources: &[PathBuf], home: &Path, tree: &Path) -> Result<(), PeerError> {
    let (work, scratch) = (home.join("work"), home.join("tree.new"));
    for directory in [&work, &scratch] {
        let _ = fs::remove_dir_all(directory);
    }
    fs::create_dir_all(&work).map_err(file_error(&work))?;
    for source in sources {
        let copy = work.join(source.file_name().unwrap_or_default());
        fs::copy(source, &copy).map_err(file_error(source))?;
    }
    let quiet = [
        "ci",
        "--ignore-scripts",
        "--no-audit",
        "--no-fund",
        "--loglevel=error",
    ];
    run(Command::new("npm").args(quiet).current_dir(&work))?;
    let mut unpack = Command::new("node");
    unpack.arg("unpack.mjs").args([&scratch, &tree.to_path_buf()]);
    run(unpack.current_dir(&work))?;
    fs::rename(&scratch, tree).map_err(file_error(tree))?;
    let _ = fs::remove_dir_all(&work);
    Ok(())
}

fn run(command: &mut Command) -> Result<(), PeerError> {
    let output = command.output().map_err(PeerError::NoNode)?;
    if output.status.success() {
        return Ok(());
    }
    Err(PeerError::Build {
        name: NAME,
        output: String::from_utf8_lossy(&output.stderr).into_owned(),
    })
}
