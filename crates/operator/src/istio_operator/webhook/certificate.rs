//! Certificate of the webhook: generated with a new authority each time, stored in a Secret, and renewed 30
//! days before it expires. The private keys of authorities are never stored.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use mainstay_cluster::admission::SECRET;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, date_time_ymd};
use serde_json::{Value, json};

/// Lifetime of a certificate.
const LIFETIME: SignedDuration = SignedDuration::from_hours(90 * 24);
/// Time before expiry at which a certificate is renewed.
const RENEWAL_MARGIN: SignedDuration = SignedDuration::from_hours(30 * 24);
/// Tolerated difference between the clocks of the operator and the API server.
const CLOCK_SKEW: SignedDuration = SignedDuration::from_hours(24);
/// Annotation of the Secret: time at which the certificate expires.
const NOT_AFTER: &str = "mainstay.dev/not-after";
/// Annotation of the Secret: host names of the certificate, separated by commas.
const HOST_NAMES: &str = "mainstay.dev/host-names";

const PEM_END: &str = "-----END CERTIFICATE-----";

/// Error of generating a certificate.
#[derive(Debug, thiserror::Error)]
pub enum MaterialError {
    /// The library returned an error.
    #[error("cannot generate a certificate")]
    Generate(#[from] rcgen::Error),
    /// The time is out of range.
    #[error("cannot generate a certificate for the current time")]
    Time,
}

/// A certificate with its key and the trusted authorities.
#[derive(Clone, PartialEq, Eq)]
pub struct Material {
    /// Authorities of this certificate and of the previous one, as PEM.
    pub authorities: String,
    /// Certificate as PEM.
    pub certificate: String,
    /// Private key as PEM.
    pub key: String,
    /// Host names in the certificate.
    pub names: Vec<String>,
    /// Time at which the certificate expires.
    pub not_after: Timestamp,
}

/// Leaves out certificates and key.
impl std::fmt::Debug for Material {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Material")
            .field("names", &self.names)
            .field("not_after", &self.not_after)
            .finish_non_exhaustive()
    }
}

impl Material {
    /// Generates a certificate for `names`. `authorities` contains the new authority and that of `previous`.
    pub fn generate(
        names: &[String],
        previous: Option<&Self>,
        now: Timestamp,
    ) -> Result<Self, MaterialError> {
        let not_after = now.checked_add(LIFETIME).map_err(|_| MaterialError::Time)?;
        let not_before = now.checked_sub(CLOCK_SKEW).map_err(|_| MaterialError::Time)?;
        let set_validity = |params: &mut CertificateParams| {
            // The validity period consists of whole days.
            let [from, until] = [not_before, not_after].map(utc_date);
            params.not_before = date_time_ymd(from.0, from.1, from.2);
            params.not_after = date_time_ymd(until.0, until.1, until.2);
        };
        let mut authority = CertificateParams::new(Vec::new())?;
        authority.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        authority.distinguished_name.push(
            DnType::CommonName,
            format!("mainstay-webhook-{}", now.as_second()),
        );
        set_validity(&mut authority);
        let authority_key = KeyPair::generate()?;
        let authority_certificate = authority.self_signed(&authority_key)?;
        let mut server = CertificateParams::new(names.to_vec())?;
        set_validity(&mut server);
        let server_key = KeyPair::generate()?;
        let issuer = Issuer::new(authority, authority_key);
        let certificate = server.signed_by(&server_key, &issuer)?;
        let previous = previous.and_then(|previous| first_certificate(&previous.authorities));
        Ok(Self {
            authorities: format!("{}{}", authority_certificate.pem(), previous.unwrap_or_default()),
            certificate: certificate.pem(),
            key: server_key.serialize_pem(),
            names: names.to_vec(),
            not_after,
        })
    }

    /// Whether the certificate must be renewed at `now`.
    #[must_use]
    pub fn needs_renewal(&self, now: Timestamp) -> bool {
        now.checked_add(RENEWAL_MARGIN)
            .is_ok_and(|later| later >= self.not_after)
    }

