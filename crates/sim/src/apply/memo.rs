//! Cache of parsed field sets. Thousands of objects have equal field sets, so each text is parsed only once
//! and the set is shared.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Deref;
use std::sync::Arc;

use super::error::ManagedFieldsError;
use super::set::Set;

/// Maximum total size of the cached texts in bytes. The cache is cleared when it exceeds the maximum.
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
struct Cache {
    entries: HashMap<Box<str>, Fields>,
    bytes: usize,
}

thread_local! {
    static CACHE: RefCell<Cache> = RefCell::default();
}

impl Fields {
    /// Parses the wire form. [`Fields::text`] returns its canonical form.
    pub(super) fn parse(text: &str) -> Result<Self, ManagedFieldsError> {
        if let Some(cached) = CACHE.with_borrow(|cache| cache.entries.get(text).cloned()) {
            return Ok(cached);
        }
        let fields = serde_json::from_str(text)?;
        let fields = Self::from(Set::parse(&fields)?);
        if fields.text() != text {
            fields.add_to_cache(text);
        }
        Ok(fields)
    }

    /// Returns the wire form.
    pub(super) fn text(&self) -> &str {
        &self.0.text
    }

    fn add_to_cache(&self, text: &str) {
        CACHE.with_borrow_mut(|cache| {
            cache.bytes += text.len();
            if cache.bytes > MAX_CACHED_BYTES {
                cache.entries.clear();
                cache.bytes = text.len();
            }
            cache.entries.insert(text.into(), self.clone());
        });
    }
}

impl From<Set> for Fields {
    fn from(set: Set) -> Self {
        let mut text = String::with_capacity(512);
        set.write(&mut text);
        if let Some(cached) = CACHE.with_borrow(|cache| cache.entries.get(&*text).cloned()) {
            return cached;
        }
        let fields = Self(Arc::new(Inner {
            set,
            text: text.into(),
        }));
        fields.add_to_cache(fields.text());
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
        let (one, other) = (Fields::parse(text).unwrap(), Fields::parse(text).unwrap());
        assert!(Arc::ptr_eq(&one.0, &other.0));
        let created = Fields::from(Set::from_field_paths(&[&["spec", "replicas"]]));
        assert!(Arc::ptr_eq(&one.0, &created.0));
        assert_eq!(created.text(), text);
        let reformatted = Fields::parse(r#"{ "f:spec": {"f:replicas":{}} }"#).unwrap();
        assert!(Arc::ptr_eq(&one.0, &reformatted.0));
        assert!(Fields::parse("{").is_err());
        assert!(Fields::parse(r#"{"spec":{}}"#).is_err());
    }

    #[test]
    fn the_cache_size_is_bounded() {
        let long = "x".repeat(100_000);
        for number in 0..100 {
            Fields::parse(&format!(r#"{{"f:{long}{number}":{{}}}}"#)).unwrap();
        }
        assert!(CACHE.with_borrow(|cache| cache.entries.len()) <= MAX_CACHED_BYTES / 100_000);
    }
}
