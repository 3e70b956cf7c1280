//! Recognition of scalars that go-yaml parses as a date or time.

/// Whether `text` matches one of the four layouts that go-yaml tries with `time.Parse`.
pub(crate) fn is_timestamp(text: &str) -> bool {
    let bytes = text.as_bytes();
    let digits = bytes.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if digits != 4 || bytes.get(4) != Some(&b'-') {
        return false;
    }
    let Some(rest) = strip_date(bytes) else {
        return false;
    };
    match rest.split_first() {
        None => true,
        Some((b'T' | b't', time)) => strip_time(time)
            .and_then(strip_zone)
            .is_some_and(<[u8]>::is_empty),
        Some((b' ', _)) => strip_time(rest.trim_ascii_start_spaces()).is_some_and(<[u8]>::is_empty),
        Some(_) => false,
    }
}

trait Spaces {
    fn trim_ascii_start_spaces(&self) -> &Self;
}

impl Spaces for [u8] {
    fn trim_ascii_start_spaces(&self) -> &Self {
        let spaces = self.iter().take_while(|byte| **byte == b' ').count();
        self.get(spaces..).unwrap_or_default()
    }
}

/// Strips a date that matches `2006-1-2` and has a valid day of the month. Returns the rest.
fn strip_date(text: &[u8]) -> Option<&[u8]> {
    let (year, rest) = text.split_at_checked(4)?;
    let year = year
        .iter()
        .fold(0, |sum, digit| sum * 10 + u32::from(digit - b'0'));
    let (month, rest) = parse_number(rest.strip_prefix(b"-")?)?;
    let (day, rest) = parse_number(rest.strip_prefix(b"-")?)?;
    let known = (1..=12).contains(&month) && day >= 1 && day <= days_in_month(month, year);
    known.then_some(rest)
}

fn days_in_month(month: u32, year: u32) -> u32 {
    match month {
        2 if year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Strips a time that matches `15:4:5.999999999`. Returns the rest.
fn strip_time(text: &[u8]) -> Option<&[u8]> {
    let (hour, rest) = parse_number(text)?;
    let (minute, rest) = parse_number(rest.strip_prefix(b":")?)?;
    let (second, rest) = parse_number(rest.strip_prefix(b":")?)?;
    (hour < 24 && minute < 60 && second < 60).then(|| skip_fraction(rest))
}

fn skip_fraction(text: &[u8]) -> &[u8] {
    match text {
        [b'.' | b',', digits @ ..] => {
            let count = digits.iter().take_while(|byte| byte.is_ascii_digit()).count();
            if count == 0 {
                text
            } else {
                digits.get(count..).unwrap_or_default()
            }
        }
        _ => text,
    }
}

/// Strips a time zone that matches `Z07:00`. Returns the rest.
fn strip_zone(text: &[u8]) -> Option<&[u8]> {
    match text {
        [b'Z', rest @ ..] => Some(rest),
        [b'+' | b'-', h1, h2, b':', m1, m2, rest @ ..] => {
            let two = |a: &u8, b: &u8| {
                (a.is_ascii_digit() && b.is_ascii_digit())
                    .then(|| u32::from(a - b'0') * 10 + u32::from(b - b'0'))
            };
            (two(h1, h2)? <= 24 && two(m1, m2)? <= 60).then_some(rest)
        }
        _ => None,
    }
}

/// Parses one or two digits. Returns the number and the rest.
fn parse_number(text: &[u8]) -> Option<(u32, &[u8])> {
    let value = |digit: &u8| u32::from(digit - b'0');
    match text {
        [a @ b'0'..=b'9', b @ b'0'..=b'9', rest @ ..] => Some((value(a) * 10 + value(b), rest)),
        [a @ b'0'..=b'9', rest @ ..] => Some((value(a), rest)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::is_timestamp;

    #[test]
    fn dates_and_times_are_timestamps() {
        for text in [
            "2001-01-01",
            "2001-1-2",
            "2001-12-14T21:59:43.10-05:00",
            "2001-12-14t1:2:3Z",
            "2001-12-14   21:59:43,5",
            "2000-02-29",
        ] {
            assert!(is_timestamp(text), "{text}");
        }
    }

    #[test]
    fn invalid_dates_and_times_are_not_timestamps() {
        for text in [
            "2001-99-99",
            "2001-2-29",
            "201-01-01",
            "2001-01-01T",
            "2001-12-14 21:59:43.10 -5",
            "2001-01-01 ",
            "2001-12-14T21:59:43",
            "2001-12-14T21:59:43.10+25:00",
        ] {
            assert!(!is_timestamp(text), "{text}");
        }
    }
}
