//! Base64 and base32. Decoding errors are returned as text, as in Sprig.

use mainstay_template::Type::String;
use mainstay_template::{Call, Failure, Function, Value};

use crate::table::fixed;

pub(crate) const TABLE: &[Function] = &[
    fixed("b64enc", &[String], b64enc),
    fixed("b64dec", &[String], b64dec),
    fixed("b32enc", &[String], b32enc),
    fixed("b32dec", &[String], b32dec),
];

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const BASE32: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/// Offset of the byte that cannot be decoded.
struct CorruptInput(usize);

/// Encodes `bytes` in standard base64.
pub(crate) fn encode_base64(bytes: &[u8]) -> std::string::String {
    std::string::String::from_utf8(encode(bytes, BASE64, 6, 4)).unwrap_or_default()
}

/// Error of decoding base64, with Go's message.
#[derive(Debug, thiserror::Error)]
#[error("illegal base64 data at input byte {0}")]
pub(crate) struct Base64Error(usize);

/// Decodes standard base64.
pub(crate) fn decode_base64(text: &[u8]) -> Result<Vec<u8>, Base64Error> {
    decode_base64_digits(text).map_err(|CorruptInput(at)| Base64Error(at))
}

fn b64enc(call: &mut Call<'_>) -> Result<Value, Failure> {
    let text = call.str(0);
    call.meter
        .reserve_string(text.len().div_ceil(3).saturating_mul(4))?;
    Ok(Value::string(encode(&text, BASE64, 6, 4)))
}

fn b32enc(call: &mut Call<'_>) -> Result<Value, Failure> {
    let text = call.str(0);
    call.meter
        .reserve_string(text.len().div_ceil(5).saturating_mul(8))?;
    Ok(Value::string(encode(&text, BASE32, 5, 8)))
}

fn b64dec(call: &mut Call<'_>) -> Result<Value, Failure> {
    let text = call.str(0);
    call.meter.reserve_string(text.len())?;
    Ok(decoded_value(decode_base64_digits(&text), "base64"))
}

fn b32dec(call: &mut Call<'_>) -> Result<Value, Failure> {
    let text = call.str(0);
    call.meter.reserve_string(text.len())?;
    let stripped: Vec<u8> = text.iter().copied().filter(|byte| !is_newline(*byte)).collect();
    Ok(decoded_value(decode_base32_digits(&stripped), "base32"))
}

fn decoded_value(result: Result<Vec<u8>, CorruptInput>, name: &str) -> Value {
    match result {
        Ok(bytes) => Value::string(bytes),
        Err(CorruptInput(at)) => Value::string(format!("illegal {name} data at input byte {at}")),
    }
}

/// Encodes bytes as digits of `width` bits each, padded to a multiple of `group` digits.
fn encode(bytes: &[u8], digits: &[u8], width: u32, group: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len() * 8 / width as usize + group);
    let (mut bits, mut count) = (0_u32, 0);
    let mut push = |value: u32| {
        let index = (value & ((1 << width) - 1)) as usize;
        out.extend(digits.get(index));
    };
    for &byte in bytes {
        bits = (bits << 8) | u32::from(byte);
        count += 8;
        while count >= width {
            count -= width;
            push(bits >> count);
        }
        bits &= (1 << count) - 1;
    }
    if count > 0 {
        push(bits << (width - count));
    }
    out.resize(out.len().next_multiple_of(group), b'=');
    out
}

fn base64_digit(byte: u8) -> Option<u8> {
    match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'a'..=b'z' => Some(byte - b'a' + 26),
        b'0'..=b'9' => Some(byte - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    }
}

fn base32_digit(byte: u8) -> Option<u8> {
    match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'2'..=b'7' => Some(byte - b'2' + 26),
        _ => None,
    }
}

fn is_newline(byte: u8) -> bool {
    byte == b'\n' || byte == b'\r'
}

fn decode_base64_digits(text: &[u8]) -> Result<Vec<u8>, CorruptInput> {
    let mut out = Vec::with_capacity(text.len() / 4 * 3 + 3);
    let (mut bits, mut have) = (0_u32, 0);
    for (at, &byte) in text.iter().enumerate() {
        if let Some(digit) = base64_digit(byte) {
            bits = (bits << 6) | u32::from(digit);
            have += 1;
            if have == 4 {
                out.extend_from_slice(bits.to_be_bytes().get(1..).unwrap_or_default());
                (bits, have) = (0, 0);
            }
        } else if byte == b'=' {
            check_base64_end(text, at, have)?;
            let tail = (bits << (24 - 6 * have)).to_be_bytes();
            out.extend_from_slice(tail.get(1..have as usize).unwrap_or_default());
            return Ok(out);
        } else if !is_newline(byte) {
            return Err(CorruptInput(at));
        }
    }
    // The position that Go reports is the end minus the number of remaining digits; newlines are not
    // skipped.
    if have == 0 {
        Ok(out)
    } else {
        Err(CorruptInput(text.len() - have as usize))
    }
}

/// Checks the padding at offset `at` after `have` digits of a group, and that no data follows it.
fn check_base64_end(text: &[u8], at: usize, have: u32) -> Result<(), CorruptInput> {
    let skip = |mut at: usize| {
        while text.get(at).copied().is_some_and(is_newline) {
            at += 1;
        }
        at
    };
    let mut next = skip(at + 1);
    match have {
        0 | 1 => return Err(CorruptInput(at)),
        2 if next == text.len() => return Err(CorruptInput(next)),
        2 if text.get(next) != Some(&b'=') => return Err(CorruptInput(next - 1)),
        2 => next = skip(next + 1),
        _ => {}
    }
    if next < text.len() {
        Err(CorruptInput(next))
    } else {
        Ok(())
    }
}

fn decode_base32_digits(text: &[u8]) -> Result<Vec<u8>, CorruptInput> {
    let mut out = Vec::with_capacity(text.len() / 8 * 5 + 5);
    let mut start = 0;
    while start < text.len() {
        let group = text.get(start..).unwrap_or_default();
        let (bits, have) = decode_base32_group(group, start, text.len())?;
        let bytes = (bits << (64 - 5 * have)).to_be_bytes();
        out.extend_from_slice(bytes.get(..have as usize * 5 / 8).unwrap_or_default());
        if have < 8 {
            break;
        }
        start += 8;
    }
    Ok(out)
}

/// Decodes a group of up to eight digits. Returns its bits and the number of digits, which is less than
/// eight only before valid padding at the end.
fn decode_base32_group(group: &[u8], start: usize, total: usize) -> Result<(u64, u32), CorruptInput> {
    let (mut bits, mut have) = (0, 0);
    for (place, &byte) in group.iter().take(8).enumerate() {
        let after = group.get(place + 1..).unwrap_or_default();
        if byte == b'=' && place >= 2 && after.len() < 8 {
            check_base32_end(after, place, start + place, total)?;
            return Ok((bits, have));
        }
        bits = (bits << 5) | u64::from(base32_digit(byte).ok_or(CorruptInput(start + place))?);
        have += 1;
    }
    if have < 8 {
        Err(CorruptInput(start))
    } else {
        Ok((bits, have))
    }
}

fn check_base32_end(after: &[u8], place: usize, at: usize, total: usize) -> Result<(), CorruptInput> {
    if after.len() + place < 7 {
        return Err(CorruptInput(total));
    }
    if let Some(wrong) = after.iter().take(7 - place).position(|&byte| byte != b'=') {
        return Err(CorruptInput(at + wrong));
    }
    if matches!(place, 1 | 3 | 6) {
        Err(CorruptInput(at))
    } else {
        Ok(())
    }
}
