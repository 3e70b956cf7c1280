//! Client certificates: takes the DER of one that was verified already, gives the user its subject names: common name and
//! organisations.

use super::User;

/// DER tags in the order in which they are met.
const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const EXPLICIT_VERSION: u8 = 0xA0;
const OBJECT_ID: u8 = 0x06;
const COMMON_NAME: [u8; 3] = [0x55, 0x04, 0x03];
const ORGANIZATION: [u8; 3] = [0x55, 0x04, 0x0A];

/// The user of a certificate: its common name, in the groups its organisations name; `None` when it names nobody.
#[must_use]
pub fn user_of_certificate(der: &[u8]) -> Option<User> {
    let mut name = String::new();
    let mut groups = Vec::new();
    for (oid, text) in subject(der)? {
        match oid {
            _ if oid == COMMON_NAME => name = text,
            _ if oid == ORGANIZATION => groups.push(text),
            _ => {}
        }
    }
    let groups: Vec<&str> = groups.iter().map(String::as_str).collect();
    (!name.is_empty()).then(|| User::named(&name, &groups))
}

/// The attributes of the subject, in order.
fn subject(der: &[u8]) -> Option<Vec<(&[u8], String)>> {
    let (certificate, _) = expect(der, SEQUENCE)?;
    let (signed, _) = expect(certificate, SEQUENCE)?;
    let mut rest = signed;
    if rest.first() == Some(&EXPLICIT_VERSION) {
        rest = element(rest)?.2;
    }
    // Serial number, signature algorithm, issuer and validity come before the subject.
    for _ in 0..4 {
        rest = element(rest)?.2;
    }
    let (mut names, _) = expect(rest, SEQUENCE)?;
    let mut found = Vec::new();
    while !names.is_empty() {
        let (mut set, rest) = expect(names, SET)?;
        while !set.is_empty() {
            let (pair, rest) = expect(set, SEQUENCE)?;
            let (oid, value) = expect(pair, OBJECT_ID)?;
            let (_, text, _) = element(value)?;
            found.push((oid, String::from_utf8_lossy(text).into_owned()));
            set = rest;
        }
        names = rest;
    }
    Some(found)
}

fn expect(der: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    element(der)
        .filter(|(found, _, _)| *found == tag)
        .map(|(_, content, rest)| (content, rest))
}

/// Tag, content, and what comes after.
fn element(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
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
