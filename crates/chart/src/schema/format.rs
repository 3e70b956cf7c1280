//! String formats of schemas, with the messages of the Go library. Unknown formats are ignored, as in that
//! library.

use mainstay_gostd::quote::{quote, quote_rune};
use mainstay_sprig::Regex;
use mainstay_yaml::Value;

use super::url::scheme;

/// Error of a string that does not have the format.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct FormatError(String);

impl From<&str> for FormatError {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

/// A string format.
#[derive(Clone, Copy)]
pub(super) struct Format {
    name: &'static str,
    check: fn(&str) -> Result<(), FormatError>,
}

const FORMATS: [Format; 18] = [
    Format {
        name: "regex",
        check: |text| regex(text).0,
    },
    Format {
        name: "json-pointer",
        check: json_pointer,
    },
    Format {
        name: "relative-json-pointer",
        check: relative_json_pointer,
    },
    Format {
        name: "uuid",
        check: uuid,
    },
    Format {
        name: "duration",
        check: duration,
    },
    Format {
        name: "period",
        check: period,
    },
    Format {
        name: "ipv4",
        check: ipv4,
    },
    Format {
        name: "ipv6",
        check: ipv6,
    },
    Format {
        name: "hostname",
        check: hostname,
    },
    Format {
        name: "email",
        check: email,
    },
    Format {
        name: "date",
        check: date,
    },
    Format {
        name: "time",
        check: time,
    },
    Format {
        name: "date-time",
        check: date_time,
    },
    Format {
        name: "uri",
        check: uri,
    },
    Format {
        name: "iri",
        check: uri,
    },
    Format {
        name: "uri-reference",
        check: uri_reference,
    },
    Format {
        name: "iri-reference",
        check: uri_reference,
    },
    Format {
        name: "semver",
        check: semver,
    },
];

impl Format {
    /// Returns the format with the name `name`, if it is known.
    pub(super) fn named(name: &str) -> Option<Self> {
        FORMATS.iter().find(|format| format.name == name).copied()
    }

    pub(super) fn name(self) -> &'static str {
        self.name
    }

    /// Checks a value. All values except strings are valid. Also returns the size in bytes of the expression
    /// that was compiled for the check.
    pub(super) fn check(self, value: &Value) -> (Result<(), FormatError>, usize) {
        match value.as_str() {
            None => (Ok(()), 0),
            Some(text) if self.name == "regex" => regex(text),
            Some(text) => ((self.check)(text), 0),
        }
    }
}

/// Checks that `text` is a regular expression. Also returns the number of bytes that its compilation created.
fn regex(text: &str) -> (Result<(), FormatError>, usize) {
    let (compiled, bytes) = Regex::compile_counted(text);
    let result = compiled.map(drop).map_err(|error| FormatError(error.to_string()));
    (result, bytes)
}

fn fail(text: impl Into<String>) -> Result<(), FormatError> {
    Err(FormatError(text.into()))
}

/// Checks that all characters are allowed. Fails with `message` for the first one that is not.
fn check_characters(
    text: &str,
    allowed: impl Fn(char) -> bool,
    message: impl Fn(char) -> String,
) -> Result<(), FormatError> {
    text.chars()
        .find(|c| !allowed(*c))
        .map_or(Ok(()), |c| fail(message(c)))
}

fn invalid_character(c: char) -> String {
    format!("invalid character {}", quote_rune(c))
}

fn is_digit(c: char) -> bool {
    c.is_ascii_digit()
}

fn json_pointer(text: &str) -> Result<(), FormatError> {
    if text.is_empty() {
        return Ok(());
    }
    if !text.starts_with('/') {
        return fail("not starting with /");
    }
    let escapes = text.split('/').flat_map(|token| token.split('~').skip(1));
    let mut escapes = escapes.map(|after| after.starts_with(['0', '1']));
    if escapes.all(|good| good) {
        Ok(())
    } else {
        fail("~ must be followed by 0 or 1")
    }
}

fn relative_json_pointer(text: &str) -> Result<(), FormatError> {
    let rest = text.trim_start_matches(is_digit);
    match text.len() - rest.len() {
        0 => fail("must start with non-negative integer"),
        digits if digits > 1 && text.starts_with('0') => fail("starts with zero"),
        _ if rest == "#" => Ok(()),
        _ => json_pointer(rest),
    }
}

