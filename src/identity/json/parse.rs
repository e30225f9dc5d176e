//! Reads JSON strictly.

use super::{Number, Value, canonical};

/// How deep arguments may be nested.
pub const MAX_DEPTH: usize = 64;

/// Why a text is not JSON that identity can rest on. Names positions, never content.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum JsonError {
    /// Not JSON (RFC 8259).
    #[error("not valid JSON at byte {at}")]
    Syntax {
        /// Offset in bytes.
        at: usize,
    },
    /// Two members of one object have the same name: two parsers could see two effects.
    #[error(
        "a member name is repeated in one object, at byte {at}; two readers could see two different calls"
    )]
    DuplicateKey {
        /// Offset in bytes.
        at: usize,
    },
    /// Nested deeper than [`MAX_DEPTH`].
    #[error("nested deeper than {MAX_DEPTH} levels, at byte {at}")]
    TooDeep {
        /// Offset in bytes.
        at: usize,
    },
    /// A number's exponent does not fit 32 bits.
    #[error("a number at byte {at} has an exponent beyond any use")]
    Exponent {
        /// Offset in bytes.
        at: usize,
    },
}

/// Reads one JSON value and nothing after it.
///
/// # Errors
/// [`JsonError`]; nothing is lost.
pub fn parse(bytes: &[u8]) -> Result<Value, JsonError> {
    let text = std::str::from_utf8(bytes).map_err(|error| JsonError::Syntax {
        at: error.valid_up_to(),
    })?;
    let mut reader = Reader { text, at: 0 };
    let value = reader.value(0)?;
    reader.white_space();
    if reader.at == text.len() {
        Ok(value)
    } else {
        Err(reader.syntax())
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    fn value(&mut self, depth: usize) -> Result<Value, JsonError> {
        self.white_space();
        match self.peek() {
            Some(b'{') => self.object(depth),
            Some(b'[') => self.array(depth),
            Some(b'"') => self.string().map(Value::String),
            Some(b'-' | b'0'..=b'9') => self.number().map(Value::Number),
            Some(b't') => self.word("true", Value::Bool(true)),
            Some(b'f') => self.word("false", Value::Bool(false)),
            Some(b'n') => self.word("null", Value::Null),
            Some(_) | None => Err(self.syntax()),
        }
    }

    fn object(&mut self, depth: usize) -> Result<Value, JsonError> {
        self.deeper(depth)?;
        let start = self.at;
        self.at += 1;
        let mut members = Vec::new();
        self.white_space();
        if self.eat(b'}') {
            return Ok(Value::Object(members));
        }
        loop {
            self.white_space();
            let name = self.string()?;
            self.white_space();
            self.expect(b':')?;
            members.push((name, self.value(depth + 1)?));
            self.white_space();
            if self.eat(b'}') {
                break;
            }
            self.expect(b',')?;
        }
        members.sort_by(|(one, _), (other, _)| canonical::order(one, other));
        if members.windows(2).any(|pair| pair[0].0 == pair[1].0) {
            return Err(JsonError::DuplicateKey { at: start });
        }
        Ok(Value::Object(members))
    }

    fn array(&mut self, depth: usize) -> Result<Value, JsonError> {
        self.deeper(depth)?;
        self.at += 1;
        let mut items = Vec::new();
        self.white_space();
        if self.eat(b']') {
            return Ok(Value::Array(items));
        }
        loop {
            items.push(self.value(depth + 1)?);
            self.white_space();
            if self.eat(b']') {
                return Ok(Value::Array(items));
            }
            self.expect(b',')?;
        }
    }

    fn string(&mut self) -> Result<String, JsonError> {
        self.expect(b'"')?;
        let mut out = String::new();
        loop {
            let rest = &self.text.as_bytes()[self.at..];
            let plain = rest
                .iter()
                .position(|byte| matches!(byte, b'"' | b'\\' | 0..=0x1f))
                .ok_or(JsonError::Syntax {
                    at: self.text.len(),
                })?;
            out.push_str(&self.text[self.at..self.at + plain]); // stops at ASCII: always a boundary
            self.at += plain;
            match rest[plain] {
                b'"' => {
                    self.at += 1;
                    return Ok(out);
                }
                b'\\' => out.push(self.escape()?),
                _ => return Err(self.syntax()), // a bare control character
            }
        }
    }

    fn escape(&mut self) -> Result<char, JsonError> {
        self.at += 1;
        let letter = self.peek().ok_or_else(|| self.syntax())?;
        let plain = match letter {
            b'"' => '"',
            b'\\' => '\\',
            b'/' => '/',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                self.at += 1;
                return self.unicode_escape();
            }
            _ => return Err(self.syntax()),
        };
        self.at += 1;
        Ok(plain)
    }

    /// `\uXXXX`, or a pair of them; a surrogate by itself names no character and is refused.
    fn unicode_escape(&mut self) -> Result<char, JsonError> {
        let first = self.four_hex()?;
        if (0xd800..0xdc00).contains(&first) {
            self.expect(b'\\')?;
            self.expect(b'u')?;
            let second = self.four_hex()?;
            if !(0xdc00..0xe000).contains(&second) {
                return Err(self.syntax());
            }
            let code =
                0x1_0000 + ((u32::from(first) - 0xd800) << 10) + (u32::from(second) - 0xdc00);
            return char::from_u32(code).ok_or_else(|| self.syntax());
        }
        char::from_u32(u32::from(first)).ok_or_else(|| self.syntax())
    }

    fn four_hex(&mut self) -> Result<u16, JsonError> {
        let digits = self
            .text
            .as_bytes()
            .get(self.at..self.at + 4)
            .ok_or_else(|| self.syntax())?;
        let mut code = 0;
        for digit in digits {
            let digit = char::from(*digit)
                .to_digit(16)
                .ok_or_else(|| self.syntax())?;
            code = code << 4 | u16::try_from(digit).map_err(|_| self.syntax())?;
        }
        self.at += 4;
        Ok(code)
    }

    fn number(&mut self) -> Result<Number, JsonError> {
        let start = self.at;
        self.eat(b'-');
        match self.peek() {
            Some(b'0') => self.at += 1,
            Some(b'1'..=b'9') => self.digits()?,
            Some(_) | None => return Err(self.syntax()),
        }
        if self.eat(b'.') {
            self.digits()?;
        }
        if self.eat(b'e') || self.eat(b'E') {
            if !self.eat(b'+') {
                self.eat(b'-');
            }
            self.digits()?;
        }
        Number::from_token(&self.text[start..self.at]).ok_or(JsonError::Exponent { at: start })
    }

    fn digits(&mut self) -> Result<(), JsonError> {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        if self.at == start {
            Err(self.syntax())
        } else {
            Ok(())
        }
    }

    fn word(&mut self, word: &str, value: Value) -> Result<Value, JsonError> {
        if self.text.as_bytes()[self.at..].starts_with(word.as_bytes()) {
            self.at += word.len();
            Ok(value)
        } else {
            Err(self.syntax())
        }
    }

    fn deeper(&self, depth: usize) -> Result<(), JsonError> {
        if depth >= MAX_DEPTH {
            Err(JsonError::TooDeep { at: self.at })
        } else {
            Ok(())
        }
    }

    fn white_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn eat(&mut self, byte: u8) -> bool {
        let there = self.peek() == Some(byte);
        if there {
            self.at += 1;
        }
        there
    }

    fn expect(&mut self, byte: u8) -> Result<(), JsonError> {
        if self.eat(byte) {
            Ok(())
        } else {
            Err(self.syntax())
        }
    }

    fn syntax(&self) -> JsonError {
        JsonError::Syntax { at: self.at }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_repeated_name_is_refused_in_every_spelling() {
        for text in [
            r#"{"a":1,"a":1}"#,
            r#"{"a":1,"\u0061":2}"#,
            r#"[{"b":{"x":1,"y":2,"x":3}}]"#,
        ] {
            assert!(
                matches!(parse(text.as_bytes()), Err(JsonError::DuplicateKey { .. })),
                "{text}"
            );
        }
    }

    #[test]
    fn depth_is_limited() {
        let nested = |depth: usize| format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
        assert!(parse(nested(MAX_DEPTH).as_bytes()).is_ok());
        assert!(matches!(
            parse(nested(MAX_DEPTH + 1).as_bytes()),
            Err(JsonError::TooDeep { .. })
        ));
        assert!(matches!(
            parse(nested(1_000_000).as_bytes()),
            Err(JsonError::TooDeep { .. })
        ));
    }

    #[test]
    fn a_lone_surrogate_is_refused() {
        for text in [
            r#""\ud800""#,
            r#""\udc00""#,
            r#""\ud800\u0041""#,
            r#""\ud83d\ud83d""#,
        ] {
            assert!(parse(text.as_bytes()).is_err(), "{text}");
        }
        assert_eq!(parse(br#""\ud83d\ude00""#), Ok(Value::from("\u{1f600}")));
    }

    #[test]
    fn what_is_not_json_is_refused() {
        for text in [
            "",
            " ",
            "{",
            "[1,]",
            "{\"a\":1,}",
            "01",
            "1.",
            ".5",
            "+1",
            "1e",
            "nul",
            "\"\u{1}\"",
            "1 2",
            "{a:1}",
            "\"a",
        ] {
            assert!(parse(text.as_bytes()).is_err(), "{text}");
        }
        assert!(parse(b"\"\xff\"").is_err());
    }

    proptest! {
        #[test]
        fn it_accepts_what_serde_json_accepts_and_never_panics(text in r#"[\[\]{}:,"\\ueE0-9a.\-+ tn]{0,24}"#) {
            let strict = parse(text.as_bytes());
            let lenient = serde_json::from_str::<serde_json::Value>(&text);
            match strict {
                Ok(_) | Err(JsonError::Exponent { .. } | JsonError::DuplicateKey { .. }) => {}
                Err(JsonError::Syntax { .. } | JsonError::TooDeep { .. }) => prop_assert!(lenient.is_err(), "{}", text),
            }
        }
    }
}
