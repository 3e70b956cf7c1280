//! Kubeconfigs: takes an address, an authority and a secret, gives the text and the file.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// How the file begins, so that a later sandbox knows whose it is.
pub const KUBECONFIG_MARK: &str = "# Written by a sandbox; it is removed when the sandbox stops.";

/// The kubeconfig of one user.
pub(super) fn text(url: &str, authority: &str, user: &str, secret: &str) -> String {
    let authority = STANDARD.encode(authority);
    // A JSON string is a YAML string, whatever the name.
    let user = serde_json::Value::from(user);
    format!(
        "\
{KUBECONFIG_MARK}
apiVersion: v1
kind: Config
current-context: sandbox
clusters:
- name: sandbox
  cluster:
    server: {url}
    certificate-authority-data: {authority}
users:
- name: {user}
  user:
    token: {secret}
contexts:
- name: sandbox
  context:
    cluster: sandbox
    user: {user}
"
    )
}

/// Writes a file that only its owner reads; never over another one.
pub(super) fn write(path: &Path, text: &str) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)?.write_all(text.as_bytes())
}
