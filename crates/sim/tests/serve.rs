//! Tests of a cluster over HTTPS: protocols, users, limits, watches, and shutdown.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::similar_names,
    reason = "tests"
)]

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{Request, StatusCode, header};
use http_body_util_lite::{Full, collect};
use hyper_util::rt::{TokioExecutor, TokioIo};
use mainstay_sim::auth::{MASTERS, User};
use mainstay_sim::serve::{ServeOptions, Server};
use mainstay_sim::{Cluster, Options};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// A minimal replacement for `http_body_util`.
mod http_body_util_lite {
    use std::convert::Infallible;
    use std::pin::Pin;
    use std::task::{Context, Poll};

    use bytes::Bytes;
    use http_body::{Body, Frame, SizeHint};

    /// A complete body.
    #[derive(Debug)]
    pub(super) struct Full(pub(super) Option<Bytes>);

    impl Body for Full {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            Poll::Ready(self.0.take().map(|bytes| Ok(Frame::data(bytes))))
        }

        fn is_end_stream(&self) -> bool {
            self.0.is_none()
        }

        fn size_hint(&self) -> SizeHint {
            SizeHint::with_exact(self.0.as_ref().map_or(0, |bytes| bytes.len() as u64))
        }
    }

    /// Returns the next data frame.
    pub(super) async fn next(body: &mut hyper::body::Incoming) -> Option<Bytes> {
        let frame = std::future::poll_fn(|context| Pin::new(&mut *body).poll_frame(context)).await?;
        frame.ok()?.into_data().ok()
    }

    /// Collects the whole body.
    pub(super) async fn collect(mut body: hyper::body::Incoming) -> Vec<u8> {
        let mut all = Vec::new();
        while let Some(bytes) = next(&mut body).await {
            all.extend_from_slice(&bytes);
        }
        all
    }
}

struct Client {
    send: hyper::client::conn::http2::SendRequest<Full>,
    token: String,
}

/// A client certificate and its key.
type ClientCertificate = (CertificateDer<'static>, PrivateKeyDer<'static>);

/// Opens a TLS connection that offers one protocol.
async fn connect(server: &Server, protocol: &[u8]) -> tokio_rustls::client::TlsStream<TcpStream> {
    connect_with_certificate(server, protocol, None).await
}

/// Like [`connect`], with a client certificate.
async fn connect_with_certificate(
    server: &Server,
    protocol: &[u8],
    certificate: Option<ClientCertificate>,
) -> tokio_rustls::client::TlsStream<TcpStream> {
    let mut roots = rustls::RootCertStore::empty();
    let authority = CertificateDer::from_pem_slice(server.authority().as_bytes()).unwrap();
    roots.add(authority).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    let mut config = match certificate {
        Some((certificate, key)) => builder.with_client_auth_cert(vec![certificate], key).unwrap(),
        None => builder.with_no_client_auth(),
    };
    config.alpn_protocols = vec![protocol.to_vec()];
    let stream = TcpStream::connect(server.address()).await.unwrap();
    let name = ServerName::try_from("127.0.0.1").unwrap();
    TlsConnector::from(Arc::new(config))
        .connect(name, stream)
        .await
        .unwrap()
}

/// Returns the token in a kubeconfig.
fn token(server: &Server, user: User) -> String {
    let text = server.kubeconfig(user).unwrap();
    let line = text.lines().find(|line| line.contains("token:")).unwrap();
    line.rsplit(' ').next().unwrap().to_owned()
}

impl Client {
    async fn for_user(server: &Server, user: User) -> Self {
        Self::with_token(server, &token(server, user)).await
    }

    async fn with_token(server: &Server, token: &str) -> Self {
        Self::with_both(server, token, None).await
    }

    async fn with_certificate(server: &Server, certificate: ClientCertificate) -> Self {
        Self::with_both(server, "", Some(certificate)).await
    }

