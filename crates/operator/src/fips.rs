//! Whether the node is in FIPS mode: takes a file of the kernel, gives yes or no.

use std::path::Path;

/// Where the kernel says it.
pub const KERNEL_FILE: &str = "/proc/sys/crypto/fips_enabled";

/// Whether the file says so. A kernel that says nothing is not in FIPS mode.
#[must_use]
pub fn is_enabled(file: &Path) -> bool {
    std::fs::read(file).is_ok_and(|bytes| bytes.trim_ascii() == b"1")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(content: Option<&str>, expected: bool) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("fips_enabled");
        if let Some(content) = content {
            std::fs::write(&path, content).unwrap();
        }
        assert_eq!(is_enabled(&path), expected, "{content:?}");
    }

    #[test]
    fn the_kernel_says_one() {
        check(Some("1\n"), true);
        check(Some("1"), true);
        check(Some("0\n"), false);
        check(Some(""), false);
        check(Some("yes"), false);
        check(None, false);
    }
}
