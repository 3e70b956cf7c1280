//! Letter case conversions of Go's standard library and the goutils package. See [`words`] for those of the
//! xstrings package.

mod words;

use mainstay_gostd::unicode;
use mainstay_gostd::utf8;
use mainstay_template::Type::String;
use mainstay_template::{Call, Failure, Function, Value};

use crate::table::fixed;

pub(crate) const TABLE: &[Function] = &[
    fixed("upper", &[String], upper),
    fixed("lower", &[String], lower),
    fixed("title", &[String], title),
    fixed("untitle", &[String], untitle),
    fixed("swapcase", &[String], swapcase),
    fixed("initials", &[String], initials),
    fixed("camelcase", &[String], camelcase),
    fixed("snakecase", &[String], snakecase),
    fixed("kebabcase", &[String], kebabcase),
];

/// Applies `change` to argument 0. The result may be at most four times as long as the argument.
fn map_text(call: &mut Call<'_>, change: impl FnOnce(&[u8]) -> Vec<u8>) -> Result<Value, Failure> {
    let text = call.str(0);
    call.meter.reserve_string(text.len())?;
    Ok(Value::string(change(&text)))
}

fn upper(call: &mut Call<'_>) -> Result<Value, Failure> {
    map_text(call, |text| {
        if text.is_ascii() {
            text.to_ascii_uppercase()
        } else {
            utf8::map(text, unicode::to_upper)
        }
    })
}

fn lower(call: &mut Call<'_>) -> Result<Value, Failure> {
    map_text(call, |text| {
        if text.is_ascii() {
            text.to_ascii_lowercase()
        } else {
            utf8::map(text, unicode::to_lower)
        }
    })
}

fn title(call: &mut Call<'_>) -> Result<Value, Failure> {
    let mut before = ' ';
    map_text(call, |text| {
        utf8::map(text, |rune| {
            let starts = is_separator(std::mem::replace(&mut before, rune));
            if starts { unicode::to_title(rune) } else { rune }
        })
    })
}

fn is_separator(rune: char) -> bool {
    if rune.is_ascii() {
        return !(rune.is_ascii_alphanumeric() || rune == '_');
    }
    !unicode::is_letter(rune) && !unicode::is_digit(rune) && unicode::is_space(rune)
}

fn untitle(call: &mut Call<'_>) -> Result<Value, Failure> {
    let mut starts = true;
    map_text(call, |text| {
        utf8::map(text, |rune| {
            if unicode::is_space(rune) {
                starts = true;
                return rune;
            }
            if std::mem::take(&mut starts) {
                unicode::to_lower(rune)
            } else {
                rune
            }
        })
    })
}

fn swapcase(call: &mut Call<'_>) -> Result<Value, Failure> {
    let mut after_space = true;
    map_text(call, |text| {
        utf8::map(text, |rune| swap_case(rune, &mut after_space))
    })
}

fn swap_case(rune: char, after_space: &mut bool) -> char {
    if unicode::is_upper(rune) || unicode::is_title(rune) {
        *after_space = false;
        unicode::to_lower(rune)
    } else if !unicode::is_lower(rune) {
        *after_space = unicode::is_space(rune);
        rune
    } else if std::mem::take(after_space) {
        unicode::to_title(rune)
    } else {
        unicode::to_upper(rune)
    }
}

/// Returns the first byte of each word as a Latin-1 character. goutils iterates over bytes.
fn initials(call: &mut Call<'_>) -> Result<Value, Failure> {
    let mut after_gap = true;
    map_text(call, |text| {
        let mut out = Vec::new();
        for &byte in text {
            if unicode::is_space(char::from(byte)) {
                after_gap = true;
            } else if std::mem::take(&mut after_gap) {
                utf8::push(&mut out, char::from(byte));
            }
        }
        out
    })
}

fn camelcase(call: &mut Call<'_>) -> Result<Value, Failure> {
    map_text(call, words::to_pascal)
}

fn snakecase(call: &mut Call<'_>) -> Result<Value, Failure> {
    map_text(call, |text| words::to_lower_words(text, '_'))
}

fn kebabcase(call: &mut Call<'_>) -> Result<Value, Failure> {
    map_text(call, |text| words::to_lower_words(text, '-'))
}
