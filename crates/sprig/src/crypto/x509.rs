//! X.509 certificates with the same fields as Go's. Only the required fields of a signer's certificate are
//! parsed.

use std::net::IpAddr;

use sha2::{Digest, Sha256};

use super::der::{
    self, BOOLEAN, GENERALIZED_TIME, OCTET_STRING, OID, PRINTABLE_STRING, Reader, SEQUENCE, SET, UTC_TIME,
    UTF8_STRING,
};
use super::error::CreateError;
use super::key::PrivateKey;
use crate::date::Civil;

const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];
const KEY_USAGE: u8 = 0x0f;
const EXTENDED_KEY_USAGE: u8 = 0x25;
const BASIC_CONSTRAINTS: u8 = 0x13;
const SUBJECT_KEY_ID: u8 = 0x0e;
const AUTHORITY_KEY_ID: u8 = 0x23;
const ALTERNATIVE_NAMES: u8 = 0x11;
const SERVER_AUTH: &[u8] = &[0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x01];
const CLIENT_AUTH: &[u8] = &[0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x02];

/// Fields of a certificate.
pub(super) struct Template {
    pub(super) common_name: Vec<u8>,
    pub(super) addresses: Vec<IpAddr>,
    pub(super) names: Vec<Vec<u8>>,
    /// Seconds since 1970.
    pub(super) not_before: i64,
    pub(super) not_after: i64,
    pub(super) is_authority: bool,
    pub(super) serial: [u8; 16],
}

/// Issuer of a certificate.
pub(super) struct Issuer {
    /// DER encoding of the name.
    subject: Vec<u8>,
    key_id: Option<Vec<u8>>,
    /// `SubjectPublicKeyInfo`, or `None` for a self-signed certificate.
    public: Option<Vec<u8>>,
}

impl Issuer {
    /// Creates the issuer of a self-signed certificate.
    pub(super) fn self_signed(template: &Template) -> Result<Self, CreateError> {
        Ok(Self {
            subject: name(&template.common_name)?,
            key_id: None,
            public: None,
        })
    }

    /// Parses a signer's certificate.
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, &'static str> {
        let mut whole = Reader(bytes);
        let certificate = whole.enter(SEQUENCE).ok_or("x509: malformed certificate")?;
        if !whole.is_empty() {
            return Err("x509: trailing data");
        }
        Self::read(certificate).ok_or("x509: malformed tbs certificate")
    }

    fn read(mut certificate: Reader<'_>) -> Option<Self> {
        let mut fields = certificate.enter(SEQUENCE)?;
        certificate.enter(SEQUENCE)?;
        super::key::bits(&mut certificate)?;
        if fields.peek()? == der::context(0) {
            fields.any()?;
        }
        fields.integer()?;
        // Skips the signature algorithm, the issuer and the validity.
        for _ in 0..3 {
            fields.enter(SEQUENCE)?;
        }
        let subject = element(&mut fields, SEQUENCE)?.to_vec();
        let public = element(&mut fields, SEQUENCE)?.to_vec();
        let mut key_id = None;
        while !fields.is_empty() {
            let (whole, content) = fields.any()?;
            if whole.first() == Some(&der::context(3)) {
                key_id = subject_key_id(content)?;
            }
        }
        Some(Self {
            subject,
            key_id,
            public: Some(public),
        })
    }
}

fn element<'a>(reader: &mut Reader<'a>, tag: u8) -> Option<&'a [u8]> {
    reader
        .any()
        .filter(|(whole, _)| whole.first() == Some(&tag))
        .map(|(whole, _)| whole)
}

/// Returns the key identifier of the extensions. The outer `None` means that they are malformed.
#[allow(clippy::option_option)]
fn subject_key_id(extensions: &[u8]) -> Option<Option<Vec<u8>>> {
    let mut list = Reader(extensions).enter(SEQUENCE)?;
    let mut found = None;
    while !list.is_empty() {
        let mut extension = list.enter(SEQUENCE)?;
        let oid = extension.expect(OID)?;
        if extension.peek()? == BOOLEAN {
            extension.any()?;
        }
        let content = extension.expect(OCTET_STRING)?;
        if oid == [0x55, 0x1d, SUBJECT_KEY_ID] {
            found = Some(Reader(content).expect(OCTET_STRING)?.to_vec());
        }
    }
    Some(found)
}

