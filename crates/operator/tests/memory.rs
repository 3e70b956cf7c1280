//! Tests the memory usage of the operator when a tenant creates many large objects with our label. The tests
//! run one after the other, because they measure the memory of the process.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    dead_code,
    reason = "test code; each program uses a part of the helpers"
)]

mod common;

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use common::{create_istio, new_cluster, sleep, wait_until_healthy};
use futures::StreamExt;
use futures::channel::mpsc::{Receiver, channel};
use futures::stream::BoxStream;
use http::{Request, Response, Uri};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::{Bytes, Frame};
use kube::Client;
use kube::client::Body;
use mainstay_mesh::Settings;
use mainstay_operator::Options;
use serde_json::{Value, json};
use tower_service::Service;

/// Number of created objects, and the size of each.
const OBJECTS: usize = 1_000;
const OBJECT_BYTES: usize = 900_000;

type BoxError = Box<dyn std::error::Error + Send + Sync>;
type Frames = BoxStream<'static, Result<Frame<Bytes>, BoxError>>;

/// A service that adds events to the watch of `ConfigMaps`, as if a tenant created objects. No server
/// stores them.
#[derive(Clone)]
struct AddedWatchEvents {
    client: Client,
    events: Arc<Mutex<Option<Receiver<Bytes>>>>,
}

impl Service<Request<Body>> for AddedWatchEvents {
    type Response = Response<StreamBody<Frames>>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let Self { client, events } = self.clone();
        Box::pin(async move {
            let query = request.uri().query().unwrap_or_default();
            let is_watched = request.uri().path() == "/api/v1/configmaps" && query.contains("watch=true");
            let response = client.send(request).await?;
            let added = is_watched.then(|| events.lock().unwrap().take()).flatten();
            Ok(response.map(|body| StreamBody::new(with_added_events(body, added))))
        })
    }
}

fn with_added_events(body: Body, added: Option<Receiver<Bytes>>) -> Frames {
    let own = body
        .into_data_stream()
        .map(|data| data.map(Frame::data).map_err(BoxError::from));
    match added {
        Some(added) => futures::stream::select(own, added.map(|data| Ok(Frame::data(data)))).boxed(),
        None => own.boxed(),
    }
}

/// Returns a new object. One third of the objects have no owner, one third an owner of another
/// API group, and one third an owner of our group that does not exist.
fn large_object(number: usize) -> Value {
    let owner = |api_version: &str| json!([{"apiVersion": api_version, "kind": "IstioRevision", "name": "x", "uid": format!("uid-{number}")}]);
    let owners = match number % 3 {
        0 => Value::Null,
        1 => owner("example.com/v1"),
        _ => owner("sailoperator.io/v1"),
    };
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": format!("large-{number}"), "namespace": "tenant", "uid": format!("u-{number}"),
            "resourceVersion": format!("{}", 1_000_000 + number), "ownerReferences": owners,
            "labels": {"managed-by": "sail-operator"}},
        "data": {"blob": "x".repeat(OBJECT_BYTES)},
    })
}

/// Returns the event of a new object.
fn event(number: usize) -> Bytes {
    Bytes::from(format!(
        "{}\n",
        json!({"type": "ADDED", "object": large_object(number)})
    ))
}

/// A service of a server without streaming lists, whose lists of `ConfigMaps` start with large objects in
/// pages, as if a tenant had created them.
#[derive(Clone)]
struct LargePages {
    client: Client,
    /// Number of large objects.
    objects: Arc<AtomicUsize>,
    pages: Arc<AtomicUsize>,
}

/// Prefix of the continue tokens of the large objects.
const TOKEN: &str = "large-";

fn parameter<'a>(query: &'a str, name: &str) -> Option<&'a str> {
    let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    pairs.find(|(key, _)| *key == name).map(|(_, value)| value)
}

impl LargePages {
    /// Returns the response to a request that the server does not receive.
    fn intercept(&self, uri: &Uri) -> Option<Response<StreamBody<Frames>>> {
        let query = uri.query().unwrap_or_default();
        if parameter(query, "sendInitialEvents").is_some() {
            return Some(respond(
                422,
                futures::stream::iter([Bytes::from(REJECTED)]).boxed(),
            ));
        }
        if uri.path() != "/api/v1/configmaps" || parameter(query, "watch").is_some() {
            return None;
        }
        let token = parameter(query, "continue").and_then(|token| token.strip_prefix(TOKEN));
        let first = token.map_or(0, |number| number.parse().unwrap());
        let all = self.objects.load(Ordering::Relaxed);
        if first >= all {
            return None;
        }
        self.pages.fetch_add(1, Ordering::Relaxed);
        let limit: usize = parameter(query, "limit").unwrap().parse().unwrap();
        Some(respond(200, page(first, (first + limit).min(all))))
    }
}

const REJECTED: &str = r#"{"kind":"Status","apiVersion":"v1","status":"Failure","message":"sendInitialEvents is forbidden","reason":"Invalid","code":422}"#;

fn respond(code: u16, parts: BoxStream<'static, Bytes>) -> Response<StreamBody<Frames>> {
    let frames: Frames = parts.map(|part| Ok(Frame::data(part))).boxed();
    Response::builder()
        .status(code)
        .body(StreamBody::new(frames))
        .unwrap()
}

