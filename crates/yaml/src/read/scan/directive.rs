//! The directives `%YAML` and `%TAG`.

use super::{Scan, Scanner};
use crate::read::token::TokenKind;

impl Scanner<'_> {
    pub(super) fn scan_directive(&mut self) -> Scan<()> {
        let start = self.here;
        self.skip();
        let kind = match self.directive_name()? {
            "YAML" => {
                let (major, minor) = self.version()?;
                TokenKind::Version { major, minor }
            }
            "TAG" => self.tag_directive()?,
            _ => return Err(self.error("found unknown directive name")),
        };
        self.push(kind, start);
        self.require(1)?;
        self.skip_blanks(true)?;
        self.skip_comment()?;
        if self.break_len_at(0) == 0 && self.byte(0) != 0 {
            return Err(self.error("did not find expected comment or line break"));
        }
        if self.break_len_at(0) > 0 {
            self.require(2)?;
            self.skip_break();
        }
        Ok(())
    }

    fn directive_name(&mut self) -> Scan<&str> {
        self.require(1)?;
        let name = self.word()?;
        if name.is_empty() {
            return Err(self.error("could not find expected directive name"));
        }
        if !self.is_blank_or_end(0) {
            return Err(self.error("found unexpected non-alphabetical character"));
        }
        Ok(name)
    }

    fn version(&mut self) -> Scan<(u8, u8)> {
        self.skip_blanks(true)?;
        let major = self.version_number()?;
        if self.byte(0) != b'.' {
            return Err(self.error("did not find expected digit or '.' character"));
        }
        self.skip();
        Ok((major, self.version_number()?))
    }

    fn version_number(&mut self) -> Scan<u8> {
        self.require(1)?;
        let (mut value, mut length) = (0, 0);
        while self.byte(0).is_ascii_digit() {
            length += 1;
            if length > 2 {
                return Err(self.error("found extremely long version number"));
            }
            value = value * 10 + (self.byte(0) - b'0');
            self.skip();
            self.require(1)?;
        }
        if length == 0 {
            return Err(self.error("did not find expected version number"));
        }
        Ok(value)
    }

    fn tag_directive(&mut self) -> Scan<TokenKind<'static>> {
        self.skip_blanks(true)?;
        let handle = self.tag_handle(true)?;
        self.require(1)?;
        if !self.is_blank() {
            return Err(self.error("did not find expected whitespace"));
        }
        self.skip_blanks(true)?;
        let prefix = self.tag_uri("")?;
        self.require(1)?;
        if !self.is_blank_or_end(0) {
            return Err(self.error("did not find expected whitespace or line break"));
        }
        Ok(TokenKind::TagDirective(Box::new((handle, prefix))))
    }
}