/// Creates the certificate of `subject_key`. `signer` is the key of `issuer`.
pub(super) fn create(
    template: &Template,
    subject_key: &PrivateKey,
    issuer: &Issuer,
    signer: &PrivateKey,
) -> Result<Vec<u8>, CreateError> {
    let algorithm = signer.signature_algorithm().ok_or(CreateError::NotASigner)?;
    let (signer_public, _) = signer.public().ok_or(CreateError::NotASigner)?;
    let public = subject_key.public().ok_or(CreateError::UnsupportedKey)?;
    if issuer.public.as_ref().is_some_and(|own| *own != signer_public) {
        return Err(CreateError::KeyMismatch);
    }
    let subject = name(&template.common_name)?;
    let validity = der::sequence(&[time(template.not_before), time(template.not_after)]);
    let extensions = extensions(template, issuer, &subject, &public.1)?;
    let body = der::sequence(&[
        der::value(der::context(0), &der::integer(&[2])),
        der::integer(&template.serial),
        algorithm.clone(),
        issuer.subject.clone(),
        validity,
        subject,
        public.0,
        der::value(der::context(3), &extensions),
    ]);
    let signature = signer.sign(&body)?;
    Ok(der::sequence(&[body, algorithm, der::bit_string(&signature)]))
}

/// Encodes a name that consists of a common name. An empty name has no parts.
fn name(common_name: &[u8]) -> Result<Vec<u8>, CreateError> {
    if common_name.is_empty() {
        return Ok(der::sequence(&[]));
    }
    let printable = |b: &u8| b.is_ascii_alphanumeric() || b"'()+,-./ :=?".contains(b);
    let tag = if common_name.iter().all(printable) {
        PRINTABLE_STRING
    } else {
        UTF8_STRING
    };
    std::str::from_utf8(common_name).map_err(|_| CreateError::NameNotUtf8)?;
    let part = der::sequence(&[der::value(OID, COMMON_NAME), der::value(tag, common_name)]);
    Ok(der::sequence(&[der::value(SET, &part)]))
}

/// Encodes a time, with a two-digit year if possible.
fn time(seconds: i64) -> Vec<u8> {
    let at = Civil::from_seconds(seconds);
    let rest = format!(
        "{:02}{:02}{:02}{:02}{:02}Z",
        at.month, at.day, at.hour, at.minute, at.second
    );
    if (1950..2050).contains(&at.year) {
        der::value(UTC_TIME, format!("{:02}{rest}", at.year % 100).as_bytes())
    } else {
        der::value(GENERALIZED_TIME, format!("{:04}{rest}", at.year).as_bytes())
    }
}

fn extensions(
    template: &Template,
    issuer: &Issuer,
    subject: &[u8],
    key: &[u8],
) -> Result<Vec<u8>, CreateError> {
    // Digital signature and key encipherment. An authority may also sign certificates.
    let usage = if template.is_authority {
        [3, 2, 2, 0xa4]
    } else {
        [3, 2, 5, 0xa0]
    };
    let purposes = der::sequence(&[der::value(OID, SERVER_AUTH), der::value(OID, CLIENT_AUTH)]);
    let authority = if template.is_authority {
        der::value(BOOLEAN, &[0xff])
    } else {
        Vec::new()
    };
    let mut list = vec![
        extension(KEY_USAGE, true, &usage),
        extension(EXTENDED_KEY_USAGE, false, &purposes),
        extension(BASIC_CONSTRAINTS, true, &der::sequence(&[authority])),
    ];
    if template.is_authority {
        let id = Sha256::digest(key);
        list.push(extension(
            SUBJECT_KEY_ID,
            false,
            &der::value(OCTET_STRING, id.get(..20).unwrap_or(&id)),
        ));
    }
    if let Some(id) = issuer
        .key_id
        .as_ref()
        .filter(|id| !id.is_empty() && issuer.subject != subject)
    {
        list.push(extension(
            AUTHORITY_KEY_ID,
            false,
            &der::sequence(&[der::value(0x80, id)]),
        ));
    }
    if !template.names.is_empty() || !template.addresses.is_empty() {
        list.push(extension(
            ALTERNATIVE_NAMES,
            template.common_name.is_empty(),
            &alternatives(template)?,
        ));
    }
    Ok(der::sequence(&list))
}

fn extension(number: u8, critical: bool, content: &[u8]) -> Vec<u8> {
    let critical = if critical {
        der::value(BOOLEAN, &[0xff])
    } else {
        Vec::new()
    };
    der::sequence(&[
        der::value(OID, &[0x55, 0x1d, number]),
        critical,
        der::value(OCTET_STRING, content),
    ])
}

fn alternatives(template: &Template) -> Result<Vec<u8>, CreateError> {
    let mut list = Vec::new();
    for name in &template.names {
        if !name.is_ascii() {
            return Err(CreateError::AlternativeName(name.clone()));
        }
        list.push(der::value(0x82, name));
    }
    list.extend(
        template
            .addresses
            .iter()
            .map(|address| match address.to_canonical() {
                IpAddr::V4(address) => der::value(0x87, &address.octets()),
                IpAddr::V6(address) => der::value(0x87, &address.octets()),
            }),
    );
    Ok(der::sequence(&list))
}