    async fn with_both(server: &Server, token: &str, certificate: Option<ClientCertificate>) -> Self {
        let stream = connect_with_certificate(server, b"h2", certificate).await;
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(b"h2".as_slice()));
        let handshake = hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream));
        let (send, connection) = handshake.await.unwrap();
        tokio::spawn(connection);
        Self {
            send,
            token: token.to_owned(),
        }
    }

    async fn send(&mut self, method: &str, path: &str, media: &str, body: Bytes) -> (StatusCode, Value) {
        let request = request(method, path, &self.token)
            .header(header::CONTENT_TYPE, media)
            .body(Full(Some(body)))
            .unwrap();
        let response = self.send.send_request(request).await.unwrap();
        let code = response.status();
        let bytes = collect(response.into_body()).await;
        let text = String::from_utf8_lossy(&bytes).into_owned();
        (
            code,
            serde_json::from_slice(&bytes).unwrap_or(Value::String(text)),
        )
    }

    async fn get(&mut self, path: &str) -> (StatusCode, Value) {
        self.send("GET", path, "application/json", Bytes::new()).await
    }

    async fn post(&mut self, path: &str, body: Value) -> (StatusCode, Value) {
        self.send("POST", path, "application/json", body.to_string().into())
            .await
    }

    /// Starts a watch.
    async fn watch(&mut self, path: &str) -> hyper::body::Incoming {
        let request = request("GET", path, &self.token).body(Full(None)).unwrap();
        let response = self.send.send_request(request).await.unwrap();
        assert_eq!(response.status(), 200);
        response.into_body()
    }
}

fn request(method: &str, path: &str, token: &str) -> http::request::Builder {
    let builder = Request::builder()
        .method(method)
        .uri(format!("https://127.0.0.1{path}"));
    if token.is_empty() {
        return builder;
    }
    builder.header(header::AUTHORIZATION, format!("Bearer {token}"))
}

async fn serve(options: &ServeOptions) -> (Cluster, Server) {
    let cluster = Cluster::new(Options::default());
    cluster.run_workloads(1);
    let server = Server::start(&cluster, options).await.unwrap();
    (cluster, server)
}

fn admin() -> User {
    User::named("admin", &[MASTERS])
}

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