/// Returns a page of large objects, each of which is created when it is sent. The list continues with the
/// objects of the server.
fn page(first: usize, end: usize) -> BoxStream<'static, Bytes> {
    let head = format!(
        "{{\"kind\":\"ConfigMapList\",\"apiVersion\":\"v1\",\"metadata\":{{\"resourceVersion\":\"1\",\"continue\":\"{TOKEN}{end}\"}},\"items\":["
    );
    let items = (first..end).map(move |number| {
        let comma = if number == first { "" } else { "," };
        Bytes::from(format!("{comma}{}", large_object(number)))
    });
    let parts = std::iter::once(Bytes::from(head)).chain(items);
    futures::stream::iter(parts.chain([Bytes::from("]}")])).boxed()
}

impl Service<Request<Body>> for LargePages {
    type Response = Response<StreamBody<Frames>>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        let intercepted = self.intercept(request.uri());
        let client = self.client.clone();
        Box::pin(async move {
            if let Some(response) = intercepted {
                return Ok(response);
            }
            if request.uri().query().is_some_and(|query| query.contains(TOKEN)) {
                *request.uri_mut() = Uri::from_static(SERVER_LIST);
            }
            let response = client.send(request).await?;
            Ok(response.map(|body| StreamBody::new(with_added_events(body, None))))
        })
    }
}

/// List of the server's own objects, after the large ones.
const SERVER_LIST: &str = "/api/v1/configmaps?labelSelector=managed-by%3Dsail-operator&limit=500";

/// Returns the resident memory of this process in KiB.
fn resident_kib() -> usize {
    memory_kib("VmRSS:")
}

/// Resets the peak of the resident memory of this process.
fn reset_peak() {
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
}

/// Returns the highest resident memory of this process since the last reset, in KiB.
fn peak_kib() -> usize {
    memory_kib("VmHWM:")
}

fn memory_kib(field: &str) -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(field));
    line.unwrap().trim().split(' ').next().unwrap().parse().unwrap()
}

/// Held by the running test.
static RUNNING: Mutex<()> = Mutex::new(());

/// Runs a test in virtual time, after the others.
fn run_alone(test: impl Future<Output = ()>) {
    let guard = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(test);
    drop(guard);
}

fn mebibytes(kibibytes: usize) -> f64 {
    kibibytes as f64 / 1024.0
}

#[test]
fn large_labeled_objects_of_a_tenant_are_not_cached() {
    run_alone(watch_large_objects());
}

#[test]
fn large_labeled_objects_are_listed_one_at_a_time() {
    run_alone(list_large_objects());
}

async fn list_large_objects() {
    let cluster = new_cluster().await;
    let service = LargePages {
        client: cluster.client("mainstay"),
        objects: Arc::new(AtomicUsize::new(0)),
        pages: Arc::new(AtomicUsize::new(0)),
    };
    let options = Options {
        leader_elect: false,
        ..Options::default()
    };
    let client = Client::new(service.clone(), "default");
    let operator = cluster.start_operator_with(client, Settings::default(), options);
    create_istio(&cluster).await;
    wait_until_healthy(&cluster, 60).await;
    // The first object allocates buffers for objects of this size, which do not count as growth.
    service.objects.store(1, Ordering::Relaxed);
    let relist = 2 * 3600;
    sleep(&cluster, relist).await;
    assert!(service.pages.swap(0, Ordering::Relaxed) > 0, "nothing was listed");
    let before = resident_kib();
    service.objects.store(OBJECTS, Ordering::Relaxed);
    reset_peak();
    sleep(&cluster, relist).await;
    let peak = peak_kib();
    let pages = service.pages.load(Ordering::Relaxed);
    let ratio = peak as f64 / before as f64;
    println!(
        "harden cache-lists: {OBJECTS} objects of {OBJECT_BYTES} bytes in {pages} pages, {:.1} MiB before, {:.1} MiB peak, ratio {ratio:.2}",
        mebibytes(before),
        mebibytes(peak)
    );
    assert!(pages * 50 >= OBJECTS, "{pages}");
    assert!(ratio <= 1.1, "{ratio:.3}");
    wait_until_healthy(&cluster, 60).await;
    operator.stop().await.unwrap();
}

async fn watch_large_objects() {
    let cluster = new_cluster().await;
    let (mut sender, receiver) = channel(1);
    let client = AddedWatchEvents {
        client: cluster.client("mainstay"),
        events: Arc::new(Mutex::new(Some(receiver))),
    };
    let options = Options {
        leader_elect: false,
        ..Options::default()
    };
    let operator = cluster.start_operator_with(Client::new(client, "default"), Settings::default(), options);
    create_istio(&cluster).await;
    wait_until_healthy(&cluster, 60).await;
    // The first object allocates buffers for events of this size, which do not count as growth.
    futures::SinkExt::send(&mut sender, event(0)).await.unwrap();
    sleep(&cluster, 10).await;
    let before = resident_kib();
    for number in 1..=OBJECTS {
        futures::SinkExt::send(&mut sender, event(number)).await.unwrap();
    }
    sleep(&cluster, 10).await;
    let after = resident_kib();
    let ratio = after as f64 / before as f64;
    println!(
        "harden cache: {OBJECTS} objects of {OBJECT_BYTES} bytes, {:.1} MiB before, {:.1} MiB after, ratio {ratio:.2}",
        mebibytes(before),
        mebibytes(after)
    );
    assert!(ratio <= 1.1, "{ratio:.3}");
    common::wait_until_healthy(&cluster, 60).await;
    operator.stop().await.unwrap();
}
