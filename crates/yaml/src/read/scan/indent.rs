//! Tokens of the structure: indentation, simple keys and flow brackets.

use super::{MAX_DEPTH, MAX_KEY_LEN, NO_KEY, Scan, Scanner, SimpleKey, error_at};
use crate::read::token::{ScanPosition, TokenKind};

impl<'a> Scanner<'a> {
    /// Whether the simple key `number` is still possible.
    pub(super) fn key_is_valid(&mut self, number: usize) -> Scan<bool> {
        let (here, skipped) = (self.here, self.skipped);
        let Some(key) = self.simple_keys.get_mut(number).filter(|key| key.possible) else {
            return Ok(false);
        };
        if key.position.line < here.line || key.position.index + MAX_KEY_LEN < here.index {
            if key.required {
                return Err(error_at("could not find expected ':'", here, skipped));
            }
            key.possible = false;
        }
        Ok(key.possible)
    }

    /// Records that a simple key may start at the current position.
    pub(super) fn save_key(&mut self) -> Scan<()> {
        if !self.key_allowed {
            return Ok(());
        }
        self.remove_key()?;
        let token = self.parsed + self.tokens.len();
        let level = self.simple_keys.len() - 1;
        let required = self.flow_level == 0 && self.indent == i64::from(self.here.column);
        if let Some(key) = self.simple_keys.last_mut() {
            *key = SimpleKey {
                possible: true,
                required,
                token,
                position: self.here,
            };
        }
        self.set_key(token, level as u32);
        Ok(())
    }

    pub(super) fn remove_key(&mut self) -> Scan<()> {
        let (here, skipped) = (self.here, self.skipped);
        let Some(key) = self.simple_keys.last_mut().filter(|key| key.possible) else {
            return Ok(());
        };
        if key.required {
            return Err(error_at("could not find expected ':'", here, skipped));
        }
        key.possible = false;
        let token = key.token;
        self.set_key(token, NO_KEY);
        Ok(())
    }

    fn set_key(&mut self, token: usize, key: u32) {
        let Some(at) = token.checked_sub(self.parsed) else {
            return;
        };
        if key != NO_KEY && self.keys_by_token.len() <= at {
            self.keys_by_token.resize(at + 1, NO_KEY);
        }
        if let Some(slot) = self.keys_by_token.get_mut(at) {
            *slot = key;
        }
    }

    /// Opens a block at `column` if it is indented more than the current block. Its token is inserted
    /// before token `number`.
    fn roll_indent(
        &mut self,
        column: u32,
        number: usize,
        kind: TokenKind<'a>,
        position: ScanPosition,
    ) -> Scan<()> {
        if self.flow_level > 0 || self.indent >= i64::from(column) {
            return Ok(());
        }
        self.indents.push(self.indent);
        self.indent = i64::from(column);
        if self.indents.len() > MAX_DEPTH {
            return Err(self.error("exceeded max depth of 10000"));
        }
        self.insert(number, kind, position);
        Ok(())
    }

    /// Closes the blocks that are indented more than `column`.
    pub(super) fn unroll_indent(&mut self, column: i64) {
        if self.flow_level > 0 {
            return;
        }
        while self.indent > column {
            self.push(TokenKind::BlockEnd, self.here);
            self.indent = self.indents.pop().unwrap_or(-1);
        }
    }

    fn close_all(&mut self) -> Scan<()> {
        self.unroll_indent(-1);
        self.remove_key()?;
        self.key_allowed = false;
        Ok(())
    }

    pub(super) fn fetch_stream_end(&mut self) -> Scan<()> {
        if self.here.column != 0 {
            self.here.column = 0;
            self.here.line += 1;
        }
        self.close_all()?;
        self.push(TokenKind::StreamEnd, self.here);
        Ok(())
    }

    pub(super) fn fetch_directive(&mut self) -> Scan<()> {
        self.close_all()?;
        self.scan_directive()
    }

    pub(super) fn fetch_document(&mut self, kind: TokenKind<'a>) -> Scan<()> {
        self.close_all()?;
        let start = self.here;
        self.advance_to(start.at as usize + 3);
        self.push(kind, start);
        Ok(())
    }

    fn push_one_character(&mut self, kind: TokenKind<'a>) {
        let start = self.here;
        self.skip();
        self.push(kind, start);
    }

    pub(super) fn fetch_flow_start(&mut self, kind: TokenKind<'a>) -> Scan<()> {
        self.save_key()?;
        self.simple_keys.push(SimpleKey {
            token: self.parsed + self.tokens.len(),
            position: self.here,
            ..SimpleKey::default()
        });
        self.flow_level += 1;
        if self.flow_level > MAX_DEPTH {
            return Err(self.error("exceeded max depth of 10000"));
        }
        self.key_allowed = true;
        self.push_one_character(kind);
        Ok(())
    }

    pub(super) fn fetch_flow_end(&mut self, kind: TokenKind<'a>) -> Scan<()> {
        self.remove_key()?;
        if self.flow_level > 0 {
            self.flow_level -= 1;
            // If no key was saved on this level, the key's token number is that of the bracket: go-yaml
            // then drops the possibility that the whole collection is a key.
            if let Some(key) = self.simple_keys.pop() {
                self.set_key(key.token, NO_KEY);
            }
        }
        self.key_allowed = false;
        self.push_one_character(kind);
        Ok(())
    }

    pub(super) fn fetch_flow_entry(&mut self) -> Scan<()> {
        self.remove_key()?;
        self.key_allowed = true;
        self.push_one_character(TokenKind::FlowEntry);
        Ok(())
    }

    /// Opens a block at the current position if it is indented more than the current block. Fails with
    /// `error` if no entry may start here. Does nothing in flow collections.
    fn start_block(&mut self, kind: TokenKind<'a>, error: &'static str) -> Scan<()> {
        if self.flow_level > 0 {
            return Ok(());
        }
        if !self.key_allowed {
            return Err(self.error(error));
        }
        self.roll_indent(self.here.column, usize::MAX, kind, self.here)
    }

    pub(super) fn fetch_block_entry(&mut self) -> Scan<()> {
        self.start_block(
            TokenKind::BlockSequenceStart,
            "block sequence entries are not allowed in this context",
        )?;
        self.remove_key()?;
        self.key_allowed = true;
        self.push_one_character(TokenKind::BlockEntry);
        Ok(())
    }

    pub(super) fn fetch_key(&mut self) -> Scan<()> {
        self.start_block(
            TokenKind::BlockMappingStart,
            "mapping keys are not allowed in this context",
        )?;
        self.remove_key()?;
        self.key_allowed = self.flow_level == 0;
        self.push_one_character(TokenKind::Key);
        Ok(())
    }

    pub(super) fn fetch_value(&mut self) -> Scan<()> {
        let level = self.simple_keys.len() - 1;
        if self.key_is_valid(level)? {
            let key = self.simple_keys.last().copied().unwrap_or_default();
            self.insert(key.token, TokenKind::Key, key.position);
            self.roll_indent(
                key.position.column,
                key.token,
                TokenKind::BlockMappingStart,
                key.position,
            )?;
            if let Some(key) = self.simple_keys.last_mut() {
                key.possible = false;
            }
            self.set_key(key.token, NO_KEY);
            self.key_allowed = false;
        } else {
            self.start_block(
                TokenKind::BlockMappingStart,
                "mapping values are not allowed in this context",
            )?;
            self.key_allowed = self.flow_level == 0;
        }
        self.push_one_character(TokenKind::Value);
        Ok(())
    }
}
