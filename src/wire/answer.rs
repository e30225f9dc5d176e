//! A JSON-RPC response, as far as the layer cares.

use super::members::Members;
use crate::identity::RequestId;

/// A JSON-RPC response message.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Response {
    /// Whose answer it is. `None`: null or absent, as servers write it where they could not read the request.
    pub id: Option<RequestId>,
    /// The code of a JSON-RPC error.
    pub error: Option<i64>,
    /// `isError: true`: the tool failed, and the outcome is known.
    pub is_tool_error: bool,
    /// `resultType: "input_required"`: a question, not an end.
    pub asks_for_input: bool,
}

/// Reads a response. `None` when the text is a request, a notification, or no JSON-RPC at all.
#[must_use]
pub fn response(message: &[u8]) -> Option<Response> {
    let members = Members::read(std::str::from_utf8(message).ok()?)?;
    let (result, error) = (members.find("result"), members.find("error"));
    if members.find("method").is_some() || result.is_none() && error.is_none() {
        return None;
    }
    let code = error.map(|error| {
        Members::read(error)
            .and_then(|error| serde_json::from_str(error.find("code")?).ok())
            .unwrap_or(0)
    });
    let result = result.and_then(Members::read);
    let result = result.as_ref();
    Some(Response {
        id: members.find("id").and_then(RequestId::from_json),
        error: code,
        is_tool_error: result.is_some_and(|result| result.find("isError") == Some("true")),
        asks_for_input: result.is_some_and(|result| result.any_is("resultType", "input_required")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_errors_and_questions_are_told_apart() {
        let result =
            response(br#"{"jsonrpc":"2.0","id":1,"result":{"content":[],"isError":true}}"#)
                .unwrap();
        assert!(result.is_tool_error && result.error.is_none() && !result.asks_for_input);
        let error = response(br#"{"id":"a","error":{"code":-32602,"message":"no"}}"#).unwrap();
        assert_eq!(error.error, Some(-32602));
        let question = response(br#"{"id":1,"result":{"resultType":"input_required"}}"#).unwrap();
        assert!(question.asks_for_input);
    }

    #[test]
    fn requests_and_notifications_are_not_answers() {
        for text in [
            r#"{"id":1,"method":"ping","result":{}}"#,
            r#"{"method":"x"}"#,
            "{}",
            "[]",
            "",
            "null",
        ] {
            assert_eq!(response(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn a_null_id_is_nobodys_answer() {
        assert_eq!(
            response(br#"{"id":null,"error":{"code":-32700,"message":""}}"#)
                .unwrap()
                .id,
            None
        );
    }
}
