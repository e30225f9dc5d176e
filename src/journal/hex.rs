//! Hexadecimal, lower case.

pub(super) fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        for nibble in [byte >> 4, byte & 15] {
            text.push(char::from(DIGITS[usize::from(nibble)]));
        }
    }
    text
}

/// Fills `bytes` from exactly as many digits; says whether it could.
pub(super) fn decode_into(digits: &[u8], bytes: &mut [u8]) -> bool {
    if digits.len() != bytes.len() * 2 {
        return false;
    }
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        match (nibble(pair[0]), nibble(pair[1])) {
            (Some(high), Some(low)) => *byte = high << 4 | low,
            (None, _) | (_, None) => return false,
        }
    }
    true
}

pub(super) fn decode(digits: &str) -> Option<Vec<u8>> {
    let mut bytes = vec![0; digits.len() / 2];
    decode_into(digits.as_bytes(), &mut bytes).then_some(bytes)
}

fn nibble(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        b'A'..=b'F' => Some(digit - b'A' + 10),
        0..=b'/' | b':'..=b'@' | b'G'..=b'`' | b'g'..=255 => None,
    }
}

const DIGITS: &[u8; 16] = b"0123456789abcdef";
