//! Entries for package indexes that refer to the archive of a release.

/// Where the files of a version are published.
fn url(version: &str, archive: &str) -> String {
    format!(
        "{}/releases/download/v{version}/{archive}",
        env!("CARGO_PKG_REPOSITORY")
    )
}

/// Returns a Homebrew formula.
pub(super) fn homebrew(version: &str, archive: &str, digest: &str) -> String {
    let url = url(version, archive);
    let home = env!("CARGO_PKG_REPOSITORY");
    format!(
        r##"class Mainstay < Formula
  desc "Operate an Istio service mesh from one binary"
  homepage "{home}"
  url "{url}"
  version "{version}"
  sha256 "{digest}"
  license "Apache-2.0"
  depends_on :linux
  depends_on arch: :x86_64

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
pub(super) fn krew(version: &str, archive: &str, digest: &str) -> String {
    let url = url(version, archive);
    let home = env!("CARGO_PKG_REPOSITORY");
    format!(
        r"apiVersion: krew.googlecontainertools.github.com/v1alpha2
kind: Plugin
metadata:
  name: mainstay
spec:
  version: v{version}
  homepage: {home}
  shortDescription: Operate an Istio service mesh
  description: |
    Shows the state of Istio meshes, plans and rehearses upgrades, and migrates
    workloads to a new revision.
  platforms:
    - selector:
        matchLabels:
          os: linux
          arch: amd64
      uri: {url}
      sha256: {digest}
      bin: mainstay
      files:
        - from: mainstay
          to: .
        - from: LICENSE
          to: .
"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_name_the_archive_and_its_digest() {
        for text in [
            homebrew("0.1.0", "a.tar.gz", "d1"),
            krew("0.1.0", "a.tar.gz", "d1"),
        ] {
            assert!(text.contains("/releases/download/v0.1.0/a.tar.gz"), "{text}");
            assert!(text.contains("d1"), "{text}");
        }
    }

    #[test]
    fn the_krew_manifest_is_yaml() {
        let text = krew("0.1.0", "a.tar.gz", "d1");
        mainstay_yaml::parse(&text, &mainstay_yaml::Budget::default()).unwrap();
    }
}
