//! `reattach.toml`: what happens, for each tool, if the caller loses the answer after dispatch.
//!
//! ```toml
//! [defaults.idempotent_write]           # per class; there is no number for all of them
//! window = "10m"
//!
//! [servers.bank]
//! url = "https://bank.example/mcp"      # origin and path; `*` stands for any text
//! credential_ref = "bank-main"          # a name, never a token
//!
//! [servers.bank.tools.pay]
//! class = "irreversible"
//! fingerprint.defaults = { "/currency" = "EUR" }
//! fingerprint.ignore = ["/idempotency_key", "/sent_at"]
//! fingerprint.secret = ["/pin"]
//!
//! [servers.bank.tools."get_*"]
//! class = "read_only"
//! ```

mod build;
mod error;
mod raw;

pub use error::{FileError, Place};

use super::Contracts;

impl Contracts {
    /// Reads the contracts of a `reattach.toml`. `name` is what errors call the file.
    ///
    /// # Errors
    /// [`FileError`]: what is wrong, on which line, and what is allowed. Nothing of the file is used then.
    pub fn from_toml(name: &str, text: &str) -> Result<Self, FileError> {
        let file = toml::from_str(text).map_err(|error| FileError::of(name, text, &error))?;
        build::contracts(file).map_err(|wrong| wrong.in_file(name, text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::{Channel, Class};
    use crate::identity::IntentScope;
    use std::time::Duration;

    const BANK: &str = "https://bank.example/mcp";

    fn read(text: &str) -> Result<Contracts, String> {
        Contracts::from_toml("reattach.toml", text).map_err(|error| error.to_string())
    }

    #[test]
    fn a_whole_file_is_read() {
        let contracts = read(
            r#"
            [defaults.idempotent_write]
            window = "10m"
            retention = "30d"

            [servers.bank]
            url = "https://bank.example/*"
            credential_ref = "bank-main"

            [servers.bank.tools.pay]
            class = "irreversible"
            scope = "durable"
            undelivered = "48h"
            fingerprint.defaults = { "/currency" = "EUR", "/fee" = 1.5 }
            fingerprint.ignore = ["/sent_at"]
            fingerprint.secret = ["/pin"]
            fingerprint.same = { "/iban" = "case" }

            [servers.bank.tools.set_limit]
            class = "idempotent_write"
            idempotency = { header = "Idempotency-Key", retains_for = "24h", on_changed_body = "refused" }
            probe = { tool = "get_limit", arguments = { account = "/account" } }
            limits = { resume = "1m", attach_wait = "2m" }

            [servers.bank.tools."get_*"]
            class = "read_only"

            [tools.run]
            class = "remote_command"
            target = { host = "/host_key", command = "/command", account = "/user", marker = "/var/lib/reattach" }
            "#,
        )
        .unwrap();
        let pay = contracts.find(BANK, "pay");
        assert_eq!(
            (pay.class, pay.scope),
            (Class::Irreversible, IntentScope::Durable)
        );
        assert_eq!(pay.window.completed, Duration::from_secs(48 * 3600));
        assert_eq!(pay.window.unresolved, None, "until it is resolved");
        assert_eq!(pay.credential_ref.as_deref(), Some("bank-main"));
        assert_eq!(
            pay.fingerprint
                .defaults
                .as_ref()
                .map(|defaults| defaults.len()),
            Some(2)
        );
        let limit = contracts.find(BANK, "set_limit");
        assert_eq!(limit.window.unresolved, Some(Duration::from_secs(600)));
        assert!(
            matches!(&limit.idempotency.as_ref().unwrap().channel, Channel::Header(name) if name == "idempotency-key")
        );
        assert_eq!(contracts.find(BANK, "get_limit").class, Class::ReadOnly);
        assert_eq!(
            contracts
                .find("https://elsewhere.example/", "get_limit")
                .class,
            Class::Irreversible
        );
        assert!(
            contracts
                .find("https://any.example/", "run")
                .remote
                .is_some()
        );
    }

    #[test]
    fn errors_say_where_what_and_what_is_allowed() {
        for (text, wanted) in [
            (
                "[tools.pay]\nclass = \"reversible\"",
                &[
                    "reattach.toml:2:9",
                    "reversible",
                    "irreversible",
                    "read_only",
                ][..],
            ),
            (
                "[tools.pay]\nclass = \"irreversible\"\nretension = \"1d\"",
                &[
                    "reattach.toml:3:1",
                    "retension",
                    "did you mean `retention`?",
                ],
            ),
            (
                "[tools.pay]\nscope = \"run\"",
                &["reattach.toml:1", "class"],
            ),
            (
                "[tools.pay]\nclass = \"irreversible\"\nretention = \"soon\"",
                &["reattach.toml:3:13", "soon", "\"24h\""],
            ),
            (
                "window = \"5m\"",
                &["reattach.toml:1:1", "window", "[defaults.irreversible]"],
            ),
            (
                "[tools.pay]\nclass = \"irreversible\"\nfingerprint.ignore = [\"sent_at\"]",
                &["reattach.toml:3:23", "`sent_at`", "/outer/inner"],
            ),
            (
                "[tools.look]\nclass = \"read_only\"\nidempotency = { header = \"X-Key\" }",
                &["reattach.toml:3", "read_only", "idempotency"],
            ),
            (
                "[tools.set]\nclass = \"idempotent_write\"\nidempotency = { retains_for = \"1h\" }",
                &["reattach.toml:3", "header", "argument", "meta"],
            ),
            (
                "[tools.set]\nclass = \"idempotent_write\"\nidempotency = { header = \"X-Key\", on_changed_body = \"accepted\" }",
                &["reattach.toml:3", "accepted"],
            ),
            (
                "[tools.set]\nclass = \"idempotent_write\"\nidempotency = { header = \"Authorization\" }",
                &["reattach.toml:3", "Authorization"],
            ),
            (
                "[tools.pay]\nclass = \"irreversible\"\nprobe = { tool = \"refund\" }",
                &["reattach.toml:3", "refund", "read_only"],
            ),
            (
                "[tools.pay]\nclass = \"irreversible\"\nretention = \"1h\"",
                &["reattach.toml:3:13", "retention", "window"],
            ),
            (
                "[tools.t]\nclass = \"irreversible\"\nscope = \"run\"\non_closed_match = \"replay\"",
                &["reattach.toml:4:19", "durable"],
            ),
            (
                "[tools.run]\nclass = \"remote_command\"",
                &["reattach.toml:1", "target"],
            ),
            (
                "[servers.a]\nurl = \"bank\"",
                &["reattach.toml:2:7", "bank", "https://"],
            ),
            ("[tools.pay", &["reattach.toml:1"]),
        ] {
            let error = read(text).expect_err(text);
            for part in wanted {
                assert!(error.contains(part), "{part:?} in {error:?}");
            }
        }
    }

    #[test]
    fn an_empty_file_leaves_every_tool_irreversible() {
        assert_eq!(
            read("").unwrap().find(BANK, "get_status").class,
            Class::Irreversible
        );
    }
}
