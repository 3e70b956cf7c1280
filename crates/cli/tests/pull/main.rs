//! `mainstay charts pull` as a process, against a Helm repository and an OCI registry on loopback.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::format_push_string,
    reason = "tests"
)]
#![allow(missing_docs, unreachable_pub, reason = "helpers of one test")]

#[path = "../support/archive.rs"]
mod archive;
mod rejected;
#[path = "../support/server.rs"]
mod server;
mod sources;
mod user;

use std::fs;
use std::path::Path;

use archive::{chart, tgz};
use server::{Response, Server};
use sources::{CHARTS, LAYER, VERSION, manifest_path, registry, repository, sha256};
use user::{User, files};

#[test]
fn a_helm_repository_provides_both_flavours() {
    let user = User::new("repo");
    let (_server, address) = repository();
    let (code, out, err) = user.pull(&address);
    assert_eq!((code, err.as_str()), (0, ""));
    let top = user.0.join("mainstay/charts/1.30.3");
    assert!(
        out.starts_with("Istio 1.30.3: ") && out.contains(&format!(" in {}\n", top.display())),
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
fn pulled_charts_are_in_the_catalog() {
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
fn a_digest_covers_all_archives() {
    let user = User::new("digest");
    let (_server, address) = repository();
    let (_, out, _) = user.pull(&address);
    let digest = out
        .lines()
        .find_map(|line| line.strip_prefix("digest: "))
        .unwrap()
        .to_owned();
    assert_eq!(out.lines().last(), Some("v1.30-latest resolves to 1.30.3"));
    let to = user.0.join("to").display().to_string();
    let pull = |digest: &str| {
        let arguments = [
            "charts",
            "pull",
            VERSION,
            &address,
            "--plain-http",
            "--to",
            &to,
            "--digest",
            digest,
        ];
        user.run(&arguments)
    };
    let other = format!("sha256:{}", "0".repeat(64));
    let (code, out, err) = pull(&other);
    assert_eq!((code, out.as_str()), (1, ""));
    let message = format!("Error: the charts of Istio 1.30.3 have the digest {digest}, expected {other}");
    assert_eq!(err.lines().next(), Some(message.as_str()));
    assert!(!Path::new(&to).exists());
    assert_eq!(pull(&digest).0, 0);
    assert!(
        Path::new(&to)
            .join("1.30.3/operator/charts/istiod/Chart.yaml")
            .is_file()
    );
    let (code, _, err) = pull("1234");
    assert_eq!(code, 1);
    assert!(err.contains("must be sha256: and 64 hexadecimal digits"), "{err}");
}

#[test]
fn the_list_shows_aliases_after_a_pull() {
    let user = User::new("after");
    let (_, list, _) = user.run(&["charts", "list", "--all"]);
    let line = |version: &str| {
        let line = list
            .lines()
            .find(|line| line.split_whitespace().next() == Some(version));
        line.unwrap().split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(line("1.29.6"), "1.29.6 not pulled v1.29-latest after a pull");
    assert_eq!(line("1.29.0"), "1.29.0 not pulled");
    assert_eq!(line("1.23.6"), "1.23.6 end of life");
    let (_, json, _) = user.run(&["charts", "list", "--all", "-o", "json"]);
    assert!(json.contains("\"aliasesAfterPull\""), "{json}");
}

#[test]
fn pulling_again_replaces_the_charts() {
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
fn a_registry_and_a_repository_provide_the_same_files() {
    let (user, other) = (User::new("oci"), User::new("oci-repo"));
    let (_server, address) = registry();
    let (code, _, err) = user.pull(&address);
    assert_eq!((code, err.as_str()), (0, ""));
    let (_server, address) = repository();
    assert_eq!(other.pull(&address).0, 0);
    assert_eq!(files(&user.0), files(&other.0));
}

#[test]
fn an_anonymous_token_is_requested() {
    let user = User::new("token");
    let (server, address) = registry();
    let (storage, host) = (Server::start(), server.host.clone());
    server.put(
        "/token?service=reg&scope=repository%3Aistio%2Fcharts%2Fx%3Apull",
        Response::ok("{\"token\":\"t0k\"}"),
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
        let authorization = Some(("bearer t0k".to_owned(), challenge.clone()));
        server.put(
            manifest_path(name),
            Response {
                authorization: authorization.clone(),
                ..Response::ok(manifest)
            },
        );
        let moved = Response::status(307).header("location", &format!("http://{}/{name}", storage.host));
        server.put(
            format!("/v2/istio/charts/{name}/blobs/sha256:{digest}"),
            Response {
                authorization,
                ..moved
            },
        );
        storage.put(format!("/{name}"), Response::ok(bytes));
    }
    let (code, _, err) = user.pull(&address);
    assert_eq!((code, err.as_str()), (0, ""));
    assert_eq!(
        storage.requests(),
        ["/base", "/istiod", "/cni", "/ztunnel", "/gateway"],
        "the token must not be sent to the storage host"
    );
}

#[test]
fn a_required_login_is_reported() {
    let user = User::new("login");
    let (server, address) = registry();
    let path = manifest_path("base");
    let at = format!("http://{}{path}", server.host);
    let unauthorized = |challenge: &str| Response {
        authorization: Some(("x".into(), challenge.into())),
        ..Response::ok("")
    };
    server.put(path.clone(), unauthorized("Basic realm=\"r\""));
    user.check_rejected(
        &address,
        &format!("{at} requires a login: unsupported authentication challenge"),
    );
    server.put(
        path.clone(),
        unauthorized(&format!("Bearer realm=\"http://{}/none\"", server.host)),
    );
    user.check_rejected(
        &address,
        &format!(
            "{at} requires a login: http://{}/none? responded with status 404",
            server.host
        ),
    );
    server.put("/t?", Response::ok("[]"));
    server.put(
        path.clone(),
        unauthorized(&format!("Bearer realm=\"http://{}/t\"", server.host)),
    );
    user.check_rejected(
        &address,
        &format!("{at} requires a login: token response has no token"),
    );
    server.put(path, unauthorized("Bearer realm=\"file:///etc/passwd\""));
    user.check_rejected(
        &address,
        &format!("{at} requires a login: scheme must be https, http or oci"),
    );
}

#[test]
fn tokens_come_from_the_registrys_own_host_only() {
    let user = User::new("realm");
    let (server, address) = registry();
    let other = Server::start();
    let elsewhere = format!("localhost:{}", other.host.rsplit(':').next().unwrap());
    other.put("/token?", Response::ok("{\"token\":\"t0k\"}"));
    let at = format!("http://{}{}", server.host, manifest_path("base"));
    let require_token = |realm: &str| {
        let challenge = format!("Bearer realm=\"{realm}\"");
        for name in CHARTS {
            let bytes = tgz(&chart(name, VERSION));
            let manifest = format!(
                "{{\"layers\":[{{\"mediaType\":\"{LAYER}\",\"digest\":\"sha256:{}\",\"size\":{}}}]}}",
                sha256(&bytes),
                bytes.len()
            );
            let authorization = Some(("bearer t0k".to_owned(), challenge.clone()));
            server.put(
                manifest_path(name),
                Response {
                    authorization,
                    ..Response::ok(manifest)
                },
            );
        }
    };
    require_token(&format!("http://{elsewhere}/token"));
    user.check_rejected(
        &address,
        &format!("{at} requires a token from another host, localhost"),
    );
    // A redirect from the registry's own realm to the other host is rejected, too.
    let moved = Response::status(302).header("location", &format!("http://{elsewhere}/token?"));
    server.put("/token?", moved);
    require_token(&format!("http://{}/token", server.host));
    user.check_rejected(
        &address,
        &format!(
            "http://{}/token? redirects to \"http://{elsewhere}/token?\": another host",
            server.host
        ),
    );
    assert_eq!(other.requests(), Vec::<String>::new());
    require_token(&format!("http://{elsewhere}/token"));
    let arguments = [
        "charts",
        "pull",
        VERSION,
        &address,
        "--plain-http",
        "--token-host",
    ];
    let (code, _, err) = user.run(&[&arguments[..], &["localhost"]].concat());
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(other.requests().iter().all(|path| path.starts_with("/token?")));
}

/// A pulled release equals the embedded one in charts and derived edits.
#[test]
fn a_pulled_release_equals_the_embedded_one() {
    let resources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../resources/1.29.1");
    assert!(resources.exists(), "run `cargo xtask charts` first");
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
        server.put(format!("/{name}.tgz"), Response::ok(bytes));
    }
    server.put("/index.yaml", Response::ok(index));
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
