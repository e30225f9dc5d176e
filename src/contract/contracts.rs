//! Which tool of which server has which contract.

use std::sync::Arc;

use super::{Class, Contract, Pattern};

/// The contracts of all tools of all servers. A tool that has none is [`Class::Irreversible`].
///
/// ```
/// use reattach::contract::{Class, Contract, Contracts};
///
/// let contracts = Contracts::builder()
///     .tool("get_*", Contract::of(Class::ReadOnly))
///     .tool("get_or_create_issue", Contract::of(Class::Irreversible)) // the most specific name wins
///     .build();
/// let server = "https://deploy.example/mcp";
/// assert_eq!(contracts.find(server, "get_status").class, Class::ReadOnly);
/// assert_eq!(contracts.find(server, "get_or_create_issue").class, Class::Irreversible);
/// assert_eq!(contracts.find(server, "never_heard_of").class, Class::Irreversible);
/// ```
#[derive(Clone, Debug)]
pub struct Contracts(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    rules: Vec<Rule>,
    /// Servers whose tools' annotations count.
    trusted: Vec<Pattern>,
    default: Contract,
}

/// One contract, and what it is for.
#[derive(Clone, Debug)]
pub(super) struct Rule {
    /// Server origin and path; none for every server.
    pub(super) server: Option<Pattern>,
    pub(super) tool: Pattern,
    pub(super) contract: Contract,
}

impl Contracts {
    /// Starts with no contract at all.
    #[must_use]
    pub fn builder() -> ContractsBuilder {
        ContractsBuilder::default()
    }

    /// The contract of a server's tool: the most specific tool name wins, then the most specific server, then the later rule.
    #[must_use]
    pub fn find(&self, target: &str, tool: &str) -> &Contract {
        self.written(target, tool).unwrap_or(&self.0.default)
    }

    /// Whether annotations of this server's tools count.
    #[must_use]
    pub fn trusts_annotations(&self, target: &str) -> bool {
        self.0.trusted.iter().any(|server| server.matches(target))
    }

    /// The contract that somebody wrote for this tool; none where the default holds.
    #[must_use]
    pub fn written(&self, target: &str, tool: &str) -> Option<&Contract> {
        let fits = |rule: &&Rule| {
            rule.tool.matches(tool)
                && rule
                    .server
                    .as_ref()
                    .is_none_or(|server| server.matches(target))
        };
        let specificity = |rule: &&Rule| {
            (
                rule.tool.specificity(),
                rule.server.as_ref().map(Pattern::specificity),
            )
        };
        self.0
            .rules
            .iter()
            .filter(fits)
            .max_by_key(specificity)
            .map(|rule| &rule.contract)
    }
}

impl Contracts {
    /// Every contract that somebody wrote, with the tool name or pattern that it is for.
    pub fn rules(&self) -> impl Iterator<Item = (&str, &Contract)> {
        self.0
            .rules
            .iter()
            .map(|rule| (rule.tool.as_str(), &rule.contract))
    }
}

impl Default for Contracts {
    fn default() -> Self {
        Self::builder().build()
    }
}

/// Collects contracts.
#[derive(Clone, Debug, Default)]
pub struct ContractsBuilder {
    rules: Vec<Rule>,
    trusted: Vec<Pattern>,
}

impl ContractsBuilder {
    /// Sets the contract of tools by their name on every server; `*` in it stands for any text.
    #[must_use]
    pub fn tool(self, name: impl Into<String>, contract: Contract) -> Self {
        self.rule(Rule {
            server: None,
            tool: Pattern::new(name),
            contract,
        })
    }

    /// Sets the contract of tools of one server, by its origin and path; `*` in either stands for any text.
    #[must_use]
    pub fn tool_of(
        self,
        server: impl Into<String>,
        name: impl Into<String>,
        contract: Contract,
    ) -> Self {
        self.rule(Rule {
            server: Some(Pattern::new(server)),
            tool: Pattern::new(name),
            contract,
        })
    }

    /// Lets the annotations of a server's tools count where no contract is written. `*` stands for any text.
    #[must_use]
    pub fn trust_annotations(mut self, server: impl Into<String>) -> Self {
        self.trusted.push(Pattern::new(server));
        self
    }

    pub(super) fn rule(mut self, rule: Rule) -> Self {
        self.rules.push(rule);
        self
    }

    /// The contracts.
    #[must_use]
    pub fn build(self) -> Contracts {
        // The strictest class: silence must never mean that a call may be repeated.
        Contracts(Arc::new(Inner {
            rules: self.rules,
            trusted: self.trusted,
            default: Contract::of(Class::Irreversible),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_specific_rule_wins_and_a_name_is_never_a_hint() {
        let contracts = Contracts::builder()
            .tool("search_*", Contract::of(Class::ReadOnly))
            .tool_of(
                "https://a.example/*",
                "search_and_delete",
                Contract::of(Class::ConditionalWrite),
            )
            .tool("search_and_*", Contract::of(Class::Irreversible))
            .build();
        assert_eq!(
            contracts
                .find("https://a.example/mcp", "search_and_delete")
                .class,
            Class::ConditionalWrite
        );
        assert_eq!(
            contracts
                .find("https://b.example/mcp", "search_and_delete")
                .class,
            Class::Irreversible
        );
        assert_eq!(
            contracts
                .find("https://b.example/mcp", "search_pages")
                .class,
            Class::ReadOnly
        );
        assert_eq!(
            contracts.find("https://b.example/mcp", "get_status").class,
            Class::Irreversible
        );
        assert!(
            contracts
                .written("https://b.example/mcp", "get_status")
                .is_none()
        );
    }
}
