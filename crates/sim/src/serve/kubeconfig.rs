//! Renders and writes kubeconfig files.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// First line of every generated kubeconfig. It identifies files that a sandbox may replace or remove.
pub const KUBECONFIG_HEADER: &str = "# Written by a sandbox; it is removed when the sandbox stops.";

/// Credentials of a user.
pub(super) enum Credential<'a> {
    /// A bearer token.
    Token(&'a str),
    /// A client certificate and its key, as PEM.
    Certificate {
        certificate: &'a str,
        /// The private key.
        key: &'a str,
    },
}

impl Credential<'_> {
    /// Returns the lines of the kubeconfig that contain the credentials.
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

/// Returns a kubeconfig with one user.
pub(super) fn render(url: &str, authority: &str, user: &str, secret: &Credential<'_>) -> String {
    let authority = STANDARD.encode(authority);
    let secret = secret.lines();
    // Write the name as a JSON string, which is valid YAML for any name.
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

/// Creates a file that only its owner can read. Fails if the file exists.
pub(super) fn write_file(path: &Path, text: &str) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)?.write_all(text.as_bytes())
}
