//! What a POST body asks for.

use std::borrow::Cow;

use super::members::{Members, string};
use crate::identity::RequestId;

/// What a POST body is, as far as the layer cares.
#[derive(Debug)]
#[expect(clippy::exhaustive_enums, reason = "the service decides each")]
pub enum Body<'a> {
    /// A `tools/call` request.
    Call(ToolCall<'a>),
    /// Another request, which wants an answer under this id.
    Request {
        /// Its id.
        id: RequestId,
        /// What it asks for, as far as the layer learns from it.
        asks: Asks,
    },
    /// A notification, a response, or not JSON-RPC: passes through.
    Other,
    /// It contains a `tools/call` in a form that can't be decided about safely.
    Refused {
        /// Why.
        refusal: Refusal,
        /// The id to answer under, where one can be read.
        id: Option<RequestId>,
    },
}

/// What a request without a tool call asks for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "these are all that matter here")]
pub enum Asks {
    /// The tools: the first page of them, or a further one.
    Tools {
        /// Whether it is the first.
        first_page: bool,
    },
    /// To begin: `initialize`, `server/discover`.
    Greeting,
    /// Something else.
    Other,
}

/// Why a body with a tool call in it is refused: two readers could see two different calls, or none could pair an answer.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// A member name is repeated.
    #[error("a member name is repeated in the request; two readers could see two different calls")]
    DuplicateKey,
    /// No id, so that no answer could be paired.
    #[error("a tool call needs a request id; without one no answer can be paired with it")]
    NoId,
    /// The id is neither a string nor a number, or a number that can't be echoed exactly.
    #[error("the request id of a tool call must be a string, or a number of at most 64 bits")]
    BadId,
    /// Not UTF-8, or a byte order mark in front: some readers see a call in it and some don't.
    #[error(
        "the request is not plain UTF-8; some readers would see a tool call in it and some would not"
    )]
    Encoding,
    /// No tool name, or one that is not a string.
    #[error("a tool call needs the tool's name in `params.name`")]
    NoTool,
    /// A batch with a tool call in it.
    #[error(
        "a batch with a tool call in it can't be decided about as one; send its calls one by one"
    )]
    Batch,
}

/// A `tools/call`. Raw parts point into the body.
#[derive(Debug)]
pub struct ToolCall<'a> {
    id: RequestId,
    tool: Cow<'a, str>,
    arguments: Option<&'a str>,
    continues: bool,
    intent: Option<Cow<'a, str>>,
}

impl ToolCall<'_> {
    /// The JSON-RPC id.
    #[must_use]
    pub fn id(&self) -> &RequestId {
        &self.id
    }

    /// The tool's name.
    #[must_use]
    pub fn tool(&self) -> &str {
        &self.tool
    }

    /// The arguments as they were written; none where there are none.
    #[must_use]
    pub fn arguments(&self) -> Option<&[u8]> {
        self.arguments.map(str::as_bytes)
    }

    /// Whether it carries `inputResponses` or `requestState`: the next round of a call that the server asked input for.
    ///
    /// # Source
    /// MCP 2026-07-28, multi-round-trip requests.
    #[must_use]
    pub fn continues(&self) -> bool {
        self.continues
    }

    /// What the caller set as `_meta["dev.reattach/intent"]`.
    #[must_use]
    pub fn intent(&self) -> Option<&str> {
        self.intent.as_deref()
    }
}

/// Says what a POST body is.
#[must_use]
pub fn read(body: &[u8]) -> Body<'_> {
    let Some(text) = plain(body) else {
        return match decoded(body).as_deref().map(|text| read(text.as_bytes())) {
            Some(Body::Call(ToolCall { id, .. })) => Body::Refused {
                refusal: Refusal::Encoding,
                id: Some(id),
            },
            Some(Body::Refused { id, .. }) => Body::Refused {
                refusal: Refusal::Encoding,
                id,
            },
            Some(Body::Request { .. } | Body::Other) | None => Body::Other,
        };
    };
    if text.trim_start_matches(WHITE).starts_with('[') {
        return batch(text);
    }
    Members::read(text).map_or(Body::Other, |message| single(&message))
}