#[tokio::test]
async fn http1_and_http2_are_supported() {
    let (_cluster, server) = serve(&ServeOptions::default()).await;
    let mut client = Client::for_user(&server, admin()).await;
    let (code, version) = client.get("/version").await;
    assert_eq!(
        (code, &version["gitVersion"]),
        (StatusCode::OK, &json!("v1.36.4"))
    );

    let stream = connect(&server, b"http/1.1").await;
    let (mut send, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .unwrap();
    tokio::spawn(connection);
    let request = request("GET", "/readyz", &token(&server, admin()))
        .header(header::HOST, "127.0.0.1")
        .body(Full(None))
        .unwrap();
    let response = send.send_request(request).await.unwrap();
    assert_eq!(response.version(), http::Version::HTTP_11);
    assert_eq!(collect(response.into_body()).await, b"ok");
}

#[tokio::test]
async fn tokens_identify_users() {
    let (_cluster, server) = serve(&ServeOptions::default()).await;
    let mut anonymous = Client::with_token(&server, "").await;
    let (code, status) = anonymous.get(MAPS).await;
    assert_eq!(code, 403);
    let text = "configmaps is forbidden: User \"system:anonymous\" cannot list resource \"configmaps\" in API group \"\" in the namespace \"default\"";
    assert_eq!(status["message"], text);
    let mut invalid_token = Client::with_token(&server, "guessed").await;
    let (code, status) = invalid_token.get(MAPS).await;
    assert_eq!(
        (code, &status["message"]),
        (StatusCode::UNAUTHORIZED, &json!("Unauthorized"))
    );
    let mut alice = Client::for_user(&server, User::named("alice", &["team-a"])).await;
    assert_eq!(alice.get(MAPS).await.0, 403);
    assert_eq!(alice.get("/version").await.0, 200);
}

/// Returns the client certificate in a kubeconfig.
fn client_certificate(kubeconfig: &str) -> ClientCertificate {
    let pem = |key: &str| {
        let line = kubeconfig
            .lines()
            .find(|line| line.trim_start().starts_with(key))
            .unwrap();
        STANDARD.decode(line.rsplit(' ').next().unwrap()).unwrap()
    };
    (
        CertificateDer::from_pem_slice(&pem("client-certificate-data:")).unwrap(),
        PrivateKeyDer::from_pem_slice(&pem("client-key-data:")).unwrap(),
    )
}

async fn authenticated_user(client: &mut Client) -> (StatusCode, Value) {
    let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    let (code, mut response) = client.post(path, review).await;
    match code.as_u16() {
        201 => (code, response["status"]["userInfo"].take()),
        _ => (code, response["message"].take()),
    }
}

#[tokio::test]
async fn certificates_authenticate_until_they_expire() {
    let still = ServeOptions {
        speed: 0.0,
        ..ServeOptions::default()
    };
    let (cluster, server) = serve(&still).await;
    let carol = User::named("carol", &["team-a", "team-x"]);
    let hour = Duration::from_hours(1);
    let certificate = client_certificate(&server.kubeconfig_with_certificate(&carol, hour).unwrap());
    let mut client =
        Client::with_certificate(&server, (certificate.0.clone(), certificate.1.clone_key())).await;
    let (code, info) = authenticated_user(&mut client).await;
    assert_eq!(code, 201, "{info}");
    assert_eq!(
        (&info["username"], &info["groups"]),
        (
            &json!("carol"),
            &json!(["team-a", "team-x", "system:authenticated"])
        )
    );
    let id = info["extra"]["authentication.kubernetes.io/credential-id"][0]
        .as_str()
        .unwrap();
    assert!(id.starts_with("X509SHA256=") && id.len() == 75, "{id}");
    let (code, status) = client.get(MAPS).await;
    let text = "configmaps is forbidden: User \"carol\" cannot list resource \"configmaps\" in API group \"\" in the namespace \"default\"";
    assert_eq!((code, &status["message"]), (StatusCode::FORBIDDEN, &json!(text)));

    // The connection remains open after the certificate has expired.
    cluster.advance(hour + Duration::from_secs(1));
    assert_eq!(
        authenticated_user(&mut client).await,
        (StatusCode::UNAUTHORIZED, json!("Unauthorized"))
    );
    let mut late = Client::with_certificate(&server, certificate).await;
    assert_eq!(late.get("/version").await.0, StatusCode::UNAUTHORIZED);
    let admin = User::named("root", &[MASTERS]);
    let fresh = client_certificate(&server.kubeconfig_with_certificate(&admin, hour).unwrap());
    assert_eq!(
        Client::with_certificate(&server, fresh).await.get(MAPS).await.0,
        200
    );
}

#[tokio::test]
async fn certificates_of_other_authorities_are_ignored() {
    let (_cluster, server) = serve(&ServeOptions::default()).await;
    let (_other_cluster, other) = serve(&ServeOptions::default()).await;
    let root = User::named("root", &[MASTERS]);
    let foreign = || {
        client_certificate(
            &other
                .kubeconfig_with_certificate(&root, Duration::from_hours(1))
                .unwrap(),
        )
    };
    let mut mallory = Client::with_certificate(&server, foreign()).await;
    let (code, status) = mallory.get("/version").await;
    assert_eq!(
        (code, &status["message"]),
        (StatusCode::UNAUTHORIZED, &json!("Unauthorized"))
    );
    // A valid token has precedence over a certificate.
    let token = token(&server, User::named("alice", &[]));
    let mut alice = Client::with_both(&server, &token, Some(foreign())).await;
    assert_eq!(authenticated_user(&mut alice).await.1["username"], "alice");
    // A valid certificate has precedence over an invalid token. A certificate without a user name is ignored.
    let good = client_certificate(
        &server
            .kubeconfig_with_certificate(&root, Duration::from_hours(1))
            .unwrap(),
    );
    let mut root = Client::with_both(&server, "guessed", Some(good)).await;
    assert_eq!(authenticated_user(&mut root).await.1["username"], "root");
    let nameless = server.kubeconfig_with_certificate(&User::named("", &[MASTERS]), Duration::from_mins(1));
    let mut anonymous = Client::with_certificate(&server, client_certificate(&nameless.unwrap())).await;
    let (code, status) = anonymous.get(MAPS).await;
    assert_eq!(code, 403);
    assert!(
        status["message"]
            .as_str()
            .unwrap()
            .contains("\"system:anonymous\""),
        "{status}"
    );
}

#[tokio::test]
async fn tokens_of_service_accounts_expire() {
    let still = ServeOptions {
        speed: 0.0,
        ..ServeOptions::default()
    };
    let (cluster, server) = serve(&still).await;
    let mut root = Client::for_user(&server, admin()).await;
    let path = "/api/v1/namespaces/default/serviceaccounts/default/token";
    let request = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 600}});
    let (code, created) = root.post(path, request).await;
    assert_eq!(code, 201, "{created}");
    let token = created["status"]["token"].as_str().unwrap();
    let mut account = Client::with_token(&server, token).await;
    assert_eq!(
        authenticated_user(&mut account).await.1["username"],
        "system:serviceaccount:default:default"
    );
    // The server tolerates a clock difference of one minute.
    cluster.advance(Duration::from_secs(659));
    assert_eq!(authenticated_user(&mut account).await.0, 201);
    cluster.advance(Duration::from_secs(2));
    assert_eq!(
        authenticated_user(&mut account).await,
        (StatusCode::UNAUTHORIZED, json!("Unauthorized"))
    );
}

