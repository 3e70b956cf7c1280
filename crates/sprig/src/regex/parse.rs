//! Parsing of Go's regular expression syntax into the tree of the `regex` engines, with Go's errors.

use regex_syntax::hir::{Capture, Class, Dot, Hir, Look, Repetition};

use super::class;
use super::cursor::{Cursor, check_utf8};
use super::error::{Reason, RegexError};
use super::escape::read_escape;
use super::node::{Node, Repeat};

/// A parsed expression.
#[derive(Debug)]
pub(super) struct Parsed {
    /// Syntax tree.
    pub(super) hir: Hir,
    /// Names of the groups; unnamed groups have an empty name. The first group is the whole match.
    pub(super) names: Vec<String>,
}

/// Parses `text`.
pub(super) fn parse(text: &[u8]) -> Result<Parsed, RegexError> {
    Parser::new(text).run()
}

/// Flags such as in `(?ims-U)`.
#[allow(clippy::struct_excessive_bools)]
#[derive(Clone, Copy, Debug, Default)]
struct Flags {
    fold: bool,
    multi_line: bool,
    dot_newline: bool,
    lazy: bool,
}

/// An open group.
struct Frame {
    alternatives: Vec<Node>,
    sequence: Vec<Node>,
    /// Number of the group if it is a capturing group.
    capture: Option<u32>,
    /// Flags outside of the group.
    outer: Flags,
}

impl Frame {
    fn new(capture: Option<u32>, outer: Flags) -> Self {
        Self {
            alternatives: Vec::new(),
            sequence: Vec::new(),
            capture,
            outer,
        }
    }

    fn next_alternative(&mut self) {
        self.alternatives
            .push(Node::concat(std::mem::take(&mut self.sequence)));
    }

    fn close(mut self) -> Node {
        self.next_alternative();
        Node::alternation(self.alternatives)
    }
}

struct Parser<'a> {
    whole: &'a [u8],
    at: Cursor<'a>,
    flags: Flags,
    /// Innermost open group. `outer` contains the groups that enclose it.
    frame: Frame,
    outer: Vec<Frame>,
    names: Vec<String>,
}

impl<'a> Parser<'a> {
    fn new(whole: &'a [u8]) -> Self {
        let flags = Flags::default();
        let frame = Frame::new(None, flags);
        Self {
            whole,
            at: Cursor(whole),
            flags,
            frame,
            outer: Vec::new(),
            names: vec![String::new()],
        }
    }

    fn run(mut self) -> Result<Parsed, RegexError> {
        let mut last_repeat = None;
        while let Some(byte) = self.at.peek() {
            let start = self.at;
            let repeated = self.parse_element(byte, last_repeat)?;
            last_repeat = repeated.then_some(start);
        }
        if !self.outer.is_empty() {
            return Err(Reason::MissingParen.at(self.whole));
        }
        let node = self.frame.close();
        node.check(self.whole)?;
        Ok(Parsed {
            hir: node.hir,
            names: self.names,
        })
    }

    /// Parses one element. Returns whether it is a repetition, which must not follow another repetition.
    fn parse_element(&mut self, byte: u8, last_repeat: Option<Cursor<'a>>) -> Result<bool, RegexError> {
        match byte {
            b'(' if self.at.byte(1) == Some(b'?') => self.parse_perl_group()?,
            b'(' => {
                self.open_group(String::new());
                self.at.skip(1);
            }
            b'|' => {
                self.frame.next_alternative();
                self.at.skip(1);
            }
            b')' => self.close()?,
            b'^' => self.push_look(
                if self.flags.multi_line {
                    Look::StartLF
                } else {
                    Look::Start
                },
                1,
            )?,
            b'$' => self.push_look(
                if self.flags.multi_line {
                    Look::EndLF
                } else {
                    Look::End
                },
                1,
            )?,
            b'.' => {
                let dot = if self.flags.dot_newline {
                    Dot::AnyChar
                } else {
                    Dot::AnyCharExceptLF
                };
                self.push(Node::leaf(Hir::dot(dot)))?;
                self.at.skip(1);
            }
            b'[' => {
                let class = class::parse_bracketed(&mut self.at, self.flags.fold)?;
                self.push(Node::leaf(Hir::class(Class::Unicode(class))))?;
            }
            b'*' | b'+' | b'?' => return self.parse_simple_repetition(byte, last_repeat).map(|()| true),
            b'{' => return self.parse_counted_repetition(last_repeat),
            b'\\' => self.parse_backslash()?,
            _ => {
                if let Some(c) = self.at.next()? {
                    self.push_literal(u32::from(c))?;
                }
            }
        }
        Ok(false)
    }

