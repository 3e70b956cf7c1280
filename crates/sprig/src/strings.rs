//! String functions, which also accept invalid UTF-8. See [`split`] for conversions between strings and
//! lists.

mod split;
mod wrap;

use mainstay_gostd::unicode;
use mainstay_template::Type::{Any, Int, String};
use mainstay_template::{Call, Failure, Function, Meter, Str, Value, print_value};

use crate::bytes;
use crate::table::{fixed, variadic};
use crate::text::{self, LimitedBuffer};

pub(crate) const TABLES: &[&[Function]] = &[TABLE, split::TABLE, wrap::TABLE];

const TABLE: &[Function] = &[
    fixed("trunc", &[Int, String], trunc),
    fixed("substr", &[Int, Int, String], substr),
    fixed("trim", &[String], trim),
    fixed("trimAll", &[String, String], trim_all),
    fixed("trimall", &[String, String], trim_all),
    fixed("trimSuffix", &[String, String], trim_suffix),
    fixed("trimPrefix", &[String, String], trim_prefix),
    fixed("nospace", &[String], nospace),
    fixed("repeat", &[Int, String], repeat),
    fixed("replace", &[String, String, String], replace),
    fixed("contains", &[String, String], contains),
    fixed("hasPrefix", &[String, String], has_prefix),
    fixed("hasSuffix", &[String, String], has_suffix),
    fixed("plural", &[String, String, Int], plural),
    fixed("indent", &[Int, String], indent),
    fixed("nindent", &[Int, String], nindent),
    variadic("quote", &[Any], quote),
    variadic("squote", &[Any], squote),
    variadic("cat", &[Any], cat),
    fixed("toString", &[Any], to_string),
];

/// Returns the part of argument `index` that `cut` selects. Does not copy if it is the whole argument.
fn slice_argument(
    call: &mut Call<'_>,
    index: usize,
    cut: impl FnOnce(&[u8]) -> &[u8],
) -> Result<Value, Failure> {
    let text = call.str(index);
    let kept = cut(&text);
    if kept.len() == text.len() {
        return Ok(Value::String(text));
    }
    call.meter.reserve_string(kept.len())?;
    Ok(Value::string(kept))
}

fn trunc(call: &mut Call<'_>) -> Result<Value, Failure> {
    let count = call.int(0);
    slice_argument(call, 1, |text| {
        let len = text.len() as i64;
        if count < 0 && len + count > 0 {
            text.get((len + count) as usize..).unwrap_or(text)
        } else if count >= 0 {
            text.get(..usize::try_from(count).unwrap_or(usize::MAX))
                .unwrap_or(text)
        } else {
            text
        }
    })
}

fn substr(call: &mut Call<'_>) -> Result<Value, Failure> {
    let (start, end) = (call.int(0), call.int(1));
    let len = call.str(2).len() as i64;
    let (from, to) = match (start, end) {
        (..0, ..0) => return Err(out_of_range(format!("[:{end}]"))),
        (..0, _) if end > len => return Err(out_of_range(format!("[:{end}] with length {len}"))),
        (..0, _) => (0, end),
        (_, ..0) => (start, len),
        _ => (start, end.min(len)),
    };
    if from > to {
        return Err(out_of_range(format!("[{from}:{to}]")));
    }
    slice_argument(call, 2, |text| {
        text.get(from as usize..to as usize).unwrap_or_default()
    })
}

fn out_of_range(bounds: impl std::fmt::Display) -> Failure {
    Failure::message(format!("runtime error: slice bounds out of range {bounds}"))
}

fn trim(call: &mut Call<'_>) -> Result<Value, Failure> {
    slice_argument(call, 0, bytes::trim_space)
}

fn trim_all(call: &mut Call<'_>) -> Result<Value, Failure> {
    let cutset = call.str(0);
    call.meter.consume_fuel(cutset.len() as u64)?;
    slice_argument(call, 1, |text| bytes::trim(text, &cutset))
}

fn trim_suffix(call: &mut Call<'_>) -> Result<Value, Failure> {
    let suffix = call.str(0);
    slice_argument(call, 1, |text| {
        text.strip_suffix(suffix.as_bytes()).unwrap_or(text)
    })
}

fn trim_prefix(call: &mut Call<'_>) -> Result<Value, Failure> {
    let prefix = call.str(0);
    slice_argument(call, 1, |text| {
        text.strip_prefix(prefix.as_bytes()).unwrap_or(text)
    })
}

/// Removes white space. goutils iterates over bytes, so that non-ASCII text is converted from Latin-1 to
/// UTF-8 if any white space was removed.
fn nospace(call: &mut Call<'_>) -> Result<Value, Failure> {
    let text = call.str(0);
    call.meter.reserve_string(text.len())?;
    let kept = || {
        text.iter()
            .copied()
            .map(char::from)
            .filter(|rune| !unicode::is_space(*rune))
    };
    if kept().count() == text.len() {
        return Ok(Value::String(text));
    }
    Ok(Value::string(kept().collect::<std::string::String>()))
}

fn repeat(call: &mut Call<'_>) -> Result<Value, Failure> {
    let text = call.str(1);
    let bytes = repeat_text(call, &text, call.int(0))?;
    Ok(Value::string(bytes))
}

