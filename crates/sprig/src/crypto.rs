//! Hashes, ciphers, passwords, keys and certificates in the formats of Go's crypto packages. All randomness
//! comes from the host. Slow functions consume a proportional amount of fuel, so that a template cannot use
//! them to exhaust the CPU.

mod aes;
mod certificate;
mod der;
mod drbg;
mod dsa;
mod error;
mod fermat;
mod key;
mod password;
mod pem;
mod prime;
mod rsa;
mod x509;

use std::fmt::Write as _;

use mainstay_gostd::utf8::to_string_lossy;
use mainstay_template::{Call, Failure, Function, Type, Value};
use sha2::{Digest, Sha256, Sha512};

use crate::table::fixed;
use drbg::Stream;
use dsa::DsaKey;
use key::PrivateKey;
use rsa::RsaKey;

/// Fuel consumed by functions that are slow even for short input: low enough for any chart, too high for a
/// loop.
const RSA_2048_STEPS: u64 = 850_000;
const RSA_4096_STEPS: u64 = 4_000_000;
const DSA_STEPS: u64 = 4_000_000;
const SIGN_STEPS: u64 = 100_000;
const BCRYPT_STEPS: u64 = 3_000_000;
const SCRYPT_STEPS: u64 = 2_000_000;

const ONE: &[Type] = &[Type::String];
const TWO: &[Type] = &[Type::String, Type::String];
const DERIVE: &[Type] = &[
    Type::Uint32,
    Type::String,
    Type::String,
    Type::String,
    Type::String,
];

const OWN: &[Function] = &[
    fixed("sha1sum", ONE, |call| {
        hash(call, |text| hex(&sha1::Sha1::digest(text)))
    }),
    fixed("sha256sum", ONE, |call| {
        hash(call, |text| hex(&Sha256::digest(text)))
    }),
    fixed("sha512sum", ONE, |call| {
        hash(call, |text| hex(&Sha512::digest(text)))
    }),
    fixed("adler32sum", ONE, |call| {
        hash(call, |text| adler32(text).to_string())
    }),
    fixed("bcrypt", ONE, password::bcrypt),
    fixed("htpasswd", TWO, password::htpasswd),
    fixed("derivePassword", DERIVE, password::derive),
    fixed("genPrivateKey", ONE, generate_key),
    fixed("encryptAES", TWO, aes::encrypt),
    fixed("decryptAES", TWO, aes::decrypt),
];

pub(crate) const TABLES: &[&[Function]] = &[OWN, certificate::TABLE];

fn hash(call: &mut Call<'_>, sum: fn(&[u8]) -> String) -> Result<Value, Failure> {
    let text = call.str(0);
    call.meter.consume_fuel(1 + text.len() as u64 / 8)?;
    Ok(sum(&text).into())
}

fn hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
}

fn adler32(text: &[u8]) -> u32 {
    const MODULUS: u32 = 65_521;
    // Length of the longest chunk for which neither sum overflows.
    let (low, high) = text.chunks(5_552).fold((1, 0), |(low, high), chunk| {
        let (low, high) = chunk.iter().fold((low, high), |(low, high): (u32, u32), byte| {
            let low = low + u32::from(*byte);
            (low, high + low)
        });
        (low % MODULUS, high % MODULUS)
    });
    high << 16 | low
}

fn hmac_sha256(key: &[u8; 64], message: &[u8]) -> Vec<u8> {
    let pad = |byte: u8| key.map(|own| own ^ byte);
    let inner = Sha256::new()
        .chain_update(pad(0x36))
        .chain_update(message)
        .finalize();
    Sha256::new()
        .chain_update(pad(0x5c))
        .chain_update(inner)
        .finalize()
        .to_vec()
}

fn generate_key(call: &mut Call<'_>) -> Result<Value, Failure> {
    let kind = call.str(0);
    let steps = match kind.as_bytes() {
        b"" | b"rsa" => RSA_4096_STEPS,
        b"dsa" => DSA_STEPS,
        _ => SIGN_STEPS,
    };
    call.meter.consume_fuel(steps)?;
    let mut stream = Stream::new(call.host);
    let key = match kind.as_bytes() {
        b"" | b"rsa" => RsaKey::generate(4_096, &mut stream).map(PrivateKey::Rsa),
        b"dsa" => DsaKey::generate(&mut stream).map(PrivateKey::Dsa),
        b"ecdsa" => Some(PrivateKey::generate_ec(&mut stream)),
        b"ed25519" => Some(PrivateKey::generate_ed25519(&mut stream)),
        _ => return Ok(format!("Unknown type {}", to_string_lossy(&kind)).into()),
    };
    let text = key.map_or_else(
        || "failed to generate private key: no primes found".into(),
        |key| key.to_pem(),
    );
    Ok(text.into())
}
