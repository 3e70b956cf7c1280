//! Texts of `tpl` that are parsed already: charts render the same value many times.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::names::Mix;
use crate::parse::Parsed;

/// Bytes of text after which all entries are dropped.
const MAX_BYTES: usize = 256 << 10;

/// The parsed texts of one set. A clone of the set starts without any, so that none outlives its render.
#[derive(Default)]
pub(crate) struct Texts(Mutex<Known>);

#[derive(Default)]
struct Known {
    by_text: HashMap<Arc<[u8]>, Arc<Parsed>, Mix>,
    bytes: usize,
}

impl Clone for Texts {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl Texts {
    /// Returns `text` as it was parsed under `name`.
    pub(crate) fn get(&self, name: &str, text: &[u8]) -> Option<Arc<Parsed>> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let parsed = known.by_text.get(text)?;
        (*parsed.source.name == *name).then(|| Arc::clone(parsed))
    }

    /// Keeps a parsed text and returns it.
    pub(crate) fn put(&self, parsed: Parsed) -> Arc<Parsed> {
        let (text, parsed) = (Arc::clone(&parsed.source.text), Arc::new(parsed));
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.bytes.saturating_add(text.len()) > MAX_BYTES {
            *known = Known::default();
        }
        if text.len() <= MAX_BYTES {
            known.bytes += text.len();
            known.by_text.insert(text, Arc::clone(&parsed));
        }
        parsed
    }
}
