//! The operator's image as an archive, written without a container engine. It is an OCI image layout and also
//! contains the manifest that `docker load` reads.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::package::{Entry, gzip, sha256, tar};

/// Numeric user and group, so that Kubernetes can check `runAsNonRoot`.
const USER: &str = "65532:65532";

/// Contents of an image.
pub(super) struct Image<'a> {
    /// The static binary.
    pub(super) binary: &'a [u8],
    pub(super) version: &'a str,
    /// Name of the architecture in Go's terms.
    pub(super) architecture: &'a str,
    /// Repository and tag that the loaded image has.
    pub(super) reference: &'a str,
}

/// A blob of the layout.
struct Blob {
    content: Vec<u8>,
    digest: String,
}

impl Blob {
    fn new(content: Vec<u8>) -> Self {
        let digest = sha256(&content);
        Self { content, digest }
    }

    fn json(value: &Value) -> anyhow::Result<Self> {
        Ok(Self::new(serde_json::to_vec(value)?))
    }

    fn path(&self) -> String {
        format!("blobs/sha256/{}", self.digest)
    }

    fn descriptor(&self, media_type: &str) -> Value {
        json!({
            "mediaType": format!("application/vnd.oci.image.{media_type}"),
            "digest": format!("sha256:{}", self.digest),
            "size": self.content.len(),
        })
    }
}

impl Image<'_> {
    /// Returns the archive.
    pub(super) fn archive(&self) -> anyhow::Result<Vec<u8>> {
        let uncompressed = tar(&self.files())?;
        let layer = Blob::new(gzip(&uncompressed)?);
        let config = Blob::json(&self.config(&sha256(&uncompressed)))?;
        let manifest = Blob::json(&json!({
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": config.descriptor("config.v1+json"),
            "layers": [layer.descriptor("layer.v1.tar+gzip")],
        }))?;
        let docker_manifest = json!([{
            "Config": config.path(),
            "RepoTags": [self.reference],
            "Layers": [layer.path()],
        }]);
        tar(&[
            Entry::file("oci-layout", r#"{"imageLayoutVersion":"1.0.0"}"#),
            Entry::file("index.json", serde_json::to_vec(&self.index(&manifest))?),
            Entry::file("manifest.json", serde_json::to_vec(&docker_manifest)?),
            Entry::file(layer.path(), layer.content),
            Entry::file(config.path(), config.content),
            Entry::file(manifest.path(), manifest.content),
        ])
    }

    fn files(&self) -> [Entry; 3] {
        [
            Entry::executable("mainstay", self.binary),
            Entry::file("etc/passwd", "mainstay:x:65532:65532::/:/mainstay\n"),
            Entry::file("etc/ssl/certs/ca-certificates.crt", ca_certificates()),
        ]
    }

    fn config(&self, layer: &str) -> Value {
        json!({
            "created": "2026-01-01T00:00:00Z",
            "architecture": self.architecture,
            "os": "linux",
            "config": {
                "User": USER,
                "Entrypoint": ["/mainstay"],
                "Cmd": ["operator", "run"],
                "Env": ["SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt"],
                "Labels": {
                    "org.opencontainers.image.title": "mainstay",
                    "org.opencontainers.image.description": "The Mainstay operator for Istio",
                    "org.opencontainers.image.version": self.version,
                    "org.opencontainers.image.licenses": "Apache-2.0",
                    "org.opencontainers.image.source": "https://github.com/mainstay-mesh/mainstay",
                },
            },
            "rootfs": {"type": "layers", "diff_ids": [format!("sha256:{layer}")]},
            "history": [{"created": "2026-01-01T00:00:00Z", "created_by": "cargo xtask dist"}],
        })
    }

    fn index(&self, manifest: &Blob) -> Value {
        let mut descriptor = manifest.descriptor("manifest.v1+json");
        if let Some(descriptor) = descriptor.as_object_mut() {
            let platform = json!({"architecture": self.architecture, "os": "linux"});
            descriptor.insert("platform".into(), platform);
            // containerd names the image by the first annotation, other tools by the second.
            let annotations = json!({
                "io.containerd.image.name": self.reference,
                "org.opencontainers.image.ref.name": self.version,
            });
            descriptor.insert("annotations".into(), annotations);
        }
        json!({
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.index.v1+json",
            "manifests": [descriptor],
        })
    }
}

/// Returns Mozilla's CA certificates in PEM form.
fn ca_certificates() -> String {
    let pem = |certificate: &[u8]| {
        let body = STANDARD.encode(certificate);
        let lines: Vec<&str> = body
            .as_bytes()
            .chunks(64)
            .filter_map(|line| std::str::from_utf8(line).ok())
            .collect();
        format!(
            "-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n",
            lines.join("\n")
        )
    };
    webpki_root_certs::TLS_SERVER_ROOT_CERTS
        .iter()
        .map(|certificate| pem(certificate))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use std::io::Read;

    fn entries(archive: &[u8]) -> BTreeMap<String, Vec<u8>> {
        let mut archive = tar::Archive::new(archive);
        let entries = archive.entries().unwrap().map(|entry| {
            let mut entry = entry.unwrap();
            let path = entry.path().unwrap().display().to_string();
            let mut content = Vec::new();
            entry.read_to_end(&mut content).unwrap();
            (path, content)
        });
        entries.collect()
    }

    fn parse(bytes: &[u8]) -> Value {
        serde_json::from_slice(bytes).unwrap()
    }

    fn image() -> BTreeMap<String, Vec<u8>> {
        let image = Image {
            binary: b"binary",
            version: "0.1.0",
            architecture: "amd64",
            reference: "localhost/mainstay:0.1.0",
        };
        entries(&image.archive().unwrap())
    }

    #[test]
    fn every_digest_refers_to_its_blob() {
        let files = image();
        let blob = |descriptor: &Value| {
            let digest = descriptor["digest"]
                .as_str()
                .unwrap()
                .strip_prefix("sha256:")
                .unwrap()
                .to_owned();
            let content = files[&format!("blobs/sha256/{digest}")].clone();
            assert_eq!(sha256(&content), digest);
            assert_eq!(descriptor["size"], content.len());
            content
        };
        let index = parse(&files["index.json"]);
        let manifest = parse(&blob(&index["manifests"][0]));
        let config = parse(&blob(&manifest["config"]));
        let layer = blob(&manifest["layers"][0]);
        let mut uncompressed = Vec::new();
        flate2::read::GzDecoder::new(layer.as_slice())
            .read_to_end(&mut uncompressed)
            .unwrap();
        assert_eq!(
            config["rootfs"]["diff_ids"][0],
            format!("sha256:{}", sha256(&uncompressed))
        );
        let root = entries(&uncompressed);
        assert_eq!(root["mainstay"], b"binary");
        assert!(root["etc/ssl/certs/ca-certificates.crt"].starts_with(b"-----BEGIN CERTIFICATE-----\n"));
    }

    #[test]
    fn docker_finds_the_same_blobs() {
        let files = image();
        let manifest = parse(&files["manifest.json"]);
        assert_eq!(manifest[0]["RepoTags"][0], "localhost/mainstay:0.1.0");
        for path in [&manifest[0]["Config"], &manifest[0]["Layers"][0]] {
            assert!(files.contains_key(path.as_str().unwrap()), "{path}");
        }
    }
}
