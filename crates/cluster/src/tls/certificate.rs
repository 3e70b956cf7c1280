//! Reads the fields of an X.509 certificate that decide whether a CA certificate may identify a server.

use jiff::Timestamp;

/// DER-encoded object identifiers.
const BASIC_CONSTRAINTS: &[u8] = &[0x55, 0x1d, 0x13];
const KEY_USAGE: &[u8] = &[0x55, 0x1d, 0x0f];
const ALTERNATIVE_NAMES: &[u8] = &[0x55, 0x1d, 0x11];
const NAME_CONSTRAINTS: &[u8] = &[0x55, 0x1d, 0x1e];
const EXTENDED_KEY_USAGE: &[u8] = &[0x55, 0x1d, 0x25];
const ANY_USAGE: &[u8] = &[0x55, 0x1d, 0x25, 0x00];
const SERVER_AUTH: &[u8] = &[0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x01];

/// DER tags.
const BOOLEAN: u8 = 0x01;
const BIT_STRING: u8 = 0x03;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
const SEQUENCE: u8 = 0x30;
const VERSION: u8 = 0xa0;
const EXTENSIONS: u8 = 0xa3;

/// A parsed certificate. Names and algorithms are the contents of their DER elements.
#[derive(Debug)]
pub(super) struct Certificate<'a> {
    /// The signed part of the certificate.
    pub(super) signed: &'a [u8],
    pub(super) signature_algorithm: &'a [u8],
    pub(super) signature: &'a [u8],
    pub(super) issuer: &'a [u8],
    pub(super) subject: &'a [u8],
    pub(super) key_algorithm: &'a [u8],
    pub(super) key: &'a [u8],
    /// Start and end of the validity, as `YYYYMMDDhhmmss`.
    validity: [String; 2],
    pub(super) is_ca: bool,
    /// Whether the certificate may identify a server.
    pub(super) is_for_servers: bool,
    /// Whether the certificate limits the names in certificates that it issues.
    pub(super) is_constrained: bool,
}

impl<'a> Certificate<'a> {
    /// Parses a certificate; `None` if it is malformed.
    pub(super) fn parse(der: &'a [u8]) -> Option<Self> {
        let mut outer = Reader(Reader(der).content(SEQUENCE)?);
        let body = outer.element()?;
        let signature_algorithm = outer.content(SEQUENCE)?;
        let signature = parse_bit_string(outer.content(BIT_STRING)?)?;
        let mut fields = Reader(body.content);
        fields.skip_if(VERSION);
        let (_serial, _algorithm) = (fields.element()?, fields.element()?);
        let issuer = fields.content(SEQUENCE)?;
        let mut validity = Reader(fields.content(SEQUENCE)?);
        let validity = [parse_time(validity.element()?)?, parse_time(validity.element()?)?];
        let subject = fields.content(SEQUENCE)?;
        let mut key = Reader(fields.content(SEQUENCE)?);
        let (key_algorithm, key) = (
            key.content(SEQUENCE)?,
            parse_bit_string(key.content(BIT_STRING)?)?,
        );
        let extensions = Extensions::parse(fields)?;
        Some(Self {
            signed: body.encoding,
            signature_algorithm,
            signature,
            issuer,
            subject,
            key_algorithm,
            key,
            validity,
            is_ca: extensions.is_ca,
            is_for_servers: extensions.is_for_servers,
            is_constrained: extensions.is_constrained,
        })
    }

    /// Whether the certificate is valid at this time.
    pub(super) fn is_valid_at(&self, now: Timestamp) -> bool {
        let now = now.strftime("%Y%m%d%H%M%S").to_string();
        let [start, end] = &self.validity;
        *start <= now && now <= *end
    }
}

struct Extensions {
    is_ca: bool,
    is_for_servers: bool,
    is_constrained: bool,
}

impl Extensions {
    /// Parses the extensions among the remaining fields of a certificate.
    fn parse(mut fields: Reader<'_>) -> Option<Self> {
        let mut found = Self {
            is_ca: false,
            is_for_servers: true,
            is_constrained: false,
        };
        while let Some(field) = fields.next_element()? {
            if field.tag != EXTENSIONS {
                continue;
            }
            let mut extensions = Reader(Reader(field.content).content(SEQUENCE)?);
            while let Some(extension) = extensions.next_element()? {
                found.add(extension)?;
            }
        }
        Some(found)
    }

