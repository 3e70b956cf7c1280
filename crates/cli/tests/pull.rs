//! `mainstay charts pull` as a process, against a Helm repository and an OCI registry on loopback.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::format_push_string,
    reason = "tests"
)]
#![allow(missing_docs, unreachable_pub, reason = "helpers of one test")]

#[path = "support/archive.rs"]
mod archive;
#[path = "support/server.rs"]
mod server;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use archive::{chart, tgz};
use server::{Answer, Server};
use sha2::{Digest, Sha256};

const CHARTS: [&str; 5] = ["base", "istiod", "cni", "ztunnel", "gateway"];
const VERSION: &str = "1.30.3";
const LAYER: &str = "application/vnd.cncf.helm.chart.content.v1.tar+gzip";

/// A user with an empty catalogue.
struct User(PathBuf);

impl User {
    fn new(name: &str) -> Self {
        let home = std::env::temp_dir().join(format!("mainstay-pull-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&home);
        fs::create_dir_all(&home).unwrap();
        Self(home)
    }

    /// Exit code, stdout, stderr.
    fn run(&self, arguments: &[&str]) -> (i32, String, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mainstay"));
        for name in [
            "http_proxy",
            "https_proxy",
            "all_proxy",
            "HTTP_PROXY",
            "HTTPS_PROXY",
            "ALL_PROXY",
        ] {
            command.env_remove(name);
        }
        let done = command
            .args(arguments)
            .env("XDG_DATA_HOME", &self.0)
            .env("NO_COLOR", "1")
            .output()
            .unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (done.status.code().unwrap(), text(done.stdout), text(done.stderr))
    }

    fn pull(&self, source: &str) -> (i32, String, String) {
        self.run(&["charts", "pull", VERSION, source, "--plain-http"])
    }

    /// The pull fails with this message, and nothing is written.
    fn check_refused(&self, source: &str, message: &str) {
        let (code, out, err) = self.pull(source);
        assert_eq!((code, out.as_str()), (1, ""), "{err}");
        assert_eq!(
            err.lines().next().unwrap_or_default(),
            format!("Error: {message}")
        );
        assert!(err.lines().any(|line| line.starts_with("hint: ")), "{err}");
        assert_eq!(files(&self.0), Vec::<String>::new());
    }
}

impl Drop for User {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Every file below `top`, by its path from there.
fn files(top: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut open = vec![top.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else {
                found.push(path.strip_prefix(top).unwrap().display().to_string());
            }
        }
    }
    found.sort();
    found
}

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect::<Vec<_>>()
        .concat()
}

/// A repository with all five charts, and its address.
fn repository() -> (Server, String) {
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
        server.put(format!("/charts/{name}-{VERSION}.tgz"), Answer::of(bytes));
    }
    server.put("/charts/index.yaml", Answer::of(index));
    let address = format!("http://{}/charts", server.host);
    (server, address)
}

/// A registry with all five charts, and its address.
fn registry() -> (Server, String) {
    let server = Server::start();
    for name in CHARTS {
        put_image(&server, name, &tgz(&chart(name, VERSION)), LAYER);
    }
    let address = format!("oci://{}/istio/charts", server.host);
    (server, address)
}

fn put_image(server: &Server, name: &str, bytes: &[u8], media_type: &str) {
    let digest = sha256(bytes);
    let manifest = format!(
        "{{\"schemaVersion\":2,\"config\":{{\"mediaType\":\"application/vnd.cncf.helm.config.v1+json\"}},\"layers\":[{{\"mediaType\":\"{media_type}\",\"digest\":\"sha256:{digest}\",\"size\":{}}}]}}",
        bytes.len()
    );
    let answer = Answer::of(manifest.clone()).header(
        "docker-content-digest",
        &format!("sha256:{}", sha256(manifest.as_bytes())),
    );
    server.put(manifest_path(name), answer);
    server.put(
        format!("/v2/istio/charts/{name}/blobs/sha256:{digest}"),
        Answer::of(bytes),
    );
}

