//! Response bodies: complete bytes, or the stream of a watch.

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
pub struct Body(Inner);

#[derive(Debug)]
enum Inner {
    Whole(Option<Bytes>),
    Watch(Cluster, Box<Watch>),
}

impl Body {
    pub(crate) fn whole(bytes: Bytes) -> Self {
        Self(Inner::Whole(Some(bytes)))
    }

    pub(crate) fn watch(cluster: Cluster, watch: Box<Watch>) -> Self {
        Self(Inner::Watch(cluster, watch))
    }

    fn poll_bytes(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        match &mut self.0 {
            Inner::Whole(bytes) => Poll::Ready(bytes.take()),
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
        matches!(self.0, Inner::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Inner::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64)),
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