/// UTF-8 without a byte order mark (RFC 8259, 8.1).
fn plain(body: &[u8]) -> Option<&str> {
    let marked = body.starts_with(b"\xef\xbb\xbf") || body.contains(&0);
    std::str::from_utf8(body).ok().filter(|_| !marked)
}

/// What a generous reader would make of other bytes: a byte order mark skipped, UTF-16 decoded, bad UTF-8 replaced.
fn decoded(body: &[u8]) -> Option<String> {
    let utf16 = |big: bool, bytes: &[u8]| {
        let units = bytes.chunks_exact(2).map(|pair| {
            let pair = [pair[0], pair[1]];
            if big {
                u16::from_be_bytes(pair)
            } else {
                u16::from_le_bytes(pair)
            }
        });
        char::decode_utf16(units)
            .collect::<Result<String, _>>()
            .ok()
    };
    let text = match body {
        [0xef, 0xbb, 0xbf, rest @ ..] => Some(String::from_utf8_lossy(rest).into_owned()),
        [0xfe, 0xff, rest @ ..] => utf16(true, rest),
        [0xff, 0xfe, rest @ ..] => utf16(false, rest),
        [0, _, ..] => utf16(true, body),
        [_, 0, ..] => utf16(false, body),
        _ => Some(String::from_utf8_lossy(body).into_owned()),
    };
    text.filter(|text| plain(text.as_bytes()).is_some())
}

fn single<'a>(message: &Members<'a>) -> Body<'a> {
    let id = message.find("id").map(RequestId::from_json);
    if !message.any_is("method", "tools/call") {
        return match (message.find("method"), id) {
            (Some(_), Some(Some(id))) => Body::Request {
                id,
                asks: asks(message),
            },
            (Some(_), Some(None) | None) | (None, _) => Body::Other,
        };
    }
    let known = id.clone().flatten();
    let refused = |refusal| Body::Refused {
        refusal,
        id: known.clone(),
    };
    if message.repeat() {
        return refused(Refusal::DuplicateKey);
    }
    let id = match id {
        None => return refused(Refusal::NoId),
        Some(None) => return refused(Refusal::BadId),
        Some(Some(id)) => id,
    };
    let Some(params) = message.find("params").and_then(Members::read) else {
        return refused(Refusal::NoTool);
    };
    if params.repeat() {
        return refused(Refusal::DuplicateKey);
    }
    let Some(tool) = params.find("name").and_then(string) else {
        return refused(Refusal::NoTool);
    };
    let meta = params.find("_meta").and_then(Members::read);
    if meta.as_ref().is_some_and(Members::repeat) {
        return refused(Refusal::DuplicateKey);
    }
    Body::Call(ToolCall {
        id,
        tool,
        arguments: params.find("arguments"),
        continues: params.find("inputResponses").is_some() || params.find("requestState").is_some(),
        intent: meta
            .and_then(|meta| meta.find(INTENT_META))
            .and_then(string),
    })
}

fn asks(message: &Members<'_>) -> Asks {
    if message.any_is("method", "tools/list") {
        let params = message.find("params").and_then(Members::read);
        return Asks::Tools {
            first_page: params.and_then(|params| params.find("cursor")).is_none(),
        };
    }
    let greets = ["initialize", "server/discover"]
        .iter()
        .any(|method| message.any_is("method", method));
    if greets { Asks::Greeting } else { Asks::Other }
}

fn batch(text: &str) -> Body<'_> {
    let Ok(messages) = serde_json::from_str::<Vec<Members<'_>>>(text) else {
        return Body::Other;
    };
    match messages
        .iter()
        .find(|message| message.any_is("method", "tools/call"))
    {
        Some(call) => Body::Refused {
            refusal: Refusal::Batch,
            id: call.find("id").and_then(RequestId::from_json),
        },
        None => Body::Other,
    }
}

