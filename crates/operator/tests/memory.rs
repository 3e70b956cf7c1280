//! Tests the memory usage of the operator when a tenant creates many large objects with our label. It is
//! the only test of this program, because it measures the memory of the process.

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
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use common::{create_istio, new_cluster, sleep, wait_until_healthy};
use futures::StreamExt;
use futures::channel::mpsc::{Receiver, channel};
use futures::stream::BoxStream;
use http::{Request, Response};
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

/// Returns the event of a new object. One third of the objects have no owner, one third an owner of another
/// API group, and one third an owner of our group that does not exist.
fn event(number: usize) -> Bytes {
    let owner = |api_version: &str| json!([{"apiVersion": api_version, "kind": "IstioRevision", "name": "x", "uid": format!("uid-{number}")}]);
    let owners = match number % 3 {
        0 => Value::Null,
        1 => owner("example.com/v1"),
        _ => owner("sailoperator.io/v1"),
    };
    let object = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": format!("large-{number}"), "namespace": "tenant", "uid": format!("u-{number}"),
            "resourceVersion": format!("{}", 1_000_000 + number), "ownerReferences": owners,
            "labels": {"managed-by": "sail-operator"}},
        "data": {"blob": "x".repeat(OBJECT_BYTES)},
    });
    Bytes::from(format!("{}\n", json!({"type": "ADDED", "object": object})))
}

/// Returns the resident memory of this process in KiB.
fn resident_kib() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.unwrap().trim().split(' ').next().unwrap().parse().unwrap()
}

#[tokio::test(start_paused = true)]
async fn large_labeled_objects_of_a_tenant_are_not_cached() {
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
    let mebibytes = |kibibytes: usize| kibibytes as f64 / 1024.0;
    println!(
        "harden cache: {OBJECTS} objects of {OBJECT_BYTES} bytes, {:.1} MiB before, {:.1} MiB after, ratio {ratio:.2}",
        mebibytes(before),
        mebibytes(after)
    );
    assert!(ratio <= 1.1, "{ratio:.3}");
    common::wait_until_healthy(&cluster, 60).await;
    operator.stop().await.unwrap();
}