fn uuid(text: &str) -> Result<(), FormatError> {
    let groups: Vec<&str> = text.split('-').collect();
    let lengths = [8, 4, 4, 4, 12];
    if groups.len() != lengths.len() {
        return fail("must have 5 elements");
    }
    for (index, (group, length)) in groups.iter().zip(lengths).enumerate() {
        if group.len() != length {
            return fail(format!("element {} must be {length} characters long", index + 1));
        }
        check_characters(
            group,
            |c| c.is_ascii_hexdigit(),
            |c| format!("non-hex character {}", quote_rune(c)),
        )?;
    }
    Ok(())
}

fn duration(text: &str) -> Result<(), FormatError> {
    let Some(rest) = text.strip_prefix('P') else {
        return fail("must start with P");
    };
    if rest.is_empty() {
        return fail("nothing after P");
    }
    if let Some(weeks) = rest.strip_suffix('W') {
        return match weeks {
            "" => fail("no number in week"),
            weeks => check_characters(weeks, is_digit, |_| "invalid week".into()),
        };
    }
    for (index, part) in rest.split('T').enumerate() {
        match index {
            1 if part.is_empty() => return fail("no time elements"),
            0 => duration_part(part, "YMD")?,
            1 => duration_part(part, "HMS")?,
            _ if part.is_empty() => return fail("no time elements"),
            _ => return fail("more than one T"),
        }
    }
    Ok(())
}

fn duration_part(mut part: &str, all: &str) -> Result<(), FormatError> {
    let mut units = all;
    while !part.is_empty() {
        let rest = part.trim_start_matches(is_digit);
        if rest.len() == part.len() {
            return fail("missing number");
        }
        let Some(unit) = rest.chars().next() else {
            return fail("missing unit");
        };
        match units.find(unit) {
            Some(at) => units = units.get(at + 1..).unwrap_or_default(),
            None if all.contains(unit) => return fail(format!("unit {} out of order", quote_rune(unit))),
            None => return fail(format!("invalid unit {}", quote_rune(unit))),
        }
        part = rest.get(unit.len_utf8()..).unwrap_or_default();
    }
    Ok(())
}

fn period(text: &str) -> Result<(), FormatError> {
    let Some((start, end)) = text.split_once('/') else {
        return fail("missing slash");
    };
    let as_duration = |text: &str, which: &str| {
        duration(text).map_err(|error| FormatError(format!("invalid {which} duration: {error}")))
    };
    let as_time = |text: &str, which: &str| {
        date_time(text).map_err(|error| FormatError(format!("invalid {which} date-time: {error}")))
    };
    if start.starts_with('P') {
        as_duration(start, "start")?;
        return as_time(end, "end");
    }
    as_time(start, "start")?;
    if end.starts_with('P') {
        as_duration(end, "end")
    } else {
        as_time(end, "end")
    }
}

fn ipv4(text: &str) -> Result<(), FormatError> {
    let groups: Vec<&str> = text.split('.').collect();
    if groups.len() != 4 {
        return fail("expected four decimals");
    }
    for group in groups {
        if group.len() > 1 && group.starts_with('0') {
            return fail("leading zeros");
        }
        match group.parse::<i64>() {
            Ok(0..=255) => {}
            Ok(_) => return fail("decimal must be between 0 and 255"),
            Err(_) => return fail(format!("strconv.Atoi: parsing {}: invalid syntax", quote(group))),
        }
    }
    Ok(())
}

fn ipv6(text: &str) -> Result<(), FormatError> {
    if !text.contains(':') {
        return fail("missing colon");
    }
    if text.contains('%') {
        return fail("zone id is not a part of ipv6 address");
    }
    match text.parse::<std::net::Ipv6Addr>() {
        Ok(_) => Ok(()),
        Err(_) => fail(format!("ParseAddr({}): unable to parse IP", quote(text))),
    }
}

fn hostname(text: &str) -> Result<(), FormatError> {
    let text = text.strip_suffix('.').unwrap_or(text);
    if text.len() > 253 {
        return fail("more than 253 characters long");
    }
    for label in text.split('.') {
        if label.is_empty() || label.len() > 63 {
            return fail("label must be 1 to 63 characters long");
        }
        if label.starts_with('-') {
            return fail("label starts with hyphen");
        }
        if label.ends_with('-') {
            return fail("label ends with hyphen");
        }
        check_characters(
            label,
            |c| c.is_ascii_alphanumeric() || c == '-',
            invalid_character,
        )?;
    }
    Ok(())
}

