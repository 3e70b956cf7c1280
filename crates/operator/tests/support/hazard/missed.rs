//! A watch of which one event never comes: takes its body, gives it without that line. A real server loses nothing; what stands between may.

use std::time::Duration;

use futures::{StreamExt, stream};
use http_body_util::{BodyDataStream, BodyExt, StreamBody};
use hyper::body::{Bytes, Frame};
use kube::client::Body;
use serde_json::json;
use tokio::time::{Instant, timeout_at};

use super::{Answer, BoxError, Hazard};

/// How long nobody learns of it.
const UNNOTICED: Duration = Duration::from_secs(2);

pub(super) fn without(body: Body, number: usize, hazard: Hazard) -> Answer {
    let lines = Lines {
        source: BodyDataStream::new(body),
        rest: Vec::new(),
        left: Some(number),
        expires: None,
        hazard,
    };
    let frames = stream::unfold(Some(lines), async |lines| {
        let (bytes, lines) = lines?.next().await?;
        Some((bytes.map(Frame::data), lines))
    });
    BodyExt::boxed_unsync(StreamBody::new(frames))
}

struct Lines {
    source: BodyDataStream<Body>,
    /// What has come of a line.
    rest: Vec<u8>,
    /// How many events come before the one that is lost.
    left: Option<usize>,
    expires: Option<Instant>,
    hazard: Hazard,
}

/// What comes next, and what is left of the watch.
type Next = (Result<Bytes, BoxError>, Option<Lines>);

impl Lines {
    async fn next(mut self) -> Option<Next> {
        loop {
            let chunk = match self.expires {
                None => self.source.next().await,
                Some(at) => match timeout_at(at, self.source.next()).await {
                    Ok(chunk) => chunk,
                    Err(_) => return Some((Ok(expired()), None)),
                },
            };
            let Some(chunk) = chunk else {
                if self.left.is_some() {
                    self.hazard.try_the_next();
                }
                return None;
            };
            match chunk {
                Err(error) => return Some((Err(error.into()), Some(self))),
                Ok(chunk) => self.rest.extend_from_slice(&chunk),
            }
            let through = self.take_lines();
            if !through.is_empty() {
                return Some((Ok(through.into()), Some(self)));
            }
        }
    }

    /// The lines that have come as a whole, but for the one that is lost.
    fn take_lines(&mut self) -> Vec<u8> {
        let end = self.rest.iter().rposition(|byte| *byte == b'\n');
        let whole: Vec<u8> = self.rest.drain(..end.map_or(0, |end| end + 1)).collect();
        let mut through = Vec::new();
        for line in whole.split_inclusive(|byte| *byte == b'\n') {
            if self.left == Some(0) {
                self.left = None;
                self.expires = Some(Instant::now() + UNNOTICED);
                self.hazard.note();
                continue;
            }
            self.left = self.left.map(|left| left - 1);
            through.extend_from_slice(line);
        }
        through
    }
}

/// As the server words it.
fn expired() -> Bytes {
    let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": "too old resource version", "reason": "Expired", "code": 410});
    format!("{}\n", json!({"type": "ERROR", "object": status})).into()
}
