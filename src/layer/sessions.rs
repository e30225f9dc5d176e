//! Who asks, as the newest request of each session said it: a resume must not go out with a token that has expired.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};

use http::header::{AUTHORIZATION, COOKIE, PROXY_AUTHORIZATION};
use http::{HeaderMap, HeaderName, HeaderValue};

use crate::identity::SessionId;

/// The newest credentials of each session, in memory only, bounded in number.
#[derive(Default)]
pub(super) struct Sessions(Mutex<Known>);

#[derive(Default)]
struct Known {
    newest: HashMap<Key, Credentials>,
    oldest_first: VecDeque<Key>,
}

type Key = (String, Option<SessionId>);
type Credentials = Vec<(HeaderName, HeaderValue)>;

impl Sessions {
    /// Takes note of a request's credentials.
    pub(super) fn note(&self, target: &str, session: Option<&SessionId>, headers: &HeaderMap) {
        let credentials: Credentials = CREDENTIALS
            .iter()
            .flat_map(|name| {
                headers
                    .get_all(name)
                    .iter()
                    .map(|value| (name.clone(), value.clone()))
            })
            .collect();
        if credentials.is_empty() {
            return;
        }
        let key = (target.to_owned(), session.cloned());
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.newest.insert(key.clone(), credentials).is_none() {
            known.oldest_first.push_back(key);
            if known.oldest_first.len() > MAX_SESSIONS
                && let Some(oldest) = known.oldest_first.pop_front()
            {
                known.newest.remove(&oldest);
            }
        }
    }

    /// Puts the newest credentials of the session in place of those in `headers`.
    pub(super) fn refresh(
        &self,
        target: &str,
        session: Option<&SessionId>,
        headers: &mut HeaderMap,
    ) {
        let key = (target.to_owned(), session.cloned());
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(credentials) = known.newest.get(&key) else {
            return;
        };
        for name in &CREDENTIALS {
            headers.remove(name);
        }
        for (name, value) in credentials {
            headers.append(name, value.clone());
        }
    }
}

const CREDENTIALS: [HeaderName; 3] = [AUTHORIZATION, COOKIE, PROXY_AUTHORIZATION];
const MAX_SESSIONS: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resume_goes_out_with_the_newest_token_of_its_session() {
        let sessions = Sessions::default();
        let with = |token: &'static str| {
            HeaderMap::from_iter([(AUTHORIZATION, HeaderValue::from_static(token))])
        };
        let (mine, other) = (SessionId::new("a"), SessionId::new("b"));
        sessions.note("https://x/mcp", Some(&mine), &with("old"));
        sessions.note("https://x/mcp", Some(&mine), &with("new"));
        sessions.note("https://x/mcp", Some(&other), &with("foreign"));
        let mut headers = with("old");
        sessions.refresh("https://x/mcp", Some(&mine), &mut headers);
        assert_eq!(headers[AUTHORIZATION], "new");
        sessions.refresh("https://elsewhere/mcp", Some(&other), &mut headers);
        assert_eq!(headers[AUTHORIZATION], "new");
    }

    #[test]
    fn the_number_of_sessions_is_bounded() {
        let sessions = Sessions::default();
        let headers = HeaderMap::from_iter([(AUTHORIZATION, HeaderValue::from_static("t"))]);
        for n in 0..2 * MAX_SESSIONS {
            sessions.note(
                "https://x/mcp",
                Some(&SessionId::new(&n.to_string())),
                &headers,
            );
        }
        assert_eq!(sessions.0.lock().unwrap().newest.len(), MAX_SESSIONS);
    }
}
