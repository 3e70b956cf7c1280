//! Releases as Helm 3 and 4 store them: a Secret with compressed JSON.

use std::io::{Read as _, Write as _};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use mainstay_api::Values;
use serde_json::{Map, Value, json};

use crate::AdoptError;

/// Type of the Secrets.
pub const SECRET_TYPE: &str = "helm.sh/release.v1";
/// Label by which Helm finds its Secrets.
pub const OWNER_LABEL: &str = "owner";
/// The value of [`OWNER_LABEL`] that Helm looks for.
pub const OWNER: &str = "helm";
/// Maximum size of a decompressed release: a Secret holds at most 1 MiB compressed.
const MAX_BYTES: u64 = 64 << 20;

/// A stored release.
#[derive(Clone, Debug, PartialEq)]
pub struct HelmRelease {
    /// The name.
    pub name: String,
    /// The namespace.
    pub namespace: String,
    /// Number of the installation or upgrade.
    pub version: u64,
    /// Name of its Secret.
    pub secret: String,
    /// `deployed`, `failed`, `superseded` …
    pub status: String,
    /// The stored document.
    pub body: Value,
}

impl HelmRelease {
    /// Decodes a Secret; `None` if it is not a release.
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

    /// Name of the chart.
    #[must_use]
    pub fn chart(&self) -> &str {
        at(&self.body, "/chart/metadata/name")
    }

    /// Version of the chart, which is Istio's.
    #[must_use]
    pub fn chart_version(&self) -> &str {
        at(&self.body, "/chart/metadata/version")
    }

    /// Values that the user set.
    #[must_use]
    pub fn values(&self) -> Values {
        let config = self.body.get("config").and_then(Value::as_object);
        config.cloned().unwrap_or_default()
    }

    /// The installed objects.
    pub fn objects(&self) -> Result<Vec<Value>, AdoptError> {
        crate::text::documents(at(&self.body, "/manifest"))
            .map_err(|_| AdoptError::Release(self.secret.clone()))
    }

    /// Returns the Secret in which Helm finds the release.
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

/// The parts of a new release.
#[derive(Clone, Debug)]
pub struct NewRelease<'a> {
    /// The name.
    pub name: &'a str,
    /// The namespace.
    pub namespace: &'a str,
    /// The chart as Helm stores it.
    pub chart: Value,
    /// Values that the user sets.
    pub values: Values,
    /// The rendered objects as text.
    pub manifest: String,
    /// Time of the installation.
    pub now: jiff::Timestamp,
}

impl NewRelease<'_> {
    /// Returns the first version of the release, as deployed.
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

/// Returns a chart as Helm stores it: metadata, templates and files in base64, default values.
#[must_use]
pub fn stored_chart(files: &std::collections::BTreeMap<String, Vec<u8>>) -> Option<Value> {
    let yaml = |name: &str| files.get(name).and_then(|data| crate::text::document(data).ok());
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

/// Kubernetes encodes the data once more than Helm does.
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

fn at<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn text(value: &Value, pointer: &str) -> String {
    at(value, pointer).to_owned()
}

/// Returns the newest version of each release that Helm would use.
#[must_use]
pub fn newest(releases: Vec<HelmRelease>) -> Vec<HelmRelease> {
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
    fn a_release_survives_its_secret() {
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
    fn the_newest_version_counts() {
        let found = newest(vec![
            release("a", 1),
            release("a", 3),
            release("b", 1),
            release("a", 2),
        ]);
        let found: Vec<_> = found.iter().map(|one| (one.name.as_str(), one.version)).collect();
        assert_eq!(found, [("a", 3), ("b", 1)]);
    }
}
