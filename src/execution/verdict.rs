//! What the head of a direct answer to a dispatch proves. Absence of proof is not proof: the default row is *unknown*.

use http::StatusCode;

use super::Evidence;

/// What a status says by itself, where the body holds no JSON-RPC response to our request.
///
/// # Source
/// Design, section 4, the table of evidence; RFC 9110, section 15, for what each status means.
#[must_use]
pub fn of_status(status: StatusCode, had_session: bool, has_retry_after: bool) -> Evidence {
    let code = status.as_u16();
    match code {
        // Given before anything runs: authentication, method, negotiation, framing, size, routing.
        401 | 403 | 405 | 406 | 411 | 413 | 415 | 421 | 425 => {
            Evidence::RefusedByStatus { status: code }
        }
        // The session is gone: MCP 2025-11-25, Session Management. Without a session it is just some 404.
        404 if had_session => Evidence::RefusedByStatus { status: code },
        // Only a server that knows when it will take the call has said that it did not take this one.
        429 if has_retry_after => Evidence::RefusedByStatus { status: code },
        200..=299 => Evidence::NoAnswer { status: code },
        // 3xx is not followed for a POST with a side effect; 408 and all 5xx may come from in between, while the tool runs.
        _ => Evidence::UninformativeStatus { status: code },
    }
}

/// What a JSON-RPC error for our request says. `None`: it is a received result, since the tool may have run part-way.
///
/// # Source
/// JSON-RPC 2.0, 5.1; MCP 2026-07-28, error codes (header mismatch, unsupported protocol version).
#[must_use]
pub fn of_error(code: i64) -> Option<Evidence> {
    match code {
        METHOD_NOT_FOUND | HEADER_MISMATCH | UNSUPPORTED_PROTOCOL_VERSION => {
            Some(Evidence::RefusedByError { error: code })
        }
        _ => None,
    }
}

const METHOD_NOT_FOUND: i64 = -32601;
const HEADER_MISMATCH: i64 = -32020;
const UNSUPPORTED_PROTOCOL_VERSION: i64 = -32022;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::execution::Verdict;

    fn verdict(status: u16, had_session: bool, has_retry_after: bool) -> Verdict {
        of_status(
            StatusCode::from_u16(status).unwrap(),
            had_session,
            has_retry_after,
        )
        .verdict()
    }

    #[test]
    fn refusals_that_precede_execution_are_rejections() {
        for status in [401, 403, 405, 406, 411, 413, 415, 421, 425] {
            assert_eq!(verdict(status, false, false), Verdict::Rejected, "{status}");
        }
        assert_eq!(verdict(404, true, false), Verdict::Rejected);
        assert_eq!(verdict(429, false, true), Verdict::Rejected);
    }

    #[test]
    fn every_other_status_is_unknown() {
        for status in (200..600)
            .filter(|status| ![401, 403, 405, 406, 411, 413, 415, 421, 425].contains(status))
        {
            assert_eq!(verdict(status, false, false), Verdict::Unknown, "{status}");
        }
        for status in [408, 500, 502, 503, 504, 524] {
            assert_eq!(
                verdict(status, true, true),
                Verdict::Unknown,
                "{status}, with Retry-After too"
            );
        }
    }

    #[test]
    fn only_errors_that_precede_execution_are_rejections() {
        for code in [-32601, -32020, -32022] {
            assert_eq!(
                of_error(code).map(Evidence::verdict),
                Some(Verdict::Rejected)
            );
        }
        for code in [
            -32700,
            -32600,
            -32602,
            -32603,
            -32000,
            -32021,
            0,
            1,
            i64::MIN,
        ] {
            assert_eq!(of_error(code), None, "{code}");
        }
    }
}
