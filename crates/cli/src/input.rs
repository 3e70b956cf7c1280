//! Reads files that the user names, within a limit. A name may be a pipe or a device without an end.

use std::fs::File;
use std::io::{self, Read};

/// Maximum size of a file that is read completely.
pub(crate) const MAX_FILE: u64 = 32 << 20;

/// Reads a file of at most [`MAX_FILE`] bytes.
pub(crate) fn read_file(path: impl AsRef<std::path::Path>) -> io::Result<Vec<u8>> {
    read_all(File::open(path)?)
}

/// Reads at most [`MAX_FILE`] bytes; more are an error of kind [`io::ErrorKind::FileTooLarge`].
pub(crate) fn read_all(reader: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    reader.take(MAX_FILE + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_FILE {
        let text = format!("larger than {} MiB", MAX_FILE >> 20);
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, text));
    }
    Ok(bytes)
}

/// Reads a regular file again, to quote a line of it; `None` for pipes and devices.
pub(crate) fn read_again(path: &str) -> Option<Vec<u8>> {
    let is_regular = std::fs::metadata(path).is_ok_and(|metadata| metadata.is_file());
    is_regular.then(|| read_file(path).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endless_input_is_an_error() {
        let error = read_all(io::repeat(0)).unwrap_err();
        assert_eq!(error.to_string(), "larger than 32 MiB");
        assert_eq!(
            read_file("/dev/zero").unwrap_err().kind(),
            io::ErrorKind::FileTooLarge
        );
        assert_eq!(read_again("/dev/zero"), None);
    }
}
