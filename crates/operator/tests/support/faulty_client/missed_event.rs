//! Drops one event of a watch. A real server does not lose events, but a proxy may.

use std::time::Duration;

use futures::{StreamExt, stream};
use http_body_util::{BodyDataStream, BodyExt, StreamBody};
use hyper::body::{Bytes, Frame};
use kube::client::Body;
use serde_json::json;
use tokio::time::{Instant, timeout_at};

use super::{BoxError, FaultyClient, ResponseBody};

/// Time until the watch expires after the dropped event.
const EXPIRY_DELAY: Duration = Duration::from_secs(2);

pub(super) fn drop_event(body: Body, number: usize, faulty_client: FaultyClient) -> ResponseBody {
    let lines = EventLines {
        source: BodyDataStream::new(body),
        incomplete_line: Vec::new(),
        remaining: Some(number),
        expires: None,
        faulty_client,
    };
    let frames = stream::unfold(Some(lines), async |lines| {
        let (bytes, lines) = lines?.next().await?;
        Some((bytes.map(Frame::data), lines))
    });
    BodyExt::boxed_unsync(StreamBody::new(frames))
}

struct EventLines {
    source: BodyDataStream<Body>,
    /// Incomplete last line.
    incomplete_line: Vec<u8>,
    /// Number of events before the dropped one.
    remaining: Option<usize>,
    expires: Option<Instant>,
    faulty_client: FaultyClient,
}

/// The next chunk, and the remaining watch.
type NextChunk = (Result<Bytes, BoxError>, Option<EventLines>);

impl EventLines {
    async fn next(mut self) -> Option<NextChunk> {
        loop {
            let chunk = match self.expires {
                None => self.source.next().await,
                Some(at) => match timeout_at(at, self.source.next()).await {
                    Ok(chunk) => chunk,
                    Err(_) => return Some((Ok(expired()), None)),
                },
            };
            let Some(chunk) = chunk else {
                if self.remaining.is_some() {
                    self.faulty_client.defer();
                }
                return None;
            };
            match chunk {
                Err(error) => return Some((Err(error.into()), Some(self))),
                Ok(chunk) => self.incomplete_line.extend_from_slice(&chunk),
            }
            let kept = self.take_lines();
            if !kept.is_empty() {
                return Some((Ok(kept.into()), Some(self)));
            }
        }
    }

    /// Removes the complete lines from the buffer, and returns them without the dropped one.
    fn take_lines(&mut self) -> Vec<u8> {
        let end = self.incomplete_line.iter().rposition(|byte| *byte == b'\n');
        let whole: Vec<u8> = self
            .incomplete_line
            .drain(..end.map_or(0, |end| end + 1))
            .collect();
        let mut kept = Vec::new();
        for line in whole.split_inclusive(|byte| *byte == b'\n') {
            if self.remaining == Some(0) {
                self.remaining = None;
                self.expires = Some(Instant::now() + EXPIRY_DELAY);
                self.faulty_client.record();
                continue;
            }
            self.remaining = self.remaining.map(|remaining| remaining - 1);
            kept.extend_from_slice(line);
        }
        kept
    }
}

/// Returns an expiry event as the server would.
fn expired() -> Bytes {
    let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": "too old resource version", "reason": "Expired", "code": 410});
    format!("{}\n", json!({"type": "ERROR", "object": status})).into()
}
