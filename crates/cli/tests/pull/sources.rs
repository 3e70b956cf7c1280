//! Chart sources: a Helm repository and an OCI registry on loopback, with all five charts.

use sha2::{Digest, Sha256};

use crate::archive::{chart, tgz};
use crate::server::{Response, Server};

pub(crate) const CHARTS: [&str; 5] = ["base", "istiod", "cni", "ztunnel", "gateway"];
pub(crate) const VERSION: &str = "1.30.3";
pub(crate) const LAYER: &str = "application/vnd.cncf.helm.chart.content.v1.tar+gzip";

pub(crate) fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect::<Vec<_>>()
        .concat()
}

/// A repository with all five charts, and its address.
pub(crate) fn repository() -> (Server, String) {
    let server = Server::start();
    let mut index = "apiVersion: v1\nentries:\n".to_owned();
    for name in CHARTS {
        let bytes = tgz(&chart(name, VERSION));
        index += &format!("  {name}:\n");
        for (version, digest) in [("1.30.2", "00".repeat(32)), (VERSION, sha256(&bytes))] {
            index += &format!(
                "  - name: {name}\n    version: {version}\n    digest: {digest}\n    urls: [\"{name}-{version}.tgz\"]\n"
            );
        }
        server.put(format!("/charts/{name}-{VERSION}.tgz"), Response::ok(bytes));
    }
    server.put("/charts/index.yaml", Response::ok(index));
    let address = format!("http://{}/charts", server.host);
    (server, address)
}

/// A registry with all five charts, and its address.
pub(crate) fn registry() -> (Server, String) {
    let server = Server::start();
    for name in CHARTS {
        put_image(&server, name, &tgz(&chart(name, VERSION)), LAYER);
    }
    let address = format!("oci://{}/istio/charts", server.host);
    (server, address)
}

pub(crate) fn put_image(server: &Server, name: &str, bytes: &[u8], media_type: &str) {
    let digest = sha256(bytes);
    let manifest = format!(
        "{{\"schemaVersion\":2,\"config\":{{\"mediaType\":\"application/vnd.cncf.helm.config.v1+json\"}},\"layers\":[{{\"mediaType\":\"{media_type}\",\"digest\":\"sha256:{digest}\",\"size\":{}}}]}}",
        bytes.len()
    );
    let response = Response::ok(manifest.clone()).header(
        "docker-content-digest",
        &format!("sha256:{}", sha256(manifest.as_bytes())),
    );
    server.put(manifest_path(name), response);
    server.put(
        format!("/v2/istio/charts/{name}/blobs/sha256:{digest}"),
        Response::ok(bytes),
    );
}

pub(crate) fn manifest_path(name: &str) -> String {
    format!("/v2/istio/charts/{name}/manifests/{VERSION}")
}
