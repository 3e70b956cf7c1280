//! Private keys of every kind Sprig handles: makes, reads, writes and signs with them.

use ed25519_compact::{KeyPair, Seed};
use p256::ecdsa::signature::hazmat::PrehashSigner as _;
use p256::ecdsa::{Signature, SigningKey};
use sha2::{Digest, Sha256};

use super::der::{self, BIT_STRING, INTEGER, NULL, OCTET_STRING, OID, Reader, SEQUENCE};
use super::drbg::Stream;
use super::dsa::DsaKey;
use super::pem;
use super::rsa::RsaKey;

const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01];
const RSA_SHA256: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x0b];
const EC: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01];
const P256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];
const ECDSA_SHA256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02];
const ED25519: &[u8] = &[0x2b, 0x65, 0x70];

/// A private key.
pub(super) enum PrivateKey {
    Rsa(RsaKey),
    Dsa(DsaKey),
    /// On the curve P-256.
    Ec(SigningKey),
    Ed25519(KeyPair),
}

impl PrivateKey {
    /// A new key on P-256.
    pub(super) fn generate_ec(stream: &mut Stream) -> Self {
        loop {
            // All but one in 2³² draws are below the group's order.
            if let Ok(key) = SigningKey::from_slice(&stream.bytes::<32>()) {
                return Self::Ec(key);
            }
        }
    }

    /// A new Ed25519 key.
    pub(super) fn generate_ed25519(stream: &mut Stream) -> Self {
        Self::Ed25519(KeyPair::from_seed(Seed::new(stream.bytes())))
    }

    /// The PEM text Sprig gives a key of this kind.
    pub(super) fn to_pem(&self) -> String {
        match self {
            Self::Rsa(key) => pem::encode("RSA PRIVATE KEY", &key.to_der()),
            Self::Dsa(key) => pem::encode("DSA PRIVATE KEY", &key.to_der()),
            Self::Ec(key) => pem::encode("EC PRIVATE KEY", &ec_der(key)),
            Self::Ed25519(key) => pem::encode("PRIVATE KEY", &ed25519_der(key)),
        }
    }

    /// Reads the first PEM block of `text`.
    pub(super) fn from_pem(text: &[u8]) -> Result<Self, String> {
        let block = pem::decode(text).ok_or("no PEM data in input")?;
        let wrong = |kind: &str, error: &str| format!("parsing {kind} private key from PEM: {error}");
        match block.label.as_str() {
            "PRIVATE KEY" => {
                from_pkcs8(&block.bytes).map_err(|error| format!("decoding PEM as PKCS#8: {error}"))
            }
            "RSA PRIVATE KEY" => RsaKey::parse(&block.bytes)
                .map(Self::Rsa)
                .map_err(|error| wrong("RSA", error)),
            "EC PRIVATE KEY" => ec_from_der(&block.bytes, None)
                .map(Self::Ec)
                .map_err(|error| wrong("EC", error)),
            "DSA PRIVATE KEY" => DsaKey::parse(&block.bytes)
                .map(Self::Dsa)
                .ok_or_else(|| wrong("DSA", STRUCTURE)),
            other if other.ends_with(" PRIVATE KEY") => Err(format!("invalid private key type {other}")),
            other => Err(format!("no private key data in PEM block of type {other}")),
        }
    }

    /// `SubjectPublicKeyInfo`, and the key bits within it; `None` where certificates know no such key.
    pub(super) fn public(&self) -> Option<(Vec<u8>, Vec<u8>)> {
        let (algorithm, bits) = match self {
            Self::Rsa(key) => (algorithm(RSA, Some(der::value(NULL, &[]))), key.public_der()),
            Self::Ec(key) => (algorithm(EC, Some(der::value(OID, P256))), ec_point(key)),
            Self::Ed25519(key) => (algorithm(ED25519, None), key.pk.to_vec()),
            Self::Dsa(_) => return None,
        };
        Some((der::sequence(&[algorithm, der::bit_string(&bits)]), bits))
    }

    /// `AlgorithmIdentifier` of the signatures this key makes; `None` where it makes none.
    pub(super) fn signature_algorithm(&self) -> Option<Vec<u8>> {
        Some(match self {
            Self::Rsa(_) => algorithm(RSA_SHA256, Some(der::value(NULL, &[]))),
            Self::Ec(_) => algorithm(ECDSA_SHA256, None),
            Self::Ed25519(_) => algorithm(ED25519, None),
            Self::Dsa(_) => return None,
        })
    }

    /// Signs `message`.
    pub(super) fn sign(&self, message: &[u8]) -> Result<Vec<u8>, String> {
        match self {
            Self::Rsa(key) => key.sign(message),
            Self::Ec(key) => ec_sign(key, message).ok_or_else(|| "ecdsa: signing failed".into()),
            Self::Ed25519(key) => Ok(key.sk.sign(message, None).to_vec()),
            Self::Dsa(_) => Err("x509: certificate private key does not implement crypto.Signer".into()),
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

/// Reads `ECPrivateKey`; the curve is named in it, or around it in PKCS #8.
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

fn from_pkcs8(bytes: &[u8]) -> Result<PrivateKey, String> {
    let (oid, curve, key) = pkcs8_fields(bytes).ok_or(STRUCTURE)?;
    match oid {
        RSA => RsaKey::parse(key)
            .map(PrivateKey::Rsa)
            .map_err(|error| format!("x509: failed to parse RSA private key embedded in PKCS#8: {error}")),
        EC => ec_from_der(key, curve)
            .map(PrivateKey::Ec)
            .map_err(|error| format!("x509: failed to parse EC private key embedded in PKCS#8: {error}")),
        ED25519 => Reader(key)
            .expect(OCTET_STRING)
            .and_then(|seed| Seed::from_slice(seed).ok())
            .map(|seed| PrivateKey::Ed25519(KeyPair::from_seed(seed)))
            .ok_or_else(|| "x509: invalid Ed25519 private key".into()),
        _ => Err("x509: PKCS#8 wrapping contained private key with unknown algorithm".into()),
    }
}

type Pkcs8<'a> = (&'a [u8], Option<&'a [u8]>, &'a [u8]);

fn pkcs8_fields(bytes: &[u8]) -> Option<Pkcs8<'_>> {
    let mut fields = Reader(bytes).enter(SEQUENCE)?;
    fields.expect(INTEGER)?;
    let mut algorithm = fields.enter(SEQUENCE)?;
    let oid = algorithm.expect(OID)?;
    let curve = algorithm.expect(OID);
    Some((oid, curve, fields.expect(OCTET_STRING)?))
}

/// What a bit string holds, without its count of unused bits.
pub(super) fn bits<'a>(reader: &mut Reader<'a>) -> Option<&'a [u8]> {
    reader.expect(BIT_STRING)?.strip_prefix(&[0])
}
