//! Reports misspelled annotation keys, with the nearest known key.

use super::context::{AnnotationContext, Entry, warning};
use crate::profile::ANNOTATION_PREFIX;
use crate::record::UNDO_ANNOTATION;
use crate::{Code, Finding};

/// All keys of Contrast without their prefix.
const KNOWN_KEYS: [&str; 9] = [
    "skip-initializer",
    "servicemesh-ingress",
    "servicemesh-egress",
    "servicemesh-admin-interface-port",
    "secure-pv",
    "workload-secret-id",
    "image-store-size",
    "pod-role",
    "expose-service",
];

/// Maximum edit distance of a key that counts as misspelled.
const MAX_EDIT_DISTANCE: usize = 3;

/// Maximum length of a key that is compared. Kubernetes does not allow longer keys.
const MAX_KEY_LEN: usize = 320;

/// Reports all misspelled keys.
pub(super) fn check(context: &AnnotationContext<'_>) -> Vec<Finding> {
    context
        .template
        .iter()
        .chain(&context.object)
        .filter_map(check_key)
        .collect()
}

fn check_key(entry: &Entry<'_>) -> Option<Finding> {
    if entry.key == UNDO_ANNOTATION {
        return None;
    }
    let suffix = entry.key.strip_prefix(ANNOTATION_PREFIX);
    if suffix.is_some_and(|suffix| KNOWN_KEYS.contains(&suffix)) || entry.key.len() > MAX_KEY_LEN {
        return None;
    }
    let nearest = nearest_key(entry.key);
    let message = match (suffix, nearest) {
        (None, None) => return None,
        (Some(_), None) => format!("unknown annotation {}", entry.key),
        (_, Some(_)) => format!("{} looks misspelled", entry.key),
    };
    let help = nearest.map(|known| format!("did you mean {ANNOTATION_PREFIX}{known}?"));
    Some(Finding {
        help,
        ..warning(Code::AnnotationName, entry.key_node, message)
    })
}

/// Returns the known key with the smallest edit distance from `key`; `None` if the distance is too large.
fn nearest_key(key: &str) -> Option<&'static str> {
    let (domain, name) = key
        .rsplit_once('/')
        .map_or(("", key), |(domain, name)| (domain, name));
    let ours = ANNOTATION_PREFIX.trim_end_matches('/');
    // Annotations of other tools often have no domain: such a key must be a known key without its prefix.
    let domain_distance = if domain.is_empty() {
        MAX_EDIT_DISTANCE
    } else {
        edit_distance(domain, ours)
    };
    if domain_distance > MAX_EDIT_DISTANCE {
        return None;
    }
    let rated = KNOWN_KEYS
        .iter()
        .map(|known| (domain_distance + edit_distance(name, known), *known));
    rated
        .filter(|(distance, _)| *distance <= MAX_EDIT_DISTANCE)
        .min()
        .map(|(_, known)| known)
}

/// Returns the edit distance of two strings, ignoring case. If their lengths differ by more than
/// [`MAX_EDIT_DISTANCE`], returns a larger number without calculating it.
fn edit_distance(a: &str, b: &str) -> usize {
    let (a, b) = (a.to_ascii_lowercase(), b.to_ascii_lowercase());
    if a.len().abs_diff(b.len()) > MAX_EDIT_DISTANCE {
        return MAX_EDIT_DISTANCE + 1;
    }
    strsim::levenshtein(&a, &b)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(key: &str, expected: Option<&str>) {
        assert_eq!(nearest_key(key), expected, "{key}");
    }

    #[test]
    fn edits_are_counted() {
        assert_eq!(edit_distance("", ""), 0);
        assert_eq!(edit_distance("abc", "abc"), 0);
        assert_eq!(edit_distance("abc", "abd"), 1);
        assert_eq!(edit_distance("abc", "ab"), 1);
        assert_eq!(edit_distance("ab", "abc"), 1);
        assert_eq!(edit_distance("abc", "xyz"), 3);
        assert_eq!(edit_distance("abcdef", "ab"), MAX_EDIT_DISTANCE + 1);
        assert_eq!(edit_distance("ABC", "abc"), 0);
    }

    #[test]
    fn the_nearest_key_is_found() {
        check(
            "contrast.edgeless.systems/service-mesh-ingress",
            Some("servicemesh-ingress"),
        );
        check(
            "contrast.edgeless.systems/servicemesh-ingres",
            Some("servicemesh-ingress"),
        );
        check(
            "contrast.edgeless.systems/skip_initializer",
            Some("skip-initializer"),
        );
        check(
            "contrast.edgeless.systems/skip-initialiser",
            Some("skip-initializer"),
        );
        check(
            "contrast.edgless.systems/skip-initializer",
            Some("skip-initializer"),
        );
        check("contrast.edgeless.system/pod-role", Some("pod-role"));
        check("skip-initializer", Some("skip-initializer"));
        check(
            "Contrast.Edgeless.Systems/Skip-Initializer",
            Some("skip-initializer"),
        );
    }

    #[test]
    fn keys_of_other_tools_are_not_reported() {
        check("sidecar.istio.io/inject", None);
        check("prometheus.io/port", None);
        check("skip-initialize", None);
        check("example.com/skip-initializer", None);
        check("contrast.edgeless.systems/something-else", None);
        check("", None);
    }
}
