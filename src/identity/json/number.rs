//! A number by its meaning: `1`, `1.0` and `1e0` are one; 2^53 + 1 is not 2^53.

/// A JSON number in canonical form. Two numbers are equal when they mean the same.
///
/// # Source
/// RFC 8785, 3.2.2.3 (ECMAScript's number to string), except for integers that a double cannot hold: they keep their
/// digits.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Number(Box<str>);

impl Number {
    /// The number of this JSON token; none where its exponent is beyond all use.
    pub(in crate::identity) fn from_token(token: &str) -> Option<Self> {
        // The common case: an integer of up to 15 digits is its own canonical form.
        let digits = token.strip_prefix('-').unwrap_or(token);
        if digits.len() <= 15 && digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Some(Self(if digits == "0" {
                "0".into()
            } else {
                token.into()
            }));
        }
        if let Some(canonical) = short_fraction(token, digits) {
            return Some(Self(canonical.into()));
        }
        let exact = Decimal::of(token)?;
        if exact.digits.is_empty() {
            return Some(Self("0".into()));
        }
        let double: f64 = token.parse().ok()?;
        if double.is_finite() {
            let mut buffer = ryu_js::Buffer::new();
            let shortest = buffer.format_finite(double);
            if exact.exponent < 0 || Decimal::of(shortest).as_ref() == Some(&exact) {
                return Some(Self(shortest.into()));
            }
        }
        Some(Self(exact.integer().into()))
    }

    /// Its canonical text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A fraction of at most 15 digits that is 1 or more: a double holds it, and its shortest form is itself without the zeros at
/// its end.
fn short_fraction<'a>(token: &'a str, digits: &str) -> Option<&'a str> {
    let (whole, fraction) = digits.split_once('.')?;
    let plain = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if digits.len() > 16 || whole == "0" || !plain(whole) || !plain(fraction) {
        return None;
    }
    Some(token.trim_end_matches('0').trim_end_matches('.'))
}

/// `digits` times ten to the `exponent`; no zero at either end of the digits, none at all for zero.
#[derive(Debug, Eq, PartialEq)]
struct Decimal {
    negative: bool,
    digits: String,
    exponent: i64,
}

impl Decimal {
    fn of(token: &str) -> Option<Self> {
        let (negative, rest) = match token.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, token),
        };
        let (mantissa, exponent) = match rest.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
            None => (rest, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let mut digits = format!("{whole}{fraction}");
        let mut exponent = i64::from(exponent) - i64::try_from(fraction.len()).ok()?;
        let kept = digits.trim_end_matches('0').len();
        exponent += i64::try_from(digits.len() - kept).ok()?;
        digits.truncate(kept);
        let leading = digits.len() - digits.trim_start_matches('0').len();
        digits.drain(..leading);
        Some(Self {
            negative,
            digits,
            exponent,
        })
    }

    /// The digits of an integer, written out while that is short.
    fn integer(&self) -> String {
        let sign = if self.negative { "-" } else { "" };
        match usize::try_from(self.exponent) {
            Ok(zeros) if zeros <= MAX_ZEROS => {
                format!("{sign}{}{}", self.digits, "0".repeat(zeros))
            }
            Ok(_) | Err(_) => format!("{sign}{}e+{}", self.digits, self.exponent),
        }
    }
}

/// An exponent must not buy memory.
const MAX_ZEROS: usize = 400;

#[cfg(test)]
mod tests {
    use super::*;

    fn canonical(token: &str) -> String {
        Number::from_token(token).unwrap().as_str().to_owned()
    }

    #[test]
    fn one_is_one_however_it_is_written() {
        for token in ["1", "1.0", "1e0", "10e-1", "0.1e1", "1E+0", "1.000"] {
            assert_eq!(canonical(token), "1", "{token}");
        }
        for token in ["0", "-0", "0.0", "-0e9", "0e-5"] {
            assert_eq!(canonical(token), "0", "{token}");
        }
    }

    #[test]
    fn an_integer_beyond_a_double_keeps_its_digits() {
        assert_eq!(canonical("9007199254740992"), "9007199254740992");
        assert_eq!(canonical("9007199254740993"), "9007199254740993");
        assert_eq!(canonical("9007199254740993.0"), "9007199254740993");
        assert_eq!(
            canonical("123456789012345678901234567890"),
            "123456789012345678901234567890"
        );
        assert_eq!(canonical("-18446744073709551617"), "-18446744073709551617");
    }

    #[test]
    fn large_round_numbers_are_the_same_in_both_spellings() {
        assert_eq!(canonical("1e21"), canonical("1000000000000000000000"));
        assert_eq!(
            canonical("1e400"),
            canonical(&format!("1{}", "0".repeat(400)))
        );
    }

    #[test]
    fn an_exponent_buys_no_memory() {
        assert_eq!(canonical("1e2000000000"), "1e+2000000000");
        assert!(Number::from_token("1e99999999999").is_none());
    }

    #[test]
    fn the_vectors_of_rfc_8785_appendix_b() {
        for (token, wanted) in [
            ("4.9406564584124654e-324", "5e-324"),
            ("-5e-324", "-5e-324"),
            ("1.7976931348623157e308", "1.7976931348623157e+308"),
            ("295147905179352830000", "295147905179352830000"),
            ("9.999999999999997e22", "9.999999999999997e+22"),
            ("1e23", "1e+23"),
            ("1.0000000000000001e23", "1.0000000000000001e+23"),
            ("999999999999999700000", "999999999999999700000"),
            ("999999999999999900000", "999999999999999900000"),
            ("1000000000000000000000", "1e+21"),
            ("333333333.3333332", "333333333.3333332"),
            ("333333333.33333325", "333333333.33333325"),
            ("0.000001", "0.000001"),
            ("9.999999999999997e-7", "9.999999999999997e-7"),
            ("1424953923781206.2", "1424953923781206.2"),
            ("-1250.500", "-1250.5"),
            ("100.000", "100"),
            ("99999999999999.9", "99999999999999.9"),
        ] {
            assert_eq!(canonical(token), wanted);
        }
    }
}