#[tokio::test]
async fn bodies_have_a_limit_and_may_be_protobuf() {
    let (_cluster, server) = serve(&ServeOptions::default()).await;
    let mut client = Client::for_user(&server, admin()).await;
    let large = json!({"metadata": {"name": "large"}, "data": {"x": "x".repeat(3 << 20)}});
    let (code, status) = client.post(MAPS, large).await;
    assert_eq!(code, 413);
    assert_eq!(status["message"], "Request entity too large: limit is 3145728");

    let wire =
        b"k8s\0\x0a\x0f\x0a\x02v1\x12\x09ConfigMap\x12\x12\x0a\x08\x0a\x06packed\x12\x06\x0a\x01a\x12\x01b";
    let media = "application/vnd.kubernetes.protobuf";
    let (code, created) = client.send("POST", MAPS, media, wire.as_slice().into()).await;
    assert_eq!(
        (code, &created["data"]["a"]),
        (StatusCode::CREATED, &json!("b")),
        "{created}"
    );
    let (code, status) = client
        .send("POST", MAPS, media, b"k8s\0\xff".as_slice().into())
        .await;
    assert_eq!(
        (code, &status["message"]),
        (StatusCode::BAD_REQUEST, &json!("unexpected EOF"))
    );
}

#[tokio::test]
async fn watches_stream_and_time_out_on_the_cluster_clock() {
    let options = ServeOptions {
        speed: 1000.0,
        ..ServeOptions::default()
    };
    let (_cluster, server) = serve(&options).await;
    let mut client = Client::for_user(&server, admin()).await;
    let mut watch = client
        .watch(&format!(
            "{MAPS}?watch=true&timeoutSeconds=600&fieldSelector=metadata.name%3Da"
        ))
        .await;
    client.post(MAPS, json!({"metadata": {"name": "a"}})).await;
    let line = http_body_util_lite::next(&mut watch).await.unwrap();
    let event: Value = serde_json::from_slice(&line).unwrap();
    assert_eq!(
        (&event["type"], &event["object"]["metadata"]["name"]),
        (&json!("ADDED"), &json!("a"))
    );
    assert_eq!(
        collect(watch).await,
        b"",
        "the watch ends after ten virtual minutes"
    );
}