fn email(text: &str) -> Result<(), FormatError> {
    if text.len() > 254 {
        return fail("more than 255 characters long");
    }
    let Some((local, domain)) = text.rsplit_once('@') else {
        return fail("missing @");
    };
    if local.len() > 64 {
        return fail("local part more than 64 characters long");
    }
    local_part(local)?;
    if let Some(address) = domain
        .strip_prefix('[')
        .and_then(|domain| domain.strip_suffix(']'))
    {
        return match address.strip_prefix("IPv6:") {
            Some(address) => {
                ipv6(address).map_err(|error| FormatError(format!("invalid ipv6 address: {error}")))
            }
            None => ipv4(address).map_err(|error| FormatError(format!("invalid ipv4 address: {error}"))),
        };
    }
    hostname(domain).map_err(|error| FormatError(format!("invalid domain: {error}")))
}

fn local_part(local: &str) -> Result<(), FormatError> {
    if local.len() > 1 && local.starts_with('"') {
        let mut inner = local.chars();
        inner.next();
        inner.next_back();
        return if inner.as_str().contains(['\\', '"']) {
            fail("backslash and quote are not allowed within quoted local part")
        } else {
            Ok(())
        };
    }
    if local.starts_with('.') {
        return fail("starts with dot");
    }
    if local.ends_with('.') {
        return fail("ends with dot");
    }
    if local.contains("..") {
        return fail("consecutive dots");
    }
    check_characters(
        local,
        |c| c.is_ascii_alphanumeric() || ".!#$%&'*+-/=?^_`{|}~".contains(c),
        invalid_character,
    )
}

