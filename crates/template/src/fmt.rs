//! Formatting as in Go's package `fmt`, including errors such as `%!d(string=x)`. Writes into a buffer
//! within the limits of the run.

mod float;
mod integer;
mod printf;
mod text;
mod value;

use crate::limit::{LimitExceeded, Meter};
use crate::object::GoKind;
use crate::string::Str;
use crate::value::Value;

/// Formats one value as `print` does (`fmt.Sprint`, `%v`).
pub fn print_value(value: &Value, meter: &mut Meter) -> Result<Str, LimitExceeded> {
    if let Value::String(text) = value {
        return Ok(text.clone());
    }
    let mut out = Vec::new();
    Printer::new(&mut out, meter).value(value, b'v'.into())?;
    finish(out, meter)
}

/// `fmt.Sprint`: a space between two operands when neither is a string.
pub fn print(args: &[Value], meter: &mut Meter) -> Result<Str, LimitExceeded> {
    let mut out = Vec::new();
    print_into(args, &mut out, meter)?;
    finish(out, meter)
}

pub(crate) fn print_into(args: &[Value], out: &mut Vec<u8>, meter: &mut Meter) -> Result<(), LimitExceeded> {
    let mut printer = Printer::new(out, meter);
    let mut after_string = true;
    for arg in args {
        let is_string = matches!(arg, Value::String(_));
        if !is_string && !after_string {
            printer.out.push(b' ');
        }
        printer.value(arg, b'v'.into())?;
        after_string = is_string;
    }
    Ok(())
}

/// `fmt.Sprintln`: a space between all operands, a newline at the end.
pub fn print_line(args: &[Value], meter: &mut Meter) -> Result<Str, LimitExceeded> {
    let mut out = Vec::new();
    print_line_into(args, &mut out, meter)?;
    finish(out, meter)
}

pub(crate) fn print_line_into(
    args: &[Value],
    out: &mut Vec<u8>,
    meter: &mut Meter,
) -> Result<(), LimitExceeded> {
    let mut printer = Printer::new(out, meter);
    for (index, arg) in args.iter().enumerate() {
        if index > 0 {
            printer.out.push(b' ');
        }
        printer.value(arg, b'v'.into())?;
    }
    out.push(b'\n');
    Ok(())
}

/// `fmt.Sprintf`.
pub fn format(format: &[u8], args: &[Value], meter: &mut Meter) -> Result<Str, LimitExceeded> {
    let mut out = Vec::with_capacity(format.len() + 16 * args.len());
    format_into(format, args, &mut out, meter)?;
    finish(out, meter)
}

pub(crate) fn format_into(
    format: &[u8],
    args: &[Value],
    out: &mut Vec<u8>,
    meter: &mut Meter,
) -> Result<(), LimitExceeded> {
    Printer::new(out, meter).printf(format, args)
}

fn finish(out: Vec<u8>, meter: &mut Meter) -> Result<Str, LimitExceeded> {
    meter.reserve_string(out.len())?;
    Ok(Str::from(out))
}

/// Writes one value the way `{{.}}` does, directly into the output of a template.
pub(crate) fn write_value(value: &Value, out: &mut Vec<u8>, meter: &mut Meter) -> Result<(), LimitExceeded> {
    let before = out.len();
    match value {
        Value::String(text) => {
            meter.consume_output(text.len())?;
            out.extend_from_slice(text);
            return Ok(());
        }
        Value::Nil => out.extend_from_slice(b"<no value>"),
        Value::Float(number) if float::is_small_whole(*number) => float::push_whole(*number, out),
        Value::Object(object) if object.go_kind() != GoKind::Map => {
            out.extend_from_slice(&object.print_addressed());
        }
        _ => Printer::new(out, meter).value(value, b'v'.into())?,
    }
    meter.consume_output(out.len() - before)
}

/// Formats a value inside a message, where it may be too deep or too long to print completely.
pub(crate) fn format_for_message(
    value: &Value,
    verb: u8,
    meter: &mut Meter,
) -> Result<String, LimitExceeded> {
    let mut out = Vec::new();
    Printer::new(&mut out, meter).value(value, verb.into())?;
    Ok(String::from_utf8_lossy(&out).into_owned())
}

/// The flags between `%` and the verb.
#[allow(clippy::struct_excessive_bools)]
#[derive(Clone, Copy, Default)]
struct Flags {
    width: Option<usize>,
    precision: Option<usize>,
    minus: bool,
    plus: bool,
    sharp: bool,
    space: bool,
    zero: bool,
    /// `%+v`, which differs from the plus of numbers.
    plus_v: bool,
    /// `%#v`, which differs from the sharp of numbers.
    sharp_v: bool,
}

/// The state of one formatting operation.
struct Printer<'a> {
    out: &'a mut Vec<u8>,
    meter: &'a mut Meter,
    flags: Flags,
    /// Maximum length of `out`.
    limit: usize,
    depth: usize,
}

impl<'a> Printer<'a> {
    fn new(out: &'a mut Vec<u8>, meter: &'a mut Meter) -> Self {
        let limit = out.len().saturating_add(meter.limits().string);
        Self {
            out,
            meter,
            flags: Flags::default(),
            limit,
            depth: 0,
        }
    }

    /// Checks the limits. Called once per item, so that neither a wide nor a shared tree exceeds them.
    fn check_limits(&mut self) -> Result<(), LimitExceeded> {
        self.meter.consume_fuel(1)?;
        if self.out.len() > self.limit {
            Err(LimitExceeded::String)
        } else {
            Ok(())
        }
    }

    fn push(&mut self, text: &[u8]) {
        self.out.extend_from_slice(text);
    }

    fn push_padding(&mut self, count: usize) {
        let byte = if self.flags.zero && !self.flags.minus {
            b'0'
        } else {
            b' '
        };
        self.out.resize(self.out.len() + count, byte);
    }

    /// Writes `text` padded to the width.
    fn pad(&mut self, text: &[u8]) {
        let Some(width) = self.flags.width.filter(|&width| width > 0) else {
            return self.push(text);
        };
        let missing = width.saturating_sub(mainstay_gostd::utf8::count(text));
        if self.flags.minus {
            self.push(text);
            self.push_padding(missing);
        } else {
            self.push_padding(missing);
            self.push(text);
        }
    }

    /// Writes `text` padded to the width with spaces, regardless of the zero flag.
    fn pad_with_spaces(&mut self, text: &[u8]) {
        let zero = std::mem::take(&mut self.flags.zero);
        self.pad(text);
        self.flags.zero = zero;
    }
}