fn repeat_text(call: &mut Call<'_>, text: &[u8], count: i64) -> Result<Vec<u8>, Failure> {
    let Ok(count) = usize::try_from(count) else {
        return Err(Failure::message("strings: negative Repeat count"));
    };
    let total = text
        .len()
        .checked_mul(count)
        .filter(|total| i64::try_from(*total).is_ok());
    let total = total.ok_or_else(|| Failure::message("strings: Repeat output length overflow"))?;
    call.meter.reserve_string(total)?;
    Ok(if total == 0 {
        Vec::new()
    } else {
        text.repeat(count)
    })
}

fn replace(call: &mut Call<'_>) -> Result<Value, Failure> {
    let (old, new, text) = (call.str(0), call.str(1), call.str(2));
    Ok(Value::string(bytes::replace_all(call.meter, &text, &old, &new)?))
}

fn contains(call: &mut Call<'_>) -> Result<Value, Failure> {
    let text = call.str(1);
    call.meter.consume_fuel(text.len() as u64 / 64)?;
    Ok(Value::from(bytes::contains(&text, &call.str(0))))
}

fn has_prefix(call: &mut Call<'_>) -> Result<Value, Failure> {
    Ok(Value::from(call.str(1).starts_with(&call.str(0))))
}

fn has_suffix(call: &mut Call<'_>) -> Result<Value, Failure> {
    Ok(Value::from(call.str(1).ends_with(&call.str(0))))
}

fn plural(call: &mut Call<'_>) -> Result<Value, Failure> {
    Ok(call.arg(usize::from(call.int(2) != 1)))
}

fn indent(call: &mut Call<'_>) -> Result<Value, Failure> {
    indent_text(call, "")
}

fn nindent(call: &mut Call<'_>) -> Result<Value, Failure> {
    indent_text(call, "\n")
}

/// Number of bytes that [`push_pad`] may write temporarily beyond the end.
const PAD_CAPACITY: usize = 16;

/// Appends the spaces of `pad`. Short padding, the usual case, is written with a copy of fixed length,
/// which needs no function call.
fn push_pad(out: &mut Vec<u8>, pad: &[u8]) {
    if pad.len() > PAD_CAPACITY {
        return out.extend_from_slice(pad);
    }
    let end = out.len() + pad.len();
    out.extend_from_slice(&[b' '; PAD_CAPACITY]);
    out.truncate(end);
}

fn indent_text(call: &mut Call<'_>, before: &str) -> Result<Value, Failure> {
    let pad = repeat_text(call, b" ", call.int(0))?;
    let text = call.str(1);
    let lines = memchr::memchr_iter(b'\n', &text).count() + 1;
    let total = before.len() + text.len();
    let total = pad
        .len()
        .checked_mul(lines)
        .and_then(|pads| pads.checked_add(total))
        .unwrap_or(usize::MAX);
    call.meter.reserve_string(total)?;
    let mut out = Vec::with_capacity(total + PAD_CAPACITY);
    out.extend_from_slice(before.as_bytes());
    out.extend_from_slice(&pad);
    let mut from = 0;
    for at in memchr::memchr_iter(b'\n', &text) {
        out.extend_from_slice(text.get(from..=at).unwrap_or_default());
        push_pad(&mut out, &pad);
        from = at + 1;
    }
    out.extend_from_slice(text.get(from..).unwrap_or_default());
    Ok(Value::string(out))
}

/// Formats the arguments that are not nil with `show`, surrounds each with `around`, and joins them with
/// spaces.
fn join_with_spaces(
    call: &mut Call<'_>,
    show: fn(&mut Meter, &Value) -> Result<Str, Failure>,
    around: &[u8],
) -> Result<Value, Failure> {
    let mut texts = Vec::with_capacity(call.args.len());
    for value in call.args.iter().filter(|value| !matches!(value, Value::Nil)) {
        texts.push(show(call.meter, value)?);
    }
    let mut out = LimitedBuffer::new(call.meter);
    for (index, text) in texts.iter().enumerate() {
        out.push(if index > 0 { b" " } else { b"" })?;
        out.push(around)?;
        out.push(text)?;
        out.push(around)?;
    }
    out.finish()
}

fn quote(call: &mut Call<'_>) -> Result<Value, Failure> {
    let show = |meter: &mut Meter, value: &Value| {
        let text = text::display(meter, value)?;
        text::format_quoted(meter, &text)
    };
    if let [value] = call.args
        && !matches!(value, Value::Nil)
    {
        return Ok(Value::String(show(call.meter, value)?));
    }
    join_with_spaces(call, show, b"")
}

fn squote(call: &mut Call<'_>) -> Result<Value, Failure> {
    join_with_spaces(call, printed, b"'")
}

fn cat(call: &mut Call<'_>) -> Result<Value, Failure> {
    join_with_spaces(call, printed, b"")
}

fn printed(meter: &mut Meter, value: &Value) -> Result<Str, Failure> {
    Ok(print_value(value, meter)?)
}

fn to_string(call: &mut Call<'_>) -> Result<Value, Failure> {
    let value = call.arg(0);
    Ok(Value::String(text::display(call.meter, &value)?))
}
