//! Cache of parsed field sets. Thousands of objects have equal field sets, so each text is parsed once and
//! its set is shared.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Deref;
use std::sync::Arc;

use super::error::ManagedFieldsError;
use super::set::Set;

/// Maximum total size of cached texts in bytes; the cache is then cleared.
const MAX_CACHED_BYTES: usize = 2 << 20;

/// A field set with its wire form.
#[derive(Clone, Debug)]
pub(super) struct Fields(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    set: Set,
    text: Box<str>,
}

#[derive(Default)]
struct Memo {
    known: HashMap<Box<str>, Fields>,
    bytes: usize,
}

thread_local! {
    static MEMO: RefCell<Memo> = RefCell::default();
}

impl Fields {
    /// Parses the wire form; the stored text is its canonical form.
    pub(super) fn read(text: &str) -> Result<Self, ManagedFieldsError> {
        if let Some(known) = MEMO.with_borrow(|memo| memo.known.get(text).cloned()) {
            return Ok(known);
        }
        let fields = serde_json::from_str(text)?;
        let fields = Self::from(Set::parse(&fields)?);
        if fields.text() != text {
            fields.remember(text);
        }
        Ok(fields)
    }

    /// Returns the wire form.
    pub(super) fn text(&self) -> &str {
        &self.0.text
    }

    fn remember(&self, text: &str) {
        MEMO.with_borrow_mut(|memo| {
            memo.bytes += text.len();
            if memo.bytes > MAX_CACHED_BYTES {
                memo.known.clear();
                memo.bytes = text.len();
            }
            memo.known.insert(text.into(), self.clone());
        });
    }
}

impl From<Set> for Fields {
    fn from(set: Set) -> Self {
        let mut text = String::with_capacity(512);
        set.write(&mut text);
        if let Some(known) = MEMO.with_borrow(|memo| memo.known.get(&*text).cloned()) {
            return known;
        }
        let fields = Self(Arc::new(Inner {
            set,
            text: text.into(),
        }));
        fields.remember(fields.text());
        fields
    }
}

impl Deref for Fields {
    type Target = Set;

    fn deref(&self) -> &Set {
        &self.0.set
    }
}

impl PartialEq for Fields {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0.set == other.0.set
    }
}

impl Eq for Fields {}

impl Default for Fields {
    fn default() -> Self {
        Set::default().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_texts_share_one_set() {
        let text = r#"{"f:spec":{"f:replicas":{}}}"#;
        let (one, other) = (Fields::read(text).unwrap(), Fields::read(text).unwrap());
        assert!(Arc::ptr_eq(&one.0, &other.0));
        let made = Fields::from(Set::from_field_paths(&[&["spec", "replicas"]]));
        assert!(Arc::ptr_eq(&one.0, &made.0));
        assert_eq!(made.text(), text);
        let spelled = Fields::read(r#"{ "f:spec": {"f:replicas":{}} }"#).unwrap();
        assert!(Arc::ptr_eq(&one.0, &spelled.0));
        assert!(Fields::read("{").is_err());
        assert!(Fields::read(r#"{"spec":{}}"#).is_err());
    }

    #[test]
    fn the_cache_size_is_bounded() {
        let long = "x".repeat(100_000);
        for number in 0..100 {
            Fields::read(&format!(r#"{{"f:{long}{number}":{{}}}}"#)).unwrap();
        }
        assert!(MEMO.with_borrow(|memo| memo.known.len()) <= MAX_CACHED_BYTES / 100_000);
    }
}