fn manifest_path(name: &str) -> String {
    format!("/v2/istio/charts/{name}/manifests/{VERSION}")
}

#[test]
fn a_helm_repository_gives_both_flavours() {
    let user = User::new("repo");
    let (_server, address) = repository();
    let (code, out, err) = user.pull(&address);
    assert_eq!((code, err.as_str()), (0, ""));
    let top = user.0.join("mainstay/charts/1.30.3");
    assert!(
        out.starts_with("Istio 1.30.3: ") && out.trim_end().ends_with(&top.display().to_string()),
        "{out}"
    );
    let read = |path: &str| fs::read_to_string(top.join(path)).unwrap();
    assert!(read("installer/charts/istiod/templates/a.yaml").contains("owning-resource"));
    assert_eq!(
        read("operator/charts/istiod/templates/a.yaml"),
        "metadata:\n  labels:\n    app: istiod\n"
    );
    assert_eq!(
        read("installer/charts/istiod/values.yaml"),
        "_internal_defaults_do_not_set:\n  global:\n    hub: docker.io/istio\n    tag: 1.30.3\n"
    );
    assert_eq!(
        read("operator/charts/istiod/values.yaml"),
        "_internal_defaults_do_not_set:\n  global:\n    hub: registry.istio.io/release\n    tag: 1.30.3\n"
    );
    assert!(read("operator/charts/cni/templates/clusterrole.yaml").contains("securitycontextconstraints"));
    assert!(read("operator/charts/revisiontags/Chart.yaml").ends_with("appVersion: 1.30.3\n"));
    assert!(!top.join("operator/charts/base/templates/crds.yaml").exists());
    assert!(read("SOURCE").starts_with(&address));
}

#[test]
fn what_was_pulled_is_in_the_catalogue() {
    let user = User::new("listed");
    let (_server, address) = repository();
    assert_eq!(user.pull(&address).0, 0);
    let (_, list, _) = user.run(&["charts", "list"]);
    assert!(
        list.lines()
            .any(|line| line.split_whitespace().collect::<Vec<_>>()
                == ["1.30.3", "installable", "pulled", "v1.30-latest"]),
        "{list}"
    );
    let (code, shown, _) = user.run(&["charts", "show", "v1.30-latest", "istiod", "--metadata"]);
    assert_eq!(
        (code, shown.as_str()),
        (
            0,
            "apiVersion: v2\nname: istiod\nversion: 1.30.3\nappVersion: 1.30.3\n"
        )
    );
}

#[test]
fn pulling_again_replaces() {
    let user = User::new("again");
    let (_server, address) = repository();
    assert_eq!(user.pull(&address).0, 0);
    let before = files(&user.0);
    fs::write(
        user.0
            .join("mainstay/charts/1.30.3/installer/charts/istiod/stray"),
        "x",
    )
    .unwrap();
    assert_eq!(user.pull(&address).0, 0);
    assert_eq!(files(&user.0), before);
}

#[test]
fn a_registry_gives_the_same() {
    let (user, other) = (User::new("oci"), User::new("oci-repo"));
    let (_server, address) = registry();
    let (code, _, err) = user.pull(&address);
    assert_eq!((code, err.as_str()), (0, ""));
    let (_server, address) = repository();
    assert_eq!(other.pull(&address).0, 0);
    assert_eq!(files(&user.0), files(&other.0));
}

