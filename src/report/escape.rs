//! Text that came from somewhere else, made safe for a terminal.

/// The text with every control character written out, those that turn the direction of text included.
#[must_use]
pub fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        let turns = matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        if c.is_control() || turns {
            safe.extend(c.escape_unicode());
        } else {
            safe.push(c);
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_terminal_is_steered_by_a_tools_name() {
        assert_eq!(
            escape("pay\u{1b}[31m\n\u{202e}x"),
            "pay\\u{1b}[31m\\u{a}\\u{202e}x"
        );
        assert_eq!(escape("zahle \u{20ac}"), "zahle \u{20ac}");
    }
}
