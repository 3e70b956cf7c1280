//! Parsing of character classes: `[a-z]`, `\d`, `[[:alpha:]]`, `\p{Greek}`.

use regex_syntax::hir::{Class, ClassUnicode, ClassUnicodeRange, HirKind};

use super::cursor::{Cursor, check_utf8};
use super::error::{Reason, RegexError};
use super::escape::read_escape;

/// Ranges of characters, and whether the set is their complement.
type Group = (&'static [(char, char)], bool);

const DIGIT: &[(char, char)] = &[('0', '9')];
const SPACE: &[(char, char)] = &[('\t', '\n'), ('\x0c', '\r'), (' ', ' ')];
const WORD: &[(char, char)] = &[('0', '9'), ('A', 'Z'), ('_', '_'), ('a', 'z')];

const POSIX: &[(&str, &[(char, char)])] = &[
    ("alnum", &[('0', '9'), ('A', 'Z'), ('a', 'z')]),
    ("alpha", &[('A', 'Z'), ('a', 'z')]),
    ("ascii", &[('\0', '\x7f')]),
    ("blank", &[('\t', '\t'), (' ', ' ')]),
    ("cntrl", &[('\0', '\x1f'), ('\x7f', '\x7f')]),
    ("digit", DIGIT),
    ("graph", &[('!', '~')]),
    ("lower", &[('a', 'z')]),
    ("print", &[(' ', '~')]),
    ("punct", &[('!', '/'), (':', '@'), ('[', '`'), ('{', '~')]),
    ("space", &[('\t', '\r'), (' ', ' ')]),
    ("upper", &[('A', 'Z')]),
    ("word", WORD),
    ("xdigit", &[('0', '9'), ('A', 'F'), ('a', 'f')]),
];

/// Returns the set of `ranges`. If `fold` is set, it includes all cases of each character.
pub(super) fn class_from_ranges(ranges: &[(char, char)], fold: bool) -> ClassUnicode {
    apply_fold(
        ClassUnicode::new(ranges.iter().map(|(from, to)| ClassUnicodeRange::new(*from, *to))),
        fold,
    )
}

fn apply_fold(mut class: ClassUnicode, fold: bool) -> ClassUnicode {
    if fold {
        class.case_fold_simple();
    }
    class
}

fn apply_negation(mut class: ClassUnicode, negated: bool) -> ClassUnicode {
    if negated {
        class.negate();
    }
    class
}

/// Parses `\d`, `\s`, `\w` and their complements. Returns `None` for other texts.
pub(super) fn parse_perl(at: &mut Cursor<'_>, fold: bool) -> Option<ClassUnicode> {
    let (ranges, negated): Group = match (at.byte(0)?, at.byte(1)?) {
        (b'\\', b'd') => (DIGIT, false),
        (b'\\', b'D') => (DIGIT, true),
        (b'\\', b's') => (SPACE, false),
        (b'\\', b'S') => (SPACE, true),
        (b'\\', b'w') => (WORD, false),
        (b'\\', b'W') => (WORD, true),
        _ => return None,
    };
    at.skip(2);
    Some(apply_negation(class_from_ranges(ranges, fold), negated))
}

/// Parses `[:alpha:]` inside brackets. Returns `None` for other texts.
fn parse_posix(at: &mut Cursor<'_>, fold: bool) -> Result<Option<ClassUnicode>, RegexError> {
    let mut rest = *at;
    if !rest.eat(b"[:") {
        return Ok(None);
    }
    let Some(len) = rest.find(b":]") else {
        return Ok(None);
    };
    let name = rest.first(len);
    rest.skip(len + 2);
    let (name, negated) = name.strip_prefix(b"^").map_or((name, false), |name| (name, true));
    let found = POSIX.iter().find(|(known, _)| known.as_bytes() == name);
    let (_, ranges) = found.ok_or_else(|| Reason::CharRange.at(at.until(rest)))?;
    *at = rest;
    Ok(Some(apply_negation(class_from_ranges(ranges, fold), negated)))
}

/// Parses `\pN`, `\p{Greek}`, `\P{^Lu}`. Returns `None` for other texts.
pub(super) fn parse_unicode(at: &mut Cursor<'_>, fold: bool) -> Result<Option<ClassUnicode>, RegexError> {
    let negated = match (at.byte(0), at.byte(1)) {
        (Some(b'\\'), Some(b'p')) => false,
        (Some(b'\\'), Some(b'P')) => true,
        _ => return Ok(None),
    };
    let mut rest = *at;
    rest.skip(2);
    let name = if rest.next()? == Some('{') {
        let Some(end) = at.find(b"}") else {
            check_utf8(at.0)?;
            return Err(Reason::CharRange.at(at.0));
        };
        rest = *at;
        rest.skip(end + 1);
        at.0.get(3..end).unwrap_or_default()
    } else {
        at.until(rest).get(2..).unwrap_or_default()
    };
    let name = check_utf8(name)?;
    let (name, inverted) = name.strip_prefix('^').map_or((name, false), |name| (name, true));
    let class = find_class(name).ok_or_else(|| Reason::CharRange.at(at.until(rest)))?;
    *at = rest;
    Ok(Some(apply_negation(apply_fold(class, fold), negated != inverted)))
}

/// Returns the set `name` of Go, ignoring case, spaces, hyphens and underscores, or `None` if it does not
/// exist.
fn find_class(name: &str) -> Option<ClassUnicode> {
    let plain: String = name.chars().filter(|c| !matches!(c, '_' | '-' | ' ')).collect();
    let canonical = canonical_name(&plain);
    match canonical.as_str() {
        "Any" => return Some(class_from_ranges(&[('\0', char::MAX)], false)),
        "Ascii" => return Some(class_from_ranges(&[('\0', '\x7f')], false)),
        "Assigned" => return regex_syntax_class("Cn").map(|class| apply_negation(class, true)),
        // Surrogates are not characters in Rust, and no text contains one.
        "Cs" | "Surrogate" => return Some(ClassUnicode::empty()),
        _ => {}
    }
    let known = CATEGORIES.contains(&canonical.as_str())
        || SCRIPTS.contains(&canonical.as_str())
        || ALIASES.contains(&canonical.as_str());
    known.then(|| regex_syntax_class(&canonical)).flatten()
}

fn canonical_name(name: &str) -> String {
    let mut chars = name.chars();
    let first = chars.next().map(|c| c.to_ascii_uppercase());
    first
        .into_iter()
        .chain(chars.map(|c| c.to_ascii_lowercase()))
        .collect()
}

/// Returns the set `name` of regex-syntax.
fn regex_syntax_class(name: &str) -> Option<ClassUnicode> {
    let hir = regex_syntax::Parser::new()
        .parse(&format!("\\p{{{name}}}"))
        .ok()?;
    match hir.into_kind() {
        HirKind::Class(Class::Unicode(class)) => Some(class),
        _ => None,
    }
}

/// Parses `[…]`.
pub(super) fn parse_bracketed(at: &mut Cursor<'_>, fold: bool) -> Result<ClassUnicode, RegexError> {
    let whole = *at;
    at.skip(1);
    let negated = at.eat(b"^");
    let mut class = ClassUnicode::empty();
    let mut first = true;
    while first || at.peek() != Some(b']') {
        first = false;
        class.union(&parse_item(at, whole, fold)?);
    }
    at.skip(1);
    Ok(apply_negation(class, negated))
}

fn parse_item(at: &mut Cursor<'_>, whole: Cursor<'_>, fold: bool) -> Result<ClassUnicode, RegexError> {
    if at.0.len() > 2
        && let Some(class) = parse_posix(at, fold)?
    {
        return Ok(class);
    }
    if let Some(class) = parse_unicode(at, fold)? {
        return Ok(class);
    }
    if let Some(class) = parse_perl(at, fold) {
        return Ok(class);
    }
    parse_range(at, whole, fold)
}

fn parse_range(at: &mut Cursor<'_>, whole: Cursor<'_>, fold: bool) -> Result<ClassUnicode, RegexError> {
    let start = *at;
    let from = parse_character(at, whole)?;
    let mut to = from;
    if at.peek() == Some(b'-') && at.byte(1).is_some_and(|b| b != b']') {
        at.skip(1);
        to = parse_character(at, whole)?;
        if to < from {
            return Err(Reason::CharRange.at(start.until(*at)));
        }
    }
    Ok(apply_fold(scalar_range(from, to), fold))
}

/// Returns the characters between two code points, without surrogates.
pub(super) fn scalar_range(from: u32, to: u32) -> ClassUnicode {
    let low = (from.min(0xd7ff + 1), to.min(0xd7ff));
    let high = (from.max(0xe000), to);
    let ranges = [low, high].into_iter().filter(|(from, to)| from <= to);
    let chars = ranges.filter_map(|(from, to)| Some((char::from_u32(from)?, char::from_u32(to)?)));
    ClassUnicode::new(chars.map(|(from, to)| ClassUnicodeRange::new(from, to)))
}

fn parse_character(at: &mut Cursor<'_>, whole: Cursor<'_>) -> Result<u32, RegexError> {
    match at.peek() {
        None => Err(Reason::MissingBracket.at(whole.0)),
        Some(b'\\') => read_escape(at),
        Some(_) => Ok(at.next()?.map_or(0, u32::from)),
    }
}

/// Short names of general categories.
const CATEGORIES: &[&str] = &[
    "C", "Cc", "Cf", "Cn", "Co", "L", "Lc", "Ll", "Lm", "Lo", "Lt", "Lu", "M", "Mc", "Me", "Mn", "N", "Nd",
    "Nl", "No", "P", "Pc", "Pd", "Pe", "Pf", "Pi", "Po", "Ps", "S", "Sc", "Sk", "Sm", "So", "Z", "Zl", "Zp",
    "Zs",
];

/// Long names of general categories.
const ALIASES: &[&str] = &[
    "Casedletter",
    "Closepunctuation",
    "Cntrl",
    "Combiningmark",
    "Connectorpunctuation",
    "Control",
    "Currencysymbol",
    "Dashpunctuation",
    "Decimalnumber",
    "Digit",
    "Enclosingmark",
    "Finalpunctuation",
    "Format",
    "Initialpunctuation",
    "Letter",
    "Letternumber",
    "Lineseparator",
    "Lowercaseletter",
    "Mark",
    "Mathsymbol",
    "Modifierletter",
    "Modifiersymbol",
    "Nonspacingmark",
    "Number",
    "Openpunctuation",
    "Other",
    "Otherletter",
    "Othernumber",
    "Otherpunctuation",
    "Othersymbol",
    "Paragraphseparator",
    "Privateuse",
    "Punct",
    "Punctuation",
    "Separator",
    "Spaceseparator",
    "Spacingmark",
    "Symbol",
    "Titlecaseletter",
    "Unassigned",
    "Uppercaseletter",
];

/// Scripts with names of one word. Go removes underscores from a name before it looks it up in a table with
/// underscores, so that it finds only these scripts.
const SCRIPTS: &[&str] = &[
    "Adlam",
    "Ahom",
    "Arabic",
    "Armenian",
    "Avestan",
    "Balinese",
    "Bamum",
    "Batak",
    "Bengali",
    "Bhaiksuki",
    "Bopomofo",
    "Brahmi",
    "Braille",
    "Buginese",
    "Buhid",
    "Carian",
    "Chakma",
    "Cham",
    "Cherokee",
    "Chorasmian",
    "Common",
    "Coptic",
    "Cuneiform",
    "Cypriot",
    "Cyrillic",
    "Deseret",
    "Devanagari",
    "Dogra",
    "Duployan",
    "Elbasan",
    "Elymaic",
    "Ethiopic",
    "Georgian",
    "Glagolitic",
    "Gothic",
    "Grantha",
    "Greek",
    "Gujarati",
    "Gurmukhi",
    "Han",
    "Hangul",
    "Hanunoo",
    "Hatran",
    "Hebrew",
    "Hiragana",
    "Inherited",
    "Javanese",
    "Kaithi",
    "Kannada",
    "Katakana",
    "Kawi",
    "Kharoshthi",
    "Khmer",
    "Khojki",
    "Khudawadi",
    "Lao",
    "Latin",
    "Lepcha",
    "Limbu",
    "Lisu",
    "Lycian",
    "Lydian",
    "Mahajani",
    "Makasar",
    "Malayalam",
    "Mandaic",
    "Manichaean",
    "Marchen",
    "Medefaidrin",
    "Miao",
    "Modi",
    "Mongolian",
    "Mro",
    "Multani",
    "Myanmar",
    "Nabataean",
    "Nandinagari",
    "Newa",
    "Nko",
    "Nushu",
    "Ogham",
    "Oriya",
    "Osage",
    "Osmanya",
    "Palmyrene",
    "Phoenician",
    "Rejang",
    "Runic",
    "Samaritan",
    "Saurashtra",
    "Sharada",
    "Shavian",
    "Siddham",
    "Sinhala",
    "Sogdian",
    "Soyombo",
    "Sundanese",
    "Syriac",
    "Tagalog",
    "Tagbanwa",
    "Takri",
    "Tamil",
    "Tangsa",
    "Tangut",
    "Telugu",
    "Thaana",
    "Thai",
    "Tibetan",
    "Tifinagh",
    "Tirhuta",
    "Toto",
    "Ugaritic",
    "Vai",
    "Vithkuqi",
    "Wancho",
    "Yezidi",
    "Yi",
];