    /// Adds an extension. Returns `None` if it is malformed, or unknown and critical.
    fn add(&mut self, extension: Element<'_>) -> Option<()> {
        let mut parts = Reader(extension.content);
        let name = parts.element()?.content;
        let is_critical = parts.skip_if(BOOLEAN);
        let mut value = Reader(parts.element()?.content);
        if name == BASIC_CONSTRAINTS {
            let first = Reader(value.content(SEQUENCE)?).next_element()?;
            self.is_ca = first.is_some_and(|first| first.tag == BOOLEAN && first.content != [0]);
        } else if name == EXTENDED_KEY_USAGE {
            let mut usages = Reader(value.content(SEQUENCE)?);
            self.is_for_servers = false;
            while let Some(usage) = usages.next_element()? {
                self.is_for_servers |= [ANY_USAGE, SERVER_AUTH].contains(&usage.content);
            }
        } else if name == NAME_CONSTRAINTS {
            self.is_constrained = true;
        } else if is_critical && name != KEY_USAGE && name != ALTERNATIVE_NAMES {
            return None;
        }
        Some(())
    }
}

/// One DER element.
#[derive(Clone, Copy)]
struct Element<'a> {
    tag: u8,
    content: &'a [u8],
    /// Tag, length and content.
    encoding: &'a [u8],
}

/// Reads consecutive DER elements.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// Reads the next element; `None` if it is missing or malformed.
    fn element(&mut self) -> Option<Element<'a>> {
        let (&[tag, first], rest) = self.0.split_first_chunk::<2>()?;
        let (length, rest) = match first {
            0..=0x7f => (usize::from(first), rest),
            0x81..=0x83 => {
                let (bytes, rest) = rest.split_at_checked(usize::from(first - 0x80))?;
                let length = bytes
                    .iter()
                    .fold(0, |length, byte| length << 8 | usize::from(*byte));
                (length, rest)
            }
            _ => return None,
        };
        let (content, left) = rest.split_at_checked(length)?;
        let (encoding, _) = self.0.split_at_checked(self.0.len() - left.len())?;
        self.0 = left;
        Some(Element {
            tag,
            content,
            encoding,
        })
    }

    /// Reads the next element; `Some(None)` at the end, `None` if it is malformed.
    #[allow(
        clippy::option_option,
        reason = "like a `Result` of an `Option`, without an error value"
    )]
    fn next_element(&mut self) -> Option<Option<Element<'a>>> {
        if self.0.is_empty() {
            return Some(None);
        }
        self.element().map(Some)
    }

    /// Reads the content of the next element, which must have this tag.
    fn content(&mut self, tag: u8) -> Option<&'a [u8]> {
        self.element()
            .filter(|element| element.tag == tag)
            .map(|element| element.content)
    }

    /// Skips the next element if it has this tag. Returns whether an element was skipped.
    fn skip_if(&mut self, tag: u8) -> bool {
        self.0.first() == Some(&tag) && self.element().is_some()
    }
}

/// Returns the bytes of a bit string; `None` if it has unused bits.
fn parse_bit_string(content: &[u8]) -> Option<&[u8]> {
    content
        .split_first()
        .and_then(|(unused, bytes)| (*unused == 0).then_some(bytes))
}

/// Returns a time as `YYYYMMDDhhmmss`. Two-digit years mean 1950 to 2049.
fn parse_time(element: Element<'_>) -> Option<String> {
    let text = std::str::from_utf8(element.content).ok()?.strip_suffix('Z')?;
    let text = match element.tag {
        GENERALIZED_TIME => text.to_owned(),
        UTC_TIME if text < "50" => format!("20{text}"),
        UTC_TIME => format!("19{text}"),
        _ => return None,
    };
    let is_plain = text.len() == 14 && text.bytes().all(|byte| byte.is_ascii_digit());
    is_plain.then_some(text)
}
