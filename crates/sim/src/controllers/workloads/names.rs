//! Generated suffixes of names: hashes in the safe alphabet of Kubernetes.

use serde_json::Value;

use crate::random::SUFFIX_ALPHABET;
use crate::trace::fnv;

/// Returns a hash of a template. It has the format of the real hash, but a different value.
pub(super) fn template_hash(template: &Value, collisions: i64) -> String {
    let mut digest = fnv(0x811C_9DC5, template.to_string().as_bytes());
    if collisions > 0 {
        digest = fnv(digest, &collisions.to_le_bytes());
    }
    encode(&(digest & 0xFFFF_FFFF).to_string())
}

/// Encodes a text in the alphabet of name suffixes. It has no vowels, so that the result contains no words.
fn encode(text: &str) -> String {
    text.bytes()
        .filter_map(|byte| SUFFIX_ALPHABET.get(usize::from(byte) % SUFFIX_ALPHABET.len()))
        .copied()
        .map(char::from)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn hashes_use_the_safe_alphabet() {
        assert_eq!(encode("2717459"), "6c5c89f");
        let hash = template_hash(&json!({"a": 1}), 0);
        assert_eq!(hash, template_hash(&json!({"a": 1}), 0));
        assert_ne!(hash, template_hash(&json!({"a": 2}), 0));
        assert_ne!(hash, template_hash(&json!({"a": 1}), 1));
        assert!(hash.bytes().all(|byte| SUFFIX_ALPHABET.contains(&byte)));
    }
}
