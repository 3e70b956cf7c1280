//! Detects static executables.

use std::fs;
use std::path::Path;

use anyhow::Context;

/// Whether an ELF file is static, which means that it requests no program interpreter.
pub(crate) fn is_static(binary: &Path) -> anyhow::Result<bool> {
    let bytes = fs::read(binary).with_context(|| binary.display().to_string())?;
    Ok(interpreters(&bytes).context("not a 64-bit ELF file")? == 0)
}

/// Returns the number of `PT_INTERP` program headers of a 64-bit little-endian ELF file.
fn interpreters(bytes: &[u8]) -> Option<usize> {
    const PT_INTERP: u32 = 3;
    bytes.strip_prefix(b"\x7fELF\x02\x01")?;
    let offset = usize::try_from(u64::from_le_bytes(bytes.get(32..40)?.try_into().ok()?)).ok()?;
    let size = usize::from(u16::from_le_bytes(bytes.get(54..56)?.try_into().ok()?));
    let count = usize::from(u16::from_le_bytes(bytes.get(56..58)?.try_into().ok()?));
    let kind = |index: usize| {
        let start = offset + index * size;
        Some(u32::from_le_bytes(bytes.get(start..start + 4)?.try_into().ok()?))
    };
    Some(
        (0..count)
            .filter_map(kind)
            .filter(|kind| *kind == PT_INTERP)
            .count(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dynamic_executable_is_recognized() {
        let own = std::env::current_exe().unwrap();
        assert!(!is_static(&own).unwrap());
    }

    #[test]
    fn other_files_are_no_executables() {
        assert_eq!(interpreters(b"#!/bin/sh\n"), None);
    }
}
