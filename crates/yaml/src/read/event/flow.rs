//! States of the parser inside brackets (flow style): `[a, {b: c}]`.

use super::{Allowed, Event, EventKind, Parse, Parser, Properties, State};
use crate::Error;
use crate::read::token::{Style, TokenKind};

impl<'a> Parser<'a> {
    pub(super) fn flow_sequence_entry(&mut self, first: bool) -> Parse<'a> {
        if first {
            self.scanner.take()?;
        }
        if !matches!(self.scanner.peek()?.kind, TokenKind::FlowSequenceEnd) {
            if !first {
                self.flow_comma("did not find expected ',' or ']'")?;
            }
            let token = self.scanner.peek()?;
            let (start, end) = (token.start, token.end);
            match token.kind {
                TokenKind::Key => {
                    self.state = State::FlowPairKey;
                    self.scanner.take()?;
                    let kind = EventKind::MappingStart(Style::Flow, Properties::default());
                    return Ok(Event { kind, start, end });
                }
                TokenKind::FlowSequenceEnd => {}
                _ => {
                    self.states.push(State::FlowSequenceEntry);
                    return self.node(Allowed::Flow);
                }
            }
        }
        self.close(EventKind::SequenceEnd)
    }

    pub(super) fn flow_comma(&mut self, otherwise: &'static str) -> Result<(), Error> {
        let token = self.scanner.peek()?;
        let position = token.start;
        if !matches!(token.kind, TokenKind::FlowEntry) {
            return Err(self.error(otherwise, position));
        }
        self.scanner.take()?;
        self.scanner.peek()?;
        Ok(())
    }

    pub(super) fn flow_pair_key(&mut self) -> Parse<'a> {
        let token = self.scanner.peek()?;
        let end = token.end;
        match token.kind {
            TokenKind::Value | TokenKind::FlowEntry | TokenKind::FlowSequenceEnd => {
                // libyaml consumes this token together with the missing key.
                self.scanner.take()?;
                Ok(self.empty(end, State::FlowPairValue))
            }
            _ => {
                self.states.push(State::FlowPairValue);
                self.node(Allowed::Flow)
            }
        }
    }

    pub(super) fn flow_pair_value(&mut self) -> Parse<'a> {
        let token = self.scanner.peek()?;
        let position = token.start;
        if matches!(token.kind, TokenKind::Value) {
            self.scanner.take()?;
            if !matches!(
                self.scanner.peek()?.kind,
                TokenKind::FlowEntry | TokenKind::FlowSequenceEnd
            ) {
                self.states.push(State::FlowPairEnd);
                return self.node(Allowed::Flow);
            }
        }
        Ok(self.empty(position, State::FlowPairEnd))
    }

    pub(super) fn flow_pair_end(&mut self) -> Parse<'a> {
        let start = self.scanner.peek()?.start;
        self.state = State::FlowSequenceEntry;
        let kind = EventKind::MappingEnd;
        Ok(Event {
            kind,
            start,
            end: start,
        })
    }

    pub(super) fn flow_mapping_key(&mut self, first: bool) -> Parse<'a> {
        if first {
            self.scanner.take()?;
        }
        if !matches!(self.scanner.peek()?.kind, TokenKind::FlowMappingEnd) {
            if !first {
                self.flow_comma("did not find expected ',' or '}'")?;
            }
            match self.scanner.peek()?.kind {
                TokenKind::Key => {
                    self.scanner.take()?;
                    return self.flow_mapping_part(State::FlowMappingValue, true);
                }
                TokenKind::FlowMappingEnd => {}
                _ => {
                    self.states.push(State::FlowMappingEmptyValue);
                    return self.node(Allowed::Flow);
                }
            }
        }
        self.close(EventKind::MappingEnd)
    }

    pub(super) fn flow_mapping_value(&mut self) -> Parse<'a> {
        let token = self.scanner.peek()?;
        let position = token.start;
        if !matches!(token.kind, TokenKind::Value) {
            return Ok(self.empty(position, State::FlowMappingKey));
        }
        self.scanner.take()?;
        self.flow_mapping_part(State::FlowMappingKey, false)
    }

    pub(super) fn flow_mapping_part(&mut self, next: State, key: bool) -> Parse<'a> {
        let token = self.scanner.peek()?;
        let position = token.start;
        match token.kind {
            TokenKind::FlowEntry | TokenKind::FlowMappingEnd => Ok(self.empty(position, next)),
            TokenKind::Value if key => Ok(self.empty(position, next)),
            _ => {
                self.states.push(next);
                self.node(Allowed::Flow)
            }
        }
    }
}
