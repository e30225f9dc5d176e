//! Names with wildcards: `deploy_*`, `https://*.example/mcp`.

/// A name in which each `*` stands for any text, also for none.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Pattern(String);

impl Pattern {
    /// The pattern of this text.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it is a name without wildcards.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        !self.0.contains('*')
    }

    /// Whether a name is meant.
    #[must_use]
    pub fn matches(&self, name: &str) -> bool {
        let mut parts = self.0.split('*');
        let first = parts.next().unwrap_or_default();
        let Some(mut rest) = name.strip_prefix(first) else {
            return false;
        };
        let mut parts: Vec<_> = parts.collect();
        let Some(last) = parts.pop() else {
            return rest.is_empty();
        };
        for part in parts {
            match rest.find(part) {
                Some(at) => rest = &rest[at + part.len()..],
                None => return false,
            }
        }
        rest.ends_with(last)
    }

    /// How closely it describes what it matches: exact before any wildcard, then by the letters it fixes.
    #[must_use]
    pub fn specificity(&self) -> (bool, usize) {
        (
            self.is_exact(),
            self.0.chars().filter(|c| *c != '*').count(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_text() {
        for (pattern, name) in [
            ("pay", "pay"),
            ("*", ""),
            ("*", "x"),
            ("deploy_*", "deploy_"),
            ("a*b*c", "a1b2bc"),
            ("*.x", "a.x.x"),
        ] {
            assert!(Pattern::new(pattern).matches(name), "{pattern} {name}");
        }
        for (pattern, name) in [
            ("pay", "pays"),
            ("pay", "repay"),
            ("deploy_*", "deploy"),
            ("a*b", "a"),
            ("ab*b", "ab"),
            ("a*b*c", "acb"),
        ] {
            assert!(!Pattern::new(pattern).matches(name), "{pattern} {name}");
        }
    }

    #[test]
    fn exact_comes_before_close_and_close_before_wide() {
        let of = |text: &str| Pattern::new(text).specificity();
        assert!(of("pay") > of("pay_every*") && of("pay_*") > of("p*") && of("p*") > of("*"));
    }
}
