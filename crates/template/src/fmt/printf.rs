//! Format strings: flags, widths, precisions, argument indices and verbs.

use super::{Flags, Printer};
use crate::limit::LimitExceeded;
use crate::value::Value;
use mainstay_gostd::utf8;

/// Current position in the format and among the arguments.
struct Cursor<'a> {
    format: &'a [u8],
    args: &'a [Value],
    at: usize,
    arg: usize,
    /// Whether any verb selected its argument by index. Unused arguments are then allowed.
    reordered: bool,
    /// Whether the last index was valid.
    good_index: bool,
    /// Whether an index was just parsed.
    after_index: bool,
}

impl Cursor<'_> {
    fn byte(&self) -> Option<u8> {
        self.format.get(self.at).copied()
    }

    /// Parses digits at the cursor. Go rejects a number above a million, and then also the rest of the
    /// format.
    fn parse_number(&mut self, end: usize) -> Option<usize> {
        let mut number = None;
        if self.at >= end {
            self.at = end;
            return None;
        }
        while self.at < end {
            let Some(digit) = self.byte().filter(u8::is_ascii_digit) else {
                break;
            };
            let value = number.unwrap_or(0);
            if value > 1_000_000 {
                self.at = end;
                return None;
            }
            number = Some(value * 10 + usize::from(digit - b'0'));
            self.at += 1;
        }
        number
    }

    /// Parses an argument index, `[n]`, at the cursor.
    fn parse_index(&mut self) {
        self.after_index = false;
        if self.byte() != Some(b'[') {
            return;
        }
        self.reordered = true;
        let rest = self.format.get(self.at..).unwrap_or_default();
        let close = rest
            .iter()
            .position(|&byte| byte == b']')
            .filter(|_| rest.len() >= 3);
        let Some(close) = close else {
            self.good_index = false;
            self.at += 1;
            return;
        };
        let end = self.at + close;
        self.at += 1;
        let number = self.parse_number(end);
        let whole = self.at == end;
        self.at = end + 1;
        match number.filter(|_| whole) {
            Some(number @ 1..) if number <= self.args.len() => {
                self.arg = number - 1;
                self.after_index = true;
            }
            Some(_) => {
                self.good_index = false;
                self.after_index = true;
            }
            None => self.good_index = false,
        }
    }

    /// Returns the next argument as the integer for `*`, or `None` if it is not an integer or out of range.
    fn take_star_argument(&mut self) -> Option<i64> {
        let arg = self.args.get(self.arg)?;
        self.arg += 1;
        let number = match arg {
            Value::Int(number, _) => *number,
            Value::Uint(number, _) => i64::try_from(*number).ok()?,
            _ => return None,
        };
        (-1_000_000..=1_000_000).contains(&number).then_some(number)
    }
}

