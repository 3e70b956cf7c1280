//! Response bodies: complete bytes or the stream of a watch.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_core::Stream;
use http_body::{Frame, SizeHint};

use crate::cluster::Cluster;
use crate::watch::Watch;

/// The body of a response.
#[derive(Debug)]
pub struct Body {
    inner: Inner,
    /// Value to drop with the body, when the response has been sent.
    guard: Option<Box<dyn Guard>>,
}

/// A value that is dropped with the body of a response.
pub(crate) trait Guard: std::fmt::Debug + Send {}

#[derive(Debug)]
enum Inner {
    Complete(Option<Bytes>),
    Watch(Cluster, Box<Watch>),
}

impl Body {
    pub(crate) fn from_bytes(bytes: Bytes) -> Self {
        Self::new(Inner::Complete(Some(bytes)))
    }

    pub(crate) fn from_watch(cluster: Cluster, watch: Box<Watch>) -> Self {
        Self::new(Inner::Watch(cluster, watch))
    }

    fn new(inner: Inner) -> Self {
        Self { inner, guard: None }
    }

    /// Keeps `guard` until the body is dropped.
    #[cfg(feature = "serve")]
    pub(crate) fn set_guard(&mut self, guard: impl Guard + 'static) {
        self.guard = Some(Box::new(guard));
    }

    fn poll_bytes(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        match &mut self.inner {
            Inner::Complete(bytes) => Poll::Ready(bytes.take()),
            Inner::Watch(cluster, watch) => cluster.with(|state| watch.poll(state, context.waker())),
        }
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.poll_bytes(context)
            .map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.inner, Inner::Complete(None))
    }

    fn size_hint(&self) -> SizeHint {
        match &self.inner {
            Inner::Complete(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
            }
            Inner::Watch(..) => SizeHint::default(),
        }
    }
}

impl Stream for Body {
    type Item = Bytes;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        self.poll_bytes(context)
    }
}
