//! What the operator writes: takes its deeds, gives counts by verb and kind. Of a release only what differs from what was there is written.

use std::collections::BTreeMap;

use super::Play;
use crate::objects;
use crate::recording::What;
use crate::report::Writes;

/// Counts by verb and kind.
pub(super) fn writes(play: &Play<'_>) -> Vec<Writes> {
    let mut counts: BTreeMap<(String, String), usize> = BTreeMap::new();
    let mut add = |verb: &str, kind: &str, count: usize| {
        if count > 0 {
            *counts.entry((verb.to_owned(), kind.to_owned())).or_default() += count;
        }
    };
    for deed in &play.recording.deeds {
        match &deed.what {
            What::Wrote(verb, kind, _) => add(verb, kind.name(), 1),
            What::Installed(release, before) => {
                for (verb, kind) in objects::written(play, release, before.as_ref()) {
                    add(verb, &kind, 1);
                }
            }
            What::Uninstalled(release) => {
                let gone = release.iter().flat_map(|release| objects::only_in(play, release));
                for (kind, ..) in gone {
                    add("delete", &kind, 1);
                }
            }
            What::Relabelled { .. } => add("patch", "Namespace", 1),
            What::Moved(key, _) => add("patch", key.kind().name(), 1),
            What::Annotated => add("patch", "MutatingWebhookConfiguration", 1),
            What::Told => add("create", "Event", 1),
        }
    }
    counts
        .into_iter()
        .map(|((verb, kind), count)| Writes { verb, kind, count })
        .collect()
}
