//! A Debian package: an `ar` archive of a version, control data and files.

use super::package::{Entry, gzip, tar};

/// Returns the package with `files`, whose paths begin below the root directory.
pub(super) fn package(version: &str, architecture: &str, files: &[Entry]) -> anyhow::Result<Vec<u8>> {
    let size: usize = files.iter().map(|file| file.content.len()).sum();
    let control = format!(
        "Package: mainstay\nVersion: {version}\nArchitecture: {architecture}\nMaintainer: The Mainstay authors\n\
         Installed-Size: {}\nSection: admin\nPriority: optional\nHomepage: https://github.com/mainstay-mesh/mainstay\n\
         Description: operate an Istio service mesh from one binary\n Renders, installs, upgrades and rehearses Istio \
         meshes, migrates workloads\n between revisions, and simulates Kubernetes clusters.\n",
        size.div_ceil(1024)
    );
    let members = [
        ("debian-binary", b"2.0\n".to_vec()),
        ("control.tar.gz", gzip(&tar(&[Entry::file("control", control)])?)?),
        ("data.tar.gz", gzip(&tar(files)?)?),
    ];
    Ok(ar(&members))
}

/// Returns an `ar` archive in the common format, without times and owners.
fn ar(members: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut bytes = b"!<arch>\n".to_vec();
    for (name, content) in members {
        let header = format!(
            "{name:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`\n",
            0,
            0,
            0,
            "100644",
            content.len()
        );
        bytes.extend(header.as_bytes());
        bytes.extend(content);
        if content.len() % 2 == 1 {
            bytes.push(b'\n');
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn dpkg_reads_the_package() {
        let files = [Entry::executable("usr/bin/mainstay", "#!/bin/sh\n")];
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("mainstay.deb");
        std::fs::write(&path, package("0.1.0", "amd64", &files).unwrap()).unwrap();
        let dpkg = |option: &str| {
            let output = Command::new("dpkg-deb").arg(option).arg(&path).output().unwrap();
            assert!(
                output.status.success(),
                "{}",
                String::from_utf8_lossy(&output.stderr)
            );
            String::from_utf8_lossy(&output.stdout).into_owned()
        };
        assert!(dpkg("--info").contains("Package: mainstay"));
        let content = dpkg("--contents");
        assert!(
            content.contains("-rwxr-xr-x") && content.contains("usr/bin/mainstay"),
            "{content}"
        );
    }
}
