//! Takes a whole body into memory, within a bound.

use std::pin::pin;

use bytes::{Bytes, BytesMut};
use http_body::Body;
use http_body_util::BodyExt;

/// Why a body did not become whole.
pub(crate) enum Cut<E> {
    /// It failed.
    Failed(E),
    /// It is larger than the limit.
    TooLarge,
    /// It said how long it is, and ended before that.
    Short,
}

/// The body's data. Trailers are dropped.
pub(crate) async fn whole<B: Body<Data = Bytes>>(
    body: B,
    limit: usize,
) -> Result<Bytes, Cut<B::Error>> {
    let promised = body.size_hint().exact();
    if promised.is_some_and(|length| length > limit as u64) {
        return Err(Cut::TooLarge);
    }
    let mut body = pin!(body);
    let mut first = Bytes::new();
    let mut all = BytesMut::new();
    let mut length = 0;
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(Cut::Failed)?.into_data() else {
            continue;
        };
        length += data.len();
        if length > limit {
            return Err(Cut::TooLarge);
        }
        // Most bodies are one frame: no copy then.
        if first.is_empty() && all.is_empty() {
            first = data;
        } else {
            if all.is_empty() {
                all.extend_from_slice(&std::mem::take(&mut first));
            }
            all.extend_from_slice(&data);
        }
    }
    if promised.is_some_and(|promised| (length as u64) < promised) {
        return Err(Cut::Short);
    }
    Ok(if all.is_empty() { first } else { all.freeze() })
}
