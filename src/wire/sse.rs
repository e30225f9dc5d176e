//! Server-sent events: cuts a byte stream into blocks, and reads a block's fields.
//!
//! A block is passed on as the bytes the server wrote; its fields are read beside that. `eventsource-stream` is the
//! oracle in the tests; it isn't used here because it shows neither the `id` nor the `retry` of a block without data,
//! and because its buffer has no bound.
//!
//! # Source
//! WHATWG HTML, 9.2.6, Interpreting an event stream; MCP 2025-11-25, Transports.

use std::borrow::Cow;
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};

use crate::identity::EventId;

/// Cuts a stream into blocks. Memory: one block, at most the limit; work: linear in the bytes.
#[derive(Debug)]
pub struct Framer {
    buffer: BytesMut,
    /// Up to here, no unseen line end.
    scanned: usize,
    line_start: usize,
    /// The last block ended in a CR that was the last byte seen; an LF right after it belongs to it.
    swallow_lf: bool,
    started: bool,
    limit: usize,
}

/// One event is larger than the limit.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("an event of the stream is larger than {limit} bytes")]
#[non_exhaustive]
pub struct TooLarge {
    /// The limit in bytes.
    pub limit: usize,
}

impl Framer {
    /// A framer that holds at most `limit` bytes of one event.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self {
            buffer: BytesMut::new(),
            scanned: 0,
            line_start: 0,
            swallow_lf: false,
            started: false,
            limit,
        }
    }

    /// Takes the next bytes of the stream.
    pub fn push(&mut self, mut chunk: Bytes) {
        if self.swallow_lf && !chunk.is_empty() {
            self.swallow_lf = false;
            if chunk[0] == b'\n' {
                chunk.advance(1);
            }
        }
        self.buffer.extend_from_slice(&chunk);
    }

    /// The next complete block, its line ends included.
    ///
    /// # Errors
    /// [`TooLarge`]: more than the limit lies here without an end.
    pub fn next_block(&mut self) -> Result<Option<Block>, TooLarge> {
        if !self.started && !self.skip_byte_order_mark() {
            return Ok(None);
        }
        while let Some(found) = memchr::memchr2(b'\n', b'\r', &self.buffer[self.scanned..]) {
            let end = self.scanned + found;
            let line_is_empty = end == self.line_start;
            let cr = self.buffer[end] == b'\r';
            let mut next = end + 1;
            if cr && self.buffer.get(next) == Some(&b'\n') {
                next += 1;
            } else if cr && next == self.buffer.len() {
                if !line_is_empty {
                    // Whether an LF follows decides where the next line starts: wait for a byte more.
                    return Ok(None);
                }
                self.swallow_lf = true;
            }
            self.scanned = next;
            self.line_start = next;
            if line_is_empty {
                self.scanned = 0;
                self.line_start = 0;
                return Ok(Some(Block(self.buffer.split_to(next).freeze())));
            }
        }
        self.scanned = self.buffer.len();
        if self.buffer.len() > self.limit {
            Err(TooLarge { limit: self.limit })
        } else {
            Ok(None)
        }
    }

    /// False while the first bytes could still become a byte order mark.
    fn skip_byte_order_mark(&mut self) -> bool {
        let known = self.buffer.len().min(BYTE_ORDER_MARK.len());
        if self.buffer[..known] != BYTE_ORDER_MARK[..known] {
            self.started = true;
        } else if known == BYTE_ORDER_MARK.len() {
            self.buffer.advance(known);
            self.started = true;
        }
        self.started
    }
}

/// A block as the server wrote it: some lines and the empty line that ends them.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Block(Bytes);

/// The fields of a block.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Event<'a> {
    /// `Some(None)`: an empty `id`, which clears the cursor.
    pub id: Option<Option<EventId>>,
    /// `retry`, saturated.
    pub retry: Option<Duration>,
    /// The event's type; empty for a message.
    pub kind: Cow<'a, str>,
    /// `data`; `None` when there is no such line, so that nothing is dispatched.
    pub data: Option<Cow<'a, [u8]>>,
}

