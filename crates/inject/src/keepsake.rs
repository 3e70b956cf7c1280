//! Replaced text kept in white space: takes pieces of a list in brackets, gives blanks and tabs to stand before its `]`,
//! and back. JSON has no comments, so this is the one place where a replaced container can wait for `--uninject`.
//!
//! ```text
//! sign (16 bits) · length (16) · pieces, packed · checksum (16)        blank = 0, tab = 1
//! ```
//!
//! Before the bracket it never ends a line, so what trims the ends of lines leaves it alone.

mod pack;

/// Longest pieces that are kept; a longer one would be a page of white space.
pub(crate) const LONGEST: usize = 8 << 10;

/// Opens every keepsake: no one writes this by accident, and the checksum judges who does.
const SIGN: u16 = 0b1011_0011_1010_0101;

/// Bits of a number in the frame.
const FRAME: u32 = 16;

/// One piece of text that gave way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    /// Where it goes back to.
    pub(crate) place: Where,
    /// The bytes, commas and white space around the items included.
    pub(crate) text: Vec<u8>,
}

/// A place in a list, told by the items that are not ours, so that it outlives edits of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Where {
    /// Before the item of this number.
    Before(usize),
    /// Behind the item of this number.
    Behind(usize),
    /// Alone in the list, from bracket to bracket.
    Alone,
}

/// `pieces` as white space; `None` if they are too long.
pub(crate) fn write(pieces: &[Piece]) -> Option<String> {
    let mut bytes = Vec::new();
    for piece in pieces {
        let (kind, number) = match piece.place {
            Where::Before(number) => (0, number),
            Where::Behind(number) => (1, number),
            Where::Alone => (2, 0),
        };
        bytes.push(kind);
        bytes.extend(u16::try_from(number).ok()?.to_be_bytes());
        bytes.extend(u16::try_from(piece.text.len()).ok()?.to_be_bytes());
        bytes.extend(&piece.text);
    }
    let length = u16::try_from(bytes.len()).ok()?;
    if bytes.len() > LONGEST {
        return None;
    }
    let mut bits = Writer::default();
    bits.number(SIGN.into(), FRAME);
    bits.number(length.into(), FRAME);
    pack::pack(&bytes, &mut bits);
    bits.number(checksum(&bytes).into(), FRAME);
    Some(bits.out)
}

/// The keepsake before the byte at `end`: where it starts, and its pieces.
pub(crate) fn read(text: &[u8], end: usize) -> Option<(usize, Vec<Piece>)> {
    let before = text.get(..end)?;
    let blanks = before
        .iter()
        .rev()
        .take_while(|byte| b" \t".contains(byte))
        .count();
    let start = end - blanks;
    let run = before.get(start..)?;
    let mut sign = Writer::default();
    sign.number(SIGN.into(), FRAME);
    let found = memchr::memmem::find(run, sign.out.as_bytes())?;
    let pieces = read_at(run.get(found + sign.out.len()..)?)?;
    Some((start + found, pieces))
}

fn read_at(run: &[u8]) -> Option<Vec<Piece>> {
    let mut bits = Reader { rest: run };
    let length = usize::from(u16::try_from(bits.number(FRAME)?).ok()?);
    if length > LONGEST {
        return None;
    }
    let bytes = pack::unpack(&mut bits, length)?;
    let honest = bits.number(FRAME)? == u32::from(checksum(&bytes));
    honest.then(|| pieces(&bytes)).flatten()
}

fn pieces(mut bytes: &[u8]) -> Option<Vec<Piece>> {
    let mut pieces = Vec::new();
    while let [kind, high, low, more, less, rest @ ..] = bytes {
        let number = usize::from(u16::from_be_bytes([*high, *low]));
        let (text, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes([*more, *less])))?;
        let place = match kind {
            0 => Where::Before(number),
            1 => Where::Behind(number),
            2 => Where::Alone,
            _ => return None,
        };
        let text = text.to_vec();
        pieces.push(Piece { place, text });
        bytes = rest;
    }
    bytes.is_empty().then_some(pieces)
}

