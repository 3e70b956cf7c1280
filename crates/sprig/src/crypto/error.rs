//! Errors of keys and certificates, with the messages of Sprig and Go.

use mainstay_gostd::quote::quote;

/// Error of parsing a private key.
#[derive(Debug, thiserror::Error)]
pub(super) enum KeyError {
    #[error("no PEM data in input")]
    NoPem,
    #[error("decoding PEM as PKCS#8: {0}")]
    Pkcs8(Pkcs8Error),
    #[error("parsing {algorithm} private key from PEM: {reason}")]
    Algorithm {
        algorithm: &'static str,
        reason: &'static str,
    },
    #[error("invalid private key type {0}")]
    UnknownType(String),
    #[error("no private key data in PEM block of type {0}")]
    NotAKey(String),
}

/// Error of parsing a PKCS #8 structure.
#[derive(Debug, thiserror::Error)]
pub(super) enum Pkcs8Error {
    #[error("{0}")]
    Structure(&'static str),
    #[error("x509: failed to parse {algorithm} private key embedded in PKCS#8: {reason}")]
    Embedded {
        algorithm: &'static str,
        reason: &'static str,
    },
    #[error("x509: invalid Ed25519 private key")]
    Ed25519,
    #[error("x509: PKCS#8 wrapping contained private key with unknown algorithm")]
    UnknownAlgorithm,
}

/// Error of parsing a pair of certificate and key.
#[derive(Debug, thiserror::Error)]
pub(super) enum PairError {
    #[error("unable to decode base64 certificate")]
    CertificateBase64,
    #[error("unable to decode base64 private key")]
    KeyBase64,
    #[error("unable to decode certificate")]
    CertificatePem,
    /// `field` is the name of the variable in Sprig's message.
    #[error("error parsing certificate: {field}: {reason}")]
    Certificate {
        field: &'static str,
        reason: &'static str,
    },
    #[error("error parsing private key: {0}")]
    Key(KeyError),
}

/// Error of creating a certificate.
#[derive(Debug, thiserror::Error)]
pub(super) enum CreateError {
    #[error("x509: certificate private key does not implement crypto.Signer")]
    NotASigner,
    #[error("x509: unsupported public key type: *dsa.PublicKey")]
    UnsupportedKey,
    #[error("x509: provided PrivateKey doesn't match parent's PublicKey")]
    KeyMismatch,
    #[error("asn1: string not valid UTF-8")]
    NameNotUtf8,
    #[error("x509: {} cannot be encoded as an IA5String", quote(.0))]
    AlternativeName(Vec<u8>),
    #[error("ecdsa: signing failed")]
    EcdsaSignature,
    #[error("crypto/rsa: {0}-bit keys are insecure (see https://go.dev/pkg/crypto/rsa#hdr-Minimum_key_size)")]
    InsecureKey(u64),
}