    fn push(&mut self, node: Node) -> Result<(), RegexError> {
        node.check(self.whole)?;
        self.frame.sequence.push(node);
        Ok(())
    }

    fn push_look(&mut self, look: Look, bytes: usize) -> Result<(), RegexError> {
        self.at.skip(bytes);
        self.push(Node::leaf(Hir::look(look)))
    }

    fn push_literal(&mut self, code: u32) -> Result<(), RegexError> {
        let class = match char::from_u32(code) {
            Some(c) => class::class_from_ranges(&[(c, c)], self.flags.fold),
            None => class::scalar_range(code, code),
        };
        self.push(Node::leaf(Hir::class(Class::Unicode(class))))
    }

    fn open_group(&mut self, name: String) {
        let number = self.names.len() as u32;
        self.names.push(name);
        self.open_frame(Some(number));
    }

    fn open_frame(&mut self, capture: Option<u32>) {
        let frame = Frame::new(capture, self.flags);
        self.outer.push(std::mem::replace(&mut self.frame, frame));
    }

    fn close(&mut self) -> Result<(), RegexError> {
        let outer = self
            .outer
            .pop()
            .ok_or_else(|| Reason::UnexpectedParen.at(self.whole))?;
        let frame = std::mem::replace(&mut self.frame, outer);
        self.flags = frame.outer;
        let capture = frame.capture;
        let node = frame.close();
        let node = match capture {
            None => node,
            Some(index) => node.wrap(2, |sub| {
                Hir::capture(Capture {
                    index,
                    name: None,
                    sub: Box::new(sub),
                })
            }),
        };
        self.at.skip(1);
        self.push(node)
    }

    fn parse_simple_repetition(
        &mut self,
        byte: u8,
        last_repeat: Option<Cursor<'a>>,
    ) -> Result<(), RegexError> {
        let before = self.at;
        self.at.skip(1);
        let (min, max) = match byte {
            b'*' => (0, None),
            b'+' => (1, None),
            _ => (0, Some(1)),
        };
        self.push_repetition(
            Repeat {
                min,
                max,
                counted: false,
            },
            before,
            last_repeat,
        )
    }

    /// Parses a counted repetition such as `{2}`, `{2,}` or `{2,5}`. In other texts the brace is literal.
    fn parse_counted_repetition(&mut self, last_repeat: Option<Cursor<'a>>) -> Result<bool, RegexError> {
        let before = self.at;
        let Some((min, max)) = parse_bounds(&mut self.at) else {
            self.at = before;
            self.at.skip(1);
            self.push_literal(u32::from('{'))?;
            return Ok(false);
        };
        let wrong = min > MAX_REPEAT || max.is_some_and(|max| max > MAX_REPEAT || min > max);
        if wrong {
            return Err(Reason::RepeatSize.at(before.until(self.at)));
        }
        self.push_repetition(
            Repeat {
                min,
                max,
                counted: true,
            },
            before,
            last_repeat,
        )?;
        Ok(true)
    }

    fn push_repetition(
        &mut self,
        repeat: Repeat,
        before: Cursor<'a>,
        last_repeat: Option<Cursor<'a>>,
    ) -> Result<(), RegexError> {
        let lazy = self.at.eat(b"?") != self.flags.lazy;
        if let Some(last) = last_repeat {
            return Err(Reason::RepeatOp.at(last.until(self.at)));
        }
        let node = self.frame.sequence.pop();
        let node = node.ok_or_else(|| Reason::MissingRepeatArgument.at(before.until(self.at)))?;
        let node = node.repeat(repeat, |sub| {
            let sub = Box::new(sub);
            Hir::repetition(Repetition {
                min: repeat.min,
                max: repeat.max,
                greedy: !lazy,
                sub,
            })
        });
        node.check(self.whole)?;
        if node.repeats > u64::from(MAX_REPEAT) && repeat.has_checked_count() {
            return Err(Reason::RepeatSize.at(before.until(self.at)));
        }
        self.frame.sequence.push(node);
        Ok(())
    }