/// Checks a date. Go's message names the first element that does not match; only the common cases are
/// covered here.
fn date(text: &str) -> Result<(), FormatError> {
    let quoted = quote(text);
    let cannot = |rest: &str, wanted: &str| {
        fail(format!(
            "parsing time {quoted} as \"2006-01-02\": cannot parse {} as {}",
            quote(rest),
            quote(wanted)
        ))
    };
    let mut rest = text;
    let mut numbers = [0_u32; 3];
    for (index, (digits, wanted)) in [(4, "2006"), (2, "01"), (2, "02")].into_iter().enumerate() {
        if index > 0 {
            match rest.strip_prefix('-') {
                Some(after) => rest = after,
                None => return cannot(rest, "-"),
            }
        }
        let number = rest
            .get(..digits)
            .filter(|text| text.chars().all(is_digit))
            .and_then(|text| text.parse().ok());
        match (number, numbers.get_mut(index)) {
            (Some(number), Some(slot)) => *slot = number,
            _ => return cannot(rest, wanted),
        }
        rest = rest.get(digits..).unwrap_or_default();
    }
    if !rest.is_empty() {
        return fail(format!("parsing time {quoted}: extra text: {}", quote(rest)));
    }
    let [year, month, day] = numbers;
    if !(1..=12).contains(&month) {
        return fail(format!("parsing time {quoted}: month out of range"));
    }
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let days = match month {
        2 => 28 + u32::from(leap),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    if (1..=days).contains(&day) {
        Ok(())
    } else {
        fail(format!("parsing time {quoted}: day out of range"))
    }
}

fn time(text: &str) -> Result<(), FormatError> {
    if text.len() < 9 {
        return fail("less than 9 characters long");
    }
    let bytes = text.as_bytes();
    if bytes.get(2) != Some(&b':') || bytes.get(5) != Some(&b':') {
        return fail("missing colon in correct place");
    }
    let Some((clock, rest)) = text.split_at_checked(8) else {
        return fail("invalid hour/min/sec");
    };
    let parts: Option<Vec<i32>> = clock.split(':').map(|part| part.parse().ok()).collect();
    let Some([hour, minute, second]) = parts.as_deref() else {
        return fail("invalid hour/min/sec");
    };
    let (mut hour, mut minute, second) = (*hour, *minute, *second);
    if hour < 0 || minute < 0 || second < 0 {
        return fail("non-positive hour/min/sec");
    }
    if hour > 23 || minute > 59 || second > 60 {
        return fail("hour/min/sec out of range");
    }
    let zone = match rest.strip_prefix('.') {
        None => rest,
        Some(fraction) => {
            let zone = fraction.trim_start_matches(is_digit);
            if zone.len() == fraction.len() {
                return fail("no digits in second fraction");
            }
            zone
        }
    };
    if zone != "z" && zone != "Z" {
        let total = (hour * 60 + minute + offset(zone)?).rem_euclid(24 * 60);
        (hour, minute) = (total / 60, total % 60);
    }
    if second >= 60 && (hour != 23 || minute != 59) {
        fail("invalid leap second")
    } else {
        Ok(())
    }
}

/// Returns the number of minutes to add to convert a time to UTC.
fn offset(zone: &str) -> Result<i32, FormatError> {
    if zone.len() != 6 {
        return Err("offset must be 6 characters long".into());
    }
    let sign = match zone.as_bytes().first() {
        Some(b'+') => -1,
        Some(b'-') => 1,
        _ => return Err("offset must begin with plus/minus".into()),
    };
    if zone.as_bytes().get(3) != Some(&b':') {
        return Err("missing colon in offset in correct place".into());
    }
    let parts: Option<Vec<i32>> = zone
        .get(1..)
        .unwrap_or_default()
        .split(':')
        .map(|part| part.parse().ok())
        .collect();
    let Some([hours, minutes]) = parts.as_deref() else {
        return Err("invalid hour/min in offset".into());
    };
    if *hours < 0 || *minutes < 0 {
        return Err("non-positive hour/min in offset".into());
    }
    if *hours > 23 || *minutes > 59 {
        return Err("hour/min in offset out of range".into());
    }
    Ok(sign * (hours * 60 + minutes))
}

fn date_time(text: &str) -> Result<(), FormatError> {
    if text.len() < 20 {
        return fail("less than 20 characters long");
    }
    if !matches!(text.as_bytes().get(10), Some(b't' | b'T')) {
        return fail("11th character must be t or T");
    }
    date(text.get(..10).unwrap_or_default())
        .map_err(|error| FormatError(format!("invalid date element: {error}")))?;
    time(text.get(11..).unwrap_or_default())
        .map_err(|error| FormatError(format!("invalid time element: {error}")))
}

fn uri(text: &str) -> Result<(), FormatError> {
    url(text)?;
    if scheme(text).is_none() {
        fail("relative url")
    } else {
        Ok(())
    }
}

fn uri_reference(text: &str) -> Result<(), FormatError> {
    if text.contains('\\') {
        return fail("contains \\");
    }
    url(text)
}

/// Checks a URL for the most common errors of Go's `url.Parse`.
fn url(text: &str) -> Result<(), FormatError> {
    let parse = |reason: &str| fail(format!("parse {}: {reason}", quote(text)));
    if text.chars().any(|c| c.is_ascii_control()) {
        return parse("net/url: invalid control character in URL");
    }
    if text.starts_with(':') {
        return parse("missing protocol scheme");
    }
    let path = text.split(['?', '#']).next().unwrap_or_default();
    if scheme(text).is_none() && path.split('/').next().unwrap_or_default().contains(':') {
        return parse("first path segment in URL cannot contain colon");
    }
    let bytes = text.as_bytes();
    for (at, _) in text.match_indices('%') {
        let pair = bytes.get(at + 1..at + 3).unwrap_or_default();
        if pair.len() != 2 || !pair.iter().all(u8::is_ascii_hexdigit) {
            let escape: String = text.get(at..).unwrap_or_default().chars().take(3).collect();
            return parse(&format!("invalid URL escape {}", quote(&escape)));
        }
    }
    Ok(())
}

fn semver(text: &str) -> Result<(), FormatError> {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '-';
    let (rest, build) = text
        .split_once('+')
        .map_or((text, None), |(rest, build)| (rest, Some(build)));
    if build == Some("") {
        return fail("build is empty");
    }
    for part in build.into_iter().flat_map(|build| build.split('.')) {
        if part.is_empty() {
            return fail("build identifier is empty");
        }
        check_characters(part, word, |c| {
            format!("{} in build identifier", invalid_character(c))
        })?;
    }
    let (core, pre) = rest
        .split_once('-')
        .map_or((rest, None), |(core, pre)| (core, Some(pre)));
    for part in pre.into_iter().flat_map(|pre| pre.split('.')) {
        if part.is_empty() {
            return fail("pre-release identifier is empty");
        }
        check_characters(part, word, |c| {
            format!("{} in pre-release identifier", invalid_character(c))
        })?;
        if part.len() > 1 && part.starts_with('0') && part.chars().all(is_digit) {
            return fail("pre-release numeric identifier starts with zero");
        }
    }
    let numbers: Vec<&str> = core.split('.').collect();
    if numbers.len() != 3 {
        return fail("versionCore must have 3 numbers separated by dot");
    }
    for (number, name) in numbers.iter().zip(["major", "minor", "patch"]) {
        if number.is_empty() {
            return fail(format!("{name} is empty"));
        }
        if number.len() > 1 && number.starts_with('0') {
            return fail(format!("{name} starts with zero"));
        }
        check_characters(number, is_digit, |_| format!("{name} contains non-digit"))?;
    }
    Ok(())
}
