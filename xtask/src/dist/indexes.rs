//! Entries for package indexes that refer to the archives of a release.

use super::Target;

/// An archive of a release.
pub(super) struct Download {
    pub(super) target: Target,
    /// File name.
    pub(super) archive: String,
    /// SHA-256 in hexadecimal.
    pub(super) digest: String,
}

const HOME: &str = env!("CARGO_PKG_REPOSITORY");

impl Download {
    /// Returns the address at which the archive of a version is published.
    fn url(&self, version: &str) -> String {
        format!("{HOME}/releases/download/v{version}/{}", self.archive)
    }
}

/// Returns a Homebrew formula.
pub(super) fn homebrew(version: &str, downloads: &[Download]) -> String {
    let block = |download: &Download| {
        let (machine, url) = (download.target.homebrew(), download.url(version));
        format!(
            "  on_{machine} do\n    url \"{url}\"\n    sha256 \"{}\"\n  end\n",
            download.digest
        )
    };
    let blocks: String = downloads.iter().map(block).collect();
    format!(
        r##"class Mainstay < Formula
  desc "Operate an Istio service mesh from one binary"
  homepage "{HOME}"
  version "{version}"
  license "Apache-2.0"
  depends_on :linux

{blocks}
  def install
    bin.install "mainstay"
    man1.install Dir["man/man1/*"]
    bash_completion.install "completions/mainstay.bash" => "mainstay"
    zsh_completion.install "completions/_mainstay"
    fish_completion.install "completions/mainstay.fish"
  end

  test do
    assert_match version.to_s, shell_output("#{{bin}}/mainstay --version")
  end
end
"##
    )
}

/// Returns a krew manifest, which makes the binary available as `kubectl mainstay`.
pub(super) fn krew(version: &str, downloads: &[Download]) -> String {
    let platform = |download: &Download| {
        format!(
            r"    - selector:
        matchLabels:
          os: linux
          arch: {}
      uri: {}
      sha256: {}
      bin: mainstay
      files:
        - from: mainstay
          to: .
        - from: LICENSE
          to: .
",
            download.target.architecture(),
            download.url(version),
            download.digest
        )
    };
    let platforms: String = downloads.iter().map(platform).collect();
    format!(
        r"apiVersion: krew.googlecontainertools.github.com/v1alpha2
kind: Plugin
metadata:
  name: mainstay
spec:
  version: v{version}
  homepage: {HOME}
  shortDescription: Operate an Istio service mesh
  description: |
    Shows the state of Istio meshes, plans and rehearses upgrades, and migrates
    workloads to a new revision.
  platforms:
{platforms}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn downloads() -> [Download; 2] {
        [(Target::X86, "a.tar.gz", "d1"), (Target::Arm, "b.tar.gz", "d2")].map(|(target, archive, digest)| {
            Download {
                target,
                archive: archive.to_owned(),
                digest: digest.to_owned(),
            }
        })
    }

    #[test]
    fn both_indexes_contain_the_archives_and_their_digests() {
        for text in [homebrew("0.1.0", &downloads()), krew("0.1.0", &downloads())] {
            for name in ["a.tar.gz", "b.tar.gz"] {
                assert!(
                    text.contains(&format!("/releases/download/v0.1.0/{name}")),
                    "{text}"
                );
            }
            assert!(text.contains("d1") && text.contains("d2"), "{text}");
        }
    }

    #[test]
    fn the_krew_manifest_is_yaml() {
        let text = krew("0.1.0", &downloads());
        mainstay_yaml::parse(&text, &mainstay_yaml::Budget::default()).unwrap();
    }
}
