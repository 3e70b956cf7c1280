//! Validation of string formats.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::OnceLock;

use mainstay_gostd::time::parse_duration;
use regex::Regex;

/// Formats that are defined by a regular expression.
const PATTERNS: &[(&str, &str)] = &[
    ("bsonobjectid", "^[0-9a-fA-F]{24}$"),
    (
        "hostname",
        r"^([a-zA-Z0-9\p{S}\p{L}]((-?[a-zA-Z0-9\p{S}\p{L}]{0,62})?)|([a-zA-Z0-9\p{S}\p{L}](([a-zA-Z0-9-\p{S}\p{L}]{0,61}[a-zA-Z0-9\p{S}\p{L}])?)(\.)){1,}([a-zA-Z\p{L}]){2,63})$",
    ),
    (
        "uuid",
        "(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$",
    ),
    (
        "uuid3",
        "(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?3[0-9a-f]{3}-?[0-9a-f]{4}-?[0-9a-f]{12}$",
    ),
    (
        "uuid4",
        "(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?4[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$",
    ),
    (
        "uuid5",
        "(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?5[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$",
    ),
    ("ssn", r"^[0-9]{3}[- ]?[0-9]{2}[- ]?[0-9]{4}$"),
    ("hexcolor", "^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$"),
    (
        "rgbcolor",
        r"^rgb\(\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*,\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*,\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*\)$",
    ),
    (
        "byte",
        "^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})$",
    ),
    (
        "creditcard",
        r"^(?:4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|(222[1-9]|22[3-9][0-9]|2[3-6][0-9]{2}|27[01][0-9]|2720)[0-9]{12}|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35\d{3})\d{11}|6[27][0-9]{14})$",
    ),
    ("k8sshortname", "^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$"),
    (
        "k8slongname",
        r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$",
    ),
    (
        "time",
        r"^([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))$",
    ),
    ("span", r"([0-9]+)\s*([A-Za-zµ]+)"),
    (
        "email",
        r#"^([^@<>]*<)?[^@<>\s()",:;\\\[\]]+@[^@<>\s()",:;\\]+>?$"#,
    ),
    (
        "mac",
        "^([0-9a-fA-F]{2}([:-][0-9a-fA-F]{2}){5}|[0-9a-fA-F]{2}([:-][0-9a-fA-F]{2}){7}|[0-9a-fA-F]{2}([:-][0-9a-fA-F]{2}){19}|([0-9a-fA-F]{4}\\.){2}[0-9a-fA-F]{4}|([0-9a-fA-F]{4}\\.){3}[0-9a-fA-F]{4})$",
    ),
];

fn matches_pattern(name: &str, text: &str) -> bool {
    static ALL: OnceLock<HashMap<&'static str, Regex>> = OnceLock::new();
    let all = ALL.get_or_init(|| {
        let compiled = PATTERNS
            .iter()
            .filter_map(|(name, pattern)| Some((*name, Regex::new(pattern).ok()?)));
        compiled.collect()
    });
    all.get(name).is_some_and(|regex| regex.is_match(text))
}

/// Returns whether strings are validated against this format. Formats of numbers are not.
pub(crate) fn is_known(format: &str) -> bool {
    !matches!(format, "int32" | "int64" | "float" | "double")
}

/// Returns whether a text has the format.
pub(crate) fn is_valid(format: &str, text: &str) -> bool {
    let name = format.replace('-', "");
    match name.as_str() {
        "password" => true,
        "uri" => is_request_uri(text),
        "hostname" => {
            matches_pattern("hostname", text)
                && text.len() <= 255
                && text.split('.').all(|part| part.len() <= 63)
        }
        "ipv4" => text.contains('.') && is_ip(text),
        "ipv6" => text.contains(':') && is_ip(text),
        "cidr" => is_cidr(text),
        "isbn" => is_isbn10(text) || is_isbn13(text),
        "isbn10" => is_isbn10(text),
        "isbn13" => is_isbn13(text),
        "creditcard" => is_credit_card(text),
        "date" => is_date(text),
        "datetime" => is_date_time(text),
        "duration" => is_duration(text),
        "k8slongname" => text.len() <= 253 && matches_pattern("k8slongname", text),
        name => matches_pattern(name, text),
    }
}

fn is_request_uri(text: &str) -> bool {
    let has_valid_chars = !text.chars().any(|c| c.is_control() || c == ' ');
    let scheme = text.split_once(':').map_or("", |(scheme, _)| scheme);
    let is_absolute = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
    has_valid_chars && (text.starts_with('/') || is_absolute)
}

/// Returns whether the text is an IP address. IPv4 addresses may have leading zeros.
fn is_ip(text: &str) -> bool {
    let parts: Vec<&str> = text.split('.').collect();
    if parts.len() == 4 && !text.contains(':') {
        let is_byte = |part: &&str| {
            !part.is_empty()
                && part.len() <= 9
                && part.bytes().all(|byte| byte.is_ascii_digit())
                && part.parse::<u32>().is_ok_and(|number| number < 256)
        };
        return parts.iter().all(is_byte);
    }
    text.parse::<Ipv6Addr>().is_ok()
}

