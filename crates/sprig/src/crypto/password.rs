//! bcrypt hashes with a random salt, and passwords derived with the Master Password algorithm.

use blowfish::Blowfish;
use mainstay_gostd::utf8::to_string_lossy;
use mainstay_template::{Call, Failure, Value};
use scrypt::{Params, scrypt};

use super::{BCRYPT_STEPS, SCRYPT_STEPS, hmac_sha256};

/// Binary logarithm of the number of rounds.
const COST: u32 = 10;
const MAX_PASSWORD: usize = 72;
const ALPHABET: &[u8; 64] = b"./ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

pub(super) fn bcrypt(call: &mut Call<'_>) -> Result<Value, Failure> {
    let password = call.str(0);
    Ok(hash(call, &password)?.into())
}

pub(super) fn htpasswd(call: &mut Call<'_>) -> Result<Value, Failure> {
    let (user, password) = (call.str(0), call.str(1));
    if user.contains(&b':') {
        return Ok(Value::string([b"invalid username: ", user.as_bytes()].concat()));
    }
    let hash = hash(call, &password)?;
    Ok(Value::string([user.as_bytes(), b":", hash.as_bytes()].concat()))
}

/// Hashes `password`. For an invalid password, returns Sprig's error text.
fn hash(call: &mut Call<'_>, password: &[u8]) -> Result<String, Failure> {
    if password.len() > MAX_PASSWORD {
        let text = "failed to encrypt string with bcrypt: bcrypt: password length exceeds 72 bytes";
        return Ok(text.into());
    }
    call.meter.consume_fuel(BCRYPT_STEPS)?;
    let mut salt = [0; 16];
    call.host.entropy(&mut salt);
    Ok(bcrypt_hash(password, &salt))
}

fn bcrypt_hash(password: &[u8], salt: &[u8; 16]) -> String {
    let key = [password, &[0]].concat();
    let mut state = Blowfish::bc_init_state();
    state.salted_expand_key(salt, &key);
    for _ in 0..1_u32 << COST {
        state.bc_expand_key(&key);
        state.bc_expand_key(salt);
    }
    let mut digest = Vec::with_capacity(24);
    for block in b"OrpheanBeholderScryDoubt".as_chunks::<8>().0 {
        let half = |bytes: &[u8]| {
            bytes
                .iter()
                .fold(0_u32, |value, byte| value << 8 | u32::from(*byte))
        };
        let (left, right) = block.split_at(4);
        let pair = (0..64).fold([half(left), half(right)], |pair, _| state.bc_encrypt(pair));
        digest.extend(pair.iter().flat_map(|half| half.to_be_bytes()));
    }
    // The last byte of the hash is not part of bcrypt's output.
    digest.truncate(23);
    format!("$2a${COST:02}${}{}", encode(salt), encode(&digest))
}

/// Encodes in bcrypt's base64 alphabet without padding.
fn encode(bytes: &[u8]) -> String {
    let letter = |index: u32| {
        ALPHABET
            .get((index & 63) as usize)
            .copied()
            .map_or('.', char::from)
    };
    let mut out = String::new();
    for chunk in bytes.chunks(3) {
        let bits = (0..3).fold(0_u32, |bits, at| {
            bits << 8 | chunk.get(at).copied().map_or(0, u32::from)
        });
        out.extend((0..=chunk.len()).map(|digit| letter(bits >> (18 - 6 * digit))));
    }
    out
}

const SEED: &[u8] = b"com.lyndir.masterpassword";

