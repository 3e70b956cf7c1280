//! Conversion of tokens to events as in libyaml's parser: a state machine without recursion.

mod flow;

use std::borrow::Cow;

use super::scan::Scanner;
use super::token::{ScanPosition, Style, Token, TokenKind};
use crate::{Error, Problem};

#[derive(Clone, Debug)]
pub(super) struct Event<'a> {
    pub(super) kind: EventKind<'a>,
    pub(super) start: ScanPosition,
    pub(super) end: ScanPosition,
}

#[derive(Clone, Debug)]
pub(super) enum EventKind<'a> {
    StreamEnd,
    DocumentStart,
    DocumentEnd,
    Alias(&'a str),
    Scalar {
        value: Cow<'a, str>,
        style: Style,
        implicit: bool,
        properties: Properties<'a>,
    },
    SequenceStart(Style, Properties<'a>),
    SequenceEnd,
    MappingStart(Style, Properties<'a>),
    MappingEnd,
}

/// Properties before a node.
#[derive(Clone, Debug, Default)]
pub(super) struct Properties<'a> {
    pub(super) anchor: Option<&'a str>,
    pub(super) tag: Option<Box<str>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    StreamStart,
    ImplicitDocumentStart,
    DocumentStart,
    DocumentContent,
    DocumentEnd,
    BlockNode,
    SequenceFirst,
    SequenceEntry,
    IndentlessEntry,
    MappingFirst,
    MappingKey,
    MappingValue,
    FlowSequenceFirst,
    FlowSequenceEntry,
    FlowPairKey,
    FlowPairValue,
    FlowPairEnd,
    FlowMappingFirst,
    FlowMappingKey,
    FlowMappingValue,
    FlowMappingEmptyValue,
    End,
}

/// Nodes that are allowed at a position.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Allowed {
    Flow,
    Block,
    BlockOrIndentless,
}

#[derive(Debug)]
pub(super) struct Parser<'a> {
    scanner: Scanner<'a>,
    state: State,
    states: Vec<State>,
    tags: Vec<(String, String)>,
    /// Start of the last `-` of a block list.
    entry: ScanPosition,
}

type Parse<'a> = Result<Event<'a>, Error>;

const DEFAULT_TAGS: [(&str, &str); 2] = [("!", "!"), ("!!", "tag:yaml.org,2002:")];

impl<'a> Parser<'a> {
    pub(super) fn new(scanner: Scanner<'a>) -> Self {
        Self {
            scanner,
            state: State::StreamStart,
            states: Vec::new(),
            tags: Vec::new(),
            entry: ScanPosition::default(),
        }
    }

    pub(super) fn entry(&self) -> ScanPosition {
        self.entry
    }

    pub(super) fn skipped(&self) -> usize {
        self.scanner.skipped()
    }

