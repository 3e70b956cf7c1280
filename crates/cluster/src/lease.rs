//! Leader election with a Lease by the rules of client-go, so that controllers written in Go can use the
//! same Lease.
//!
//! A Lease alone does not guarantee a single writer, because clocks differ. So each renewal opens the
//! [`Fence`] for a limited time on the monotonic clock, and every write has a precondition.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::Method;
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};

use crate::connect::Fence;
use crate::write::{Body, WriteError, Writer};

/// Lease duration: other processes may acquire the Lease this long after the last renewal.
const LEASE_DURATION: Duration = Duration::from_secs(15);
/// Renew deadline: after this long without a renewal, the process stops being the leader.
const RENEW_DEADLINE: Duration = Duration::from_secs(10);
/// Interval between attempts.
const RETRY_INTERVAL: Duration = Duration::from_secs(2);
/// Timeout of one call.
pub const CALL_TIMEOUT: Duration = Duration::from_secs(5);

/// Wall clock for the times in the Lease.
pub type Now = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// Leader election for one Lease.
pub struct Lease {
    writer: Writer,
    collection: String,
    name: String,
    identity: String,
    fence: Fence,
    now: Now,
    /// The last observed Lease.
    seen: Option<Value>,
    /// Record of another holder, and the time when it was first observed.
    other_holder: Option<(Value, Instant)>,
    renewed: Option<Instant>,
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// Identifies a Lease and the process that acquires it.
#[derive(Clone, Copy, Debug)]
pub struct LeaseOptions<'a> {
    /// Namespace of the Lease.
    pub namespace: &'a str,
    /// Name of the Lease.
    pub name: &'a str,
    /// Identity of this process.
    pub identity: &'a str,
}

impl Lease {
    /// Creates an election. `fence` is open while the identity of `options` holds the Lease. `writer` must
    /// not be guarded by `fence`.
    #[must_use]
    pub fn new(options: LeaseOptions<'_>, writer: Writer, fence: Fence, now: Now) -> Self {
        let LeaseOptions {
            namespace,
            name,
            identity,
        } = options;
        Self {
            writer,
            collection: format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"),
            name: name.to_owned(),
            identity: identity.to_owned(),
            fence,
            now,
            seen: None,
            other_holder: None,
            renewed: None,
        }
    }

    /// Waits until the Lease is acquired.
    pub async fn acquire(&mut self) {
        while !self.acquire_or_renew().await {
            sleep(RETRY_INTERVAL).await;
        }
    }

    /// Renews the Lease until it is lost.
    pub async fn renew_until_lost(&mut self) {
        loop {
            sleep(RETRY_INTERVAL).await;
            if self.acquire_or_renew().await {
                continue;
            }
            let age = self.renewed.map_or(RENEW_DEADLINE, |renewed| renewed.elapsed());
            if self.other_holder.is_some() || age + RETRY_INTERVAL > RENEW_DEADLINE {
                self.fence.close();
                return;
            }
        }
    }

    /// Closes the fence and releases the Lease.
    pub async fn release(&mut self) {
        self.fence.close();
        let Some(seen) = self.seen.take().filter(|seen| holder(seen) == self.identity) else {
            return;
        };
        let now = self.timestamp();
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

    /// Tries once to acquire or renew the Lease. Returns whether it succeeded.
    async fn acquire_or_renew(&mut self) -> bool {
        let begun = Instant::now();
        match self.try_hold().await {
            Ok(true) => {
                self.other_holder = None;
                self.renewed = Some(begun);
                self.fence.hold_open(begun + RENEW_DEADLINE);
                true
            }
            Ok(false) => false,
            Err(error) => {
                tracing::debug!(%error, "the Lease could not be renewed");
                // The result of the write is unknown, so the Lease is read before the next write.
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
        if self.is_held_by_other(&seen) {
            return Ok(false);
        }
        let spec = self.renewed_spec(&seen);
        self.seen = Some(self.put(&seen, spec).await?);
        Ok(true)
    }

    /// Whether another process holds the Lease. The age of its record is measured locally since the first
    /// observation, because the holder's clock may differ.
    fn is_held_by_other(&mut self, seen: &Value) -> bool {
        if holder(seen).is_empty() || holder(seen) == self.identity {
            self.other_holder = None;
            return false;
        }
        let spec = seen.get("spec").cloned().unwrap_or_default();
        let since = match &self.other_holder {
            Some((record, since)) if *record == spec => *since,
            _ => Instant::now(),
        };
        let seconds = spec.get("leaseDurationSeconds").and_then(Value::as_u64);
        self.other_holder = Some((spec, since));
        since.elapsed() < seconds.map_or(LEASE_DURATION, Duration::from_secs)
    }

    fn renewed_spec(&self, seen: &Value) -> Value {
        let now = self.timestamp();
        let is_ours = holder(seen) == self.identity;
        let acquired = seen.pointer("/spec/acquireTime").filter(|_| is_ours).cloned();
        json!({
            "holderIdentity": self.identity,
            "leaseDurationSeconds": LEASE_DURATION.as_secs(),
            "acquireTime": acquired.unwrap_or_else(|| now.clone().into()),
            "renewTime": now,
            "leaseTransitions": transitions(seen) + i64::from(!is_ours),
        })
    }

    async fn get(&self) -> Result<Option<Value>, WriteError> {
        match self.call(Method::GET, &self.path(), None).await {
            Ok(found) => Ok(Some(found)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn create(&self) -> Result<Value, WriteError> {
        let now = self.timestamp();
        let body = json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": self.name},
            "spec": {
                "holderIdentity": self.identity,
                "leaseDurationSeconds": LEASE_DURATION.as_secs(),
                "acquireTime": now,
                "renewTime": now,
                "leaseTransitions": 0,
            },
        });
        self.call(Method::POST, &self.collection, Some(Body::Json(body)))
            .await
    }

    /// Replaces the Lease; fails if it has another version than `seen`.
    async fn put(&self, seen: &Value, spec: Value) -> Result<Value, WriteError> {
        let mut body = seen.clone();
        if let Value::Object(map) = &mut body {
            map.insert("spec".into(), spec);
        }
        self.call(Method::PUT, &self.path(), Some(Body::Json(body))).await
    }

    async fn call(&self, method: Method, path: &str, body: Option<Body>) -> Result<Value, WriteError> {
        let late = || WriteError::local(mainstay_mesh::ErrorClass::Other, "no response in time".into());
        timeout(CALL_TIMEOUT, self.writer.call(method, path, body))
            .await
            .unwrap_or_else(|_| Err(late()))
    }

    fn path(&self) -> String {
        format!("{}/{}", self.collection, self.name)
    }

    /// Returns the time as `MicroTime`: Go requires exactly six fractional digits.
    fn timestamp(&self) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The last write starts before the fence closes. The server aborts it at most one second later,
    /// because its timeout is in whole seconds.
    #[test]
    fn no_write_outlasts_the_lease() {
        assert!(RENEW_DEADLINE + Duration::from_secs(1) < LEASE_DURATION);
        assert!(
            CALL_TIMEOUT + RETRY_INTERVAL < RENEW_DEADLINE,
            "one failed renewal does not end leadership"
        );
    }
}
