//! Regular expressions with Go's syntax, matching rules and error texts. They run on the engines of the
//! `regex` project in time linear in the length of the text.

mod class;
mod cursor;
mod error;
mod escape;
mod node;
mod parse;
mod program;
mod replace;

use std::ops::Range;
use std::rc::Rc;

use mainstay_gostd::quote::backquote;
use mainstay_template::{Call, Failure, Function, LimitExceeded, List, ListType, Meter, Str, Type, Value};

use crate::table::fixed;
pub use error::RegexError;
use program::{Haystack, Program};
use replace::{Replacement, replace_all};

const TWO: &[Type] = &[Type::String, Type::String];
const THREE: &[Type] = &[Type::String, Type::String, Type::String];
const COUNTED: &[Type] = &[Type::String, Type::String, Type::Int];

pub(crate) const TABLE: &[Function] = &[
    fixed("regexMatch", TWO, is_match_or_false),
    fixed("mustRegexMatch", TWO, |call| {
        is_match(call, compile_or_fail).map(Value::from)
    }),
    fixed("regexFind", TWO, |call| find(call, compile_or_panic)),
    fixed("mustRegexFind", TWO, |call| find(call, compile_or_fail)),
    fixed("regexFindAll", COUNTED, |call| find_all(call, compile_or_panic)),
    fixed("mustRegexFindAll", COUNTED, |call| {
        find_all(call, compile_or_fail)
    }),
    fixed("regexReplaceAll", THREE, |call| {
        replace(call, compile_or_panic, true)
    }),
    fixed("mustRegexReplaceAll", THREE, |call| {
        replace(call, compile_or_fail, true)
    }),
    fixed("regexReplaceAllLiteral", THREE, |call| {
        replace(call, compile_or_panic, false)
    }),
    fixed("mustRegexReplaceAllLiteral", THREE, |call| {
        replace(call, compile_or_fail, false)
    }),
    fixed("regexSplit", COUNTED, |call| split(call, compile_or_panic)),
    fixed("mustRegexSplit", COUNTED, |call| split(call, compile_or_fail)),
    fixed("regexQuoteMeta", &[Type::String], quote_meta),
];

/// Fuel consumed by compiling an expression.
const COMPILE_STEPS: u64 = 4_000;
/// Size of a compiled expression that costs one step.
const COMPILED_BYTES_PER_STEP: u64 = 4;