/// Fletcher's sum.
fn checksum(bytes: &[u8]) -> u16 {
    let (low, high) = bytes.iter().fold((1u32, 0u32), |(low, high), byte| {
        let low = (low + u32::from(*byte)) % 255;
        (low, (high + low) % 255)
    });
    // Both are below 255.
    u16::try_from(high << 8 | low).unwrap_or_default()
}

/// Bits as white space.
#[derive(Debug, Default)]
struct Writer {
    out: String,
}

impl Writer {
    /// The lowest `bits` bits of `number`, the highest of them first.
    fn number(&mut self, number: u32, bits: u32) {
        let signs = (0..bits).rev().map(|bit| number >> bit & 1);
        self.out
            .extend(signs.map(|bit| if bit == 1 { '\t' } else { ' ' }));
    }
}

/// White space as bits.
struct Reader<'a> {
    rest: &'a [u8],
}

impl Reader<'_> {
    fn number(&mut self, bits: u32) -> Option<u32> {
        let (signs, rest) = self.rest.split_at_checked(usize::try_from(bits).ok()?)?;
        self.rest = rest;
        let add = |number, sign: &u8| number << 1 | u32::from(*sign == b'\t');
        Some(signs.iter().fold(0, add))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pieces: &[Piece]) -> String {
        let blanks = write(pieces).unwrap();
        assert!(blanks.bytes().all(|byte| b" \t".contains(&byte)));
        for (before, behind) in [("", ""), ("[\n  ", ""), ("x \t", "  \t")] {
            let text = format!("{before}{blanks}{behind}]");
            let (start, back) = read(text.as_bytes(), text.len() - 1).unwrap();
            assert_eq!((start, back.as_slice()), (before.len(), pieces));
        }
        blanks
    }

    fn piece(place: Where, text: &str) -> Piece {
        let text = text.as_bytes().to_vec();
        Piece { place, text }
    }

    #[test]
    fn what_was_kept_comes_back() {
        check(&[]);
        check(&[piece(Where::Before(0), "")]);
        check(&[piece(Where::Alone, "{name: contrast-initializer},\r\n")]);
        check(&[
            piece(Where::Before(0), "{\"name\": \"contrast-initializer\"}, "),
            piece(Where::Behind(65_535), ", \u{1F600}\0\u{85}"),
        ]);
        check(&[piece(Where::Before(1), &"aaaaaaaaab".repeat(700))]);
    }

    #[test]
    fn a_usual_container_is_short() {
        let usual = "{\"name\": \"contrast-initializer\", \"image\": \"ghcr.io/edgelesssys/contrast/initializer:v0.6.0\", \
                     \"env\": [{\"name\": \"COORDINATOR_HOST\", \"value\": \"coordinator\"}], \
                     \"volumeMounts\": [{\"name\": \"contrast-tls-certs\", \"mountPath\": \"/tls-config\"}]}, ";
        let blanks = check(&[piece(Where::Before(0), usual)]);
        assert!(
            blanks.len() < 2 * usual.len(),
            "{} for {}",
            blanks.len(),
            usual.len()
        );
    }

    #[test]
    fn too_long_is_not_kept() {
        let long = "x".repeat(LONGEST);
        assert_eq!(write(&[piece(Where::Before(0), &long)]), None);
        assert_eq!(write(&[piece(Where::Before(70_000), "")]), None);
    }

    #[test]
    fn white_space_of_others_is_nothing() {
        let blanks = check(&[piece(Where::Before(0), "{name: contrast-initializer}, ")]);
        for cut in 0..blanks.len() {
            let text = format!("{}]", &blanks[..cut]);
            assert_eq!(read(text.as_bytes(), cut), None, "{cut}");
        }
        for turned in 16..blanks.len() {
            let mut bytes = blanks.clone().into_bytes();
            bytes[turned] ^= b' ' ^ b'\t';
            let end = bytes.len();
            if let Some((_, pieces)) = read(&bytes, end) {
                assert_eq!(pieces, [], "{turned}");
            }
        }
        assert_eq!(read(b"]", 0), None);
        assert_eq!(read(b"", 7), None);
    }
}
