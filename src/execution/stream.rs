//! A response stream: when to pass on, when to keep, when to resume, when to give up.

use std::time::Duration;

use crate::clock::Moment;
use crate::identity::EventId;
use crate::wire::Revision;

/// How long and how often a lost stream is looked for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "plain data")]
pub struct ResumeLimits {
    /// From the loss to the end of all attempts; a message of the stream starts it anew.
    pub deadline: Duration,
    /// Streams that opened and brought no message, one after the other.
    pub fruitless: u32,
    /// Attempts that did not open a stream, one after the other.
    pub failed: u32,
}

impl Default for ResumeLimits {
    /// Five minutes; 32 streams without progress; 6 failures. A server that polls by closing streams needs the many.
    fn default() -> Self {
        Self {
            deadline: Duration::from_secs(300),
            fruitless: 32,
            failed: 6,
        }
    }
}

/// What was seen.
#[derive(Clone, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "the machine handles each")]
pub enum Input {
    /// An event's `id`; `None` for an empty one.
    Id(Option<EventId>),
    /// An event's `retry`.
    Retry(Duration),
    /// A message that is not the answer.
    Message,
    /// The response to this request.
    Answer,
    /// The stream ended, cleanly or not.
    Closed,
    /// The attempt to resume failed, and another one may not.
    Failed,
    /// The server refused to resume: no stream here, or the session is gone.
    Refused,
}

/// What to do about it.
#[derive(Clone, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "the driver carries out each")]
pub enum Action {
    /// Hand the event to the caller.
    Pass,
    /// Keep the answer, then hand it to the caller (law 3).
    Keep,
    /// Open the stream again behind this event, not before the pause is over.
    Resume {
        /// What `Last-Event-ID` says.
        cursor: EventId,
        /// How long to wait at least. A longer wait is never wrong.
        after: Duration,
    },
    /// There is no way back to this stream.
    GiveUp,
    /// The caller has the answer; the stream may go.
    Done,
}

/// The response stream of one request, over all its connections. Resuming never decides to act (law 8): nothing here
/// sends a request body.
#[derive(Clone, Debug)]
pub struct ResponseStream {
    revision: Revision,
    limits: ResumeLimits,
    cursor: Option<EventId>,
    /// What the server asked for; never shortened.
    pause: Option<Duration>,
    lost_at: Option<Moment>,
    fruitless: u32,
    failed: u32,
    resumes: u32,
    answered: bool,
}

impl ResponseStream {
    /// The stream of a request that was just sent.
    #[must_use]
    pub const fn new(revision: Revision, limits: ResumeLimits) -> Self {
        Self {
            revision,
            limits,
            cursor: None,
            pause: None,
            lost_at: None,
            fruitless: 0,
            failed: 0,
            resumes: 0,
            answered: false,
        }
    }

    /// A stream that another process lost: it is to be resumed behind `cursor`.
    #[must_use]
    pub fn lost(revision: Revision, limits: ResumeLimits, cursor: EventId) -> Self {
        Self {
            cursor: Some(cursor),
            ..Self::new(revision, limits)
        }
    }

    /// How often it was resumed.
    #[must_use]
    pub const fn resumes(&self) -> u32 {
        self.resumes
    }

    /// Takes what was seen at `now` and says what to do about it.
    pub fn handle(&mut self, input: Input, now: Moment) -> Action {
        match input {
            // An empty `id:` clears the cursor; a block without one leaves it alone.
            Input::Id(id) => {
                self.cursor = id;
                Action::Pass
            }
            Input::Retry(pause) => {
                self.pause = Some(pause.max(MIN_PAUSE)); // 0 must not spin
                Action::Pass
            }
            Input::Message => {
                // A message of this request is progress; a priming event, or a stream that merely opened, is not.
                self.lost_at = None;
                self.fruitless = 0;
                self.failed = 0;
                Action::Pass
            }
            Input::Answer if self.answered => Action::Pass,
            Input::Answer => {
                self.answered = true;
                Action::Keep
            }
            Input::Closed | Input::Failed | Input::Refused if self.answered => Action::Done,
            Input::Closed => {
                // The first loss is not a fruitless resume.
                if self.lost_at.is_some() {
                    self.fruitless += 1;
                    self.failed = 0;
                }
                self.reopen(now)
            }
            Input::Failed => {
                self.failed += 1;
                self.reopen(now)
            }
            Input::Refused => Action::GiveUp,
        }
    }