#[tokio::test]
async fn pods_become_ready_as_time_passes() {
    let options = ServeOptions {
        speed: 100.0,
        ..ServeOptions::default()
    };
    let (_cluster, server) = serve(&options).await;
    let mut client = Client::for_user(&server, admin()).await;
    let pods = "/api/v1/namespaces/default/pods";
    let mut watch = client.watch(&format!("{pods}?watch=true")).await;
    let pod = json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    assert_eq!(client.post(pods, pod).await.0, 201);
    let mut phases = Vec::new();
    while phases.last().is_none_or(|phase| phase != "Running") {
        let line = http_body_util_lite::next(&mut watch).await.unwrap();
        let event: Value = serde_json::from_slice(&line).unwrap();
        phases.push(event["object"]["status"]["phase"].as_str().unwrap().to_owned());
    }
    assert_eq!(phases.first().map(String::as_str), Some("Pending"));
    let (code, status) = client.get(&format!("{pods}/p/log")).await;
    assert_eq!(code, 501);
    let text = "the pods of this cluster are simulated: no container runs in them, so there are no logs, no commands and no ports";
    assert_eq!(status["message"], text);
    assert_eq!(client.get(&format!("{pods}/none/log")).await.0, 404);
}

#[tokio::test]
async fn connections_beyond_the_limit_wait() {
    let options = ServeOptions {
        max_connections: 1,
        ..ServeOptions::default()
    };
    let (_cluster, server) = serve(&options).await;
    let first = Client::for_user(&server, admin()).await;
    let second = Client::for_user(&server, admin());
    let mut second = std::pin::pin!(second);
    let early = futures::poll!(second.as_mut());
    assert!(early.is_pending());
    drop(first);
    assert_eq!(second.await.get("/version").await.0, 200);
}

#[tokio::test]
async fn idle_connections_do_not_block_others() {
    let options = ServeOptions {
        max_connections: 20,
        ..ServeOptions::default()
    };
    let (_cluster, server) = serve(&options).await;
    let mut watching = Client::for_user(&server, admin()).await;
    let mut watch = watching.watch(&format!("{MAPS}?watch=true")).await;
    let mut idle = Vec::new();
    for number in 0..60 {
        // Half of the connections complete the handshake, the others send nothing.
        if number % 2 == 0 {
            idle.push(connect(&server, b"h2").await.into_inner().0);
        } else {
            idle.push(TcpStream::connect(server.address()).await.unwrap());
        }
    }
    let mut client = Client::for_user(&server, admin()).await;
    assert_eq!(client.get("/version").await.0, 200);
    // A connection with an open watch is not idle.
    let body = json!({"metadata": {"name": "seen"}});
    assert_eq!(client.post(MAPS, body).await.0, 201);
    assert!(http_body_util_lite::next(&mut watch).await.is_some());
}

/// Number of replicas that no cluster can run.
const MAX_REPLICAS: i32 = i32::MAX;

#[tokio::test]
async fn pods_are_created_in_slices() {
    let (cluster, server) = serve(&ServeOptions::default()).await;
    let mut client = Client::for_user(&server, admin()).await;
    let body = json!({"metadata": {"name": "web"}, "spec": {
        "replicas": MAX_REPLICAS, "selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
    }});
    let path = "/apis/apps/v1/namespaces/default/deployments";
    assert_eq!(client.post(path, body).await.0, 201);
    let pods = || cluster.with(|state| state.store.count("pods"));
    let mut counts = vec![pods()];
    for _ in 0..2 {
        assert_eq!(client.get(&format!("{path}/web")).await.0, 200);
        counts.push(pods());
    }
    // Each request observes more pods than the previous one, and none waits until all pods are created.
    assert!(counts.windows(2).all(|pair| pair[0] < pair[1]), "{counts:?}");
    assert!(counts.iter().all(|count| *count < 10_000), "{counts:?}");
}

