//! Client certificates: reads the user (common name and organizations) from the DER of a verified
//! certificate.

use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

use super::User;
use crate::clock::Instant;
use crate::der::{
    COMMON_NAME, EXPLICIT_VERSION, GENERALIZED_TIME, OBJECT_ID, ORGANIZATION, SEQUENCE, SET, UTC_TIME,
};

/// Object identifier 1.3.6.1.4.1.57683.2, which Kubernetes uses for the uid of a user.
const UID: [u8; 9] = [0x2B, 0x06, 0x01, 0x04, 0x01, 0x83, 0xC2, 0x53, 0x02];

/// Returns the user of a certificate. The common name is the user's name, the organizations are the groups.
/// `None` if the certificate is malformed, has no common name, or has an invalid uid.
#[must_use]
pub fn user_from_certificate(der: &[u8]) -> Option<User> {
    let (mut name, mut groups, mut uids) = (String::new(), Vec::new(), Vec::new());
    for (oid, text) in subject_attributes(der)? {
        match oid {
            _ if oid == COMMON_NAME => name = text,
            _ if oid == ORGANIZATION => groups.push(text),
            _ if oid == UID => uids.push(text),
            _ => {}
        }
    }
    if name.is_empty() || uids.len() > 1 || uids.iter().any(String::is_empty) {
        return None;
    }
    let groups: Vec<&str> = groups.iter().map(String::as_str).collect();
    let mut user = User::named(&name, &groups);
    user.uid = uids.pop().unwrap_or_default();
    user.extra.insert(CREDENTIAL_ID.into(), vec![credential_id(der)]);
    Some(user)
}

/// Key of the certificate fingerprint in the extra attributes of a user.
const CREDENTIAL_ID: &str = "authentication.kubernetes.io/credential-id";

fn credential_id(der: &[u8]) -> String {
    let sum = Sha256::digest(der);
    let hex: String = sum.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    });
    format!("X509SHA256={hex}")
}

/// Returns the attributes of the subject in order, as object identifiers and texts.
fn subject_attributes(der: &[u8]) -> Option<Vec<(&[u8], String)>> {
    let (certificate, _) = split_tagged(der, SEQUENCE)?;
    let (signed, _) = split_tagged(certificate, SEQUENCE)?;
    let mut rest = signed;
    if rest.first() == Some(&EXPLICIT_VERSION) {
        rest = split_element(rest)?.2;
    }
    // Serial number, signature algorithm, issuer and validity precede the subject.
    for _ in 0..4 {
        rest = split_element(rest)?.2;
    }
    let (mut names, _) = split_tagged(rest, SEQUENCE)?;
    let mut found = Vec::new();
    while !names.is_empty() {
        let (mut set, rest) = split_tagged(names, SET)?;
        while !set.is_empty() {
            let (pair, rest) = split_tagged(set, SEQUENCE)?;
            let (oid, value) = split_tagged(pair, OBJECT_ID)?;
            let (_, text, _) = split_element(value)?;
            found.push((oid, String::from_utf8_lossy(text).into_owned()));
            set = rest;
        }
        names = rest;
    }
    Some(found)
}

/// Returns the start and end of a certificate's validity, in seconds since 1970.
#[must_use]
pub fn certificate_validity(der: &[u8]) -> Option<(i64, i64)> {
    let (certificate, _) = split_tagged(der, SEQUENCE)?;
    let (mut rest, _) = split_tagged(certificate, SEQUENCE)?;
    if rest.first() == Some(&EXPLICIT_VERSION) {
        rest = split_element(rest)?.2;
    }
    // Serial number, signature algorithm and issuer precede the validity.
    for _ in 0..3 {
        rest = split_element(rest)?.2;
    }
    let (validity, _) = split_tagged(rest, SEQUENCE)?;
    let (tag, start, rest) = split_element(validity)?;
    let (end_tag, end, _) = split_element(rest)?;
    Some((parse_time(tag, start)?, parse_time(end_tag, end)?))
}

/// Parses `YYMMDDhhmmssZ` (`UTCTime`) or `YYYYMMDDhhmmssZ` (`GeneralizedTime`) to seconds since 1970.
fn parse_time(tag: u8, text: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(text).ok()?;
    let digits = match tag {
        GENERALIZED_TIME => text.to_owned(),
        UTC_TIME if text < "50" => format!("20{text}"),
        UTC_TIME => format!("19{text}"),
        _ => return None,
    };
    let part = |from: usize, to: usize| digits.get(from..to);
    let time = format!(
        "{}-{}-{}T{}:{}:{}Z",
        part(0, 4)?,
        part(4, 6)?,
        part(6, 8)?,
        part(8, 10)?,
        part(10, 12)?,
        part(12, 14)?
    );
    Instant::parse(&time).map(Instant::as_seconds)
}

/// Splits off the first element, which must have this tag. Returns its content and the remaining bytes.
fn split_tagged(der: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    split_element(der)
        .filter(|(actual, _, _)| *actual == tag)
        .map(|(_, content, rest)| (content, rest))
}

