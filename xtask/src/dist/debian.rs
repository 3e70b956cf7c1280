//! A Debian package: an `ar` archive of a version, control data and files.

use std::fs;

use mainstay_testkit::repository_root;

use super::package::{Entry, gzip, tar};

const HOME: &str = env!("CARGO_PKG_REPOSITORY");

/// Maintainer of the package in Debian's format.
const MAINTAINER: &str = "The Mainstay authors <mainstay-mesh@users.noreply.github.com>";

/// Notes of Debian's checker that do not apply: the binary is static on purpose, and no bug tracks the first
/// upload to Debian's archive.
const OVERRIDES: &str = "mainstay: statically-linked-binary [usr/bin/mainstay]\n\
    mainstay: initial-upload-closes-no-bugs\n";

/// Returns the package with `files`, whose paths begin below the root directory.
pub(super) fn package(version: &str, architecture: &str, files: &[Entry]) -> anyhow::Result<Vec<u8>> {
    let files: Vec<Entry> = files
        .iter()
        .map(|file| file.clone().below("./"))
        .chain(documents(version)?)
        .collect();
    let size: usize = files.iter().map(|file| file.content.len()).sum();
    let control = format!(
        "Package: mainstay\nVersion: {version}\nArchitecture: {architecture}\nMaintainer: {MAINTAINER}\n\
         Installed-Size: {}\nSection: admin\nPriority: optional\nHomepage: {HOME}\n\
         Description: operate an Istio service mesh from one binary\n Renders, installs, upgrades and rehearses Istio \
         meshes, migrates workloads\n between revisions, and simulates Kubernetes clusters.\n",
        size.div_ceil(1024)
    );
    let members = [
        ("debian-binary", b"2.0\n".to_vec()),
        (
            "control.tar.gz",
            gzip(&tar(&[Entry::file("./control", control)])?)?,
        ),
        ("data.tar.gz", gzip(&tar(&files)?)?),
    ];
    Ok(ar(&members))
}

/// Returns the copyright file, the changes and the overrides, which every package has.
fn documents(version: &str) -> anyhow::Result<[Entry; 4]> {
    let changes = fs::read(repository_root().join("CHANGELOG.md"))?;
    let log = format!(
        "mainstay ({version}) unstable; urgency=medium\n\n  * See changelog.gz.\n\n -- {MAINTAINER}  Thu, 01 Jan 2026 00:00:00 +0000\n"
    );
    let directory = "./usr/share/doc/mainstay";
    Ok([
        Entry::file(format!("{directory}/copyright"), copyright()),
        Entry::file(format!("{directory}/changelog.gz"), gzip(&changes)?),
        Entry::file(format!("{directory}/changelog.Debian.gz"), gzip(log.as_bytes())?),
        Entry::file("./usr/share/lintian/overrides/mainstay", OVERRIDES),
    ])
}

/// Returns the license in Debian's machine-readable form.
fn copyright() -> String {
    format!(
        "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\nUpstream-Name: mainstay\nSource: {HOME}\n\n\
         Files: *\nCopyright: 2026 The Mainstay authors\nLicense: Apache-2.0\n\n\
         License: Apache-2.0\n On Debian systems, the complete text of the license is in\n /usr/share/common-licenses/Apache-2.0.\n"
    )
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
