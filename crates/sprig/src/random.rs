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

/// Returns the requested number of characters of `set`. A negative count is treated as zero.
fn random_characters(call: &mut Call<'_>, set: &[u8]) -> Result<Value, Failure> {
    let count = usize::try_from(call.int(0)).unwrap_or(0);
    call.meter.reserve_string(count)?;
    call.meter.consume_fuel(count as u64)?;
    let mut source = Source::new(call.host);
    let text: Vec<u8> = (0..count)
        .filter_map(|_| set.get(source.below(set.len() as u64) as usize).copied())
        .collect();
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
            min.wrapping_add(Source::new(call.host).below(width as u64) as i64),
        )),
        _ => Err(Failure::message("invalid argument to Intn")),
    }
}

fn shuffle(call: &mut Call<'_>) -> Result<Value, Failure> {
    let text = call.str(0);
    call.meter.reserve_string(3 * text.len())?;
    call.meter.consume_fuel(text.len() as u64)?;
    let mut runes: Vec<char> = utf8::runes(&text).map(|(rune, _)| rune).collect();
    let mut source = Source::new(call.host);
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
