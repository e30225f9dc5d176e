//! Which questions a contract leaves open: such a tool is not ready for unattended use.

use super::{Class, Contract};

impl Contract {
    /// The keys of `reattach.toml` that still have to be answered, and the question of each.
    ///
    /// # Source
    /// Essay, requirements 30, 37, 94, 97, 106 to 108.
    #[must_use]
    pub fn unanswered(&self) -> Vec<(&'static str, &'static str)> {
        let mut open = Vec::new();
        let mut ask = |answered: bool, key, question| {
            if !answered {
                open.push((key, question));
            }
        };
        let side_effect = self.class.has_side_effect();
        ask(
            !side_effect || self.fingerprint.defaults.is_some(),
            "fingerprint.defaults",
            "does the target assume values for arguments left out? name them, or write \"as_sent\"",
        );
        ask(
            !side_effect || self.credential_ref.is_some(),
            "credential_ref",
            "which credential acts? a name, never a token",
        );
        match self.class {
            Class::ReadOnly | Class::Irreversible => {}
            Class::IdempotentWrite => {
                let idempotency = self.idempotency.as_ref();
                ask(
                    idempotency.is_some(),
                    "idempotency",
                    "where does the target take its key: header, argument or meta?",
                );
                ask(
                    idempotency.is_some_and(|idempotency| idempotency.retains_for.is_some()),
                    "idempotency.retains_for",
                    "how long does the target remember a key?",
                );
                ask(
                    idempotency.is_some_and(|idempotency| idempotency.on_changed_body.is_some()),
                    "idempotency.on_changed_body",
                    "what does the target do with another body under a key it knows?",
                );
            }
            Class::ConditionalWrite => ask(
                self.probe.is_some(),
                "probe",
                "which read-only tool says whether the condition still holds?",
            ),
            Class::RemoteCommand => ask(
                self.probe.is_some()
                    || self
                        .remote
                        .as_ref()
                        .is_some_and(|remote| remote.marker.is_some()),
                "target.marker",
                "where does the command leave its durable marker? without one, and without a probe, write class = \"irreversible\"",
            ),
        }
        open
    }

    /// What happens, fault by fault, when the answer to a call of this tool does not come.
    #[must_use]
    pub fn faults(&self) -> [(&'static str, &'static str); 5] {
        let lost = match self.class {
            Class::ReadOnly => "the call may simply be made again",
            Class::IdempotentWrite
            | Class::ConditionalWrite
            | Class::Irreversible
            | Class::RemoteCommand => {
                "the outcome is unknown; the call is not sent again, and a repeat is told so"
            }
        };
        [
            (
                "the body never left",
                "sent again under the same execution, at most twice, by the permit `not_sent`",
            ),
            (
                "refused before it ran (401, 403, 404 with a session, ...)",
                "the refusal is passed on; a repeat goes out under the same execution, by the permit `rejected`",
            ),
            (
                "the stream breaks, and its events have ids",
                "the stream is resumed; nothing is sent again",
            ),
            (
                "the caller gives up",
                "the layer reads on; a repeat attaches, or gets the kept result",
            ),
            ("the answer is lost", lost),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_class_has_its_questions() {
        let keys = |class| {
            Contract::of(class)
                .unanswered()
                .into_iter()
                .map(|(key, _)| key)
                .collect::<Vec<_>>()
        };
        assert!(keys(Class::ReadOnly).is_empty());
        assert_eq!(
            keys(Class::Irreversible),
            ["fingerprint.defaults", "credential_ref"]
        );
        assert!(keys(Class::IdempotentWrite).contains(&"idempotency.retains_for"));
        assert!(keys(Class::ConditionalWrite).contains(&"probe"));
        assert!(keys(Class::RemoteCommand).contains(&"target.marker"));
    }
}
