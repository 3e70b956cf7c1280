//! Kubeconfigs: takes an address, an authority and a secret, gives the text and the file.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// How the file begins, so that a later sandbox knows whose it is.
pub const KUBECONFIG_HEADER: &str = "# Written by a sandbox; it is removed when the sandbox stops.";

/// How a user proves who it is.
pub(super) enum Secret<'a> {
    /// By a bearer token.
    Token(&'a str),
    /// By a client certificate and its key, as PEM.
    Certificate {
        /// The certificate.
        certificate: &'a str,
        /// Its key.
        key: &'a str,
    },
}

impl Secret<'_> {
    /// The lines of a kubeconfig's user.
    fn lines(&self) -> String {
        match self {
            Self::Token(token) => format!("token: {token}"),
            Self::Certificate { certificate, key } => format!(
                "client-certificate-data: {}\n    client-key-data: {}",
                STANDARD.encode(certificate),
                STANDARD.encode(key)
            ),
        }
    }
}

/// The kubeconfig of one user.
pub(super) fn text(url: &str, authority: &str, user: &str, secret: &Secret<'_>) -> String {
    let authority = STANDARD.encode(authority);
    let secret = secret.lines();
    // A JSON string is a YAML string, whatever the name.
    let user = serde_json::Value::from(user);
    format!(
        "\
{KUBECONFIG_HEADER}
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
    {secret}
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
