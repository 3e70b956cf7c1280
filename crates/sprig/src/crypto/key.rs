//! Private keys of all types that Sprig supports.

use ed25519_compact::{KeyPair, Seed};
use p256::ecdsa::signature::hazmat::PrehashSigner as _;
use p256::ecdsa::{Signature, SigningKey};
use sha2::{Digest, Sha256};

use super::der::{self, BIT_STRING, INTEGER, NULL, OCTET_STRING, OID, Reader, SEQUENCE};
use super::drbg::Stream;
use super::dsa::DsaKey;
use super::error::{CreateError, KeyError, Pkcs8Error};
use super::pem;
use super::rsa::RsaKey;

const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01];
const RSA_SHA256: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x0b];
const EC: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01];
const P256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];
const ECDSA_SHA256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02];
const ED25519: &[u8] = &[0x2b, 0x65, 0x70];

pub(super) enum PrivateKey {
    Rsa(RsaKey),
    Dsa(DsaKey),
    /// ECDSA on the curve P-256.
    Ec(SigningKey),
    Ed25519(KeyPair),
}

impl PrivateKey {
    /// Generates a key on P-256.
    pub(super) fn generate_ec(stream: &mut Stream) -> Self {
        loop {
            // All but one of 2³² values are below the group's order.
            if let Ok(key) = SigningKey::from_slice(&stream.bytes::<32>()) {
                return Self::Ec(key);
            }
        }
    }

    /// Generates an Ed25519 key.
    pub(super) fn generate_ed25519(stream: &mut Stream) -> Self {
        Self::Ed25519(KeyPair::from_seed(Seed::new(stream.bytes())))
    }

    /// Encodes the key in Sprig's PEM format.
    pub(super) fn to_pem(&self) -> String {
        match self {
            Self::Rsa(key) => pem::encode("RSA PRIVATE KEY", &key.to_der()),
            Self::Dsa(key) => pem::encode("DSA PRIVATE KEY", &key.to_der()),
            Self::Ec(key) => pem::encode("EC PRIVATE KEY", &ec_der(key)),
            Self::Ed25519(key) => pem::encode("PRIVATE KEY", &ed25519_der(key)),
        }
    }

    /// Parses the first PEM block of `text`.
    pub(super) fn from_pem(text: &[u8]) -> Result<Self, KeyError> {
        let block = pem::decode(text).ok_or(KeyError::NoPem)?;
        let invalid = |algorithm, reason| KeyError::Algorithm { algorithm, reason };
        match block.label.as_str() {
            "PRIVATE KEY" => from_pkcs8(&block.bytes).map_err(KeyError::Pkcs8),
            "RSA PRIVATE KEY" => RsaKey::parse(&block.bytes)
                .map(Self::Rsa)
                .map_err(|error| invalid("RSA", error)),
            "EC PRIVATE KEY" => ec_from_der(&block.bytes, None)
                .map(Self::Ec)
                .map_err(|error| invalid("EC", error)),
            "DSA PRIVATE KEY" => DsaKey::parse(&block.bytes)
                .map(Self::Dsa)
                .ok_or_else(|| invalid("DSA", STRUCTURE)),
            other if other.ends_with(" PRIVATE KEY") => Err(KeyError::UnknownType(other.to_owned())),
            other => Err(KeyError::NotAKey(other.to_owned())),
        }
    }

    /// Returns `SubjectPublicKeyInfo` and its key bits, or `None` if certificates do not support the type
    /// of the key.
    pub(super) fn public(&self) -> Option<(Vec<u8>, Vec<u8>)> {
        let (algorithm, bits) = match self {
            Self::Rsa(key) => (algorithm(RSA, Some(der::value(NULL, &[]))), key.public_der()),
            Self::Ec(key) => (algorithm(EC, Some(der::value(OID, P256))), ec_point(key)),
            Self::Ed25519(key) => (algorithm(ED25519, None), key.pk.to_vec()),
            Self::Dsa(_) => return None,
        };
        Some((der::sequence(&[algorithm, der::bit_string(&bits)]), bits))
    }

    /// Returns the `AlgorithmIdentifier` of the key's signatures, or `None` if the key cannot sign.
    pub(super) fn signature_algorithm(&self) -> Option<Vec<u8>> {
        Some(match self {
            Self::Rsa(_) => algorithm(RSA_SHA256, Some(der::value(NULL, &[]))),
            Self::Ec(_) => algorithm(ECDSA_SHA256, None),
            Self::Ed25519(_) => algorithm(ED25519, None),
            Self::Dsa(_) => return None,
        })
    }

