//! Functions that create certificates.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::net::IpAddr;

use mainstay_template::{
    Call, Failure, Function, GoKind, LimitExceeded, List, Meter, Object, Str, Type, Value,
};

use super::drbg::Stream;
use super::error::PairError;
use super::key::PrivateKey;
use super::rsa::RsaKey;
use super::x509::{Issuer, Template, create};
use super::{RSA_2048_STEPS, SIGN_STEPS, pem};
use crate::encoding::decode_base64;
use crate::table::fixed;
use crate::text;

/// Fuel per cubed kilobyte of a key's PEM text. The text of a 2048-bit key has two kilobytes, that of a
/// 16384-bit key has thirteen.
const KEY_STEPS: u64 = 40_000;

const CERTIFICATE: Type = Type::Object("sprig.certificate");
const NAMED: &[Type] = &[Type::String, Type::ListOfAny, Type::ListOfAny, Type::Int];
const NAMED_KEY: &[Type] = &[
    Type::String,
    Type::ListOfAny,
    Type::ListOfAny,
    Type::Int,
    Type::String,
];
const SIGNED: &[Type] = &[
    Type::String,
    Type::ListOfAny,
    Type::ListOfAny,
    Type::Int,
    CERTIFICATE,
];
const SIGNED_KEY: &[Type] = &[
    Type::String,
    Type::ListOfAny,
    Type::ListOfAny,
    Type::Int,
    CERTIFICATE,
    Type::String,
];

pub(super) const TABLE: &[Function] = &[
    fixed("buildCustomCert", &[Type::String, Type::String], build_custom),
    fixed("genCA", &[Type::String, Type::Int], |call| authority(call, None)),
    fixed("genCAWithKey", &[Type::String, Type::Int, Type::String], |call| {
        authority(call, Some(2))
    }),
    fixed("genSelfSignedCert", NAMED, |call| self_signed(call, None)),
    fixed("genSelfSignedCertWithKey", NAMED_KEY, |call| {
        self_signed(call, Some(4))
    }),
    fixed("genSignedCert", SIGNED, |call| signed(call, None)),
    fixed("genSignedCertWithKey", SIGNED_KEY, |call| signed(call, Some(5))),
];

/// Sprig's `certificate`: a certificate and its key as PEM text.
struct Certificate {
    cert: Str,
    key: Str,
}

impl Object for Certificate {
    fn type_name(&self) -> Cow<'static, str> {
        Cow::Borrowed("sprig.certificate")
    }

    fn go_kind(&self) -> GoKind {
        GoKind::Struct
    }

    fn field(&self, name: &str) -> Option<Value> {
        match name {
            "Cert" => Some(Value::String(self.cert.clone())),
            "Key" => Some(Value::String(self.key.clone())),
            _ => None,
        }
    }

    fn print(&self) -> Str {
        [b"{", self.cert.as_bytes(), b" ", self.key.as_bytes(), b"}"]
            .concat()
            .into()
    }

    fn plain(&self) -> Value {
        let entries = ["Cert", "Key"].map(|name| (name.into(), self.field(name).unwrap_or_default()));
        Value::map(BTreeMap::from(entries))
    }
}

fn authority(call: &mut Call<'_>, key: Option<usize>) -> Result<Value, Failure> {
    let key = subject_key(call, key)?;
    let mut template = template(call, None, 1)?;
    template.is_authority = true;
    finish(call, &template, &key, None)
}

fn self_signed(call: &mut Call<'_>, key: Option<usize>) -> Result<Value, Failure> {
    let key = subject_key(call, key)?;
    let template = template(call, Some((1, 2)), 3)?;
    finish(call, &template, &key, None)
}

fn signed(call: &mut Call<'_>, key: Option<usize>) -> Result<Value, Failure> {
    let key = subject_key(call, key)?;
    if let Some(pair) = call.args.get(4).and_then(Value::native::<Certificate>) {
        charge_key(call.meter, &pair.key)?;
    }
    let (issuer, signer) = signer(call, 4).map_err(|error| Failure::message(error.to_string()))?;
    let template = template(call, Some((1, 2)), 3)?;
    finish(call, &template, &key, Some((&issuer, &signer)))
}

/// Returns the key in argument `index`, or generates one.
fn subject_key(call: &mut Call<'_>, index: Option<usize>) -> Result<PrivateKey, Failure> {
    call.meter.consume_fuel(SIGN_STEPS)?;
    if let Some(index) = index {
        charge_key(call.meter, &call.str(index))?;
        let key = PrivateKey::from_pem(&call.str(index));
        return key.map_err(|error| Failure::message(format!("parsing private key: {error}")));
    }
    call.meter.consume_fuel(RSA_2048_STEPS)?;
    let key = RsaKey::generate(2_048, &mut Stream::new(call.host));
    key.map(PrivateKey::Rsa)
        .ok_or_else(|| Failure::message("error generating rsa key: no primes found"))
}

