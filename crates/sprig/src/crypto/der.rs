//! DER encoding of keys and certificates. The reader checks every length.

/// Universal tags.
pub(super) const BOOLEAN: u8 = 0x01;
pub(super) const INTEGER: u8 = 0x02;
pub(super) const BIT_STRING: u8 = 0x03;
pub(super) const OCTET_STRING: u8 = 0x04;
pub(super) const NULL: u8 = 0x05;
pub(super) const OID: u8 = 0x06;
pub(super) const UTF8_STRING: u8 = 0x0c;
pub(super) const PRINTABLE_STRING: u8 = 0x13;
pub(super) const UTC_TIME: u8 = 0x17;
pub(super) const GENERALIZED_TIME: u8 = 0x18;
pub(super) const SEQUENCE: u8 = 0x30;
pub(super) const SET: u8 = 0x31;

/// Returns the context-specific tag `number` for a constructed value.
pub(super) const fn context(number: u8) -> u8 {
    0xa0 | number
}

/// Encodes a value.
pub(super) fn value(tag: u8, content: &[u8]) -> Vec<u8> {
    let mut out = vec![tag];
    let len = content.len();
    if len < 0x80 {
        out.push(len as u8);
    } else {
        let bytes = len.to_be_bytes();
        let bytes = trimmed(&bytes);
        out.push(0x80 | bytes.len() as u8);
        out.extend_from_slice(bytes);
    }
    out.extend_from_slice(content);
    out
}

/// Encodes a sequence of values.
pub(super) fn sequence(parts: &[Vec<u8>]) -> Vec<u8> {
    value(SEQUENCE, &parts.concat())
}

/// Encodes a non-negative integer from its big-endian bytes.
pub(super) fn integer(bytes: &[u8]) -> Vec<u8> {
    let bytes = trimmed(bytes);
    let sign: &[u8] = if bytes.first().is_none_or(|first| *first >= 0x80) {
        &[0]
    } else {
        &[]
    };
    value(INTEGER, &[sign, bytes].concat())
}

/// Encodes whole bytes as a bit string.
pub(super) fn bit_string(bytes: &[u8]) -> Vec<u8> {
    value(BIT_STRING, &[&[0], bytes].concat())
}

fn trimmed(bytes: &[u8]) -> &[u8] {
    let zeros = bytes.iter().take_while(|b| **b == 0).count();
    bytes.get(zeros..).unwrap_or_default()
}

/// Reader of a sequence of DER values.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reader<'a>(pub(super) &'a [u8]);

impl<'a> Reader<'a> {
    pub(super) fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn peek(self) -> Option<u8> {
        self.0.first().copied()
    }

    /// Returns the next value including its tag, and its content.
    pub(super) fn any(&mut self) -> Option<(&'a [u8], &'a [u8])> {
        let (header, len) = match *self.0.get(1)? {
            short @ 0..0x80 => (2, usize::from(short)),
            long => {
                let bytes = usize::from(long & 0x7f);
                let digits = self.0.get(2..2 + bytes).filter(|_| (1..=4).contains(&bytes))?;
                (
                    2 + bytes,
                    digits.iter().fold(0, |len, digit| len << 8 | usize::from(*digit)),
                )
            }
        };
        let whole = self.0.get(..header.checked_add(len)?)?;
        self.0 = self.0.get(whole.len()..)?;
        Some((whole, whole.get(header..)?))
    }

    /// Returns the content of the next value. Its tag must be `tag`.
    pub(super) fn expect(&mut self, tag: u8) -> Option<&'a [u8]> {
        if self.peek()? != tag {
            return None;
        }
        self.any().map(|(_, content)| content)
    }

    /// Returns a reader of the content of the next value. Its tag must be `tag`.
    pub(super) fn enter(&mut self, tag: u8) -> Option<Self> {
        self.expect(tag).map(Self)
    }

    /// Returns the big-endian bytes of a non-negative integer.
    pub(super) fn integer(&mut self) -> Option<&'a [u8]> {
        self.expect(INTEGER)
            .filter(|digits| digits.first().is_some_and(|first| *first < 0x80))
            .map(trimmed)
    }
}
