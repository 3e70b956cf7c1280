//! Location of the sandbox's kubeconfig; the file is removed on drop.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Read as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use mainstay_sim::serve::KUBECONFIG_HEADER;

use crate::error::{CliError, Kind};

/// A kubeconfig file that is removed on drop.
pub(super) struct KubeconfigFile {
    path: PathBuf,
    directory: Option<PathBuf>,
}

impl KubeconfigFile {
    /// Uses the given path, or a new directory with mode 0700.
    pub(super) fn create(path: Option<&Path>) -> Result<Self, CliError> {
        match path {
            Some(path) => Self::at(path),
            None => Self::new_directory(),
        }
    }

    /// Returns the path of the kubeconfig.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Creates a kubeconfig at `path`. Only a file of an earlier sandbox is replaced.
    fn at(path: &Path) -> Result<Self, CliError> {
        if path.symlink_metadata().is_ok() {
            if !is_ours(path) {
                let text = format!("{} exists and was not written by a sandbox", path.display());
                return Err(CliError::new(Kind::Usage, text)
                    .hint("choose a new file: a sandbox does not overwrite other kubeconfigs"));
            }
            fs::remove_file(path)?;
        }
        Ok(Self {
            path: std::path::absolute(path)?,
            directory: None,
        })
    }

    fn new_directory() -> Result<Self, CliError> {
        let base = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
        let base = base
            .filter(|base| base.is_dir())
            .unwrap_or_else(std::env::temp_dir);
        let directory = (0..100).map(|number| {
            let directory = base.join(format!("mainstay-sandbox-{}-{number}", std::process::id()));
            DirBuilder::new()
                .mode(0o700)
                .create(&directory)
                .map(|()| directory)
                .map_err(|error| (base.join("mainstay-sandbox-…"), error))
        });
        let mut failed = None;
        for made in directory {
            match made {
                Ok(directory) => {
                    return Ok(Self {
                        path: directory.join("kubeconfig"),
                        directory: Some(directory),
                    });
                }
                Err((_, error)) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => {
                    failed = Some(error);
                    break;
                }
            }
        }
        let text = failed.map_or_else(
            || format!("no free directory name in {}", base.display()),
            |(path, error)| format!("cannot create {}: {error}", path.display()),
        );
        Err(CliError::new(Kind::Io, text).hint("choose another location with --kubeconfig"))
    }
}

fn is_ours(path: &Path) -> bool {
    let mut start = vec![0; KUBECONFIG_HEADER.len()];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut start));
    read.is_ok() && start == KUBECONFIG_HEADER.as_bytes()
}

impl Drop for KubeconfigFile {
    fn drop(&mut self) {
        if is_ours(&self.path) {
            let _ = fs::remove_file(&self.path);
        }
        if let Some(directory) = &self.directory {
            let _ = fs::remove_dir(directory);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_of_a_sandbox_are_replaced_and_removed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("config");
        fs::write(&path, "apiVersion: v1\n").unwrap();
        let rejected = KubeconfigFile::create(Some(&path)).err().unwrap();
        assert_eq!(
            rejected.message(),
            format!("{} exists and was not written by a sandbox", path.display())
        );
        assert!(path.exists());
        fs::write(&path, format!("{KUBECONFIG_HEADER}\n")).unwrap();
        let kubeconfig = KubeconfigFile::create(Some(&path)).unwrap();
        assert!(!path.exists(), "the old file is removed");
        fs::write(kubeconfig.path(), "another file").unwrap();
        drop(kubeconfig);
        assert!(path.exists(), "not written by the sandbox");
    }

    #[test]
    fn a_created_directory_is_removed() {
        let kubeconfig = KubeconfigFile::create(None).unwrap();
        fs::write(kubeconfig.path(), KUBECONFIG_HEADER).unwrap();
        let directory = kubeconfig.path().parent().unwrap().to_owned();
        assert!(directory.exists());
        drop(kubeconfig);
        assert!(!directory.exists());
    }
}