impl Event<'_> {
    /// The message of this event. `None` for blocks without data, for the empty priming data, and for other types.
    #[must_use]
    pub fn message(&self) -> Option<&[u8]> {
        let data = self.data.as_deref()?;
        ((self.kind.is_empty() || self.kind == "message") && !data.trim_ascii().is_empty())
            .then_some(data)
    }
}

impl Block {
    /// The bytes.
    #[must_use]
    pub fn bytes(&self) -> &Bytes {
        &self.0
    }

    /// The fields. Invalid UTF-8 in an id or a type is replaced.
    #[must_use]
    pub fn event(&self) -> Event<'_> {
        let mut event = Event::default();
        for line in Lines(&self.0) {
            let (name, value) = match memchr::memchr(b':', line) {
                Some(0) => continue, // a comment
                Some(colon) => (
                    &line[..colon],
                    line[colon + 1..]
                        .strip_prefix(b" ")
                        .unwrap_or(&line[colon + 1..]),
                ),
                None => (line, &b""[..]),
            };
            match name {
                b"data" => match &mut event.data {
                    Some(data) => {
                        let data = data.to_mut();
                        data.push(b'\n');
                        data.extend_from_slice(value);
                    }
                    none => *none = Some(Cow::Borrowed(value)),
                },
                b"id" if !value.contains(&0) => {
                    event.id = Some(EventId::new(&String::from_utf8_lossy(value)))
                }
                b"retry" if !value.is_empty() && value.iter().all(u8::is_ascii_digit) => {
                    let millis = std::str::from_utf8(value)
                        .ok()
                        .and_then(|digits| digits.parse().ok());
                    event.retry = Some(Duration::from_millis(millis.unwrap_or(u64::MAX)));
                }
                b"event" => event.kind = String::from_utf8_lossy(value),
                _ => {} // the specification ignores other names
            }
        }
        event
    }
}

/// Lines that end in LF, CR or CRLF.
struct Lines<'a>(&'a [u8]);

impl<'a> Iterator for Lines<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let end = memchr::memchr2(b'\n', b'\r', self.0)?;
        let line = &self.0[..end];
        let crlf = self.0[end] == b'\r' && self.0.get(end + 1) == Some(&b'\n');
        self.0 = &self.0[end + if crlf { 2 } else { 1 }..];
        Some(line)
    }
}

/// An event that carries one message of ours, without an id: a cursor must never point at what the server did not send.
#[must_use]
pub fn event_for(message: &[u8]) -> Bytes {
    let mut event = Vec::with_capacity(message.len() + 32);
    event.extend_from_slice(b"event: message\n");
    for line in message.split(|byte| *byte == b'\n' || *byte == b'\r') {
        event.extend_from_slice(b"data: ");
        event.extend_from_slice(line);
        event.push(b'\n');
    }
    event.push(b'\n');
    event.into()
}

