//! Anchors, aliases and tags.

use super::{Scan, Scanner};
use crate::read::token::{Tag, TokenKind};

impl<'a> Scanner<'a> {
    pub(super) fn fetch_anchor(&mut self, alias: bool) -> Scan<()> {
        self.save_key()?;
        self.key_allowed = false;
        let start = self.here;
        self.skip();
        self.require(1)?;
        let name = self.word()?;
        let ends = self.is_blank_or_end(0)
            || matches!(
                self.byte(0),
                b'?' | b':' | b',' | b']' | b'}' | b'%' | b'@' | b'`'
            );
        if name.is_empty() || !ends {
            return Err(self.error("did not find expected alphabetic or numeric character"));
        }
        let kind = if alias {
            TokenKind::Alias(name)
        } else {
            TokenKind::Anchor(name)
        };
        self.push(kind, start);
        Ok(())
    }

    /// Scans letters, digits, `_` and `-`.
    pub(super) fn word(&mut self) -> Scan<&'a str> {
        let start = self.here.at as usize;
        let rest = self.source.get(start..).unwrap_or_default();
        let len = rest.iter().take_while(|byte| is_word(**byte)).count();
        self.advance_to(start + len);
        self.require(1)?;
        Ok(self.slice(start, start + len))
    }

    pub(super) fn fetch_tag(&mut self) -> Scan<()> {
        self.save_key()?;
        self.key_allowed = false;
        let start = self.here;
        self.require(2)?;
        let (handle, suffix) = if self.byte(1) == b'<' {
            self.verbatim_tag()?
        } else {
            self.short_tag()?
        };
        self.require(1)?;
        if !self.is_blank_or_end(0) {
            return Err(self.error("did not find expected whitespace or line break"));
        }
        self.push(TokenKind::Tag(Box::new(Tag { handle, suffix })), start);
        Ok(())
    }

    fn verbatim_tag(&mut self) -> Scan<(String, String)> {
        self.skip();
        self.skip();
        let suffix = self.tag_uri("")?;
        if self.byte(0) != b'>' {
            return Err(self.error("did not find the expected '>'"));
        }
        self.skip();
        Ok((String::new(), suffix))
    }

    fn short_tag(&mut self) -> Scan<(String, String)> {
        let handle = self.tag_handle(false)?;
        if handle.len() > 1 && handle.ends_with('!') {
            return Ok((handle, self.tag_uri("")?));
        }
        let suffix = self.tag_uri(&handle)?;
        // `!` without a suffix is a complete tag.
        Ok(if suffix.is_empty() {
            (suffix, "!".into())
        } else {
            ("!".into(), suffix)
        })
    }

    pub(super) fn tag_handle(&mut self, directive: bool) -> Scan<String> {
        self.require(1)?;
        if self.byte(0) != b'!' {
            return Err(self.error("did not find expected '!'"));
        }
        self.skip();
        self.require(1)?;
        let mut handle = format!("!{}", self.word()?);
        if self.byte(0) == b'!' {
            self.skip();
            handle.push('!');
        } else if directive && handle != "!" {
            return Err(self.error("did not find expected '!'"));
        }
        Ok(handle)
    }

    /// Scans the rest of a tag. `head` is the part that was already scanned as a handle.
    pub(super) fn tag_uri(&mut self, head: &str) -> Scan<String> {
        let mut uri: Vec<u8> = head.bytes().skip(1).collect();
        let mut any = !head.is_empty();
        self.require(1)?;
        while is_uri(self.byte(0)) {
            if self.byte(0) == b'%' {
                self.uri_escape(&mut uri)?;
            } else {
                uri.push(self.byte(0));
                self.skip();
            }
            self.require(1)?;
            any = true;
        }
        if !any {
            return Err(self.error("did not find expected tag URI"));
        }
        Ok(String::from_utf8_lossy(&uri).into_owned())
    }

    /// Decodes one UTF-8 character, each byte written as `%XX`.
    fn uri_escape(&mut self, out: &mut Vec<u8>) -> Scan<()> {
        let mut left = 0;
        loop {
            self.require(3)?;
            let digits = self
                .text
                .get(self.here.at as usize + 1..self.here.at as usize + 3);
            let octet = digits.filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
            let octet = octet.and_then(|digits| u8::from_str_radix(digits, 16).ok());
            let (b'%', Some(octet)) = (self.byte(0), octet) else {
                return Err(self.error("did not find URI escaped octet"));
            };
            if left == 0 {
                left = match octet {
                    0..=0x7F => 1,
                    0xC0..=0xDF => 2,
                    0xE0..=0xEF => 3,
                    0xF0..=0xF7 => 4,
                    _ => return Err(self.error("found an incorrect leading UTF-8 octet")),
                };
            } else if octet & 0xC0 != 0x80 {
                return Err(self.error("found an incorrect trailing UTF-8 octet"));
            }
            out.push(octet);
            self.advance_to(self.here.at as usize + 3);
            left -= 1;
            if left == 0 {
                return Ok(());
            }
        }
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

fn is_uri(byte: u8) -> bool {
    is_word(byte)
        || matches!(
            byte,
            b';' | b'/'
                | b'?'
                | b':'
                | b'@'
                | b'&'
                | b'='
                | b'+'
                | b'$'
                | b','
                | b'.'
                | b'!'
                | b'~'
                | b'*'
                | b'\''
                | b'('
                | b')'
                | b'['
                | b']'
                | b'%'
        )
}