/// Password templates by type. Each letter is a class of [`CLASSES`].
const PASSWORD_TEMPLATES: &[(&str, &[&str])] = &[
    ("maximum", &["anoxxxxxxxxxxxxxxxxx", "axxxxxxxxxxxxxxxxxno"]),
    (
        "long",
        &[
            "CvcvnoCvcvCvcv",
            "CvcvCvcvnoCvcv",
            "CvcvCvcvCvcvno",
            "CvccnoCvcvCvcv",
            "CvccCvcvnoCvcv",
            "CvccCvcvCvcvno",
            "CvcvnoCvccCvcv",
            "CvcvCvccnoCvcv",
            "CvcvCvccCvcvno",
            "CvcvnoCvcvCvcc",
            "CvcvCvcvnoCvcc",
            "CvcvCvcvCvccno",
            "CvccnoCvccCvcv",
            "CvccCvccnoCvcv",
            "CvccCvccCvcvno",
            "CvcvnoCvccCvcc",
            "CvcvCvccnoCvcc",
            "CvcvCvccCvccno",
            "CvccnoCvcvCvcc",
            "CvccCvcvnoCvcc",
            "CvccCvcvCvccno",
        ],
    ),
    ("medium", &["CvcnoCvc", "CvcCvcno"]),
    ("short", &["Cvcn"]),
    ("basic", &["aaanaaan", "aannaaan", "aaannaaa"]),
    ("pin", &["nnnn"]),
];

const CLASSES: &[(u8, &str)] = &[
    (b'V', "AEIOU"),
    (b'C', "BCDFGHJKLMNPQRSTVWXYZ"),
    (b'v', "aeiou"),
    (b'c', "bcdfghjklmnpqrstvwxyz"),
    (b'A', "AEIOUBCDFGHJKLMNPQRSTVWXYZ"),
    (b'a', "AEIOUaeiouBCDFGHJKLMNPQRSTVWXYZbcdfghjklmnpqrstvwxyz"),
    (b'n', "0123456789"),
    (b'o', "@&%?,=[]_:-+*$#!'^~;()/."),
    (
        b'x',
        "AEIOUaeiouBCDFGHJKLMNPQRSTVWXYZbcdfghjklmnpqrstvwxyz0123456789!@#$%^&*()",
    ),
];

pub(super) fn derive(call: &mut Call<'_>) -> Result<Value, Failure> {
    let counter = call.uint(0) as u32;
    let (kind, password, user, site) = (call.str(1), call.str(2), call.str(3), call.str(4));
    let Some((_, shapes)) = PASSWORD_TEMPLATES
        .iter()
        .find(|(name, _)| name.as_bytes() == kind.as_bytes())
    else {
        return Ok(format!("cannot find password template {}", to_string_lossy(&kind)).into());
    };
    call.meter.consume_fuel(SCRYPT_STEPS)?;
    let length = |text: &[u8]| (text.len() as u32).to_be_bytes();
    let salt = [SEED, &length(&user), &user].concat();
    let mut key = [0; 64];
    let made = Params::new(15, 8, 2).map(|params| scrypt(&password, &salt, &params, &mut key));
    if !matches!(made, Ok(Ok(()))) {
        return Ok("failed to derive password: scrypt: parameters are too large".into());
    }
    let seed = hmac_sha256(
        &key,
        &[SEED, &length(&site), &site, &counter.to_be_bytes()].concat(),
    );
    Ok(fill_template(shapes, &seed).into())
}

fn fill_template(shapes: &[&str], seed: &[u8]) -> String {
    let Some((first, rest)) = seed.split_first() else {
        return String::new();
    };
    let shape = shapes
        .get(usize::from(*first) % shapes.len().max(1))
        .copied()
        .unwrap_or_default();
    let pick = |(class, byte): (u8, &u8)| {
        let (_, letters) = CLASSES.iter().find(|(name, _)| *name == class)?;
        letters
            .as_bytes()
            .get(usize::from(*byte) % letters.len())
            .copied()
            .map(char::from)
    };
    shape.bytes().zip(rest).filter_map(pick).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(text: &str) -> Vec<u8> {
        let digit = |letter: u8| ALPHABET.iter().position(|known| *known == letter).unwrap() as u32;
        let bits = text.bytes().fold(num_bigint::BigUint::ZERO, |bits, letter| {
            (bits << 6) + digit(letter)
        });
        (bits >> (text.len() * 6 % 8)).to_bytes_be()
    }

    #[test]
    fn bcrypt_hash_equals_a_published_one() {
        let salt: [u8; 16] = decode("XajjQvNhvvRt5GSeFk1xFe").try_into().unwrap();
        let expected = "$2a$10$XajjQvNhvvRt5GSeFk1xFeyqRrsxkhBkUiQeg0dt.wU1qD4aFDcga";
        assert_eq!(bcrypt_hash(b"allmine", &salt), expected);
    }
}
