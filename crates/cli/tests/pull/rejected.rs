//! Rejected downloads: invalid bodies, manifests, archives and addresses, and endless redirects.

use crate::archive::{chart, tgz};
use crate::server::{Response, Server};
use crate::sources::{LAYER, VERSION, manifest_path, put_image, registry, repository, sha256};
use crate::user::{User, files};

#[test]
fn a_wrong_digest_is_rejected() {
    let user = User::new("digest");
    let (server, address) = repository();
    let right = sha256(&tgz(&chart("gateway", VERSION)));
    server.put("/charts/gateway-1.30.3.tgz", Response::ok("other"));
    let found = sha256(b"other");
    user.check_rejected(
        &address,
        &format!(
            "digest mismatch of {address}/gateway-1.30.3.tgz: got sha256:{found}, expected sha256:{right}"
        ),
    );
    let (server, address) = registry();
    let blob = format!("/v2/istio/charts/gateway/blobs/sha256:{right}");
    server.put(blob.clone(), Response::ok("other"));
    user.check_rejected(
        &address,
        &format!(
            "digest mismatch of http://{}{blob}: got sha256:{found}, expected sha256:{right}",
            server.host
        ),
    );
}

#[test]
fn a_manifest_that_does_not_match_its_digest_header_is_rejected() {
    let user = User::new("manifest");
    let (server, address) = registry();
    server.put(
        manifest_path("base"),
        Response::ok("{}").header("docker-content-digest", &format!("sha256:{}", "0".repeat(64))),
    );
    let at = format!("http://{}{}", server.host, manifest_path("base"));
    user.check_rejected(
        &address,
        &format!(
            "digest mismatch of {at}: got sha256:{}, expected sha256:{}",
            sha256(b"{}"),
            "0".repeat(64)
        ),
    );
}

#[test]
fn a_truncated_body_is_rejected() {
    let user = User::new("truncated");
    let (server, address) = repository();
    let bytes = tgz(&chart("cni", VERSION));
    server.put(
        "/charts/cni-1.30.3.tgz",
        Response {
            content_length: Some(bytes.len() + 10),
            ..Response::ok(bytes)
        },
    );
    let (code, _, err) = user.pull(&address);
    assert_eq!(code, 1);
    assert!(
        err.starts_with(&format!(
            "Error: response of {address}/cni-1.30.3.tgz is truncated: "
        )),
        "{err}"
    );
    assert_eq!(files(&user.0), Vec::<String>::new());
}

#[test]
fn a_body_over_the_size_limit_is_rejected() {
    let user = User::new("oversized");
    let (server, address) = repository();
    server.put("/charts/base-1.30.3.tgz", Response::ok(vec![0; (20 << 20) + 1]));
    user.check_rejected(
        &address,
        &format!("response of {address}/base-1.30.3.tgz exceeds 20971520 bytes"),
    );
    let (server, address) = registry();
    let layer = format!(
        "{{\"layers\":[{{\"mediaType\":\"{LAYER}\",\"digest\":\"sha256:{}\",\"size\":99999999999}}]}}",
        "0".repeat(64)
    );
    server.put(manifest_path("base"), Response::ok(layer));
    user.check_rejected(
        &address,
        &format!(
            "response of http://{}{} exceeds 20971520 bytes",
            server.host,
            manifest_path("base")
        ),
    );
}

#[test]
fn redirects_are_limited() {
    let user = User::new("redirects");
    let server = Server::start();
    server.put(
        "/loop/index.yaml",
        Response::status(302).header("location", "/loop/index.yaml"),
    );
    let address = format!("http://{}/loop", server.host);
    user.check_rejected(
        &address,
        &format!("{address}/index.yaml redirects more than 10 times"),
    );
    assert_eq!(server.requests().len(), 11);
    server.put(
        "/away/index.yaml",
        Response::status(302).header("location", "file:///etc/passwd"),
    );
    let address = format!("http://{}/away", server.host);
    user.check_rejected(
        &address,
        &format!(
            "{address}/index.yaml redirects to \"file:///etc/passwd\": scheme must be https, http or oci"
        ),
    );
}

#[test]
fn a_repository_that_moved_is_followed() {
    let user = User::new("moved");
    let (server, _) = repository();
    server.put(
        "/old/index.yaml",
        Response::status(301).header("location", "/charts/index.yaml"),
    );
    let (code, _, err) = user.pull(&format!("http://{}/old", server.host));
    assert_eq!((code, err.as_str()), (0, ""));
}

