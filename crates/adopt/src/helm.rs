//! Releases in the format of Helm 3 and 4: a Secret with compressed JSON.

use std::io::{Read as _, Write as _};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use mainstay_api::Values;
use serde_json::{Map, Value, json};

use crate::AdoptError;

/// Type of the Secrets of releases.
pub const SECRET_TYPE: &str = "helm.sh/release.v1";
/// Label by which Helm finds the Secrets of releases.
pub const OWNER_LABEL: &str = "owner";
/// Value of [`OWNER_LABEL`] in the Secrets that Helm finds.
pub const OWNER: &str = "helm";
/// Maximum size of a decompressed release, in bytes. A Secret is limited to 1 MiB of compressed data.
const MAX_BYTES: u64 = 64 << 20;

/// A stored release.
#[derive(Clone, Debug, PartialEq)]
pub struct HelmRelease {
    /// Name of the release.
    pub name: String,
    /// Namespace of the release.
    pub namespace: String,
    /// Version of the release: 1 for the installation, incremented by each upgrade.
    pub version: u64,
    /// Name of the Secret.
    pub secret: String,
    /// Status, such as `deployed`, `failed` or `superseded`.
    pub status: String,
    /// Decoded JSON document of the release.
    pub body: Value,
}

impl HelmRelease {
    /// Decodes a Secret. Returns `None` if it is not a release, and fails if it is damaged.
    pub fn from_secret(secret: &Value) -> Result<Option<Self>, AdoptError> {
        if secret.get("type").and_then(Value::as_str) != Some(SECRET_TYPE) {
            return Ok(None);
        }
        let name = text(secret, "/metadata/name");
        let unreadable = || AdoptError::Release(name.clone());
        let data = secret.pointer("/data/release").and_then(Value::as_str);
        let body = data.and_then(decode).ok_or_else(unreadable)?;
        Ok(Some(Self {
            name: text(&body, "/name"),
            namespace: text(secret, "/metadata/namespace"),
            version: body.get("version").and_then(Value::as_u64).unwrap_or_default(),
            status: text(&body, "/info/status"),
            secret: name,
            body,
        }))
    }

    /// Returns the name of the chart.
    #[must_use]
    pub fn chart(&self) -> &str {
        text_at(&self.body, "/chart/metadata/name")
    }

    /// Returns the version of the chart, which is the Istio version.
    #[must_use]
    pub fn chart_version(&self) -> &str {
        text_at(&self.body, "/chart/metadata/version")
    }

    /// Returns the values that the user set.
    #[must_use]
    pub fn values(&self) -> Values {
        let config = self.body.get("config").and_then(Value::as_object);
        config.cloned().unwrap_or_default()
    }

    /// Returns the installed objects.
    pub fn objects(&self) -> Result<Vec<Value>, AdoptError> {
        crate::text::parse_documents(text_at(&self.body, "/manifest"))
            .map_err(|_| AdoptError::Release(self.secret.clone()))
    }

    /// Returns the Secret that stores the release.
    pub fn to_secret(&self) -> Result<Value, AdoptError> {
        let data = encode(&self.body).ok_or_else(|| AdoptError::Release(self.secret.clone()))?;
        Ok(json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "type": SECRET_TYPE,
            "metadata": {
                "name": self.secret,
                "namespace": self.namespace,
                "labels": {
                    "name": self.name,
                    OWNER_LABEL: OWNER,
                    "status": self.status,
                    "version": self.version.to_string(),
                },
            },
            "data": {"release": data},
        }))
    }
}

/// Content of a new release.
#[derive(Clone, Debug)]
pub struct NewRelease<'a> {
    /// Name of the release.
    pub name: &'a str,
    /// Namespace of the release.
    pub namespace: &'a str,
    /// Chart in the format of [`stored_chart`].
    pub chart: Value,
    /// Values of the user.
    pub values: Values,
    /// Rendered objects as YAML text.
    pub manifest: String,
    /// Time of the installation.
    pub now: jiff::Timestamp,
}

impl NewRelease<'_> {
    /// Returns the first version of the release, with the status `deployed`.
    #[must_use]
    pub fn release(self) -> HelmRelease {
        let time = self.now.to_string();
        let body = json!({
            "name": self.name,
            "namespace": self.namespace,
            "version": 1,
            "info": {
                "first_deployed": time,
                "last_deployed": time,
                "deleted": "",
                "description": "Adopted by Mainstay",
                "status": "deployed",
            },
            "chart": self.chart,
            "config": self.values,
            "manifest": self.manifest,
        });
        HelmRelease {
            name: self.name.to_owned(),
            namespace: self.namespace.to_owned(),
            version: 1,
            secret: format!("sh.helm.release.v1.{}.v1", self.name),
            status: "deployed".to_owned(),
            body,
        }
    }
}

