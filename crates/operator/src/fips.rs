//! Detects whether the kernel of the node runs in FIPS mode.

use std::path::Path;

/// File in which the kernel reports FIPS mode.
pub const KERNEL_FILE: &str = "/proc/sys/crypto/fips_enabled";

/// Whether the file contains `1`. Returns `false` if it cannot be read.
#[must_use]
pub fn is_enabled(file: &Path) -> bool {
    std::fs::read(file).is_ok_and(|bytes| bytes.trim_ascii() == b"1")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(content: Option<&str>, expected: bool) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("fips_enabled");
        if let Some(content) = content {
            std::fs::write(&path, content).unwrap();
        }
        assert_eq!(is_enabled(&path), expected, "{content:?}");
    }

    #[test]
    fn fips_mode_is_enabled_by_the_file_content_1() {
        check(Some("1\n"), true);
        check(Some("1"), true);
        check(Some("0\n"), false);
        check(Some(""), false);
        check(Some("yes"), false);
        check(None, false);
    }
}