/// Function that compiles the expression in argument 0. For an invalid expression, Go's `must` functions
/// return an error and the other functions panic, with different texts.
type Compile = fn(&mut Call<'_>) -> Result<Rc<Program>, Failure>;

fn compile_or_fail(call: &mut Call<'_>) -> Result<Rc<Program>, Failure> {
    compile(call, |_, error| error)
}

fn compile_or_panic(call: &mut Call<'_>) -> Result<Rc<Program>, Failure> {
    compile(call, |text, error| {
        format!("regexp: Compile({}): {error}", backquote(text))
    })
}

fn compile(call: &mut Call<'_>, format_error: fn(&[u8], String) -> String) -> Result<Rc<Program>, Failure> {
    let text = call.str(0);
    call.meter.consume_fuel(1 + text.len() as u64)?;
    let is_new = !Program::is_cached(&text);
    if is_new {
        call.meter.consume_fuel(COMPILE_STEPS + 8 * text.len() as u64)?;
    }
    let compiled = Program::cached(&text);
    if is_new {
        let bytes = Program::compiled_bytes(&compiled) as u64;
        call.meter.consume_fuel(bytes / COMPILED_BYTES_PER_STEP)?;
    }
    let program = compiled.map_err(|error| Failure::message(format_error(&text, error.to_string())))?;
    program.charge(call.str(1).len(), call.meter)?;
    Ok(program)
}

fn is_match(call: &mut Call<'_>, compile: Compile) -> Result<bool, Failure> {
    let program = compile(call)?;
    Ok(program.is_match(&Haystack::new(&call.str(1))))
}

/// Reports whether the text matches. An invalid expression matches nothing.
fn is_match_or_false(call: &mut Call<'_>) -> Result<Value, Failure> {
    match is_match(call, compile_or_fail) {
        Err(Failure::Message(_)) => Ok(false.into()),
        other => other.map(Value::from),
    }
}

fn find(call: &mut Call<'_>, compile: Compile) -> Result<Value, Failure> {
    let (program, text) = (compile(call)?, call.str(1));
    let haystack = Haystack::new(&text);
    Ok(Value::string(
        program
            .find(&haystack, 0)
            .map_or(&b""[..], |found| haystack.slice(found)),
    ))
}

fn find_all(call: &mut Call<'_>, compile: Compile) -> Result<Value, Failure> {
    let (program, text) = (compile(call)?, call.str(1));
    let haystack = Haystack::new(&text);
    let found = bounded_find_all(&program, &haystack, to_limit(call.int(2)), call.meter)?;
    if found.is_empty() {
        return Ok(Value::List(List::nil(ListType::String)));
    }
    Ok(Value::strings(
        found.into_iter().map(|range| Str::from(haystack.slice(range))),
    ))
}

/// Size in bytes of a match: its range, and the string that is created from it.
const MATCH_BYTES: usize = 96;

/// Returns up to `count` matches. Fails if they do not fit into the available memory.
fn bounded_find_all(
    program: &Program,
    haystack: &Haystack<'_>,
    count: usize,
    meter: &mut Meter,
) -> Result<Vec<Range<usize>>, LimitExceeded> {
    let fitting = meter.available_memory() / MATCH_BYTES;
    let found = program.find_all(haystack, count.min(fitting.saturating_add(1)));
    if found.len() > fitting {
        return Err(LimitExceeded::Memory);
    }
    meter.consume_fuel(4 * found.len() as u64)?;
    Ok(found)
}

/// Converts a count to a limit. A negative count means no limit.
fn to_limit(count: i64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

fn replace(call: &mut Call<'_>, compile: Compile, expand: bool) -> Result<Value, Failure> {
    let (program, text, by) = (compile(call)?, call.str(1), call.str(2));
    let haystack = Haystack::new(&text);
    let with = Replacement { text: &by, expand };
    Ok(Value::string(replace_all(&program, &haystack, with, call.meter)?))
}

fn split(call: &mut Call<'_>, compile: Compile) -> Result<Value, Failure> {
    let (program, text, count) = (compile(call)?, call.str(1), call.int(2));
    if count == 0 {
        return Ok(Value::List(List::nil(ListType::String)));
    }
    if !program.is_empty && text.is_empty() {
        return Ok(Value::strings([""]));
    }
    let haystack = Haystack::new(&text);
    let found = bounded_find_all(&program, &haystack, to_limit(count), call.meter)?;
    let (mut parts, mut begin, mut end) = (Vec::new(), 0, 0);
    for range in found {
        if parts.len().saturating_add(1) == to_limit(count) {
            break;
        }
        end = range.start;
        if range.end != 0 {
            parts.push(Str::from(haystack.slice(begin..end)));
        }
        begin = range.end;
    }
    if end != haystack.len() {
        parts.push(Str::from(haystack.slice(begin..haystack.len())));
    }
    Ok(Value::strings(parts))
}

fn quote_meta(call: &mut Call<'_>) -> Result<Value, Failure> {
    let text = call.str(0);
    call.meter.reserve_string(2 * text.len())?;
    let mut out = Vec::with_capacity(text.len());
    for byte in text.iter() {
        if br"\.+*?()|[]{}^$".contains(byte) {
            out.push(b'\\');
        }
        out.push(*byte);
    }
    Ok(Value::string(out))
}

/// A regular expression in Go's syntax, for use outside of templates: JSON schemas contain patterns.
#[derive(Clone)]
pub struct Regex(Rc<Program>);

impl Regex {
    /// Compiles `text`.
    pub fn compile(text: &str) -> Result<Self, RegexError> {
        Program::cached(text.as_bytes()).map(Self)
    }

    /// Compiles `text`. Also returns the number of bytes that the compilation created, to limit its cost.
    pub fn compile_counted(text: &str) -> (Result<Self, RegexError>, usize) {
        let compiled = Program::cached(text.as_bytes());
        let bytes = Program::compiled_bytes(&compiled);
        (compiled.map(Self), bytes)
    }

    /// Returns the size of the compiled expression in bytes.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.0.memory()
    }

    /// Whether `text` contains a match.
    #[must_use]
    pub fn is_match(&self, text: &str) -> bool {
        self.0.is_match(&Haystack::new(text.as_bytes()))
    }
}
