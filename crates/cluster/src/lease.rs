//! Who leads: takes a Lease that several processes want, gives it to one of them, and tells when it is lost. The rules are those of
//! client-go, so that it shares the Lease with controllers in Go.
//!
//! A Lease alone guarantees nothing, since clocks run at their own pace: it opens the [`Fence`] for a while with every renewal,
//! measured on the monotonic clock, and whoever writes names the version it means.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::Method;
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};

use crate::connect::Fence;
use crate::write::{Body, WriteError, Writer};

/// Others may take it when it was not renewed for so long.
const DURATION: Duration = Duration::from_secs(15);
/// We stop when we could not renew it for so long.
const RENEW_DEADLINE: Duration = Duration::from_secs(10);
/// We try this often.
const RETRY: Duration = Duration::from_secs(2);
/// One call may take so long.
const CALL: Duration = Duration::from_secs(5);

/// What time it is, for people who read the Lease.
pub type Now = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// A Lease that we want, or have.
pub struct Lease {
    writer: Writer,
    folder: String,
    name: String,
    identity: String,
    fence: Fence,
    now: Now,
    /// As we last saw it.
    seen: Option<Value>,
    /// What somebody else's record said, and since when it has said that.
    rival: Option<(Value, Instant)>,
    renewed: Option<Instant>,
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl Lease {
    /// The Lease of this namespace and name, wanted by `identity`. Writes through `fence` are possible while we have it;
    /// `writer` itself must not be fenced by it.
    #[must_use]
    pub fn new(
        (namespace, name): (&str, &str),
        identity: &str,
        writer: Writer,
        fence: Fence,
        now: Now,
    ) -> Self {
        Self {
            writer,
            folder: format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"),
            name: name.to_owned(),
            identity: identity.to_owned(),
            fence,
            now,
            seen: None,
            rival: None,
            renewed: None,
        }
    }

    /// Waits until we have it.
    pub async fn acquire(&mut self) {
        while !self.attempt().await {
            sleep(RETRY).await;
        }
    }

    /// Keeps it; comes back only when it is lost.
    pub async fn keep(&mut self) {
        loop {
            sleep(RETRY).await;
            if self.attempt().await {
                continue;
            }
            let age = self.renewed.map_or(RENEW_DEADLINE, |renewed| renewed.elapsed());
            if self.rival.is_some() || age + RETRY > RENEW_DEADLINE {
                self.fence.close();
                return;
            }
        }
    }

    /// Gives it to whoever wants it next. Nothing is written from now on.
    pub async fn release(&mut self) {
        self.fence.close();
        let Some(seen) = self.seen.take().filter(|seen| holder(seen) == self.identity) else {
            return;
        };
        let now = self.moment();
        let spec = json!({
            "holderIdentity": "",
            "leaseDurationSeconds": 1,
            "acquireTime": now,
            "renewTime": now,
            "leaseTransitions": transitions(&seen),
        });
        if let Err(error) = self.put(&seen, spec).await {
            tracing::debug!(%error, "the Lease could not be released");
        }
    }

    /// One attempt to get or renew it.
    async fn attempt(&mut self) -> bool {
        let begun = Instant::now();
        match self.try_hold().await {
            Ok(true) => {
                self.rival = None;
                self.renewed = Some(begun);
                self.fence.hold_open(begun + RENEW_DEADLINE);
                true
            }
            Ok(false) => false,
            Err(error) => {
                tracing::debug!(%error, "the Lease could not be renewed");
                // Whether the write happened is not known: look before the next one.
                self.seen = None;
                false
            }
        }
    }

    async fn try_hold(&mut self) -> Result<bool, WriteError> {
        let ours = self.seen.take().filter(|seen| holder(seen) == self.identity);
        let found = if ours.is_some() { ours } else { self.get().await? };
        let Some(seen) = found else {
            self.seen = Some(self.create().await?);
            return Ok(true);
        };
        if self.is_taken(&seen) {
            return Ok(false);
        }
        let spec = self.record(&seen);
        self.seen = Some(self.put(&seen, spec).await?);
        Ok(true)
    }

    /// Whether somebody else has it. How long is counted from when we saw its record, not by its own clock.
    fn is_taken(&mut self, seen: &Value) -> bool {
        if holder(seen).is_empty() || holder(seen) == self.identity {
            self.rival = None;
            return false;
        }
        let spec = seen.get("spec").cloned().unwrap_or_default();
        let since = match &self.rival {
            Some((record, since)) if *record == spec => *since,
            _ => Instant::now(),
        };
        let seconds = spec.get("leaseDurationSeconds").and_then(Value::as_u64);
        self.rival = Some((spec, since));
        since.elapsed() < seconds.map_or(DURATION, Duration::from_secs)
    }

    fn record(&self, seen: &Value) -> Value {
        let now = self.moment();
        let is_ours = holder(seen) == self.identity;
        let acquired = seen.pointer("/spec/acquireTime").filter(|_| is_ours).cloned();
        json!({
            "holderIdentity": self.identity,
            "leaseDurationSeconds": DURATION.as_secs(),
            "acquireTime": acquired.unwrap_or_else(|| now.clone().into()),
            "renewTime": now,
            "leaseTransitions": transitions(seen) + i64::from(!is_ours),
        })
    }

    async fn get(&self) -> Result<Option<Value>, WriteError> {
        match self.call(Method::GET, &self.path(), None).await {
            Ok(found) => Ok(Some(found)),
            Err(refused) if refused.is_not_found() => Ok(None),
            Err(refused) => Err(refused),
        }
    }

    async fn create(&self) -> Result<Value, WriteError> {
        let now = self.moment();
        let body = json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": self.name},
            "spec": {
                "holderIdentity": self.identity,
                "leaseDurationSeconds": DURATION.as_secs(),
                "acquireTime": now,
                "renewTime": now,
                "leaseTransitions": 0,
            },
        });
        self.call(Method::POST, &self.folder, Some(Body::Json(body)))
            .await
    }

    /// Replaces this very version.
    async fn put(&self, seen: &Value, spec: Value) -> Result<Value, WriteError> {
        let mut body = seen.clone();
        if let Value::Object(map) = &mut body {
            map.insert("spec".into(), spec);
        }
        self.call(Method::PUT, &self.path(), Some(Body::Json(body))).await
    }

    async fn call(&self, method: Method, path: &str, body: Option<Body>) -> Result<Value, WriteError> {
        let late = || WriteError::local(mainstay_mesh::ErrorClass::Other, "no answer in time".into());
        timeout(CALL, self.writer.call(method, path, body))
            .await
            .unwrap_or_else(|_| Err(late()))
    }

    fn path(&self) -> String {
        format!("{}/{}", self.folder, self.name)
    }

    /// With exactly six digits, as Go reads it.
    fn moment(&self) -> String {
        format!("{:.6}", (self.now)())
    }
}

fn holder(lease: &Value) -> &str {
    lease
        .pointer("/spec/holderIdentity")
        .and_then(Value::as_str)
        .unwrap_or_default()
}

fn transitions(lease: &Value) -> i64 {
    lease
        .pointer("/spec/leaseTransitions")
        .and_then(Value::as_i64)
        .unwrap_or_default()
}
