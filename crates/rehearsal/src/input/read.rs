//! A cluster, read once: takes a client, lists what [`KINDS`](super::KINDS) names page by page, writes nothing.

use http::Request;
use jiff::Timestamp;
use kube::Client;
use serde::Deserialize;
use serde_json::Value;

use super::{Input, KINDS, Wanted, trim};
use crate::error::RehearsalError;

/// Enough for few calls, little enough for small answers.
const PAGE: usize = 500;

#[derive(Deserialize)]
struct Page {
    #[serde(default)]
    metadata: Metadata,
    items: Option<Vec<Value>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Metadata {
    #[serde(rename = "continue")]
    next: String,
}

/// Everything a rehearsal needs of a cluster. What may not be listed is missing, and told; without Istios there is no rehearsal.
pub async fn read_cluster(client: &Client, source: String, now: Timestamp) -> Result<Input, RehearsalError> {
    let (mut objects, mut missing) = (Vec::new(), Vec::new());
    for kind in &KINDS {
        match list(client, kind).await {
            Ok(items) => objects.extend(items),
            Err(message) if kind.kind == "Istio" => {
                return Err(RehearsalError::Cluster {
                    what: kind.plural,
                    message,
                });
            }
            Err(message) => missing.push((kind.kind, message)),
        }
    }
    let input = Input::sorted(source, objects)?;
    Ok(Input {
        missing,
        taken: input.taken.max(Some(now)),
        ..input
    })
}

async fn list(client: &Client, kind: &Wanted) -> Result<Vec<Value>, String> {
    let root = if kind.api_version.contains('/') {
        "/apis"
    } else {
        "/api"
    };
    let path = format!("{root}/{}/{}", kind.api_version, kind.plural);
    let (mut items, mut next) = (Vec::new(), String::new());
    loop {
        let and = if next.is_empty() {
            String::new()
        } else {
            format!("&continue={next}")
        };
        let request = Request::get(format!("{path}?limit={PAGE}{and}")).body(Vec::new());
        let request = request.map_err(|error| error.to_string())?;
        let page: Page = client.request(request).await.map_err(|error| told(&error))?;
        items.extend(page.items.into_iter().flatten().map(|item| named(item, kind)));
        next = page.metadata.next;
        if next.is_empty() {
            return Ok(items);
        }
    }
}

fn told(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => status.message.clone(),
        other => other.to_string(),
    }
}

/// Items of a list do not say what they are.
fn named(mut item: Value, kind: &Wanted) -> Value {
    if let Value::Object(fields) = &mut item {
        fields.insert("apiVersion".into(), kind.api_version.into());
        fields.insert("kind".into(), kind.kind.into());
    }
    trim::trim(&mut item);
    item
}