    fn reopen(&mut self, now: Moment) -> Action {
        let lost_at = *self.lost_at.get_or_insert(now);
        let Some(cursor) = self.cursor.clone() else {
            return Action::GiveUp;
        };
        match self.revision {
            Revision::Stateless => return Action::GiveUp,
            Revision::Resumable => {}
        }
        let after = self.pause.unwrap_or(MIN_PAUSE).max(self.backoff());
        let exhausted =
            self.fruitless >= self.limits.fruitless || self.failed >= self.limits.failed;
        // Sooner than the server asked is forbidden, later than the deadline is pointless.
        let too_late = now.since(lost_at).saturating_add(after) > self.limits.deadline;
        if exhausted || too_late {
            return Action::GiveUp;
        }
        self.resumes += 1;
        Action::Resume { cursor, after }
    }

    /// Doubles with each attempt in a row that brought nothing, where the server asked for no pause of its own or where
    /// attempts fail; capped. A server that asks for a pause and opens streams is polling, and its pause is what it wants.
    fn backoff(&self) -> Duration {
        let in_a_row = if self.pause.is_some() {
            self.failed
        } else {
            self.failed + self.fruitless
        };
        MIN_PAUSE
            .saturating_mul(1 << in_a_row.min(10))
            .min(MAX_BACKOFF)
    }
}

