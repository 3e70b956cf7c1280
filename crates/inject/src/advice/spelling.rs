//! Misspelt annotation keys: a warning for each, with the nearest known key.

use super::context::{AnnotationContext, Entry, warning};
use crate::profile::ANNOTATION_PREFIX;
use crate::record::UNDO_ANNOTATION;
use crate::{Code, Finding};

/// Every key of Contrast, without its prefix.
const KNOWN: [&str; 9] = [
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

/// Maximum edit distance of a key that counts as misspelt.
const SLIPS: usize = 3;

/// No annotation key of Kubernetes is longer; comparing longer ones would only cost time.
const LONGEST: usize = 320;

/// Every misspelt key.
pub(super) fn check(context: &AnnotationContext<'_>) -> Vec<Finding> {
    context
        .template
        .iter()
        .chain(&context.object)
        .filter_map(misspelt)
        .collect()
}

fn misspelt(entry: &Entry<'_>) -> Option<Finding> {
    if entry.key == UNDO_ANNOTATION {
        return None;
    }
    let suffix = entry.key.strip_prefix(ANNOTATION_PREFIX);
    if suffix.is_some_and(|suffix| KNOWN.contains(&suffix)) || entry.key.len() > LONGEST {
        return None;
    }
    let meant = nearest(entry.key);
    let message = match (suffix, meant) {
        (None, None) => return None,
        (Some(_), None) => format!("no annotation is called {}", entry.key),
        (_, Some(_)) => format!("{} looks misspelt", entry.key),
    };
    let help = meant.map(|known| format!("did you mean {ANNOTATION_PREFIX}{known}?"));
    Some(Finding {
        help,
        ..warning(Code::AnnotationName, entry.key_node, message)
    })
}

/// The known key that `key` is nearest to, within reason.
fn nearest(key: &str) -> Option<&'static str> {
    let (domain, name) = key
        .rsplit_once('/')
        .map_or(("", key), |(domain, name)| (domain, name));
    let ours = ANNOTATION_PREFIX.trim_end_matches('/');
    // A name without any domain is common in other people's annotations; then it must be exactly one of ours.
    let off = if domain.is_empty() {
        SLIPS
    } else {
        distance(domain, ours)
    };
    if off > SLIPS {
        return None;
    }
    let rated = KNOWN.iter().map(|known| (off + distance(name, known), *known));
    rated
        .filter(|(slips, _)| *slips <= SLIPS)
        .min()
        .map(|(_, known)| known)
}

/// How many letters must be added, removed or changed; anything past [`SLIPS`] is just "many".
fn distance(a: &str, b: &str) -> usize {
    let (a, b) = (a.to_ascii_lowercase(), b.to_ascii_lowercase());
    if a.len().abs_diff(b.len()) > SLIPS {
        return SLIPS + 1;
    }
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = i;
        let mut left = i + 1;
        for (cell, y) in row.iter_mut().skip(1).zip(b.bytes()) {
            let changed = diagonal + usize::from(x != y);
            diagonal = *cell;
            left = changed.min(left + 1).min(*cell + 1);
            *cell = left;
        }
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(key: &str, expected: Option<&str>) {
        assert_eq!(nearest(key), expected, "{key}");
    }

    #[test]
    fn slips_are_counted() {
        assert_eq!(distance("", ""), 0);
        assert_eq!(distance("abc", "abc"), 0);
        assert_eq!(distance("abc", "abd"), 1);
        assert_eq!(distance("abc", "ab"), 1);
        assert_eq!(distance("ab", "abc"), 1);
        assert_eq!(distance("abc", "xyz"), 3);
        assert_eq!(distance("abcdef", "ab"), SLIPS + 1);
        assert_eq!(distance("ABC", "abc"), 0);
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
    fn other_peoples_keys_are_left_alone() {
        check("sidecar.istio.io/inject", None);
        check("prometheus.io/port", None);
        check("skip-initialize", None);
        check("example.com/skip-initializer", None);
        check("contrast.edgeless.systems/something-else", None);
        check("", None);
    }
}