#[test]
fn a_registry_that_hands_tokens_to_anybody_is_asked_for_one() {
    let user = User::new("token");
    let (server, address) = registry();
    let (storage, host) = (Server::start(), server.host.clone());
    server.put(
        "/token?service=reg&scope=repository:istio/charts/x:pull",
        Answer::of("{\"token\":\"t0k\"}"),
    );
    let challenge = format!(
        "Bearer realm=\"http://{host}/token\",service=\"reg\",scope=\"repository:istio/charts/x:pull\""
    );
    for name in CHARTS {
        let bytes = tgz(&chart(name, VERSION));
        let digest = sha256(&bytes);
        let manifest = format!(
            "{{\"layers\":[{{\"mediaType\":\"{LAYER}\",\"digest\":\"sha256:{digest}\",\"size\":{}}}]}}",
            bytes.len()
        );
        let guarded = Some(("bearer t0k".to_owned(), challenge.clone()));
        server.put(
            manifest_path(name),
            Answer {
                guarded: guarded.clone(),
                ..Answer::of(manifest)
            },
        );
        let moved = Answer::status(307).header("location", &format!("http://{}/{name}", storage.host));
        server.put(
            format!("/v2/istio/charts/{name}/blobs/sha256:{digest}"),
            Answer { guarded, ..moved },
        );
        storage.put(format!("/{name}"), Answer::of(bytes));
    }
    let (code, _, err) = user.pull(&address);
    assert_eq!((code, err.as_str()), (0, ""));
    assert_eq!(
        storage.asked(),
        ["/base", "/istiod", "/cni", "/ztunnel", "/gateway"],
        "the token stays with the registry"
    );
}

#[test]
fn a_login_that_is_not_for_everybody_is_told() {
    let user = User::new("login");
    let (server, address) = registry();
    let path = manifest_path("base");
    let at = format!("http://{}{path}", server.host);
    let guarded = |challenge: &str| Answer {
        guarded: Some(("x".into(), challenge.into())),
        ..Answer::of("")
    };
    server.put(path.clone(), guarded("Basic realm=\"r\""));
    user.check_refused(
        &address,
        &format!("{at} wants a login that is not offered to everybody: it does not say how to get a token"),
    );
    server.put(
        path.clone(),
        guarded(&format!("Bearer realm=\"http://{}/none\"", server.host)),
    );
    user.check_refused(
        &address,
        &format!(
            "{at} wants a login that is not offered to everybody: http://{}/none? answers 404",
            server.host
        ),
    );
    server.put("/t?", Answer::of("[]"));
    server.put(
        path.clone(),
        guarded(&format!("Bearer realm=\"http://{}/t\"", server.host)),
    );
    user.check_refused(
        &address,
        &format!("{at} wants a login that is not offered to everybody: the answer holds no token"),
    );
    server.put(path, guarded("Bearer realm=\"file:///etc/passwd\""));
    user.check_refused(
        &address,
        &format!(
            "{at} wants a login that is not offered to everybody: its scheme is none of https, http and oci"
        ),
    );
}

#[test]
fn a_wrong_digest_is_refused() {
    let user = User::new("digest");
    let (server, address) = repository();
    let right = sha256(&tgz(&chart("gateway", VERSION)));
    server.put("/charts/gateway-1.30.3.tgz", Answer::of("other"));
    let found = sha256(b"other");
    user.check_refused(
        &address,
        &format!(
            "the digest of {address}/gateway-1.30.3.tgz is sha256:{found}, but it should be sha256:{right}"
        ),
    );
    let (server, address) = registry();
    let blob = format!("/v2/istio/charts/gateway/blobs/sha256:{right}");
    server.put(blob.clone(), Answer::of("other"));
    user.check_refused(
        &address,
        &format!(
            "the digest of http://{}{blob} is sha256:{found}, but it should be sha256:{right}",
            server.host
        ),
    );
}

#[test]
fn a_manifest_that_is_not_what_its_header_says_is_refused() {
    let user = User::new("manifest");
    let (server, address) = registry();
    server.put(
        manifest_path("base"),
        Answer::of("{}").header("docker-content-digest", &format!("sha256:{}", "0".repeat(64))),
    );
    let at = format!("http://{}{}", server.host, manifest_path("base"));
    user.check_refused(
        &address,
        &format!(
            "the digest of {at} is sha256:{}, but it should be sha256:{}",
            sha256(b"{}"),
            "0".repeat(64)
        ),
    );
}

