//! Parsing of Go's layouts, which show the reference time `Mon Jan 2 15:04:05 MST 2006`, into elements.

/// An element of a layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Element {
    LongMonth,
    Month,
    NumMonth,
    ZeroMonth,
    LongWeekday,
    Weekday,
    Day,
    UnderDay,
    ZeroDay,
    UnderYearDay,
    ZeroYearDay,
    Hour,
    Hour12,
    ZeroHour12,
    Minute,
    ZeroMinute,
    Second,
    ZeroSecond,
    LongYear,
    Year,
    UpperPm,
    LowerPm,
    ZoneName,
    Offset(Offset),
    Fraction(Fraction),
}

/// Format of an offset from UTC.
#[allow(clippy::struct_excessive_bools)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Offset {
    /// Whether UTC is written as `Z`.
    pub(super) iso: bool,
    pub(super) colons: bool,
    pub(super) minutes: bool,
    pub(super) seconds: bool,
}

/// Format of a fraction of a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fraction {
    pub(super) digits: usize,
    /// Whether trailing zeros are omitted: true for `.999`, false for `.000`.
    pub(super) trim: bool,
    pub(super) comma: bool,
}

/// Text before an element, the element with its text, and the rest.
pub(super) struct Chunk<'a> {
    pub(super) prefix: &'a [u8],
    pub(super) element: Option<(Element, &'a [u8])>,
    pub(super) rest: &'a [u8],
}

/// Texts of elements, ordered by first byte. The first match is used.
const SPELLINGS: &[(&[u8], Element)] = &[
    (b"January", Element::LongMonth),
    (b"Monday", Element::LongWeekday),
    (b"MST", Element::ZoneName),
    (b"01", Element::ZeroMonth),
    (b"02", Element::ZeroDay),
    (b"03", Element::ZeroHour12),
    (b"04", Element::ZeroMinute),
    (b"05", Element::ZeroSecond),
    (b"06", Element::Year),
    (b"002", Element::ZeroYearDay),
    (b"15", Element::Hour),
    (b"1", Element::NumMonth),
    (b"2006", Element::LongYear),
    (b"2", Element::Day),
    (b"__2", Element::UnderYearDay),
    (b"3", Element::Hour12),
    (b"4", Element::Minute),
    (b"5", Element::Second),
    (b"PM", Element::UpperPm),
    (b"pm", Element::LowerPm),
];

/// Texts of offsets after `-` or `Z`. The first match is used.
const OFFSETS: &[(&[u8], bool, bool, bool)] = &[
    (b"070000", false, true, true),
    (b"07:00:00", true, true, true),
    (b"0700", false, true, false),
    (b"07:00", true, true, false),
    (b"07", false, false, false),
];

/// Finds the first element of `layout`.
pub(super) fn next_chunk(layout: &[u8]) -> Chunk<'_> {
    for at in 0..layout.len() {
        let (prefix, rest) = layout.split_at(at);
        let Some((element, len)) = element_at(rest) else {
            continue;
        };
        // `_2006` is an underscore followed by a year.
        let skipped = usize::from(rest.starts_with(b"_2006"));
        let prefix = if skipped == 0 {
            prefix
        } else {
            layout.get(..=at).unwrap_or(prefix)
        };
        let start = at + skipped;
        let text = layout.get(start..start + len).unwrap_or_default();
        return Chunk {
            prefix,
            element: Some((element, text)),
            rest: layout.get(start + len..).unwrap_or_default(),
        };
    }
    Chunk {
        prefix: layout,
        element: None,
        rest: b"",
    }
}

fn element_at(rest: &[u8]) -> Option<(Element, usize)> {
    match rest.first()? {
        b'_' if rest.starts_with(b"_2006") => Some((Element::LongYear, 4)),
        b'_' if rest.starts_with(b"_2") => Some((Element::UnderDay, 2)),
        sign @ (b'-' | b'Z') => offset_at(rest.get(1..)?, *sign == b'Z'),
        point @ (b'.' | b',') => fraction_at(rest.get(1..)?, *point == b','),
        b'J' | b'M' | b'0'..=b'5' | b'_' | b'P' | b'p' => spelling_at(rest),
        _ => None,
    }
}

fn spelling_at(rest: &[u8]) -> Option<(Element, usize)> {
    let fixed = SPELLINGS.iter().find(|(spelling, _)| rest.starts_with(spelling));
    fixed
        .map(|(spelling, element)| (*element, spelling.len()))
        .or_else(|| {
            // `Month` is a literal word, not a weekday.
            let word = rest.get(3).is_some_and(u8::is_ascii_lowercase);
            match rest.get(..3)? {
                b"Jan" if !word => Some((Element::Month, 3)),
                b"Mon" if !word => Some((Element::Weekday, 3)),
                _ => None,
            }
        })
}

fn offset_at(rest: &[u8], iso: bool) -> Option<(Element, usize)> {
    let (spelling, colons, minutes, seconds) =
        *OFFSETS.iter().find(|(spelling, ..)| rest.starts_with(spelling))?;
    Some((
        Element::Offset(Offset {
            iso,
            colons,
            minutes,
            seconds,
        }),
        spelling.len() + 1,
    ))
}

fn fraction_at(rest: &[u8], comma: bool) -> Option<(Element, usize)> {
    let digit = *rest.first().filter(|b| matches!(b, b'0' | b'9'))?;
    let digits = rest.iter().take_while(|b| **b == digit).count();
    // If another digit follows, this is a number and not a fraction.
    if rest.get(digits).is_some_and(u8::is_ascii_digit) {
        return None;
    }
    // Go stores only twelve bits of the number of digits.
    let fraction = Fraction {
        digits: digits & 0xfff,
        trim: digit == b'9',
        comma,
    };
    Some((Element::Fraction(fraction), digits + 1))
}
