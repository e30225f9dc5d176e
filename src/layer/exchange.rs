//! The inner service, without its type: send one request, get one response.

use std::future::Future;
use std::pin::Pin;

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use http_body_util::BodyExt;
use http_body_util::combinators::UnsyncBoxBody;
use tower::Service;

use super::{BoxError, RequestBody};

/// A response body of the inner service.
pub(crate) type UpstreamBody = UnsyncBoxBody<Bytes, BoxError>;

/// The answer to one request, to come.
pub(crate) type Exchanged<'a> =
    Pin<Box<dyn Future<Output = Result<Response<UpstreamBody>, BoxError>> + Send + 'a>>;

/// Sends requests. The first goes to the service that was polled ready; later ones wait until it is ready again.
pub(crate) trait Exchange: Send {
    fn send(&mut self, request: Request<RequestBody>) -> Exchanged<'_>;
}

/// An inner service, and whether it was polled ready and not yet called.
pub(super) struct Inner<S> {
    pub(super) service: S,
    pub(super) ready: bool,
}

impl<S, B> Exchange for Inner<S>
where
    S: Service<Request<RequestBody>, Response = Response<B>> + Send,
    S::Error: Into<BoxError>,
    S::Future: Send,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    fn send(&mut self, request: Request<RequestBody>) -> Exchanged<'_> {
        Box::pin(async move {
            if !std::mem::take(&mut self.ready) {
                std::future::poll_fn(|cx| self.service.poll_ready(cx))
                    .await
                    .map_err(Into::into)?;
            }
            let response = self.service.call(request).await.map_err(Into::into)?;
            Ok(response.map(|body| body.map_err(Into::into).boxed_unsync()))
        })
    }
}
