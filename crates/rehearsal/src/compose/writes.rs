//! Counts the operator's writes by verb and kind. Only changed objects of a release are counted.

use std::collections::BTreeMap;

use super::Rehearsal;
use crate::objects;
use crate::recording::ActionKind;
use crate::report::WriteCount;

/// Returns the number of writes by verb and kind.
pub(super) fn writes(rehearsal: &Rehearsal<'_>) -> Vec<WriteCount> {
    let mut counts: BTreeMap<(String, String), usize> = BTreeMap::new();
    let mut add = |verb: &str, kind: &str, count: usize| {
        if count > 0 {
            *counts.entry((verb.to_owned(), kind.to_owned())).or_default() += count;
        }
    };
    for action in &rehearsal.recording.actions {
        match &action.kind {
            ActionKind::Wrote(verb, kind, _) => add(verb, kind.name(), 1),
            ActionKind::Installed(release, before) => {
                for (verb, kind) in objects::release_writes(rehearsal, release, before.as_ref()) {
                    add(verb, &kind, 1);
                }
            }
            ActionKind::Uninstalled(release) => {
                let gone = release
                    .iter()
                    .flat_map(|release| objects::exclusive_objects(rehearsal, release));
                for (kind, ..) in gone {
                    add("delete", &kind, 1);
                }
            }
            ActionKind::Relabeled { .. } => add("patch", "Namespace", 1),
            ActionKind::Moved(key, _) => add("patch", key.kind().name(), 1),
            ActionKind::WebhookAnnotated => add("patch", "MutatingWebhookConfiguration", 1),
            ActionKind::EventRecorded => add("create", "Event", 1),
        }
    }
    counts
        .into_iter()
        .map(|((verb, kind), count)| WriteCount { verb, kind, count })
        .collect()
}