    /// Reads a certificate from its Secret. Returns `None` if the Secret is incomplete or was created for
    /// other names.
    #[must_use]
    pub fn from_secret(secret: &Value, names: &[String]) -> Option<Self> {
        let data = |key: &str| {
            let text = secret.get("data")?.get(key)?.as_str()?;
            String::from_utf8(STANDARD.decode(text).ok()?).ok()
        };
        let annotation = |name: &str| {
            let annotations = secret.pointer("/metadata/annotations")?;
            annotations.get(name)?.as_str()
        };
        if annotation(HOST_NAMES)? != names.join(",") {
            return None;
        }
        Some(Self {
            authorities: data("ca.crt")?,
            certificate: data("tls.crt")?,
            key: data("tls.key")?,
            names: names.to_vec(),
            not_after: annotation(NOT_AFTER)?.parse().ok()?,
        })
    }

    /// Returns the Secret for the certificate. If `version` is set, the write fails if another process has
    /// changed the Secret since.
    #[must_use]
    pub fn to_secret(&self, namespace: &str, version: Option<&str>) -> Value {
        let mut metadata = json!({
            "name": SECRET,
            "namespace": namespace,
            "annotations": {NOT_AFTER: self.not_after.to_string(), HOST_NAMES: self.names.join(",")},
        });
        if let (Some(version), Value::Object(metadata)) = (version, &mut metadata) {
            metadata.insert("resourceVersion".into(), version.into());
        }
        json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": metadata,
            "type": "Opaque",
            "data": {
                "ca.crt": STANDARD.encode(&self.authorities),
                "tls.crt": STANDARD.encode(&self.certificate),
                "tls.key": STANDARD.encode(&self.key),
            },
        })
    }
}

/// Returns year, month and day in UTC.
fn utc_date(time: Timestamp) -> (i32, u8, u8) {
    let date = time.to_zoned(TimeZone::UTC).date();
    let part = |number: i8| u8::try_from(number).unwrap_or(1);
    (date.year().into(), part(date.month()), part(date.day()))
}

fn first_certificate(pem: &str) -> Option<String> {
    let end = pem.find(PEM_END)? + PEM_END.len();
    Some(format!("{}\n", pem.get(..end)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(day: i64) -> Timestamp {
        let start: Timestamp = "2026-01-01T12:00:00Z".parse().unwrap();
        start.checked_add(SignedDuration::from_hours(24 * day)).unwrap()
    }

    fn names() -> Vec<String> {
        vec!["mainstay-webhook.sail-operator.svc".to_owned()]
    }

    #[test]
    fn a_certificate_is_renewed_thirty_days_before_it_expires() {
        let made = Material::generate(&names(), None, at(0)).unwrap();
        assert!(!made.needs_renewal(at(0)) && !made.needs_renewal(at(59)));
        assert!(made.needs_renewal(at(60)) && made.needs_renewal(at(200)));
        assert_eq!(made.authorities.matches(PEM_END).count(), 1);
    }

    #[test]
    fn a_renewal_trusts_the_previous_authority_only() {
        let first = Material::generate(&names(), None, at(0)).unwrap();
        let second = Material::generate(&names(), Some(&first), at(60)).unwrap();
        let third = Material::generate(&names(), Some(&second), at(120)).unwrap();
        assert!(second.authorities.contains(first.authorities.trim()));
        assert!(
            third
                .authorities
                .contains(&first_certificate(&second.authorities).unwrap())
        );
        assert!(!third.authorities.contains(first.authorities.trim()));
        assert_eq!(third.authorities.matches(PEM_END).count(), 2);
        assert_ne!(first.certificate, second.certificate);
    }

    #[test]
    fn a_certificate_is_read_from_its_secret() {
        let made = Material::generate(&names(), None, at(0)).unwrap();
        let secret = made.to_secret("sail-operator", None);
        assert_eq!(Material::from_secret(&secret, &names()), Some(made.clone()));
        assert_eq!(Material::from_secret(&secret, &["other".to_owned()]), None);
        let mut broken = secret;
        broken["data"]["tls.key"] = "%".into();
        assert_eq!(Material::from_secret(&broken, &names()), None);
        assert_eq!(Material::from_secret(&json!({"data": {}}), &names()), None);
        assert!(!format!("{made:?}").contains("PRIVATE"));
    }
}