    /// Signs `message`.
    pub(super) fn sign(&self, message: &[u8]) -> Result<Vec<u8>, CreateError> {
        match self {
            Self::Rsa(key) => key.sign(message),
            Self::Ec(key) => ec_sign(key, message).ok_or(CreateError::EcdsaSignature),
            Self::Ed25519(key) => Ok(key.sk.sign(message, None).to_vec()),
            Self::Dsa(_) => Err(CreateError::NotASigner),
        }
    }
}

const STRUCTURE: &str = "asn1: structure error: tags don't match or lengths are wrong";

fn algorithm(oid: &[u8], parameters: Option<Vec<u8>>) -> Vec<u8> {
    der::sequence(&[der::value(OID, oid), parameters.unwrap_or_default()])
}

fn ec_point(key: &SigningKey) -> Vec<u8> {
    key.verifying_key().to_sec1_point(false).as_bytes().to_vec()
}

fn ec_der(key: &SigningKey) -> Vec<u8> {
    der::sequence(&[
        der::integer(&[1]),
        der::value(OCTET_STRING, &key.to_bytes()),
        der::value(der::context(0), &der::value(OID, P256)),
        der::value(der::context(1), &der::bit_string(&ec_point(key))),
    ])
}

fn ec_sign(key: &SigningKey, message: &[u8]) -> Option<Vec<u8>> {
    let signature: Signature = key.sign_prehash(&Sha256::digest(message)).ok()?;
    let bytes = signature.to_bytes();
    let (r, s) = bytes.split_at_checked(32)?;
    Some(der::sequence(&[der::integer(r), der::integer(s)]))
}

/// Parses `ECPrivateKey`. The curve is named in it or in the enclosing PKCS #8 structure.
fn ec_from_der(bytes: &[u8], curve: Option<&[u8]>) -> Result<SigningKey, &'static str> {
    let (secret, named) = ec_fields(bytes).ok_or(STRUCTURE)?;
    if curve.or(named) != Some(P256) {
        return Err("x509: unknown elliptic curve");
    }
    let padded = [vec![0; 32_usize.saturating_sub(secret.len())], secret.to_vec()].concat();
    let padded = padded.get(padded.len() - 32..).unwrap_or_default();
    SigningKey::from_slice(padded).map_err(|_| "x509: invalid elliptic curve private key value")
}

fn ec_fields(bytes: &[u8]) -> Option<(&[u8], Option<&[u8]>)> {
    let mut fields = Reader(bytes).enter(SEQUENCE)?;
    fields.integer()?;
    let secret = fields.expect(OCTET_STRING)?;
    let curve = fields
        .enter(der::context(0))
        .and_then(|mut inner| inner.expect(OID));
    Some((secret, curve))
}

fn ed25519_der(key: &KeyPair) -> Vec<u8> {
    let seed = der::value(OCTET_STRING, key.sk.seed().as_ref());
    der::sequence(&[
        der::integer(&[]),
        algorithm(ED25519, None),
        der::value(OCTET_STRING, &seed),
    ])
}

fn from_pkcs8(bytes: &[u8]) -> Result<PrivateKey, Pkcs8Error> {
    let Pkcs8 { oid, curve, key } = pkcs8_fields(bytes).ok_or(Pkcs8Error::Structure(STRUCTURE))?;
    let invalid = |algorithm, reason| Pkcs8Error::Embedded { algorithm, reason };
    match oid {
        RSA => RsaKey::parse(key)
            .map(PrivateKey::Rsa)
            .map_err(|error| invalid("RSA", error)),
        EC => ec_from_der(key, curve)
            .map(PrivateKey::Ec)
            .map_err(|error| invalid("EC", error)),
        ED25519 => Reader(key)
            .expect(OCTET_STRING)
            .and_then(|seed| Seed::from_slice(seed).ok())
            .map(|seed| PrivateKey::Ed25519(KeyPair::from_seed(seed)))
            .ok_or(Pkcs8Error::Ed25519),
        _ => Err(Pkcs8Error::UnknownAlgorithm),
    }
}

/// Fields of a PKCS #8 structure.
struct Pkcs8<'a> {
    oid: &'a [u8],
    curve: Option<&'a [u8]>,
    key: &'a [u8],
}

fn pkcs8_fields(bytes: &[u8]) -> Option<Pkcs8<'_>> {
    let mut fields = Reader(bytes).enter(SEQUENCE)?;
    fields.expect(INTEGER)?;
    let mut algorithm = fields.enter(SEQUENCE)?;
    let oid = algorithm.expect(OID)?;
    let curve = algorithm.expect(OID);
    let key = fields.expect(OCTET_STRING)?;
    Some(Pkcs8 { oid, curve, key })
}

/// Returns the content of a bit string, without the number of unused bits.
pub(super) fn bits<'a>(reader: &mut Reader<'a>) -> Option<&'a [u8]> {
    reader.expect(BIT_STRING)?.strip_prefix(&[0])
}