#[test]
fn a_body_that_ends_early_is_refused() {
    let user = User::new("truncated");
    let (server, address) = repository();
    let bytes = tgz(&chart("cni", VERSION));
    server.put(
        "/charts/cni-1.30.3.tgz",
        Answer {
            claims: Some(bytes.len() + 10),
            ..Answer::of(bytes)
        },
    );
    let (code, _, err) = user.pull(&address);
    assert_eq!(code, 1);
    assert!(
        err.starts_with(&format!("Error: {address}/cni-1.30.3.tgz ends early: ")),
        "{err}"
    );
    assert_eq!(files(&user.0), Vec::<String>::new());
}

#[test]
fn a_body_that_does_not_end_is_refused() {
    let user = User::new("oversized");
    let (server, address) = repository();
    server.put("/charts/base-1.30.3.tgz", Answer::of(vec![0; (20 << 20) + 1]));
    user.check_refused(
        &address,
        &format!("{address}/base-1.30.3.tgz sends more than 20971520 bytes"),
    );
    let (server, address) = registry();
    let layer = format!(
        "{{\"layers\":[{{\"mediaType\":\"{LAYER}\",\"digest\":\"sha256:{}\",\"size\":99999999999}}]}}",
        "0".repeat(64)
    );
    server.put(manifest_path("base"), Answer::of(layer));
    user.check_refused(
        &address,
        &format!(
            "http://{}{} sends more than 20971520 bytes",
            server.host,
            manifest_path("base")
        ),
    );
}

#[test]
fn redirects_end() {
    let user = User::new("redirects");
    let server = Server::start();
    server.put(
        "/loop/index.yaml",
        Answer::status(302).header("location", "/loop/index.yaml"),
    );
    let address = format!("http://{}/loop", server.host);
    user.check_refused(
        &address,
        &format!("{address}/index.yaml redirects more than 10 times"),
    );
    assert_eq!(server.asked().len(), 11);
    server.put(
        "/away/index.yaml",
        Answer::status(302).header("location", "file:///etc/passwd"),
    );
    let address = format!("http://{}/away", server.host);
    user.check_refused(&address, &format!("{address}/index.yaml redirects to \"file:///etc/passwd\": its scheme is none of https, http and oci"));
}

#[test]
fn a_repository_that_moved_is_followed() {
    let user = User::new("moved");
    let (server, _) = repository();
    server.put(
        "/old/index.yaml",
        Answer::status(301).header("location", "/charts/index.yaml"),
    );
    let (code, _, err) = user.pull(&format!("http://{}/old", server.host));
    assert_eq!((code, err.as_str()), (0, ""));
}

#[test]
fn what_is_not_there_is_told() {
    let user = User::new("missing");
    let (server, address) = repository();
    user.check_refused(
        &format!("http://{}/none", server.host),
        &format!("http://{}/none/index.yaml answers 404", server.host),
    );
    let index = format!("{address}/index.yaml");
    let (code, _, err) = user.run(&["charts", "pull", "1.30.4", &address]);
    assert_eq!(
        (code, err),
        (
            1,
            format!(
                "Error: {index} has no version 1.30.4 of chart \"base\"\nhint: the newest there are 1.30.3, 1.30.2\n"
            )
        )
    );
    server.put("/charts/index.yaml", Answer::of("entries: {}\n"));
    user.check_refused(&address, &format!("{index} has no chart \"base\""));
    server.put(
        "/charts/index.yaml",
        Answer::of("entries:\n  base:\n  - version: 1.30.3\n    urls: [x.tgz]\n"),
    );
    user.check_refused(
        &address,
        &format!("{index} names no sha256 digest for chart \"base\""),
    );
    let (server, address) = registry();
    server.put(manifest_path("base"), Answer::status(404));
    user.check_refused(
        &address,
        &format!(
            "http://{}/istio/charts has no version 1.30.3 of chart \"base\"",
            server.host
        ),
    );
}