const BYTE_ORDER_MARK: [u8; 3] = [0xef, 0xbb, 0xbf];

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type Seen = (
        Option<Option<String>>,
        Option<Duration>,
        String,
        Option<Vec<u8>>,
    );

    fn events(chunks: &[&[u8]]) -> Vec<Seen> {
        let mut framer = Framer::new(1 << 20);
        let mut seen = Vec::new();
        for chunk in chunks {
            framer.push(Bytes::copy_from_slice(chunk));
            while let Some(block) = framer.next_block().unwrap() {
                let event = block.event();
                if event == Event::default() {
                    continue; // an empty line or a comment by itself
                }
                seen.push((
                    event.id.map(|id| id.map(|id| id.as_str().to_owned())),
                    event.retry,
                    event.kind.into_owned(),
                    event.data.map(Cow::into_owned),
                ));
            }
        }
        seen
    }

    #[test]
    fn a_priming_event_moves_the_cursor_and_the_delay_and_is_no_message() {
        let mut framer = Framer::new(100);
        framer.push(Bytes::from_static(b"id: 0\nretry: 3000\ndata:\n\n"));
        let block = framer.next_block().unwrap().unwrap();
        let event = block.event();
        assert_eq!(event.id, Some(EventId::new("0")));
        assert_eq!(event.retry, Some(Duration::from_secs(3)));
        assert_eq!(event.message(), None);
    }

    #[test]
    fn ids_and_delays_without_data_are_seen() {
        let seen = events(&[b"id: a\n\nretry: 0\n\nid\n\nid: x\0y\n\nretry: 1x\n\n"]);
        assert_eq!(seen[0].0, Some(Some("a".into())));
        assert_eq!(seen[1].1, Some(Duration::ZERO));
        assert_eq!(seen[2].0, Some(None));
        assert_eq!(seen.len(), 3);
    }

    #[test]
    fn a_huge_delay_saturates() {
        let seen = events(&[b"retry: 99999999999999999999999999\n\n"]);
        assert_eq!(seen[0].1, Some(Duration::from_millis(u64::MAX)));
    }

    #[test]
    fn an_event_cut_off_by_the_end_is_dropped() {
        assert!(events(&[b"data: x\n"]).is_empty());
        assert!(events(&[b"data: x"]).is_empty());
    }

    #[test]
    fn a_byte_order_mark_is_skipped_once_however_it_is_cut() {
        let stream = b"\xef\xbb\xbfdata: x\n\n";
        for cut in 0..stream.len() {
            assert_eq!(
                events(&[&stream[..cut], &stream[cut..]])[0].3.as_deref(),
                Some(&b"x"[..]),
                "{cut}"
            );
        }
    }

    #[test]
    fn an_event_larger_than_the_limit_is_an_error() {
        let mut framer = Framer::new(16);
        framer.push(Bytes::from_static(b"data: 0123456789abcdef"));
        assert_eq!(framer.next_block(), Err(TooLarge { limit: 16 }));
    }

    #[test]
    fn our_own_event_reads_back() {
        let mut framer = Framer::new(1000);
        framer.push(event_for(b"{\"a\":\n1}"));
        assert_eq!(
            framer.next_block().unwrap().unwrap().event().message(),
            Some(&b"{\"a\":\n1}"[..])
        );
    }

    fn stream() -> impl Strategy<Value = Vec<u8>> {
        let line = prop_oneof![
            Just("data: {\"a\":1}".to_owned()),
            Just("data:\u{20ac}".to_owned()),
            Just("data".to_owned()),
            Just("id: 7".to_owned()),
            Just("id:".to_owned()),
            Just("event: message".to_owned()),
            Just("retry: 12".to_owned()),
            Just(": comment".to_owned()),
            Just("other: x".to_owned()),
            Just(String::new()),
        ];
        let end = prop_oneof![Just("\n"), Just("\r"), Just("\r\n")];
        prop::collection::vec((line, end), 0..24).prop_map(|lines| {
            lines
                .into_iter()
                .flat_map(|(line, end)| [line, end.to_owned()])
                .collect::<String>()
                .into_bytes()
        })
    }

    proptest! {
        #[test]
        fn any_cut_of_the_bytes_gives_the_same_events(stream in stream(), cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6)) {
            let mut at: Vec<_> = cuts.iter().map(|cut| cut.index(stream.len() + 1)).collect();
            at.push(0);
            at.push(stream.len());
            at.sort_unstable();
            let chunks: Vec<_> = at.windows(2).map(|pair| &stream[pair[0]..pair[1]]).collect();
            // A CR that ends the stream is read as soon as it is known what it ends.
            prop_assert_eq!(events(&chunks), events(&[&stream[..]]));
        }

        #[test]
        fn eventsource_stream_sees_the_same_messages(stream in stream()) {
            use eventsource_stream::Eventsource as _;
            use futures_core::Stream as _;
            let stream = [&stream[..], b":\n"].concat(); // it reads a CR at the end only when a byte follows
            let mut oracle = Box::pin(tokio_stream::iter([Ok::<_, std::io::Error>(stream.clone())]).eventsource());
            let mut context = std::task::Context::from_waker(std::task::Waker::noop());
            let mut theirs = Vec::new();
            while let std::task::Poll::Ready(Some(Ok(event))) = oracle.as_mut().poll_next(&mut context) {
                theirs.push(event.data.into_bytes());
            }
            let ours: Vec<_> = events(&[&stream[..]]).into_iter().filter_map(|seen| seen.3).filter(|data| !data.is_empty()).collect();
            let theirs: Vec<_> = theirs.into_iter().filter(|data| !data.is_empty()).collect();
            prop_assert_eq!(ours, theirs);
        }
    }
}
