//! Names of temporary files, and removal of those that killed processes left.

use std::fs;
use std::path::Path;

const PREFIX: &str = ".mainstay-";
const TEMPORARY: &str = "tmp";
const BACKUP: &str = "old";

/// Returns the name of this process's temporary file `number`.
pub(super) fn temporary_name(number: usize) -> String {
    name(number, TEMPORARY)
}

/// Returns the name of this process's backup `number`.
pub(super) fn backup_name(number: usize) -> String {
    name(number, BACKUP)
}

fn name(number: usize, ending: &str) -> String {
    format!("{PREFIX}{}-{number}.{ending}", std::process::id())
}

/// Removes the temporary files in `directory` whose process no longer runs. A file that cannot be removed is
/// ignored.
pub(super) fn remove(directory: &Path) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let process = name.to_str().and_then(process_of);
        if process.is_some_and(|process| !is_running(process)) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Returns the process ID in the name of a temporary file.
fn process_of(name: &str) -> Option<u32> {
    let (stem, ending) = name.strip_prefix(PREFIX)?.rsplit_once('.')?;
    let (process, number) = stem.split_once('-')?;
    let ours = [TEMPORARY, BACKUP].contains(&ending) && number.parse::<usize>().is_ok();
    process.parse().ok().filter(|_| ours)
}

#[cfg(unix)]
fn is_running(process: u32) -> bool {
    use nix::errno::Errno;
    use nix::sys::signal::kill;
    use nix::unistd::Pid;
    let Ok(process) = i32::try_from(process) else {
        return false;
    };
    process > 0 && kill(Pid::from_raw(process), None) != Err(Errno::ESRCH)
}

#[cfg(not(unix))]
fn is_running(_: u32) -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_names_have_a_process() {
        assert_eq!(process_of(&temporary_name(3)), Some(std::process::id()));
        assert_eq!(process_of(&backup_name(0)), Some(std::process::id()));
        for name in [
            ".mainstay-1.tmp",
            ".mainstay-1-2",
            ".mainstay-1-x.tmp",
            "mainstay-1-2.tmp",
            ".mainstay-1-2.yaml",
        ] {
            assert_eq!(process_of(name), None, "{name}");
        }
    }
}