/// The server picks the pause; below this it would spin.
const MIN_PAUSE: Duration = Duration::from_millis(100);
const MAX_BACKOFF: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn stream() -> ResponseStream {
        ResponseStream::new(Revision::Resumable, ResumeLimits::default())
    }

    fn id(text: &str) -> Input {
        Input::Id(EventId::new(text))
    }

    fn second(n: u64) -> Moment {
        Moment::at(Duration::from_secs(n))
    }

    fn cursor(action: &Action) -> Option<&str> {
        match action {
            Action::Resume { cursor, .. } => Some(cursor.as_str()),
            Action::Pass | Action::Keep | Action::GiveUp | Action::Done => None,
        }
    }

    #[test]
    fn the_cursor_survives_a_resume_that_brought_nothing() {
        let mut stream = stream();
        stream.handle(id("7"), second(0));
        assert_eq!(cursor(&stream.handle(Input::Closed, second(1))), Some("7"));
        assert_eq!(cursor(&stream.handle(Input::Closed, second(2))), Some("7"));
        assert_eq!(cursor(&stream.handle(Input::Failed, second(3))), Some("7"));
    }

    #[test]
    fn an_empty_id_clears_the_cursor() {
        let mut stream = stream();
        stream.handle(id("7"), second(0));
        stream.handle(id(""), second(0));
        assert_eq!(stream.handle(Input::Closed, second(1)), Action::GiveUp);
    }

    #[test]
    fn without_a_cursor_there_is_no_way_back() {
        assert_eq!(stream().handle(Input::Closed, second(1)), Action::GiveUp);
    }

    #[test]
    fn the_stateless_revision_is_never_resumed() {
        let mut stream = ResponseStream::new(Revision::Stateless, ResumeLimits::default());
        stream.handle(id("7"), second(0));
        assert_eq!(stream.handle(Input::Closed, second(1)), Action::GiveUp);
    }

    #[test]
    fn an_answered_stream_is_never_resumed() {
        for end in [Input::Closed, Input::Failed, Input::Refused] {
            let mut stream = stream();
            stream.handle(id("7"), second(0));
            assert_eq!(stream.handle(Input::Answer, second(1)), Action::Keep);
            assert_eq!(
                stream.handle(Input::Answer, second(1)),
                Action::Pass,
                "a second answer is not kept again"
            );
            assert_eq!(stream.handle(end, second(2)), Action::Done);
        }
    }

    #[test]
    fn the_servers_pause_is_never_shortened_and_zero_does_not_spin() {
        for (asked, waited) in [(0, 100), (3000, 3000), (20_000, 20_000)] {
            let mut stream = stream();
            stream.handle(id("7"), second(0));
            stream.handle(Input::Retry(Duration::from_millis(asked)), second(0));
            let Action::Resume { after, .. } = stream.handle(Input::Closed, second(1)) else {
                panic!("no resume")
            };
            assert_eq!(after, Duration::from_millis(waited));
        }
    }

    #[test]
    fn a_pause_that_outlasts_the_deadline_ends_resuming() {
        for pause in [
            Duration::from_secs(301),
            Duration::MAX,
            Duration::from_millis(u64::MAX),
        ] {
            let mut stream = stream();
            stream.handle(id("7"), second(0));
            stream.handle(Input::Retry(pause), second(0));
            assert_eq!(stream.handle(Input::Closed, second(1)), Action::GiveUp);
        }
    }

    #[test]
    fn priming_events_are_not_progress() {
        let mut stream = stream();
        stream.handle(id("7"), second(0));
        let mut resumed = 0;
        while cursor(&stream.handle(Input::Closed, second(1))).is_some() {
            resumed += 1;
            stream.handle(id("7"), second(1));
            stream.handle(Input::Retry(Duration::ZERO), second(1));
        }
        assert_eq!(resumed, ResumeLimits::default().fruitless);
    }

    #[test]
    fn a_message_starts_the_deadline_anew() {
        let mut stream = stream();
        stream.handle(id("7"), second(0));
        for hour in 0..100 {
            assert!(cursor(&stream.handle(Input::Closed, second(3600 * hour))).is_some());
            stream.handle(Input::Message, second(3600 * hour + 1));
        }
    }

    #[test]
    fn a_refusal_ends_resuming() {
        let mut stream = stream();
        stream.handle(id("7"), second(0));
        stream.handle(Input::Closed, second(0));
        assert_eq!(stream.handle(Input::Refused, second(0)), Action::GiveUp);
    }

    fn input() -> impl Strategy<Value = Input> {
        prop_oneof![
            Just(id("a")),
            Just(id("b")),
            Just(id("")),
            any::<u64>().prop_map(|ms| Input::Retry(Duration::from_millis(ms))),
            (0..3000u64).prop_map(|ms| Input::Retry(Duration::from_millis(ms))),
            Just(Input::Closed),
            Just(Input::Failed),
        ]
    }

    proptest! {
        #[test]
        fn no_order_of_inputs_without_progress_resumes_more_often_than_the_limits(
            inputs in prop::collection::vec(input(), 0..256), fruitless in 0..4u32, failed in 1..4u32
        ) {
            let limits = ResumeLimits { fruitless, failed, ..ResumeLimits::default() };
            let mut stream = ResponseStream::new(Revision::Resumable, limits);
            let mut gave_up = false;
            for input in inputs {
                let action = stream.handle(input, Moment::START);
                gave_up |= action == Action::GiveUp;
                if gave_up { break }
            }
            prop_assert!(stream.resumes() <= (fruitless + 1) * failed);
        }

        #[test]
        fn no_pause_is_shorter_than_asked(asked in any::<u64>(), failures in 0..5u32) {
            let mut stream = stream();
            stream.handle(id("7"), Moment::START);
            stream.handle(Input::Retry(Duration::from_millis(asked)), Moment::START);
            for _ in 0..failures {
                if let Action::Resume { after, .. } = stream.handle(Input::Failed, Moment::START) {
                    prop_assert!(after >= Duration::from_millis(asked));
                }
            }
        }
    }
}