#[tokio::test]
async fn stopping_ends_watches_and_frees_the_port() {
    let (cluster, server) = serve(&ServeOptions::default()).await;
    let port = server.address().port();
    let mut client = Client::for_user(&server, admin()).await;
    let watch = client.watch(&format!("{MAPS}?watch=true")).await;
    server.stop().await;
    assert_eq!(collect(watch).await, b"");
    let options = ServeOptions {
        port,
        ..ServeOptions::default()
    };
    let again = Server::start(&cluster, &options).await.unwrap();
    let taken = Server::start(&cluster, &options).await.unwrap_err();
    assert_eq!(taken.to_string(), format!("cannot listen on 127.0.0.1:{port}"));
    assert_eq!(
        Client::for_user(&again, admin()).await.get("/version").await.0,
        200
    );
}

#[tokio::test]
async fn kubeconfig_files_are_private_and_never_replaced() {
    let (_cluster, server) = serve(&ServeOptions::default()).await;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("config");
    server.write_kubeconfig(admin(), &path).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&path).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
    let rejected = server.write_kubeconfig(admin(), &path).unwrap_err();
    assert_eq!(rejected.to_string(), format!("cannot write {}", path.display()));
}

#[tokio::test]
async fn schemas_are_published_and_change_with_their_definitions() {
    let (_cluster, server) = serve(&ServeOptions::default()).await;
    let mut client = Client::for_user(&server, admin()).await;
    let (_, index) = client.get("/openapi/v3").await;
    let apps = index["paths"]["apis/apps/v1"]["serverRelativeURL"]
        .as_str()
        .unwrap();
    let (code, document) = client.get(apps).await;
    assert_eq!(code, 200);
    let spec = &document["components"]["schemas"]["io.k8s.api.core.v1.PodSpec"]["properties"]["containers"];
    assert_eq!(spec["x-kubernetes-patch-merge-key"], "name");
    assert_eq!(
        spec["items"]["allOf"][0]["$ref"],
        "#/components/schemas/io.k8s.api.core.v1.Container"
    );
    assert_eq!(client.get("/openapi/v3/apis/none/v1").await.0, 404);

    let definition = |description: &str| {
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "kettles.pipeline.example"},
            "spec": {"group": "pipeline.example", "scope": "Namespaced", "names": {"plural": "kettles", "kind": "Kettle"},
                "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                    "type": "object", "description": description, "properties": {"spec": {"type": "object"}}}}}]},
        })
    };
    let (code, created) = client
        .post(
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
            definition("Boils."),
        )
        .await;
    assert_eq!(code, 201, "{created}");
    let path = |index: &Value| {
        index["paths"]["apis/pipeline.example/v1"]["serverRelativeURL"]
            .as_str()
            .map(str::to_owned)
    };
    let mut first = None;
    while first.is_none() {
        first = path(&client.get("/openapi/v3").await.1);
        tokio::task::yield_now().await;
    }
    let (_, document) = client.get(first.as_deref().unwrap()).await;
    let schema = &document["components"]["schemas"]["example.pipeline.v1.Kettle"];
    assert_eq!(schema["description"], "Boils.");
    assert_eq!(
        schema["x-kubernetes-group-version-kind"],
        json!([{"group": "pipeline.example", "version": "v1", "kind": "Kettle"}])
    );
    let patch = json!({"spec": definition("Boils water.")["spec"]});
    let (code, _) = client
        .send(
            "PATCH",
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/kettles.pipeline.example",
            "application/merge-patch+json",
            patch.to_string().into(),
        )
        .await;
    assert_eq!(code, 200);
    let mut changed = first.clone();
    while changed == first {
        changed = path(&client.get("/openapi/v3").await.1);
        tokio::task::yield_now().await;
    }
}