    fn parse_backslash(&mut self) -> Result<(), RegexError> {
        match self.at.byte(1) {
            Some(b'A') => return self.push_look(Look::Start, 2),
            Some(b'z') => return self.push_look(Look::End, 2),
            Some(b'b') => return self.push_look(Look::WordAscii, 2),
            Some(b'B') => return self.push_look(Look::WordAsciiNegate, 2),
            Some(b'C') => return Err(Reason::Escape.at(self.at.first(2))),
            Some(b'Q') => return self.parse_quoted(),
            _ => {}
        }
        let fold = self.flags.fold;
        let class = match class::parse_unicode(&mut self.at, fold)? {
            Some(class) => Some(class),
            None => class::parse_perl(&mut self.at, fold),
        };
        if let Some(class) = class {
            return self.push(Node::leaf(Hir::class(Class::Unicode(class))));
        }
        let code = read_escape(&mut self.at)?;
        self.push_literal(code)
    }

    /// Parses `\Q…\E`. The end marker is optional.
    fn parse_quoted(&mut self) -> Result<(), RegexError> {
        self.at.skip(2);
        let len = self.at.find(b"\\E").unwrap_or(self.at.0.len());
        let mut inside = Cursor(self.at.first(len));
        while let Some(c) = inside.next()? {
            self.push_literal(u32::from(c))?;
        }
        self.at.skip(len + 2);
        Ok(())
    }

    /// Parses the start of a group with `?`: `(?P<name>`, `(?<name>`, `(?i)`, `(?i:`.
    fn parse_perl_group(&mut self) -> Result<(), RegexError> {
        let start = self.at;
        let p = start.0.len() > 4 && start.starts_with(b"(?P<");
        let plain = start.0.len() > 3 && start.starts_with(b"(?<");
        if !p && !plain {
            return self.parse_flag_group();
        }
        let Some(end) = start.find(b">") else {
            check_utf8(start.0)?;
            return Err(Reason::NamedCapture.at(start.0));
        };
        let name = check_utf8(start.0.get(if plain { 3 } else { 4 }..end).unwrap_or_default())?;
        if name.is_empty() || !name.chars().all(|c| c == '_' || c.is_ascii_alphanumeric()) {
            return Err(Reason::NamedCapture.at(start.first(end + 1)));
        }
        self.open_group(name.to_owned());
        self.at.skip(end + 1);
        Ok(())
    }

    fn parse_flag_group(&mut self) -> Result<(), RegexError> {
        let start = self.at;
        self.at.skip(2);
        let mut flags = self.flags;
        let (mut on, mut saw_flag) = (true, false);
        while let Some(c) = self.at.next()? {
            match c {
                'i' => flags.fold = on,
                'm' => flags.multi_line = on,
                's' => flags.dot_newline = on,
                'U' => flags.lazy = on,
                '-' if on => {
                    (on, saw_flag) = (false, false);
                    continue;
                }
                ':' | ')' if on || saw_flag => {
                    if c == ':' {
                        self.open_frame(None);
                    }
                    self.flags = flags;
                    return Ok(());
                }
                _ => break,
            }
            saw_flag = true;
        }
        Err(Reason::PerlOp.at(start.until(self.at)))
    }
}

/// Maximum repetition count. Counts of nested repetitions are multiplied.
const MAX_REPEAT: u32 = 1_000;

/// Parses the bounds in braces. A number above the limit is returned as `u32::MAX`.
fn parse_bounds(at: &mut Cursor<'_>) -> Option<(u32, Option<u32>)> {
    at.skip(1);
    let min = parse_number(at)?;
    let max = if !at.eat(b",") {
        Some(min)
    } else if at.peek()? == b'}' {
        None
    } else {
        Some(parse_number(at)?)
    };
    at.eat(b"}").then_some((min, max))
}

/// Parses digits without a leading zero.
fn parse_number(at: &mut Cursor<'_>) -> Option<u32> {
    let digits = at.0.iter().take_while(|b| b.is_ascii_digit()).count();
    let text = std::str::from_utf8(at.first(digits)).ok()?;
    if digits == 0 || (digits > 1 && text.starts_with('0')) {
        return None;
    }
    at.skip(digits);
    Some(text.parse().unwrap_or(u32::MAX))
}