    /// Returns the next event. At the end of the stream, always returns [`EventKind::StreamEnd`].
    pub(super) fn next(&mut self) -> Parse<'a> {
        match self.state {
            State::StreamStart => {
                self.scanner.take()?;
                self.state = State::ImplicitDocumentStart;
                self.next()
            }
            State::ImplicitDocumentStart => self.document_start(true),
            State::DocumentStart => self.document_start(false),
            State::DocumentContent => self.document_content(),
            State::DocumentEnd => self.document_end(),
            State::BlockNode => self.node(Allowed::Block),
            State::SequenceFirst => {
                self.scanner.take()?;
                self.sequence_entry()
            }
            State::SequenceEntry => self.sequence_entry(),
            State::IndentlessEntry => self.indentless_entry(),
            State::MappingFirst => {
                self.scanner.take()?;
                self.mapping_key()
            }
            State::MappingKey => self.mapping_key(),
            State::MappingValue => self.mapping_value(),
            State::FlowSequenceFirst => self.flow_sequence_entry(true),
            State::FlowSequenceEntry => self.flow_sequence_entry(false),
            State::FlowPairKey => self.flow_pair_key(),
            State::FlowPairValue => self.flow_pair_value(),
            State::FlowPairEnd => self.flow_pair_end(),
            State::FlowMappingFirst => self.flow_mapping_key(true),
            State::FlowMappingKey => self.flow_mapping_key(false),
            State::FlowMappingValue => self.flow_mapping_value(),
            State::FlowMappingEmptyValue => {
                let position = self.scanner.peek()?.start;
                Ok(self.empty(position, State::FlowMappingKey))
            }
            State::End => Ok(Event {
                kind: EventKind::StreamEnd,
                start: ScanPosition::default(),
                end: ScanPosition::default(),
            }),
        }
    }

    // Documents.

    fn document_start(&mut self, implicit: bool) -> Parse<'a> {
        while !implicit && matches!(self.scanner.peek()?.kind, TokenKind::DocumentEnd) {
            self.scanner.take()?;
        }
        let token = self.scanner.peek()?;
        let (start, end) = (token.start, token.end);
        match token.kind {
            TokenKind::StreamEnd => {
                self.state = State::End;
                let kind = EventKind::StreamEnd;
                return Ok(Event { kind, start, end });
            }
            TokenKind::Version { .. } | TokenKind::TagDirective(_) | TokenKind::DocumentStart => {}
            _ if implicit => {
                self.directives()?;
                self.states.push(State::DocumentEnd);
                self.state = State::BlockNode;
                let kind = EventKind::DocumentStart;
                return Ok(Event { kind, start, end });
            }
            _ => {}
        }
        self.directives()?;
        let token = self.scanner.peek()?;
        if !matches!(token.kind, TokenKind::DocumentStart) {
            let position = token.start;
            return Err(self.error("did not find expected <document start>", position));
        }
        self.states.push(State::DocumentEnd);
        self.state = State::DocumentContent;
        let end = self.scanner.take()?.end;
        let kind = EventKind::DocumentStart;
        Ok(Event { kind, start, end })
    }

    fn directives(&mut self) -> Result<(), Error> {
        let mut versioned = false;
        loop {
            let token = self.scanner.peek()?;
            let position = token.start;
            match &token.kind {
                TokenKind::Version { .. } if versioned => {
                    return Err(self.error("found duplicate %YAML directive", position));
                }
                TokenKind::Version { major: 1, minor: 1 } => versioned = true,
                TokenKind::Version { .. } => {
                    return Err(self.error("found incompatible YAML document", position));
                }
                TokenKind::TagDirective(directive) => {
                    let (handle, prefix) = (**directive).clone();
                    if self.tags.iter().any(|(known, _)| *known == handle) {
                        return Err(self.error("found duplicate %TAG directive", position));
                    }
                    self.tags.push((handle, prefix));
                }
                _ => break,
            }
            self.scanner.take()?;
        }
        for (handle, prefix) in DEFAULT_TAGS {
            if !self.tags.iter().any(|(known, _)| known == handle) {
                self.tags.push((handle.into(), prefix.into()));
            }
        }
        Ok(())
    }

    fn document_content(&mut self) -> Parse<'a> {
        let token = self.scanner.peek()?;
        let position = token.start;
        match token.kind {
            TokenKind::Version { .. }
            | TokenKind::TagDirective(_)
            | TokenKind::DocumentStart
            | TokenKind::DocumentEnd
            | TokenKind::StreamEnd => {
                self.pop();
                let state = self.state;
                Ok(self.empty(position, state))
            }
            _ => self.node(Allowed::Block),
        }
    }

    fn document_end(&mut self) -> Parse<'a> {
        let token = self.scanner.peek()?;
        let (start, mut end) = (token.start, token.start);
        if matches!(token.kind, TokenKind::DocumentEnd) {
            end = self.scanner.take()?.end;
        }
        self.tags.clear();
        self.state = State::DocumentStart;
        let kind = EventKind::DocumentEnd;
        Ok(Event { kind, start, end })
    }

    // Nodes.

    fn node(&mut self, allowed: Allowed) -> Parse<'a> {
        if let TokenKind::Alias(name) = self.scanner.peek()?.kind {
            self.pop();
            let Token { start, end, .. } = self.scanner.take()?;
            let kind = EventKind::Alias(name);
            return Ok(Event { kind, start, end });
        }
        let (properties, start, end) = self.properties()?;
        self.content(allowed, properties, start, end)
    }

    /// Parses an anchor, a tag, or both in any order. Returns them with their start and end.
    fn properties(&mut self) -> Result<(Properties<'a>, ScanPosition, ScanPosition), Error> {
        let first = self.scanner.peek()?.start;
        let (start, mut end) = (first, first);
        let mut properties = Properties::default();
        let mut tag = None;
        loop {
            match self.scanner.peek()?.kind {
                TokenKind::Anchor(name) if properties.anchor.is_none() => properties.anchor = Some(name),
                TokenKind::Tag(_) if tag.is_none() => {}
                _ => break,
            }
            let token = self.scanner.take()?;
            end = token.end;
            if let TokenKind::Tag(written) = token.kind {
                tag = Some((written, token.start));
            }
        }
        // The next token has already been scanned, so its errors take precedence over an unknown handle.
        if let Some((written, position)) = tag {
            properties.tag = self.full_tag(&written.handle, &written.suffix, position)?;
        }
        Ok((properties, start, end))
    }

    fn content(
        &mut self,
        allowed: Allowed,
        properties: Properties<'a>,
        start: ScanPosition,
        end: ScanPosition,
    ) -> Parse<'a> {
        let block = allowed != Allowed::Flow;
        let token = self.scanner.peek()?;
        let (token_start, token_end) = (token.start, token.end);
        let (state, kind) = match &token.kind {
            TokenKind::BlockEntry if allowed == Allowed::BlockOrIndentless => (
                State::IndentlessEntry,
                EventKind::SequenceStart(Style::Block, properties),
            ),
            TokenKind::Scalar { .. } => return self.scalar(properties, start),
            TokenKind::FlowSequenceStart => (
                State::FlowSequenceFirst,
                EventKind::SequenceStart(Style::Flow, properties),
            ),
            TokenKind::FlowMappingStart => (
                State::FlowMappingFirst,
                EventKind::MappingStart(Style::Flow, properties),
            ),
            TokenKind::BlockSequenceStart if block => (
                State::SequenceFirst,
                EventKind::SequenceStart(Style::Block, properties),
            ),
            TokenKind::BlockMappingStart if block => (
                State::MappingFirst,
                EventKind::MappingStart(Style::Block, properties),
            ),
            _ if properties.anchor.is_some() || properties.tag.is_some() => {
                self.pop();
                let implicit = properties.tag.is_none();
                let kind = EventKind::Scalar {
                    value: Cow::Borrowed(""),
                    style: Style::Plain,
                    implicit,
                    properties,
                };
                return Ok(Event { kind, start, end });
            }
            _ => return Err(self.error("did not find expected node content", token_start)),
        };
        self.state = state;
        Ok(Event {
            kind,
            start,
            end: token_end,
        })
    }

    fn scalar(&mut self, properties: Properties<'a>, start: ScanPosition) -> Parse<'a> {
        let token = self.scanner.take()?;
        self.pop();
        let TokenKind::Scalar { value, style } = token.kind else {
            return Err(self.error("did not find expected node content", token.start));
        };
        let implicit = match properties.tag.as_deref() {
            None => style == Style::Plain,
            Some(tag) => tag == "!",
        };
        let kind = EventKind::Scalar {
            value,
            style,
            implicit,
            properties,
        };
        Ok(Event {
            kind,
            start,
            end: token.end,
        })
    }

    fn full_tag(
        &self,
        handle: &str,
        suffix: &str,
        position: ScanPosition,
    ) -> Result<Option<Box<str>>, Error> {
        if handle.is_empty() {
            return Ok((!suffix.is_empty()).then(|| suffix.into()));
        }
        match self.tags.iter().find(|(known, _)| known == handle) {
            Some((_, prefix)) if !prefix.is_empty() || !suffix.is_empty() => {
                Ok(Some(format!("{prefix}{suffix}").into()))
            }
            _ => Err(self.error("found undefined tag handle", position)),
        }
    }

    // Block collections.

    fn sequence_entry(&mut self) -> Parse<'a> {
        let token = self.scanner.peek()?;
        let (start, end) = (token.start, token.end);
        match token.kind {
            TokenKind::BlockEntry => {
                self.entry = self.scanner.take()?.start;
                if matches!(
                    self.scanner.peek()?.kind,
                    TokenKind::BlockEntry | TokenKind::BlockEnd
                ) {
                    return Ok(self.empty(end, State::SequenceEntry));
                }
                self.states.push(State::SequenceEntry);
                self.node(Allowed::Block)
            }
            TokenKind::BlockEnd => self.close(EventKind::SequenceEnd),
            _ => Err(self.error("did not find expected '-' indicator", start)),
        }
    }

    fn indentless_entry(&mut self) -> Parse<'a> {
        let token = self.scanner.peek()?;
        let (start, end) = (token.start, token.end);
        if !matches!(token.kind, TokenKind::BlockEntry) {
            self.pop();
            let kind = EventKind::SequenceEnd;
            return Ok(Event {
                kind,
                start,
                end: start,
            });
        }
        self.entry = self.scanner.take()?.start;
        match self.scanner.peek()?.kind {
            TokenKind::BlockEntry | TokenKind::Key | TokenKind::Value | TokenKind::BlockEnd => {
                Ok(self.empty(end, State::IndentlessEntry))
            }
            _ => {
                self.states.push(State::IndentlessEntry);
                self.node(Allowed::Block)
            }
        }
    }

    fn mapping_key(&mut self) -> Parse<'a> {
        let token = self.scanner.peek()?;
        let (start, end) = (token.start, token.end);
        match token.kind {
            TokenKind::Key => {
                self.scanner.take()?;
                self.mapping_part(end, State::MappingValue)
            }
            TokenKind::BlockEnd => self.close(EventKind::MappingEnd),
            _ => Err(self.error("did not find expected key", start)),
        }
    }

    fn mapping_value(&mut self) -> Parse<'a> {
        let token = self.scanner.peek()?;
        let (start, end) = (token.start, token.end);
        if !matches!(token.kind, TokenKind::Value) {
            return Ok(self.empty(start, State::MappingKey));
        }
        self.scanner.take()?;
        self.mapping_part(end, State::MappingKey)
    }

    /// Parses a key or a value. Both are optional.
    fn mapping_part(&mut self, position: ScanPosition, next: State) -> Parse<'a> {
        match self.scanner.peek()?.kind {
            TokenKind::Key | TokenKind::Value | TokenKind::BlockEnd => Ok(self.empty(position, next)),
            _ => {
                self.states.push(next);
                self.node(Allowed::BlockOrIndentless)
            }
        }
    }

    // Helpers of block and flow collections.

    fn close(&mut self, kind: EventKind<'a>) -> Parse<'a> {
        let Token { start, end, .. } = self.scanner.take()?;
        self.pop();
        Ok(Event { kind, start, end })
    }

    fn pop(&mut self) {
        self.state = self.states.pop().unwrap_or(State::End);
    }

    /// Creates the event of a missing node.
    fn empty(&mut self, position: ScanPosition, next: State) -> Event<'a> {
        self.state = next;
        let kind = EventKind::Scalar {
            value: Cow::Borrowed(""),
            style: Style::Plain,
            implicit: true,
            properties: Properties::default(),
        };
        Event {
            kind,
            start: position,
            end: position,
        }
    }

    /// Creates a parser error. Go prints its line counted from 0, and omits it for the first line.
    fn error(&self, problem: &'static str, position: ScanPosition) -> Error {
        let line = position.line as usize;
        let problem = problem.into();
        Problem::Syntax { problem, line }.at(position.position(self.skipped()))
    }
}
