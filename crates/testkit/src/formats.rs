//! YAML parsers and formatters in other languages: the Python and npm packages pinned by `tools/formats`,
//! installed in the user's cache directory.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::peer::{PeerError, cache_home, file_error, hash_of, lock, repository_root};

/// Name of these packages in `cargo xtask peers`.
pub const YAML_READERS: &str = "yaml-readers";
/// Files from which the key of the cache entry is computed.
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
    /// Returns the packages, installing them if necessary. A lock ensures that only one process installs
    /// them.
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

    /// Returns the directory of the packages.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.tree
    }

    /// Returns a command that parses its file arguments with `PyYAML`, ruamel, yamllint and jq. It prints
    /// one line of JSON per file and parser.
    #[must_use]
    pub fn python(&self) -> Command {
        let mut command = Command::new("python3");
        command
            .arg(self.tree.join("read.py"))
            .env("PYTHONPATH", self.tree.join("python"));
        command
    }

    /// Returns a command that parses its file arguments with js-yaml 4 and 5. It prints one line of JSON
    /// per file and parser.
    #[must_use]
    pub fn node(&self) -> Command {
        let mut command = Command::new("node");
        command.arg(self.tree.join("read.mjs"));
        command
    }

    /// Returns the command of the formatter prettier.
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