/// Consumes fuel for checking and using a key. The cost grows with the cube of its size.
fn charge_key(meter: &mut Meter, pem: &[u8]) -> Result<(), LimitExceeded> {
    let kilobytes = 1 + pem.len() as u64 / 1_024;
    meter.consume_fuel(kilobytes.saturating_pow(3).saturating_mul(KEY_STEPS))
}

/// Parses the certificate in argument `index`. Returns it as an issuer, with its key.
fn signer(call: &Call<'_>, index: usize) -> Result<(Issuer, PrivateKey), PairError> {
    let empty = Certificate {
        cert: Str::default(),
        key: Str::default(),
    };
    let pair = call
        .args
        .get(index)
        .and_then(Value::native::<Certificate>)
        .unwrap_or(&empty);
    let block = pem::decode(&pair.cert).ok_or(PairError::CertificatePem)?;
    let issuer = Issuer::parse(&block.bytes).map_err(|reason| PairError::Certificate {
        field: "decodedSignerCert.Bytes",
        reason,
    })?;
    let key = PrivateKey::from_pem(&pair.key).map_err(PairError::Key)?;
    Ok((issuer, key))
}

/// Returns the fields that all certificates have. `names` are the indexes of two list arguments with
/// alternative names, `days` is the index of the number of days.
fn template(call: &mut Call<'_>, names: Option<(usize, usize)>, days: usize) -> Result<Template, Failure> {
    let (addresses, names) = match names {
        Some((addresses, names)) => (address_arguments(call, addresses)?, name_arguments(call, names)?),
        None => (Vec::new(), Vec::new()),
    };
    let now = call.host.now();
    // Go multiplies in 64 bits and wraps around if the number of days is too large.
    let valid = call.int(days).wrapping_mul(86_400_000_000_000);
    let seconds = |nanos: i128| nanos.div_euclid(1_000_000_000) as i64;
    Ok(Template {
        common_name: call.str(0).to_vec(),
        addresses,
        names,
        not_before: seconds(now),
        not_after: seconds(now + i128::from(valid)),
        is_authority: false,
        serial: Stream::new(call.host).bytes(),
    })
}

fn address_arguments(call: &mut Call<'_>, index: usize) -> Result<Vec<IpAddr>, Failure> {
    let invalid = |text: &dyn std::fmt::Display| Failure::message(format!("error parsing ip: {text}"));
    let list = call.list(index);
    let mut addresses = Vec::new();
    for item in list.iter().flat_map(List::items) {
        let Value::String(text) = item else {
            return Err(invalid(&format!(
                "{} is not a string",
                text::display(call.meter, item)?
            )));
        };
        addresses.push(text.to_str_lossy().parse().map_err(|_| invalid(text))?);
    }
    Ok(addresses)
}

fn name_arguments(call: &mut Call<'_>, index: usize) -> Result<Vec<Vec<u8>>, Failure> {
    let list = call.list(index);
    let mut names = Vec::new();
    for item in list.iter().flat_map(List::items) {
        let Value::String(text) = item else {
            let shown = text::display(call.meter, item)?;
            return Err(Failure::message(format!(
                "error processing alternate dns name: {shown} is not a string"
            )));
        };
        names.push(text.to_vec());
    }
    Ok(names)
}

/// Creates a certificate signed by `signer`, or by its own key without a signer. Returns both PEM texts.
fn finish(
    call: &mut Call<'_>,
    template: &Template,
    key: &PrivateKey,
    signer: Option<(&Issuer, &PrivateKey)>,
) -> Result<Value, Failure> {
    let created = match signer {
        Some((issuer, signer)) => create(template, key, issuer, signer),
        None => Issuer::self_signed(template).and_then(|issuer| create(template, key, &issuer, key)),
    };
    let bytes = created.map_err(|error| Failure::message(format!("error creating certificate: {error}")))?;
    call.meter.reserve_string(2 * bytes.len())?;
    let (cert, key) = (pem::encode("CERTIFICATE", &bytes).into(), key.to_pem().into());
    Ok(Value::object(Certificate { cert, key }))
}

fn build_custom(call: &mut Call<'_>) -> Result<Value, Failure> {
    call.meter.consume_fuel(SIGN_STEPS)?;
    charge_key(call.meter, &call.str(1))?;
    checked_pair(&call.str(0), &call.str(1))
        .map(Value::object)
        .map_err(|error| Failure::message(error.to_string()))
}

fn checked_pair(cert: &[u8], key: &[u8]) -> Result<Certificate, PairError> {
    let cert = decode_base64(cert).map_err(|_| PairError::CertificateBase64)?;
    let key = decode_base64(key).map_err(|_| PairError::KeyBase64)?;
    let block = pem::decode(&cert).ok_or(PairError::CertificatePem)?;
    Issuer::parse(&block.bytes).map_err(|reason| PairError::Certificate {
        field: "decodedCert.Bytes",
        reason,
    })?;
    PrivateKey::from_pem(&key).map_err(PairError::Key)?;
    Ok(Certificate {
        cert: cert.into(),
        key: key.into(),
    })
}
