//! Strict parsing of kubeconfigs into a type that contains everything that is accepted.

mod read;
mod select;
mod text;

use std::fmt;

use super::address::{AddressError, AddressPolicy};
pub use select::ContextSelection;

/// Largest accepted text.
pub(super) const MAX_BYTES: usize = 256 << 10;

/// Access to one cluster. Its `Debug` form contains the server only.
#[derive(Clone, PartialEq, Eq)]
pub struct Kubeconfig {
    /// URL of the API server.
    pub server: String,
    /// CA certificates in DER form.
    pub authorities: Vec<Vec<u8>>,
    /// Credential of the controller.
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

/// Bytes that are not printed.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretBytes(pub(super) Vec<u8>);

impl SecretBytes {
    /// Wraps bytes.
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

/// Why a kubeconfig is rejected. Contains no value of the text: paths are made of known keys and numbers.
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
    /// A mapping has the same key twice, or a node has an anchor, an alias or a tag: programs differ in how
    /// they read such a text.
    #[error("the kubeconfig has a key twice, an anchor, an alias or a tag")]
    Ambiguous,
    /// A field has another type.
    #[error("{path} is not {expected}")]
    WrongType {
        /// Path of the field.
        path: String,
        /// What it must be.
        expected: &'static str,
    },
    /// A required field is missing or empty.
    #[error("{0} is not set")]
    Missing(String),
    /// `apiVersion` or `kind` is another one.
    #[error("{path} is not {expected}")]
    WrongKind {
        /// Path of the field.
        path: &'static str,
        /// What it must be.
        expected: &'static str,
    },
    /// A known key that is rejected.
    #[error("{path}: {key} is rejected: {reason}")]
    Rejected {
        /// Path of the mapping.
        path: String,
        /// The key.
        key: &'static str,
        /// Why.
        reason: Rejection,
    },
    /// A key that a kubeconfig does not have.
    #[error("{0} has an unknown key")]
    UnknownKey(String),
    /// Two entries have the same name.
    #[error("{0} has two entries of the same name")]
    Duplicate(&'static str),
    /// A name refers to no entry.
    #[error("{path} names no entry of {list}")]
    Unresolved {
        /// Path of the name.
        path: &'static str,
        /// The list.
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
        /// Why.
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
        /// What it must contain.
        expected: &'static str,
    },
    /// A token contains characters that a header cannot carry.
    #[error("{0} contains characters that a token cannot have")]
    Token(String),
    /// Both kinds of credential are set.
    #[error("{0} has both a token and a client certificate")]
    TwoCredentials(String),
    /// No credential is set.
    #[error("{0} has neither a token nor a client certificate")]
    NoCredential(String),
}

/// Why a key is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Rejection {
    /// It names a file.
    #[error("it names a file")]
    File,
    /// It runs a command.
    #[error("it runs a command")]
    Command,
    /// It redirects connections.
    #[error("it redirects connections")]
    Proxy,
    /// It acts as another user.
    #[error("it acts as another user")]
    Impersonation,
    /// It weakens the verification of the server.
    #[error("it weakens the verification of the server")]
    Verification,
    /// It is not supported.
    #[error("it is not supported")]
    Unsupported,
}

impl Kubeconfig {
    /// Reads the text of a kubeconfig. Every entry must be acceptable, not only the current one.
    pub fn parse(text: &[u8], policy: AddressPolicy) -> Result<Self, KubeconfigError> {
        read::parse(text, policy)
    }

    /// Reads one context of a kubeconfig that may contain others. Only the cluster and the user that it names
    /// must be acceptable; `extensions` are ignored, because [`Kubeconfig::to_text`] does not write them.
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
        super::pem::blocks(text, |label| label == "CERTIFICATE")
    }

    /// Returns a kubeconfig with this server, these authorities and this credential, and nothing else.
    #[must_use]
    pub fn to_text(&self) -> String {
        text::to_text(self)
    }
}