#[test]
fn a_manifest_without_a_chart_is_told() {
    let user = User::new("layers");
    let (server, address) = registry();
    let at = format!("http://{}{}", server.host, manifest_path("base"));
    put_image(&server, "base", b"x", "application/octet-stream");
    user.check_refused(
        &address,
        &format!("cannot read {at}: it has no layer of type {LAYER}"),
    );
}

#[test]
fn a_hostile_archive_is_refused_although_its_digest_is_right() {
    let user = User::new("hostile");
    let refuse = |entries: Vec<(String, Vec<u8>)>, message: &str| {
        let (server, address) = registry();
        put_image(&server, "istiod", &tgz(&entries), LAYER);
        user.check_refused(
            &address,
            &format!("the archive of chart \"istiod\" is refused: {message}"),
        );
    };
    let with = |path: &str, bytes: Vec<u8>| {
        let mut entries = chart("istiod", VERSION);
        entries.push((path.to_owned(), bytes));
        entries
    };
    refuse(
        with("istiod/../../../evil", b"x".to_vec()),
        "chart illegally references parent directory",
    );
    refuse(
        with("istiod//evil", b"x".to_vec()),
        "chart illegally contains absolute paths",
    );
    refuse(
        with("istiod/big", vec![0; 6 << 20]),
        "decompressed chart file \"istiod/big\" is larger than the maximum file size 5242880",
    );
    refuse(chart("cni", VERSION), "it holds cni 1.30.3, not istiod 1.30.3");
    refuse(
        chart("istiod", "1.30.2"),
        "it holds istiod 1.30.2, not istiod 1.30.3",
    );
    assert!(!user.0.parent().unwrap().join("evil").exists());
}

#[test]
fn a_chart_the_operators_edits_do_not_fit_is_refused() {
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
fn addresses_are_looked_at_first() {
    let user = User::new("addresses");
    let refuse = |source: &str, reason: &str| {
        let (code, _, err) = user.run(&["charts", "pull", VERSION, source]);
        assert_eq!(
            (code, err.lines().next().unwrap()),
            (
                1,
                format!("Error: {source:?} is no address to pull from: {reason}").as_str()
            )
        );
    };
    refuse(
        "http://registry.example/charts",
        "without TLS only this machine is spoken to; --plain-http allows it",
    );
    refuse(
        "ftp://registry.example/charts",
        "its scheme is none of https, http and oci",
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

/// A release that is embedded, published again and pulled, must come out as it is embedded: charts and edits alike.
#[test]
fn an_embedded_release_pulled_again_is_the_same() {
    let resources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../resources/1.29.1");
    if !resources.exists() {
        // Without fetched charts there is nothing to compare with; the catalogue's own tests say so.
        return;
    }
    let user = User::new("same");
    let server = Server::start();
    let mut index = "entries:\n".to_owned();
    for name in CHARTS {
        let top = resources.join("installer/charts").join(name);
        let entries: Vec<_> = files(&top)
            .into_iter()
            .map(|path| (format!("{name}/{path}"), fs::read(top.join(path)).unwrap()))
            .collect();
        let bytes = tgz(&entries);
        index += &format!(
            "  {name}:\n  - version: 1.29.1\n    digest: {}\n    urls: [/{name}.tgz]\n",
            sha256(&bytes)
        );
        server.put(format!("/{name}.tgz"), Answer::of(bytes));
    }
    server.put("/index.yaml", Answer::of(index));
    let (code, _, err) = user.run(&[
        "charts",
        "pull",
        "1.29.1",
        "--repo",
        &format!("http://{}", server.host),
    ]);
    assert_eq!((code, err.as_str()), (0, ""));
    let pulled = user.0.join("mainstay/charts/1.29.1");
    for path in files(&resources.join("operator")) {
        let read = |top: &Path| fs::read(top.join("operator").join(&path)).unwrap_or_default();
        assert_eq!(read(&pulled), read(&resources), "{path}");
    }
    assert_eq!(
        files(&pulled.join("operator")),
        files(&resources.join("operator"))
    );
}
