//! Client certificates, encoded as DER. The encoder is hand-written because a user may be in several groups,
//! and rcgen supports only one organization per subject.

use rcgen::{PublicKeyData as _, SigningKey as _};

use super::tls::{AUTHORITY_NAME, Authority};
use crate::auth::{AUTHENTICATED, User};
use crate::clock::Instant;
use crate::der::{
    COMMON_NAME, EXPLICIT_VERSION, GENERALIZED_TIME, OBJECT_ID, ORGANIZATION, SEQUENCE, SET, UTC_TIME,
};

const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
const OCTET_STRING: u8 = 0x04;
const UTF8_STRING: u8 = 0x0C;
const EXPLICIT_EXTENSIONS: u8 = 0xA3;

const ECDSA_WITH_SHA256: &[u8] = &[0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x04, 0x03, 0x02];
const EXTENDED_KEY_USAGE: &[u8] = &[0x55, 0x1D, 0x25];
const CLIENT_AUTH: &[u8] = &[0x2B, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x02];

/// Period of validity of a certificate.
#[derive(Clone, Copy, Debug)]
pub(super) struct Validity {
    pub(super) not_before: Instant,
    pub(super) not_after: Instant,
}

/// Issues a client certificate for `user` with the public key of `key`. Returns it as DER.
pub(super) fn issue(
    authority: &Authority,
    user: &User,
    key: &rcgen::KeyPair,
    validity: Validity,
    serial: [u8; 8],
) -> Result<Vec<u8>, rcgen::Error> {
    let algorithm = der(SEQUENCE, &[&der(OBJECT_ID, &[ECDSA_WITH_SHA256])]);
    let signed = der(
        SEQUENCE,
        &[
            &der(EXPLICIT_VERSION, &[&der(INTEGER, &[&[2]])]),
            // The leading byte 1 keeps the number positive if the first bit of the serial is set.
            &der(INTEGER, &[&[1], &serial]),
            &algorithm,
            &der(SEQUENCE, &[&encode_attribute(&COMMON_NAME, AUTHORITY_NAME)]),
            &der(
                SEQUENCE,
                &[
                    &encode_time(validity.not_before),
                    &encode_time(validity.not_after),
                ],
            ),
            &encode_subject(user),
            &key.subject_public_key_info(),
            &der(EXPLICIT_EXTENSIONS, &[&der(SEQUENCE, &[&encode_key_usage()])]),
        ],
    );
    let signature = authority.key().sign(&signed)?;
    Ok(der(
        SEQUENCE,
        &[&signed, &algorithm, &der(BIT_STRING, &[&[0], &signature])],
    ))
}

/// Encodes the subject: the name of the user, and its groups except `system:authenticated`.
fn encode_subject(user: &User) -> Vec<u8> {
    let groups = user.groups.iter().filter(|group| *group != AUTHENTICATED);
    let mut names: Vec<Vec<u8>> = groups
        .map(|group| encode_attribute(&ORGANIZATION, group))
        .collect();
    names.push(encode_attribute(&COMMON_NAME, &user.name));
    der(SEQUENCE, &[&names.concat()])
}

fn encode_attribute(kind: &[u8], value: &str) -> Vec<u8> {
    let pair = [der(OBJECT_ID, &[kind]), der(UTF8_STRING, &[value.as_bytes()])].concat();
    der(SET, &[&der(SEQUENCE, &[&pair])])
}

fn encode_key_usage() -> Vec<u8> {
    let purposes = der(SEQUENCE, &[&der(OBJECT_ID, &[CLIENT_AUTH])]);
    der(
        SEQUENCE,
        &[
            &der(OBJECT_ID, &[EXTENDED_KEY_USAGE]),
            &der(OCTET_STRING, &[&purposes]),
        ],
    )
}

/// Encodes a time as `UTCTime` before 2050, and as `GeneralizedTime` since 2050.
fn encode_time(at: Instant) -> Vec<u8> {
    let digits: String = at.rfc3339().chars().filter(char::is_ascii_digit).collect();
    let text = format!("{digits}Z");
    match text.strip_prefix("20") {
        Some(short) if short < "5" => der(UTC_TIME, &[short.as_bytes()]),
        _ => der(GENERALIZED_TIME, &[text.as_bytes()]),
    }
}

/// Encodes an element with the concatenated `content`.
fn der(tag: u8, content: &[&[u8]]) -> Vec<u8> {
    let length: usize = content.iter().map(|part| part.len()).sum();
    let mut out = vec![tag];
    match u8::try_from(length) {
        Ok(short) if short < 0x80 => out.push(short),
        _ => {
            let digits = length.to_be_bytes();
            let zeros = digits.iter().take_while(|digit| **digit == 0).count();
            let digits = digits.get(zeros..).unwrap_or_default();
            // A length has at most eight bytes, so the conversion does not fail.
            out.push(0x80 | u8::try_from(digits.len()).unwrap_or_default());
            out.extend(digits);
        }
    }
    out.extend(content.concat());
    out
}

/// Encodes DER as PEM with `label`.
pub(super) fn pem(label: &str, der: &[u8]) -> String {
    use base64::Engine as _;
    let text = base64::engine::general_purpose::STANDARD.encode(der);
    let mut out = format!("-----BEGIN {label}-----\n");
    let mut rest = text.as_str();
    while let Some((line, more)) = rest.split_at_checked(64) {
        out.extend([line, "\n"]);
        rest = more;
    }
    if !rest.is_empty() {
        out.extend([rest, "\n"]);
    }
    out + &format!("-----END {label}-----\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_use_the_shortest_encoding() {
        assert_eq!(der(4, &[b"ab"]), [4, 2, b'a', b'b']);
        assert_eq!(der(4, &[&[0; 127]]).get(..2), Some(&[4, 127][..]));
        assert_eq!(der(4, &[&[0; 128]]).get(..3), Some(&[4, 0x81, 128][..]));
        assert_eq!(der(4, &[&[0; 300]]).get(..4), Some(&[4, 0x82, 1, 44][..]));
    }

    #[test]
    fn times_use_utc_time_or_generalized_time() {
        let at = |text: &str| encode_time(Instant::parse(text).unwrap());
        assert_eq!(at("2049-12-31T23:59:59Z"), der(UTC_TIME, &[b"491231235959Z"]));
        assert_eq!(
            at("2050-01-01T00:00:00Z"),
            der(GENERALIZED_TIME, &[b"20500101000000Z"])
        );
        assert_eq!(
            at("1970-01-01T00:00:00Z"),
            der(GENERALIZED_TIME, &[b"19700101000000Z"])
        );
    }

    #[test]
    fn pem_lines_have_64_characters() {
        assert_eq!(
            pem("X", &[0; 48]),
            format!("-----BEGIN X-----\n{}\n-----END X-----\n", "A".repeat(64))
        );
        assert_eq!(pem("X", &[0; 3]), "-----BEGIN X-----\nAAAA\n-----END X-----\n");
    }
}
