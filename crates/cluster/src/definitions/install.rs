//! Applies custom resource definitions that differ, and waits until they are established.

use std::pin::pin;
use std::time::Duration;

use futures::{StreamExt as _, TryStreamExt as _, stream};
use http::Request;
use kube::Client;
use serde_json::Value;
use tokio::time::{Instant, sleep};

use crate::compare::difference;
use crate::connect::MANAGER;
use crate::write::WriteError;

const PATH: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// Maximum time to wait until a definition is established.
const ESTABLISH_TIMEOUT: Duration = Duration::from_mins(1);
const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// Maximum number of definitions that are applied concurrently. Definitions are large.
const MAX_CONCURRENT: usize = 4;

/// Outcome of one definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The definition was created.
    Created,
    /// The definition was updated.
    Updated,
    /// Only field ownership changed: another manager had written the same definition.
    Adopted,
    /// The definition is unchanged.
    Unchanged,
}

/// Errors of installing definitions.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// The API server rejected the call.
    #[error("cannot {action} definition {name}: {error}")]
    Rejected {
        /// Operation: `read` or `apply`.
        action: &'static str,
        /// Name of the definition.
        name: String,
        /// The server's error.
        error: WriteError,
    },
    /// The definition was not established in time.
    #[error("definition {name} is not established after {} seconds: {message}", ESTABLISH_TIMEOUT.as_secs())]
    NotEstablished {
        /// Name of the definition.
        name: String,
        /// Message of the server's condition.
        message: String,
    },
}

/// Returns the name of an object.
#[must_use]
pub fn name(object: &Value) -> &str {
    object
        .pointer("/metadata/name")
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// Installs all definitions and waits until they are established. Calls `report` with the name and
/// outcome of each definition.
pub async fn install(
    client: &Client,
    definitions: &[Value],
    mut report: impl FnMut(&str, Outcome),
) -> Result<(), InstallError> {
    let install = |wanted| async move {
        install_one(client, wanted)
            .await
            .map(|outcome| (name(wanted), outcome))
    };
    let mut installed = pin!(stream::iter(definitions).map(install).buffered(MAX_CONCURRENT));
    while let Some((name, outcome)) = installed.try_next().await? {
        report(name, outcome);
    }
    let until = Instant::now() + ESTABLISH_TIMEOUT;
    let waits = stream::iter(definitions).map(|wanted| await_established(client, name(wanted), until));
    waits.buffer_unordered(MAX_CONCURRENT).try_collect().await
}

async fn install_one(client: &Client, wanted: &Value) -> Result<Outcome, InstallError> {
    let name = name(wanted);
    let live = read(client, name).await?;
    if let Some(live) = &live
        && difference(wanted, live, MANAGER).is_none()
    {
        return Ok(Outcome::Unchanged);
    }
    let applied = apply(client, name, wanted).await?;
    let generation = |object: &Value| object.pointer("/metadata/generation").and_then(Value::as_i64);
    Ok(match live {
        None => Outcome::Created,
        Some(live) if generation(&live) == generation(&applied) => Outcome::Adopted,
        Some(_) => Outcome::Updated,
    })
}

async fn read(client: &Client, name: &str) -> Result<Option<Value>, InstallError> {
    let request = Request::get(format!("{PATH}/{name}")).body(Vec::new());
    match call(client, request).await {
        Ok(object) => Ok(Some(object)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(rejected("read", name, error)),
    }
}

/// Applies a definition with force, so that it replaces the fields of any previous writer.
async fn apply(client: &Client, name: &str, wanted: &Value) -> Result<Value, InstallError> {
    let request = Request::patch(format!("{PATH}/{name}?fieldManager={MANAGER}&force=true"))
        .header(http::header::CONTENT_TYPE, "application/apply-patch+yaml")
        .body(wanted.to_string().into_bytes());
    call(client, request)
        .await
        .map_err(|error| rejected("apply", name, error))
}

async fn call(client: &Client, request: http::Result<Request<Vec<u8>>>) -> Result<Value, WriteError> {
    let request = request.map_err(kube::Error::HttpError)?;
    Ok(client.request(request).await?)
}

fn rejected(action: &'static str, name: &str, error: WriteError) -> InstallError {
    InstallError::Rejected {
        action,
        name: name.to_owned(),
        error,
    }
}

async fn await_established(client: &Client, name: &str, until: Instant) -> Result<(), InstallError> {
    loop {
        let live = read(client, name).await?.unwrap_or_default();
        let (established, message) = read_established(&live);
        if established {
            return Ok(());
        }
        if Instant::now() >= until {
            return Err(InstallError::NotEstablished {
                name: name.to_owned(),
                message,
            });
        }
        sleep(POLL_INTERVAL).await;
    }
}

fn read_established(live: &Value) -> (bool, String) {
    let conditions = live.pointer("/status/conditions").and_then(Value::as_array);
    let text = |condition: &Value, key: &str| {
        condition
            .get(key)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let conditions: Vec<&Value> = conditions.into_iter().flatten().collect();
    let done = conditions
        .iter()
        .any(|condition| text(condition, "type") == "Established" && text(condition, "status") == "True");
    let failed_condition = conditions
        .iter()
        .find(|condition| text(condition, "status") == "False");
    let message = failed_condition.map_or_else(
        || "no reason reported".into(),
        |condition| text(condition, "message"),
    );
    (done, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_unestablished_definition_reports_its_condition() {
        let live = json!({"status": {"conditions": [
            {"type": "NamesAccepted", "status": "False", "message": "\"istios\" is already in use"},
        ]}});
        assert_eq!(
            read_established(&live),
            (false, "\"istios\" is already in use".into())
        );
        assert_eq!(read_established(&json!({})), (false, "no reason reported".into()));
        let live = json!({"status": {"conditions": [{"type": "Established", "status": "True"}]}});
        assert!(read_established(&live).0);
    }
}
