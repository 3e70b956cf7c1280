//! Cache of parsed `tpl` texts: charts often render the same value repeatedly.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::names::BuildNameHasher;
use crate::parse::Parsed;

/// Maximum number of bytes of text. When it is exceeded, all entries are dropped.
const MAX_BYTES: usize = 256 << 10;

/// Parsed texts of one set. A clone of the set starts with an empty cache, so that no entry outlives its
/// render.
#[derive(Default)]
pub(crate) struct ParsedTexts(Mutex<Entries>);

#[derive(Default)]
struct Entries {
    by_text: HashMap<Arc<[u8]>, Arc<Parsed>, BuildNameHasher>,
    bytes: usize,
}

impl Clone for ParsedTexts {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl ParsedTexts {
    /// Returns the result of parsing `text` under `name`, if it is cached.
    pub(crate) fn get(&self, name: &str, text: &[u8]) -> Option<Arc<Parsed>> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let parsed = known.by_text.get(text)?;
        (*parsed.name == *name).then(|| Arc::clone(parsed))
    }

    /// Adds a parsed text and returns it.
    pub(crate) fn put(&self, parsed: Parsed) -> Arc<Parsed> {
        let (text, parsed) = (Arc::clone(&parsed.source.text), Arc::new(parsed));
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.bytes.saturating_add(text.len()) > MAX_BYTES {
            *known = Entries::default();
        }
        if text.len() <= MAX_BYTES {
            known.bytes += text.len();
            known.by_text.insert(text, Arc::clone(&parsed));
        }
        parsed
    }
}
