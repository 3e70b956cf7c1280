//! Random strings and numbers from the host's entropy. The same entropy produces the same output.

mod source;

use mainstay_gostd::utf8;
use mainstay_template::{Call, Failure, Function, Type, Value};

use crate::encoding::encode_base64;
use crate::table::fixed;
pub(crate) use source::Source;

pub(crate) const TABLE: &[Function] = &[
    fixed("randAlphaNum", &[Type::Int], |call| {
        random_characters(call, ALPHANUMERIC)
    }),
    fixed("randAlpha", &[Type::Int], |call| {
        random_characters(call, ALPHABETIC)
    }),
    fixed("randNumeric", &[Type::Int], |call| {
        random_characters(call, NUMERIC)
    }),
    fixed("randAscii", &[Type::Int], |call| random_characters(call, ASCII)),
    fixed("randBytes", &[Type::Int], rand_bytes),
    fixed("randInt", &[Type::Int, Type::Int], rand_int),
    fixed("shuffle", &[Type::String], shuffle),
    fixed("uuidv4", &[], uuid_v4),
];

const NUMERIC: &[u8] = b"0123456789";
const ALPHABETIC: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const ALPHANUMERIC: &[u8] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const ASCII: &[u8] =
    b" !\"#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmnopqrstuvwxyz{|}~";

/// Number of random bytes that are requested at once: one system call for many characters.
const ENTROPY_BLOCK: usize = 256;

/// Returns the characters that `bytes` select uniformly. Bytes beyond the last multiple of the length of
/// `set` select none.
fn accepted<'a>(bytes: &'a [u8], set: &'a [u8]) -> impl Iterator<Item = u8> + 'a {
    let length = set.len().max(1);
    let usable = 256 - 256 % length;
    let selected = bytes
        .iter()
        .map(|byte| usize::from(*byte))
        .filter(move |byte| *byte < usable);
    selected.filter_map(move |byte| set.get(byte % length).copied())
}

/// Returns the requested number of characters of `set`. A negative count is treated as zero.
fn random_characters(call: &mut Call<'_>, set: &[u8]) -> Result<Value, Failure> {
    let count = usize::try_from(call.int(0)).unwrap_or(0);
    call.meter.reserve_string(count)?;
    call.meter.consume_fuel(count as u64)?;
    let mut text = Vec::with_capacity(count);
    let mut bytes = [0; ENTROPY_BLOCK];
    while text.len() < count {
        call.host.entropy(&mut bytes);
        let before = text.len();
        text.extend(accepted(&bytes, set).take(count - before));
        if text.len() == before {
            // The host repeats bytes that never select a character.
            text.resize(count, set.first().copied().unwrap_or_default());
        }
    }
    Ok(Value::string(text))
}

fn rand_bytes(call: &mut Call<'_>) -> Result<Value, Failure> {
    let count = usize::try_from(call.int(0));
    let count = count.map_err(|_| Failure::message("runtime error: makeslice: len out of range"))?;
    call.meter.reserve_string(count.saturating_mul(4) / 3)?;
    let mut bytes = vec![0; count];
    call.host.entropy(&mut bytes);
    Ok(encode_base64(&bytes).into())
}

/// Returns a number that is at least the first argument and less than the second.
fn rand_int(call: &mut Call<'_>) -> Result<Value, Failure> {
    let (min, max) = (call.int(0), call.int(1));
    match max.wrapping_sub(min) {
        width @ 1.. => Ok(Value::int(
            min.wrapping_add(Source(call.host).below(width as u64) as i64),
        )),
        _ => Err(Failure::message("invalid argument to Intn")),
    }
}

fn shuffle(call: &mut Call<'_>) -> Result<Value, Failure> {
    let text = call.str(0);
    call.meter.reserve_string(3 * text.len())?;
    call.meter.consume_fuel(text.len() as u64)?;
    let mut runes: Vec<char> = utf8::runes(&text).map(|(rune, _)| rune).collect();
    let mut source = Source(call.host);
    for last in (1..runes.len()).rev() {
        runes.swap(last, source.below(last as u64 + 1) as usize);
    }
    Ok(runes.into_iter().collect::<String>().into())
}

fn uuid_v4(call: &mut Call<'_>) -> Result<Value, Failure> {
    let mut bytes = [0; 16];
    call.host.entropy(&mut bytes);
    let bits = u128::from_be_bytes(bytes);
    let bits = bits & !(0xf << 76) | 0x4 << 76;
    let bits = bits & !(0x3 << 62) | 0x2 << 62;
    let part = |shift: u32, digits: u32| (bits >> shift) & ((1 << (4 * digits)) - 1);
    Ok(format!(
        "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
        part(96, 8),
        part(80, 4),
        part(64, 4),
        part(48, 4),
        part(0, 12)
    )
    .into())
}
