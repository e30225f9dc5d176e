//! The faults, and when they strike.

use std::time::Duration;

use http::Method;

/// How a connection ends.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "TCP has these two")]
pub enum Cut {
    /// By RST: what was not read yet is gone.
    Reset,
    /// By FIN: as if the server had said all.
    Close,
}

/// What is done to one request or its response. "Runs" and "does not run" speak of the tool: where a client can't tell
/// which, both exist.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Fault {
    /// The request is read and thrown away. The tool does not run.
    LoseRequest(Cut),
    /// The server's whole answer is awaited and thrown away. The tool runs.
    LoseAnswer(Cut),
    /// The head of the response passes, nothing of its body. The tool runs.
    CutAfterHead(Cut),
    /// This many bytes of the body pass. The tool runs.
    CutBody(usize, Cut),
    /// This many events of the stream pass, whole; 1 is the priming event. The tool may still be running.
    CutEvents(usize, Cut),
    /// This status and body in place of an answer. The tool does not run.
    StatusBefore(u16, &'static str),
    /// The same, with the server's answer awaited and thrown away. The tool runs.
    StatusAfter(u16, &'static str),
    /// The request passes, and nothing comes back until the client gives up. The tool runs.
    Stall,
    /// The request passes after this long.
    Delay(Duration),
    /// The request passes, and the answer is held back for this long. The tool runs.
    DelayAnswer(Duration),
}

/// Which requests meet which fault. Requests are counted from 1; what no rule names passes.
#[derive(Clone, Debug, Default)]
pub struct FaultPlan {
    calls: Vec<(Range, Fault)>,
    resumes: Vec<(Range, Fault)>,
}

#[derive(Clone, Copy, Debug)]
enum Range {
    One(usize),
    From(usize),
}

impl FaultPlan {
    /// No faults.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The n-th POST of a `tools/call`.
    #[must_use]
    pub fn on_call(mut self, n: usize, fault: Fault) -> Self {
        self.calls.push((Range::One(n), fault));
        self
    }

    /// Every POST of a `tools/call` from the n-th on.
    #[must_use]
    pub fn from_call(mut self, n: usize, fault: Fault) -> Self {
        self.calls.push((Range::From(n), fault));
        self
    }

    /// The n-th GET with a `Last-Event-ID`.
    #[must_use]
    pub fn on_resume(mut self, n: usize, fault: Fault) -> Self {
        self.resumes.push((Range::One(n), fault));
        self
    }

    /// Every GET with a `Last-Event-ID` from the n-th on.
    #[must_use]
    pub fn from_resume(mut self, n: usize, fault: Fault) -> Self {
        self.resumes.push((Range::From(n), fault));
        self
    }

    /// The fault for the n-th request of its kind.
    pub(super) fn fault(&self, method: &Method, n: usize) -> Option<Fault> {
        let rules = if *method == Method::GET {
            &self.resumes
        } else {
            &self.calls
        };
        let strikes = |range: &Range| match range {
            Range::One(one) => n == *one,
            Range::From(first) => n >= *first,
        };
        rules
            .iter()
            .find(|(range, _)| strikes(range))
            .map(|(_, fault)| fault.clone())
    }
}