/// The `_meta` key under which a caller names its intent.
pub const INTENT_META: &str = "dev.reattach/intent";
const WHITE: [char; 4] = [' ', '\t', '\n', '\r'];

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(body: &str) -> Option<Refusal> {
        match read(body.as_bytes()) {
            Body::Refused { refusal, .. } => Some(refusal),
            Body::Call(_) | Body::Request { .. } | Body::Other => None,
        }
    }

    #[test]
    fn a_tool_call_is_seen_in_any_spelling() {
        let body = r#" {"params":{"n\u0061me":"p\u0061y","arguments":{"a":1}},"method":"tools\/call","id":"7","jsonrpc":"2.0"}"#;
        let Body::Call(call) = read(body.as_bytes()) else {
            panic!("not a call")
        };
        assert_eq!(
            (call.tool(), call.arguments()),
            ("pay", Some(&br#"{"a":1}"#[..]))
        );
        assert_eq!(call.id(), &RequestId::String("7".into()));
    }

    #[test]
    fn what_two_readers_could_read_differently_is_refused() {
        let twice = r#"{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call","params":{"name":"pay"}}"#;
        assert_eq!(refusal(twice), Some(Refusal::DuplicateKey));
        let twice = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","method":"ping","params":{"name":"pay"}}"#;
        assert_eq!(refusal(twice), Some(Refusal::DuplicateKey));
        let names = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"look","n\u0061me":"pay"}}"#;
        assert_eq!(refusal(names), Some(Refusal::DuplicateKey));
    }

    #[test]
    fn a_call_that_cannot_be_paired_is_refused() {
        assert_eq!(
            refusal(r#"{"method":"tools/call","params":{"name":"pay"}}"#),
            Some(Refusal::NoId)
        );
        assert_eq!(
            refusal(r#"{"id":null,"method":"tools/call","params":{"name":"pay"}}"#),
            Some(Refusal::BadId)
        );
        assert_eq!(
            refusal(r#"{"id":1,"method":"tools/call","params":{}}"#),
            Some(Refusal::NoTool)
        );
        assert_eq!(
            refusal(r#"{"id":1,"method":"tools/call"}"#),
            Some(Refusal::NoTool)
        );
        assert_eq!(
            refusal(r#"[{"id":1,"method":"ping"},{"id":2,"method":"tools/call"}]"#),
            Some(Refusal::Batch)
        );
    }

    #[test]
    fn a_call_that_only_some_readers_would_see_is_refused() {
        let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"pay"}}"#;
        let marked = [b"\xef\xbb\xbf", call.as_bytes()].concat();
        let big: Vec<u8> = call.encode_utf16().flat_map(u16::to_be_bytes).collect();
        let little: Vec<u8> = call.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let broken = [&call.as_bytes()[..call.len() - 3], b"\xff\"}}"].concat();
        for body in [
            marked,
            [b"\xfe\xff", &big[..]].concat(),
            big,
            little,
            broken,
        ] {
            assert!(
                matches!(
                    read(&body),
                    Body::Refused {
                        refusal: Refusal::Encoding,
                        id: Some(_)
                    }
                ),
                "{body:?}"
            );
        }
    }

    #[test]
    fn everything_else_passes() {
        for body in [
            "",
            "hello",
            "{}",
            "[]",
            "[1]",
            "{\"method\":\"notifications/initialized\"}",
            "{\"id\":1,\"result\":{}}",
            "\u{feff}{}",
        ] {
            assert!(matches!(read(body.as_bytes()), Body::Other), "{body}");
        }
        assert!(matches!(
            read(br#"{"id":1,"method":"tools/list"}"#),
            Body::Request { .. }
        ));
        assert!(matches!(read(b"\xff\xfe"), Body::Other));
    }

    #[test]
    fn a_continuation_and_an_intent_are_seen() {
        let body = r#"{"id":1,"method":"tools/call","params":{"name":"pay","requestState":"x","_meta":{"dev.reattach/intent":"i-1"}}}"#;
        let Body::Call(call) = read(body.as_bytes()) else {
            panic!("not a call")
        };
        assert!(call.continues());
        assert_eq!(call.intent(), Some("i-1"));
    }
}
