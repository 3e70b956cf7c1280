//! Where the sandbox's kubeconfig lives: takes a wish, gives a path that is free, and cleans up when dropped.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Read as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use mainstay_sim::serve::KUBECONFIG_HEADER;

use crate::error::{CliError, Kind};

/// A place for one kubeconfig; it vanishes with this.
pub(super) struct Home {
    path: PathBuf,
    folder: Option<PathBuf>,
}

impl Home {
    /// The place asked for, else a new folder that only the user may enter.
    pub(super) fn choose(wish: Option<&Path>) -> Result<Self, CliError> {
        match wish {
            Some(path) => Self::at(path),
            None => Self::new_folder(),
        }
    }

    /// The kubeconfig.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// What an earlier sandbox left behind may be replaced, nothing else.
    fn at(path: &Path) -> Result<Self, CliError> {
        if path.symlink_metadata().is_ok() {
            if !is_ours(path) {
                let text = format!("{} exists and is not a sandbox's", path.display());
                return Err(CliError::new(Kind::Usage, text)
                    .hint("name a new file: a sandbox never replaces a kubeconfig of yours"));
            }
            fs::remove_file(path)?;
        }
        Ok(Self {
            path: std::path::absolute(path)?,
            folder: None,
        })
    }

    fn new_folder() -> Result<Self, CliError> {
        let base = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
        let base = base
            .filter(|base| base.is_dir())
            .unwrap_or_else(std::env::temp_dir);
        let folder = (0..100).map(|number| {
            let folder = base.join(format!("mainstay-sandbox-{}-{number}", std::process::id()));
            DirBuilder::new()
                .mode(0o700)
                .create(&folder)
                .map(|()| folder)
                .map_err(|error| (base.join("mainstay-sandbox-…"), error))
        });
        let mut failed = None;
        for made in folder {
            match made {
                Ok(folder) => {
                    return Ok(Self {
                        path: folder.join("kubeconfig"),
                        folder: Some(folder),
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
            || format!("no free folder in {}", base.display()),
            |(path, error)| format!("cannot make {}: {error}", path.display()),
        );
        Err(CliError::new(Kind::Io, text).hint("--kubeconfig PATH names another place"))
    }
}

fn is_ours(path: &Path) -> bool {
    let mut start = vec![0; KUBECONFIG_HEADER.len()];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut start));
    read.is_ok() && start == KUBECONFIG_HEADER.as_bytes()
}

impl Drop for Home {
    fn drop(&mut self) {
        if is_ours(&self.path) {
            let _ = fs::remove_file(&self.path);
        }
        if let Some(folder) = &self.folder {
            let _ = fs::remove_dir(folder);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_sandbox_wrote_is_replaced_and_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config");
        fs::write(&path, "apiVersion: v1\n").unwrap();
        let refused = Home::choose(Some(&path)).err().unwrap();
        assert_eq!(
            refused.message(),
            format!("{} exists and is not a sandbox's", path.display())
        );
        assert!(path.exists());
        fs::write(&path, format!("{KUBECONFIG_HEADER}\n")).unwrap();
        let home = Home::choose(Some(&path)).unwrap();
        assert!(!path.exists(), "makes room");
        fs::write(home.path(), "somebody else's").unwrap();
        drop(home);
        assert!(path.exists(), "not ours any more");
    }

    #[test]
    fn a_folder_of_its_own_vanishes() {
        let home = Home::choose(None).unwrap();
        fs::write(home.path(), KUBECONFIG_HEADER).unwrap();
        let folder = home.path().parent().unwrap().to_owned();
        assert!(folder.exists());
        drop(home);
        assert!(!folder.exists());
    }
}