#[test]
fn missing_charts_are_reported() {
    let user = User::new("missing");
    let (server, address) = repository();
    user.check_rejected(
        &format!("http://{}/none", server.host),
        &format!("http://{}/none/index.yaml responded with status 404", server.host),
    );
    let index = format!("{address}/index.yaml");
    let (code, _, err) = user.run(&["charts", "pull", "1.30.4", &address]);
    assert_eq!(
        (code, err),
        (
            1,
            format!(
                "Error: {index} has no version 1.30.4 of chart \"base\"\nhint: use one of the newest versions: 1.30.3, 1.30.2\n"
            )
        )
    );
    server.put("/charts/index.yaml", Response::ok("entries: {}\n"));
    user.check_rejected(&address, &format!("{index} has no chart \"base\""));
    server.put(
        "/charts/index.yaml",
        Response::ok("entries:\n  base:\n  - version: 1.30.3\n    urls: [x.tgz]\n"),
    );
    user.check_rejected(
        &address,
        &format!("{index} has no sha256 digest of chart \"base\""),
    );
    let (server, address) = registry();
    server.put(manifest_path("base"), Response::status(404));
    user.check_rejected(
        &address,
        &format!(
            "http://{}/istio/charts has no version 1.30.3 of chart \"base\"",
            server.host
        ),
    );
}

#[test]
fn a_manifest_without_a_chart_is_reported() {
    let user = User::new("layers");
    let (server, address) = registry();
    let at = format!("http://{}{}", server.host, manifest_path("base"));
    put_image(&server, "base", b"x", "application/octet-stream");
    user.check_rejected(&address, &format!("cannot read {at}: no layer of type {LAYER}"));
}

#[test]
fn a_hostile_archive_with_a_valid_digest_is_rejected() {
    let user = User::new("hostile");
    let rejects = |entries: Vec<(String, Vec<u8>)>, message: &str| {
        let (server, address) = registry();
        put_image(&server, "istiod", &tgz(&entries), LAYER);
        user.check_rejected(
            &address,
            &format!("invalid archive of chart \"istiod\": {message}"),
        );
    };
    let with = |path: &str, bytes: Vec<u8>| {
        let mut entries = chart("istiod", VERSION);
        entries.push((path.to_owned(), bytes));
        entries
    };
    rejects(
        with("istiod/../../../evil", b"x".to_vec()),
        "chart illegally references parent directory",
    );
    rejects(
        with("istiod//evil", b"x".to_vec()),
        "chart illegally contains absolute paths",
    );
    rejects(
        with("istiod/big", vec![0; 6 << 20]),
        "decompressed chart file \"istiod/big\" is larger than the maximum file size 5242880",
    );
    rejects(
        chart("cni", VERSION),
        "contains cni 1.30.3 instead of istiod 1.30.3",
    );
    rejects(
        chart("istiod", "1.30.2"),
        "contains istiod 1.30.2 instead of istiod 1.30.3",
    );
    assert!(!user.0.parent().unwrap().join("evil").exists());
}

#[test]
fn a_chart_to_which_the_operator_edits_do_not_apply_is_rejected() {
    let user = User::new("edits");
    let (server, address) = registry();
    let mut entries = chart("cni", VERSION);
    entries.retain(|(path, _)| !path.ends_with("clusterrole.yaml"));
    put_image(&server, "cni", &tgz(&entries), LAYER);
    let (code, _, err) = user.pull(&address);
    assert_eq!(code, 1);
    assert!(err.starts_with("Error: cannot derive the operator charts of Istio 1.30.3: edit \"scc-rule\" matches nothing in charts/cni/templates/clusterrole.yaml"), "{err}");
    assert_eq!(files(&user.0), Vec::<String>::new());
}

#[test]
fn invalid_addresses_are_rejected_before_a_request() {
    let user = User::new("addresses");
    let rejects = |source: &str, reason: &str| {
        let (code, _, err) = user.run(&["charts", "pull", VERSION, source]);
        assert_eq!(
            (code, err.lines().next().unwrap()),
            (1, format!("Error: invalid address {source:?}: {reason}").as_str())
        );
    };
    rejects(
        "http://registry.example/charts",
        "TLS is required; use --plain-http to allow unencrypted connections",
    );
    rejects(
        "ftp://registry.example/charts",
        "scheme must be https, http or oci",
    );
    let (code, _, err) = user.run(&["charts", "pull", "latest"]);
    assert_eq!(
        (code, err.lines().next().unwrap()),
        (
            1,
            "Error: \"latest\" is not a version (expected X.Y.Z, for example 1.29.1)"
        )
    );
}