/// Splits off the first element. Returns its tag, its content and the remaining bytes.
fn split_element(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (tag, rest) = der.split_first()?;
    let (first, rest) = rest.split_first()?;
    let (length, rest) = if *first < 0x80 {
        (usize::from(*first), rest)
    } else {
        let (digits, rest) = rest.split_at_checked(usize::from(*first & 0x7F))?;
        let fold = |length: usize, digit: &u8| length.checked_mul(256)?.checked_add(usize::from(*digit));
        (digits.iter().try_fold(0, fold)?, rest)
    };
    let (content, rest) = rest.split_at_checked(length)?;
    Some((*tag, content, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Encodes one element of at most 65535 bytes.
    fn der(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
        let content = parts.concat();
        let [high, low] = u16::try_from(content.len()).unwrap().to_be_bytes();
        [&[tag, 0x82, high, low][..], &content].concat()
    }

    fn attribute(oid: &[u8], text: &[u8]) -> Vec<u8> {
        let pair = [der(OBJECT_ID, &[oid]), der(0x0C, &[text])].concat();
        der(SET, &[&der(SEQUENCE, &[&pair])])
    }

    fn certificate(names: &[(&[u8], &str)]) -> Vec<u8> {
        let names: Vec<u8> = names
            .iter()
            .flat_map(|(oid, text)| attribute(oid, text.as_bytes()))
            .collect();
        let skipped = der(SEQUENCE, &[]);
        let signed = [
            der(EXPLICIT_VERSION, &[&der(0x02, &[&[2]])]),
            der(0x02, &[&[1]]),
            skipped.clone(),
            skipped.clone(),
            skipped,
            der(SEQUENCE, &[&names]),
        ];
        der(SEQUENCE, &[&der(SEQUENCE, &[&signed.concat()])])
    }

    fn check(names: &[(&[u8], &str)], expected: Option<(&str, &[&str], &str)>) {
        let user = user_from_certificate(&certificate(names));
        let found = user.as_ref().map(|user| {
            let groups: Vec<&str> = user.groups.iter().map(String::as_str).collect();
            (user.name.as_str(), groups, user.uid.as_str())
        });
        let expected = expected.map(|(name, groups, uid)| (name, groups.to_vec(), uid));
        assert_eq!(found, expected);
    }

    #[test]
    fn user_is_read_from_the_subject() {
        check(
            &[(&COMMON_NAME, "ann")],
            Some(("ann", &["system:authenticated"], "")),
        );
        check(
            &[
                (&ORGANIZATION, "a"),
                (&ORGANIZATION, "b"),
                (&[0x55, 0x04, 0x06], "XX"),
                (&COMMON_NAME, "ann"),
                (&UID, "7"),
            ],
            Some(("ann", &["a", "b", "system:authenticated"], "7")),
        );
        // As in Go, the last common name is used.
        check(
            &[(&COMMON_NAME, "ann"), (&COMMON_NAME, "bob")],
            Some(("bob", &["system:authenticated"], "")),
        );
        check(&[(&ORGANIZATION, "system:masters")], None);
        check(&[(&COMMON_NAME, "")], None);
        check(&[], None);
        check(&[(&COMMON_NAME, "ann"), (&UID, "")], None);
        check(&[(&COMMON_NAME, "ann"), (&UID, "1"), (&UID, "2")], None);
    }

    #[test]
    fn the_credential_id_is_the_certificate_fingerprint() {
        let der = certificate(&[(&COMMON_NAME, "ann")]);
        let user = user_from_certificate(&der).unwrap();
        let id = user.extra.get(CREDENTIAL_ID).unwrap();
        assert_eq!(id, &[credential_id(&der)]);
        // The SHA-256 of the empty input is well known.
        let empty = "X509SHA256=e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(credential_id(b""), empty);
    }

    #[test]
    fn malformed_certificates_have_no_user() {
        let good = certificate(&[(&ORGANIZATION, "a"), (&COMMON_NAME, "ann")]);
        for end in 0..good.len() {
            assert_eq!(
                user_from_certificate(good.get(..end).unwrap()),
                None,
                "cut at {end}"
            );
        }
        for at in 0..good.len() {
            for value in [0x00, 0x30, 0x7F, 0x80, 0x84, 0x88, 0xFF] {
                let mut bad = good.clone();
                bad[at] = value;
                // Truncated or modified input must not panic.
                let _ = user_from_certificate(&bad);
            }
        }
        let huge = [&[SEQUENCE, 0x88][..], &[0xFF; 8], &good].concat();
        assert_eq!(user_from_certificate(&huge), None);
        let wide = [&[SEQUENCE, 0xFF][..], &[0xFF; 127], &good].concat();
        assert_eq!(user_from_certificate(&wide), None);
        assert_eq!(
            user_from_certificate(&[SEQUENCE, 0x80]),
            None,
            "no indefinite lengths"
        );
        let deep = [SEQUENCE, 0x80].repeat(100_000);
        assert_eq!(user_from_certificate(&deep), None);
        let nested = (0..10_000).fold(Vec::new(), |inner: Vec<u8>, _| {
            let [high, low] = u16::try_from(inner.len()).unwrap_or(u16::MAX).to_be_bytes();
            [&[SEQUENCE, 0x82, high, low][..], &inner].concat()
        });
        assert_eq!(user_from_certificate(&nested), None);
    }
}
