//! No order of inputs spins, shortens a pause, or resumes an answered stream.
#![no_main]

use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use reattach::clock::Moment;
use reattach::execution::{Action, Input, ResponseStream, ResumeLimits};
use reattach::identity::EventId;
use reattach::wire::Revision;

#[derive(Debug, arbitrary::Arbitrary)]
enum Op {
    Id(u8),
    Clear,
    Retry(u64),
    Message,
    Answer,
    Closed,
    Failed,
    Refused,
    Wait(u32),
}

fuzz_target!(|ops: Vec<Op>| {
    let mut stream = ResponseStream::new(Revision::Resumable, ResumeLimits::default());
    let (mut now, mut answered, mut asked) = (Moment::START, false, Duration::ZERO);
    for op in ops {
        let input = match op {
            Op::Id(id) => Input::Id(EventId::new(&id.to_string())),
            Op::Clear => Input::Id(None),
            Op::Retry(millis) => {
                asked = Duration::from_millis(millis);
                Input::Retry(asked)
            }
            Op::Message => Input::Message,
            Op::Answer => Input::Answer,
            Op::Closed => Input::Closed,
            Op::Failed => Input::Failed,
            Op::Refused => Input::Refused,
            Op::Wait(millis) => {
                now = now.plus(Duration::from_millis(u64::from(millis)));
                continue;
            }
        };
        answered |= input == Input::Answer;
        match stream.handle(input, now) {
            Action::Resume { after, .. } => {
                assert!(!answered, "an answered stream is never resumed");
                assert!(after >= asked && after >= Duration::from_millis(100));
                now = now.plus(after);
            }
            Action::GiveUp => assert!(!answered),
            Action::Pass | Action::Keep | Action::Done => {}
        }
    }
});