impl Printer<'_> {
    /// Writes formatted text as `fmt.Sprintf` does.
    pub(super) fn printf(&mut self, format: &[u8], args: &[Value]) -> Result<(), LimitExceeded> {
        let mut cursor = Cursor {
            format,
            args,
            at: 0,
            arg: 0,
            reordered: false,
            good_index: true,
            after_index: false,
        };
        while cursor.at < format.len() {
            let rest = format.get(cursor.at..).unwrap_or_default();
            let text = rest.iter().position(|&byte| byte == b'%').unwrap_or(rest.len());
            self.push(rest.get(..text).unwrap_or(rest));
            cursor.at += text;
            if cursor.at < format.len() {
                cursor.at += 1;
                self.write_directive(&mut cursor)?;
            }
        }
        if !cursor.reordered && cursor.arg < args.len() {
            self.write_extra_arguments(args.get(cursor.arg..).unwrap_or_default())?;
        }
        Ok(())
    }

    fn write_directive(&mut self, cursor: &mut Cursor<'_>) -> Result<(), LimitExceeded> {
        self.check_limits()?;
        self.flags = Flags::default();
        cursor.good_index = true;
        self.parse_flags(cursor);
        let simple = cursor.byte().filter(u8::is_ascii_lowercase);
        if let (Some(verb), Some(arg)) = (simple, cursor.args.get(cursor.arg)) {
            cursor.at += 1;
            cursor.arg += 1;
            return self.write_operand(arg, u32::from(verb));
        }
        cursor.parse_index();
        self.parse_width(cursor);
        self.parse_precision(cursor);
        if !cursor.after_index {
            cursor.parse_index();
        }
        if cursor.at >= cursor.format.len() {
            self.push(b"%!(NOVERB)");
            return Ok(());
        }
        let rest = cursor.format.get(cursor.at..).unwrap_or_default();
        let (verb, size) = utf8::decode(rest).unwrap_or((utf8::RUNE_ERROR, 0));
        cursor.at += size;
        self.write_verb(verb.into(), cursor)
    }

    fn parse_flags(&mut self, cursor: &mut Cursor<'_>) {
        while let Some(byte) = cursor.byte() {
            match byte {
                b'#' => self.flags.sharp = true,
                b'0' => self.flags.zero = true,
                b'+' => self.flags.plus = true,
                b'-' => self.flags.minus = true,
                b' ' => self.flags.space = true,
                _ => return,
            }
            cursor.at += 1;
        }
    }

    fn parse_width(&mut self, cursor: &mut Cursor<'_>) {
        if cursor.byte() != Some(b'*') {
            self.flags.width = cursor.parse_number(cursor.format.len());
            if cursor.after_index && self.flags.width.is_some() {
                cursor.good_index = false;
            }
            return;
        }
        cursor.at += 1;
        let width = cursor.take_star_argument();
        self.flags.width = width.map(|width| width.unsigned_abs() as usize);
        match width {
            None => self.push(b"%!(BADWIDTH)"),
            Some(..0) => {
                self.flags.minus = true;
                self.flags.zero = false;
            }
            Some(_) => {}
        }
        cursor.after_index = false;
    }

    fn parse_precision(&mut self, cursor: &mut Cursor<'_>) {
        if cursor.byte() != Some(b'.') || cursor.at + 1 >= cursor.format.len() {
            return;
        }
        cursor.at += 1;
        if cursor.after_index {
            cursor.good_index = false;
        }
        cursor.parse_index();
        if cursor.byte() != Some(b'*') {
            self.flags.precision = Some(cursor.parse_number(cursor.format.len()).unwrap_or(0));
            return;
        }
        cursor.at += 1;
        self.flags.precision = cursor
            .take_star_argument()
            .and_then(|precision| usize::try_from(precision).ok());
        if self.flags.precision.is_none() {
            self.push(b"%!(BADPREC)");
        }
        cursor.after_index = false;
    }

    fn write_verb(&mut self, verb: u32, cursor: &mut Cursor<'_>) -> Result<(), LimitExceeded> {
        let missing: &[u8] = if verb == u32::from(b'%') {
            self.push(b"%");
            return Ok(());
        } else if !cursor.good_index {
            b"(BADINDEX)"
        } else if let Some(arg) = cursor.args.get(cursor.arg) {
            cursor.arg += 1;
            return self.write_operand(arg, verb);
        } else {
            b"(MISSING)"
        };
        self.push(b"%!");
        utf8::push(self.out, verb);
        self.push(missing);
        Ok(())
    }

    fn write_operand(&mut self, arg: &Value, verb: u32) -> Result<(), LimitExceeded> {
        if verb == u32::from(b'v') || verb == u32::from(b'w') {
            self.flags.sharp_v = std::mem::take(&mut self.flags.sharp);
            self.flags.plus_v = std::mem::take(&mut self.flags.plus);
        }
        self.value(arg, verb)
    }

    fn write_extra_arguments(&mut self, args: &[Value]) -> Result<(), LimitExceeded> {
        self.flags = Flags::default();
        self.push(b"%!(EXTRA ");
        for (index, arg) in args.iter().enumerate() {
            if index > 0 {
                self.push(b", ");
            }
            if !matches!(arg, Value::Nil) {
                let name = arg.type_name();
                self.push(name.as_bytes());
                self.push(b"=");
            }
            self.value(arg, b'v'.into())?;
        }
        self.push(b")");
        Ok(())
    }
}