/// Returns a chart in the format in which Helm stores it: metadata, default values, and templates and
/// files in base64. Returns `None` if `Chart.yaml` cannot be parsed.
#[must_use]
pub fn stored_chart(files: &std::collections::BTreeMap<String, Vec<u8>>) -> Option<Value> {
    let yaml = |name: &str| {
        files
            .get(name)
            .and_then(|data| crate::text::parse_document(data).ok())
    };
    let entries = |keep: &dyn Fn(&str) -> bool| -> Vec<Value> {
        let kept = files.iter().filter(|(name, _)| keep(name));
        kept.map(|(name, data)| json!({"name": name, "data": STANDARD.encode(data)}))
            .collect()
    };
    let is_template = |name: &str| name.starts_with("templates/");
    let is_own = |name: &str| {
        matches!(
            name,
            "Chart.yaml" | "values.yaml" | "values.schema.json" | "Chart.lock" | ".helmignore"
        )
    };
    let schema = files.get("values.schema.json").map(|data| STANDARD.encode(data));
    Some(json!({
        "metadata": yaml("Chart.yaml")?,
        "lock": null,
        "templates": entries(&is_template),
        "values": yaml("values.yaml").unwrap_or_else(|| Value::Object(Map::new())),
        "schema": schema,
        "files": entries(&|name| !is_template(name) && !is_own(name)),
    }))
}

/// Decodes the data of a release. It is base64-encoded twice: by Helm, and by Kubernetes.
fn decode(data: &str) -> Option<Value> {
    let inner = STANDARD.decode(data).ok()?;
    let packed = STANDARD.decode(inner).ok()?;
    let mut bytes = Vec::new();
    let reader: Box<dyn std::io::Read> = if packed.starts_with(&[0x1f, 0x8b, 0x08]) {
        Box::new(GzDecoder::new(packed.as_slice()))
    } else {
        Box::new(packed.as_slice())
    };
    reader.take(MAX_BYTES).read_to_end(&mut bytes).ok()?;
    serde_json::from_slice(&bytes).ok()
}

fn encode(body: &Value) -> Option<String> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(body.to_string().as_bytes()).ok()?;
    let packed = encoder.finish().ok()?;
    Some(STANDARD.encode(STANDARD.encode(packed)))
}

fn text_at<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn text(value: &Value, pointer: &str) -> String {
    text_at(value, pointer).to_owned()
}

/// Returns the newest version of each release.
#[must_use]
pub fn newest_versions(releases: Vec<HelmRelease>) -> Vec<HelmRelease> {
    let mut newest: Vec<HelmRelease> = Vec::new();
    for release in releases {
        let same = newest
            .iter_mut()
            .find(|known| known.name == release.name && known.namespace == release.namespace);
        match same {
            Some(known) if known.version < release.version => *known = release,
            Some(_) => {}
            None => newest.push(release),
        }
    }
    newest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn release(name: &str, version: u64) -> HelmRelease {
        let new = NewRelease {
            name,
            namespace: "istio-system",
            chart: json!({"metadata": {"name": "istiod", "version": "1.29.1"}}),
            values: Values::new(),
            manifest: "---\nkind: Service\nmetadata: {name: a}\n".to_owned(),
            now: jiff::Timestamp::UNIX_EPOCH,
        };
        HelmRelease {
            version,
            ..new.release()
        }
    }

    #[test]
    fn a_release_is_equal_after_encoding_and_decoding() {
        let release = release("istiod", 1);
        let read = HelmRelease::from_secret(&release.to_secret().unwrap()).unwrap();
        assert_eq!(read, Some(release.clone()));
        assert_eq!(release.chart(), "istiod");
        assert_eq!(release.objects().unwrap().len(), 1);
    }

    #[test]
    fn other_secrets_are_ignored_and_damaged_ones_are_errors() {
        let other = json!({"type": "Opaque", "data": {}});
        assert_eq!(HelmRelease::from_secret(&other).unwrap(), None);
        let mut damaged = release("istiod", 1).to_secret().unwrap();
        damaged["data"]["release"] = "bm90IGd6aXA=".into();
        let error = HelmRelease::from_secret(&damaged).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the Helm release in Secret sh.helm.release.v1.istiod.v1 cannot be read"
        );
    }

    #[test]
    fn the_newest_version_of_each_release_is_returned() {
        let found = newest_versions(vec![
            release("a", 1),
            release("a", 3),
            release("b", 1),
            release("a", 2),
        ]);
        let found: Vec<_> = found.iter().map(|one| (one.name.as_str(), one.version)).collect();
        assert_eq!(found, [("a", 3), ("b", 1)]);
    }
}
