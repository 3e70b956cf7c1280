//! YAML readers and formatters of other languages: the Python and npm packages pinned by `tools/formats`, in
//! the user's cache directory.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::peer::{PeerError, cache_home, file_error, hash_of, lock, repository_root};

/// Name used by `cargo xtask peers`.
pub const YAML_READERS: &str = "yaml-readers";
/// Files that determine the hash of the cache entry.
const SOURCES: [&str; 5] = [
    "package.json",
    "package-lock.json",
    "requirements.txt",
    "read.py",
    "read.mjs",
];

/// The installed packages.
#[derive(Debug)]
pub struct YamlReaders {
    tree: PathBuf,
}

impl YamlReaders {
    /// Returns the packages. The first process installs them; others wait for the lock.
    pub fn fetch() -> Result<Self, PeerError> {
        let sources = repository_root().join("tools/formats");
        let files = SOURCES.map(|name| sources.join(name));
        let home = cache_home()?
            .join("peers")
            .join(format!("{YAML_READERS}-{}", hash_of("", &files)?));
        let tree = home.join("tree");
        if !tree.exists() {
            fs::create_dir_all(&home).map_err(file_error(&home))?;
            let _lock = lock(&home.join("lock"))?;
            if !tree.exists() {
                install(&files, &home.join("tree.new"), &tree)?;
            }
        }
        Ok(Self { tree })
    }

    /// The directory of the packages.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.tree
    }

    /// `PyYAML`, ruamel, yamllint and jq: one line of JSON per file argument and reader.
    #[must_use]
    pub fn python(&self) -> Command {
        let mut command = Command::new("python3");
        command
            .arg(self.tree.join("read.py"))
            .env("PYTHONPATH", self.tree.join("python"));
        command
    }

    /// js-yaml 4 and 5: one line of JSON per file argument and reader.
    #[must_use]
    pub fn node(&self) -> Command {
        let mut command = Command::new("node");
        command.arg(self.tree.join("read.mjs"));
        command
    }

    /// The formatter prettier.
    #[must_use]
    pub fn prettier(&self) -> Command {
        let mut command = Command::new("node");
        command.arg(self.tree.join("node_modules/prettier/bin/prettier.cjs"));
        command
    }
}

fn install(sources: &[PathBuf], scratch: &Path, tree: &Path) -> Result<(), PeerError> {
    let _ = fs::remove_dir_all(scratch);
    fs::create_dir_all(scratch).map_err(file_error(scratch))?;
    for source in sources {
        let copy = scratch.join(source.file_name().unwrap_or_default());
        fs::copy(source, &copy).map_err(file_error(source))?;
    }
    let npm = [
        "ci",
        "--ignore-scripts",
        "--no-audit",
        "--no-fund",
        "--loglevel=error",
    ];
    run(Command::new("npm").args(npm).current_dir(scratch))?;
    let pip = [
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--only-binary=:all:",
        "--require-hashes",
        "--target=python",
        "--requirement=requirements.txt",
    ];
    run(Command::new("python3").args(pip).current_dir(scratch))?;
    fs::rename(scratch, tree).map_err(file_error(tree))
}

fn run(command: &mut Command) -> Result<(), PeerError> {
    let failed = |output| PeerError::Fetch {
        name: YAML_READERS,
        output,
    };
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command
        .output()
        .map_err(|error| failed(format!("{program} could not be started: {error}")))?;
    if output.status.success() {
        return Ok(());
    }
    Err(failed(String::from_utf8_lossy(&output.stderr).into_owned()))
}
