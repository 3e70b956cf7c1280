//! Splits the response to a list into its items while it is received, so that memory is needed for one item
//! instead of a page: items may be large, and their number is not known.

/// A splitter for one response.
#[derive(Debug, Default)]
pub(super) struct ItemSplitter {
    /// The response without its items.
    envelope: Vec<u8>,
    /// The current item.
    item: Vec<u8>,
    /// Nesting depth of objects and lists.
    depth: usize,
    text: Text,
    /// The last complete string at depth 1, which is a key or a value of the envelope.
    last: Vec<u8>,
    /// Whether the position is in the list of items.
    is_in_items: bool,
}

/// State of reading a string.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Text {
    #[default]
    Outside,
    Inside,
    Escaped,
}

/// Depth of the items: the envelope is at depth 1, and the list of items at depth 2.
const LIST_DEPTH: usize = 2;

impl ItemSplitter {
    /// Adds a part of the response, and calls `accept` with each item that it completes.
    pub(super) fn push<E>(
        &mut self,
        part: &[u8],
        mut accept: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        for byte in part {
            if self.text == Text::Outside {
                self.push_structure(*byte, &mut accept)?;
            } else {
                self.push_text(*byte);
            }
        }
        Ok(())
    }

    /// Returns the response without its items.
    pub(super) fn into_envelope(self) -> Vec<u8> {
        self.envelope
    }

    fn push_text(&mut self, byte: u8) {
        self.store(byte);
        self.text = match (self.text, byte) {
            (Text::Inside, b'\\') => Text::Escaped,
            (Text::Inside, b'"') => Text::Outside,
            _ => Text::Inside,
        };
        if self.depth == 1 && self.text != Text::Outside {
            self.last.push(byte);
        }
    }

    fn push_structure<E>(
        &mut self,
        byte: u8,
        accept: &mut impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        match byte {
            b'"' => {
                self.text = Text::Inside;
                if self.depth == 1 {
                    self.last.clear();
                }
            }
            b'[' | b'{' => {
                self.is_in_items |= self.depth == 1 && byte == b'[' && self.last == b"items";
                self.depth += 1;
            }
            b']' | b'}' => {
                self.depth = self.depth.saturating_sub(1);
                self.is_in_items &= self.depth > 1;
            }
            b',' if self.is_in_items && self.depth == LIST_DEPTH => return Ok(()),
            _ => {}
        }
        self.store(byte);
        if self.is_in_items && self.depth == LIST_DEPTH && byte == b'}' {
            let done = accept(&self.item);
            self.item.clear();
            return done;
        }
        Ok(())
    }

    /// Appends a byte to the item or the envelope.
    fn store(&mut self, byte: u8) {
        let starts_item = self.is_in_items && self.depth > LIST_DEPTH;
        if starts_item || !self.item.is_empty() {
            self.item.push(byte);
        } else {
            self.envelope.push(byte);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    /// Splits a response that is received in parts of this size.
    fn split(text: &str, size: usize) -> (Vec<String>, String) {
        let mut splitter = ItemSplitter::default();
        let mut items = Vec::new();
        for part in text.as_bytes().chunks(size) {
            let done: Result<(), Infallible> = splitter.push(part, |item| {
                items.push(String::from_utf8(item.to_vec()).unwrap());
                Ok(())
            });
            done.unwrap();
        }
        (items, String::from_utf8(splitter.into_envelope()).unwrap())
    }

    fn check(text: &str, items: &[&str], envelope: &str) {
        for size in [1, 2, 3, 7, text.len()] {
            assert_eq!(
                split(text, size),
                (
                    items.iter().map(|item| (*item).to_owned()).collect(),
                    envelope.to_owned()
                ),
                "{size}"
            );
        }
    }

    #[test]
    fn items_are_separated_from_the_envelope() {
        check(
            r#"{"kind":"List","metadata":{"continue":"t"},"items":[{"a":1},{"b":{"c":[2,{}]}}]}"#,
            &[r#"{"a":1}"#, r#"{"b":{"c":[2,{}]}}"#],
            r#"{"kind":"List","metadata":{"continue":"t"},"items":[]}"#,
        );
        check(
            r#"{"items": [ {"a":1} , {"b":2} ], "metadata": {"resourceVersion": "7"}}"#,
            &[r#"{"a":1}"#, r#"{"b":2}"#],
            r#"{"items": [    ], "metadata": {"resourceVersion": "7"}}"#,
        );
    }

    #[test]
    fn brackets_quotes_and_keys_in_strings_are_text() {
        check(
            r#"{"items":[{"a":"}],{\"\\"},{"items":[{"x":"items"}]}]}"#,
            &[r#"{"a":"}],{\"\\"}"#, r#"{"items":[{"x":"items"}]}"#],
            r#"{"items":[]}"#,
        );
    }

    #[test]
    fn other_lists_belong_to_the_envelope() {
        for text in [
            r#"{"items":null,"metadata":{}}"#,
            r#"{"items":[]}"#,
            r#"{"metadata":{"items":[{"a":1}]},"others":[{"b":2}]}"#,
            r#"{"kind":"items","list":[{"a":1}]}"#,
        ] {
            check(text, &[], text);
        }
    }

    #[test]
    fn a_truncated_response_has_an_incomplete_envelope() {
        let (items, envelope) = split(r#"{"items":[{"a":1},{"b""#, 4);
        assert_eq!(items, [r#"{"a":1}"#]);
        assert!(serde_json::from_str::<serde_json::Value>(&envelope).is_err());
    }
}