fn is_cidr(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else {
        return false;
    };
    let max_bits = if address.contains(':') { 128 } else { 32 };
    let has_only_digits = !bits.is_empty() && bits.bytes().all(|byte| byte.is_ascii_digit());
    (address.parse::<IpAddr>().is_ok() || is_ip(address))
        && has_only_digits
        && bits.parse::<u32>().is_ok_and(|bits| bits <= max_bits)
}

/// Returns the digits of an ISBN. `X` is 10, any other character 99.
fn isbn_digits(text: &str) -> Vec<u32> {
    text.chars()
        .filter(|c| !c.is_whitespace() && *c != '-')
        .map(|c| {
            if c == 'X' {
                10
            } else {
                c.to_digit(10).unwrap_or(99)
            }
        })
        .collect()
}

fn is_isbn10(text: &str) -> bool {
    let all = isbn_digits(text);
    let has_valid_digits = all.len() == 10
        && all.iter().take(9).all(|digit| *digit < 10)
        && all.iter().all(|digit| *digit <= 10);
    let sum: u32 = all.iter().zip(1..).map(|(digit, weight)| digit * weight).sum();
    has_valid_digits && sum.is_multiple_of(11)
}

fn is_isbn13(text: &str) -> bool {
    let all = isbn_digits(text);
    let has_valid_digits =
        all.len() == 13 && all.iter().all(|digit| *digit < 10) && matches!(all.get(..3), Some([9, 7, 8 | 9]));
    let sum: u32 = all
        .iter()
        .zip([1, 3].iter().cycle())
        .map(|(digit, weight)| digit * weight)
        .sum();
    has_valid_digits && sum.is_multiple_of(10)
}

fn is_credit_card(text: &str) -> bool {
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    let sum: u32 = digits
        .bytes()
        .rev()
        .zip([false, true].iter().cycle())
        .map(|(byte, double)| {
            let digit = u32::from(byte - b'0') << u32::from(*double);
            if digit > 9 { digit - 9 } else { digit }
        })
        .sum();
    matches_pattern("creditcard", &digits) && sum.is_multiple_of(10)
}

fn is_date(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let [year, month, day] = parts.as_slice() else {
        return false;
    };
    let has_digits =
        |part: &str, length| part.len() == length && part.bytes().all(|byte| byte.is_ascii_digit());
    if !has_digits(year, 4) || !has_digits(month, 2) || !has_digits(day, 2) {
        return false;
    }
    let (year, month, day): (u32, u32, u32) = (
        year.parse().unwrap_or(0),
        month.parse().unwrap_or(0),
        day.parse().unwrap_or(0),
    );
    let is_leap_year = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let days = match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if is_leap_year => 29,
        2 => 28,
        _ => 0,
    };
    (1..=days).contains(&day)
}

fn is_date_time(text: &str) -> bool {
    let lower = text.to_lowercase();
    let Some((date, rest)) = lower.split_once('t') else {
        return false;
    };
    let time = rest.split('t').next().unwrap_or("");
    let at = |range: std::ops::Range<usize>| time.get(range).unwrap_or("99");
    is_date(date) && matches_pattern("time", time) && at(0..2) <= "23" && at(3..5) <= "59" && at(6..8) <= "59"
}

/// Returns whether the text is a duration in the notation of Go or Scala.
fn is_duration(text: &str) -> bool {
    parse_duration(text).is_ok() || {
        let units = ["n", "u", "µ", "mi", "ms", "mill", "s", "m", "h", "d", "w"];
        matches_pattern("span", text) && {
            let unit: String = text.chars().skip_while(|c| !c.is_alphabetic()).collect();
            units.iter().any(|name| unit.to_lowercase().starts_with(name))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(format: &str, valid: &[&str], invalid: &[&str]) {
        for text in valid {
            assert!(is_valid(format, text), "{format}: {text}");
        }
        for text in invalid {
            assert!(!is_valid(format, text), "{format}: {text}");
        }
    }

    #[test]
    fn strings_are_validated_by_format() {
        check(
            "ipv4",
            &["10.0.0.1", "010.0.0.1"],
            &["10.0.0", "10.0.0.256", "::1"],
        );
        check("ipv6", &["::1", "fe80::1"], &["10.0.0.1", "x"]);
        check("cidr", &["10.0.0.0/8", "::/0"], &["10.0.0.0", "10.0.0.0/33"]);
        check("date", &["2024-02-29"], &["2023-02-29", "2024-1-1"]);
        check(
            "date-time",
            &["2024-01-01T00:00:00Z", "2024-01-01t00:00:00.5+01:00"],
            &["2024-01-01", "2024-01-01T25:00:00Z"],
        );
        check("duration", &["1h30m", "22 ns", "0", "3 days"], &["x", "", "1x"]);
        check("email", &["a@b.c", "A <a@b.c>"], &["a", "a b@c"]);
        check("uuid", &["01234567-89ab-cdef-0123-456789abcdef"], &["0123"]);
        check("isbn10", &["0321751043"], &["0321751044"]);
        check("isbn13", &["978-0321751041"], &["978-0321751042"]);
        check("uri", &["https://a.example/x", "/x"], &["x", ""]);
        check("byte", &["YWJj"], &["YWJ"]);
        check("mac", &["00:00:5e:00:53:01"], &["00:00"]);
        check("hostname", &["a.example"], &["-a", "a..b"]);
        check("k8s-short-name", &["a-b"], &["A", "-a"]);
    }
}
