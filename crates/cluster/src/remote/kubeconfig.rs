//! Strict parsing of kubeconfigs into a type that contains only what is accepted.

mod read;
mod select;
mod text;

use std::fmt;

use super::address::{AddressError, AddressPolicy};
pub use select::ContextSelection;

/// Maximum size of a kubeconfig, in bytes.
pub(super) const MAX_BYTES: usize = 256 << 10;

/// Access to one cluster. The `Debug` output contains only the server.
#[derive(Clone, PartialEq, Eq)]
pub struct Kubeconfig {
    /// URL of the API server.
    pub server: String,
    /// CA certificates in DER form.
    pub authorities: Vec<Vec<u8>>,
    /// Credential of the account.
    pub credential: Credential,
}

impl fmt::Debug for Kubeconfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Kubeconfig({:?})", self.server)
    }
}

/// A credential.
#[derive(Clone, PartialEq, Eq)]
pub enum Credential {
    /// A bearer token.
    Token(SecretBytes),
    /// A client certificate with its key, both as PEM text.
    Certificate {
        /// The certificate chain.
        certificate: Vec<u8>,
        /// The private key.
        key: SecretBytes,
    },
}

/// Bytes that are not part of `Debug` output.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretBytes(pub(super) Vec<u8>);

impl SecretBytes {
    /// Creates a value that contains `bytes`.
    #[must_use]
    pub fn new(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    /// Returns the bytes.
    #[must_use]
    pub fn expose(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for SecretBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretBytes")
    }
}

/// Reason why a kubeconfig is rejected. Contains no values of the text: paths consist of known keys and
/// indexes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KubeconfigError {
    /// The text is too long.
    #[error("the kubeconfig has {0} bytes; at most {MAX_BYTES} are read")]
    TooLong(usize),
    /// The text is not UTF-8 or not YAML.
    #[error("the kubeconfig is not valid YAML")]
    Syntax,
    /// The text does not contain exactly one document.
    #[error("the kubeconfig has {0} YAML documents instead of one")]
    Documents(usize),
    /// A mapping has a duplicate key, or a node has an anchor, an alias or a tag. Programs parse such a
    /// text differently.
    #[error("the kubeconfig has a key twice, an anchor, an alias or a tag")]
    Ambiguous,
    /// A field has a wrong type.
    #[error("{path} is not {expected}")]
    WrongType {
        /// Path of the field.
        path: String,
        /// Expected type or value.
        expected: &'static str,
    },
    /// A required field is missing or empty.
    #[error("{0} is not set")]
    Missing(String),
    /// `apiVersion` or `kind` has a wrong value.
    #[error("{path} is not {expected}")]
    WrongKind {
        /// Path of the field.
        path: &'static str,
        /// Expected type or value.
        expected: &'static str,
    },
    /// A key is known, but rejected.
    #[error("{path}: {key} is rejected: {reason}")]
    Rejected {
        /// Path of the mapping.
        path: String,
        /// Name of the rejected key.
        key: &'static str,
        /// Reason of the rejection.
        reason: Rejection,
    },
    /// A mapping has a key that is not part of the format.
    #[error("{0} has an unknown key")]
    UnknownKey(String),
    /// Two entries have the same name.
    #[error("{0} has two entries of the same name")]
    Duplicate(&'static str),
    /// A name does not refer to an entry.
    #[error("{path} names no entry of {list}")]
    Unresolved {
        /// Path of the reference.
        path: &'static str,
        /// List that should contain the entry.
        list: &'static str,
    },
    /// The server is not an `https` URL with a host.
    #[error("{0} is not an https URL of a host, without user, query and fragment")]
    Server(String),
    /// The address of the server is rejected.
    #[error("{path}: {source}; allow it with --allow-local-clusters")]
    Address {
        /// Path of the server.
        path: String,
        /// Reason of the rejection.
        source: AddressError,
    },
    /// Base64 text cannot be decoded.
    #[error("{0} is not base64")]
    Base64(String),
    /// Decoded data is not the expected PEM text.
    #[error("{path} does not contain {expected} in PEM form")]
    Pem {
        /// Path of the field.
        path: String,
        /// Expected content.
        expected: &'static str,
    },
    /// A token contains characters that an HTTP header cannot contain.
    #[error("{0} contains characters that a token cannot have")]
    Token(String),
    /// A user has both a token and a client certificate.
    #[error("{0} has both a token and a client certificate")]
    TwoCredentials(String),
    /// A user has no credential.
    #[error("{0} has neither a token nor a client certificate")]
    NoCredential(String),
}

/// Reason why a key is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Rejection {
    /// The key names a file.
    #[error("it names a file")]
    File,
    /// The key runs a command.
    #[error("it runs a command")]
    Command,
    /// The key redirects connections.
    #[error("it redirects connections")]
    Proxy,
    /// The key impersonates another user.
    #[error("it acts as another user")]
    Impersonation,
    /// The key weakens the verification of the server.
    #[error("it weakens the verification of the server")]
    Verification,
    /// The key is not supported.
    #[error("it is not supported")]
    Unsupported,
}

impl Kubeconfig {
    /// Parses a kubeconfig. Every entry must be valid, not only the current one.
    pub fn parse(text: &[u8], policy: AddressPolicy) -> Result<Self, KubeconfigError> {
        read::parse(text, policy)
    }

    /// Parses one context of a kubeconfig that may contain others. Only the cluster and the user of the
    /// context must be valid. `extensions` are ignored, because [`Kubeconfig::to_text`] does not write
    /// them.
    pub fn parse_context(
        text: &[u8],
        selection: &ContextSelection<'_>,
        policy: AddressPolicy,
    ) -> Result<Self, KubeconfigError> {
        select::parse_context(text, selection, policy)
    }

    /// Returns the certificates of a PEM text in DER form, or `None` if it contains anything else.
    #[must_use]
    pub fn authorities_from_pem(text: &[u8]) -> Option<Vec<Vec<u8>>> {
        super::pem::parse_blocks(text, |label| label == "CERTIFICATE")
    }

    /// Formats a kubeconfig that contains only this server, these authorities and this credential.
    #[must_use]
    pub fn to_text(&self) -> String {
        text::to_text(self)
    }
}
