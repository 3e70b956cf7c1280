//! Rendered text to manifests: takes files, splits them into documents, tells hooks from the rest and puts both into the
//! order of installation. Knows nothing of templates and of how anything is printed.

mod head;
mod order;
mod split;

use std::collections::BTreeMap;

pub use head::Head;
pub(crate) use split::{split, trim};

use crate::dialect::Dialect;
use crate::error::ChartError;

/// One document that is installed.
#[derive(Clone, Debug)]
pub struct Manifest<'a> {
    /// The template it came from: `chart/templates/x.yaml`.
    pub path: &'a str,
    /// Its text.
    pub content: &'a [u8],
    /// What its first lines say.
    pub head: Head,
}

/// One document that runs at some point of a release's life.
#[derive(Clone, Debug)]
pub struct Hook<'a> {
    /// The document.
    pub manifest: Manifest<'a>,
    /// When it runs.
    pub events: Vec<HookEvent>,
    /// Its place among hooks of one event.
    pub weight: i64,
    /// When it is deleted, as written.
    pub delete_policies: Vec<String>,
    /// When its logs are shown, as written.
    pub output_log_policies: Vec<String>,
}

/// A point in a release's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are Helm's")]
pub enum HookEvent {
    PreInstall,
    PostInstall,
    PreDelete,
    PostDelete,
    PreUpgrade,
    PostUpgrade,
    PreRollback,
    PostRollback,
    Test,
}

/// The manifests of a render.
#[derive(Clone, Debug, Default)]
pub struct Manifests<'a> {
    /// What is installed, in order.
    pub generic: Vec<Manifest<'a>>,
    /// What runs, in order.
    pub hooks: Vec<Hook<'a>>,
    /// Hooks left out because no Helm knows their event: the annotation's text.
    pub unknown_hooks: Vec<String>,
}

const EVENTS: &[(&str, HookEvent)] = &[
    ("pre-install", HookEvent::PreInstall),
    ("post-install", HookEvent::PostInstall),
    ("pre-delete", HookEvent::PreDelete),
    ("post-delete", HookEvent::PostDelete),
    ("pre-upgrade", HookEvent::PreUpgrade),
    ("post-upgrade", HookEvent::PostUpgrade),
    ("pre-rollback", HookEvent::PreRollback),
    ("post-rollback", HookEvent::PostRollback),
    ("test", HookEvent::Test),
    ("test-success", HookEvent::Test),
];

/// Splits and sorts `files`, which map a template's path to what it rendered.
pub fn sort_manifests(
    files: &BTreeMap<String, Vec<u8>>,
    dialect: Dialect,
) -> Result<Manifests<'_>, ChartError> {
    let mut sorted = Manifests::default();
    for (path, text) in files {
        let is_partial = path.rsplit('/').next().unwrap_or(path).starts_with('_');
        if !is_partial {
            for content in split(text, dialect) {
                add(
                    &Document {
                        path,
                        content,
                        whole: text,
                    },
                    dialect,
                    &mut sorted,
                )?;
            }
        }
    }
    sorted
        .generic
        .sort_by(|a, b| order::by_kind(&a.head.kind, &b.head.kind, dialect));
    sorted
        .hooks
        .sort_by(|a, b| order::by_kind(&a.manifest.head.kind, &b.manifest.head.kind, dialect));
    Ok(sorted)
}

struct Document<'a> {
    path: &'a str,
    content: &'a [u8],
    whole: &'a [u8],
}

fn add<'a>(document: &Document<'a>, dialect: Dialect, sorted: &mut Manifests<'a>) -> Result<(), ChartError> {
    let Document { path, content, whole } = *document;
    let head = Head::parse(content, dialect).map_err(|error| error.in_file(path, whole, content))?;
    let manifest = Manifest { path, content, head };
    let Some(types) = manifest.head.annotations.get("helm.sh/hook").cloned() else {
        sorted.generic.push(manifest);
        return Ok(());
    };
    let events: Option<Vec<HookEvent>> = types.split(',').map(event).collect();
    match events {
        Some(events) => sorted.hooks.push(hook(manifest, events)),
        None => sorted.unknown_hooks.push(types),
    }
    Ok(())
}

fn event(name: &str) -> Option<HookEvent> {
    let name = name.trim().to_lowercase();
    EVENTS
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, event)| *event)
}

fn hook(manifest: Manifest<'_>, events: Vec<HookEvent>) -> Hook<'_> {
    let listed = |key: &str| -> Vec<String> {
        let text = manifest.head.annotations.get(key);
        text.map(|text| text.split(',').map(|item| item.trim().to_lowercase()).collect())
            .unwrap_or_default()
    };
    let weight = manifest
        .head
        .annotations
        .get("helm.sh/hook-weight")
        .and_then(|text| text.parse().ok());
    Hook {
        events,
        weight: weight.unwrap_or(0),
        delete_policies: listed("helm.sh/hook-delete-policy"),
        output_log_policies: listed("helm.sh/hook-output-log-policy"),
        manifest,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(entries: &[(&str, &str)]) -> BTreeMap<String, Vec<u8>> {
        entries
            .iter()
            .map(|(path, text)| ((*path).to_owned(), text.as_bytes().to_vec()))
            .collect()
    }

    fn check(entries: &[(&str, &str)], dialect: Dialect, expected: &[&str]) {
        let files = files(entries);
        let sorted = sort_manifests(&files, dialect).unwrap();
        let generic = sorted
            .generic
            .iter()
            .map(|manifest| format!("{} {}", manifest.head.kind, manifest.path));
        let hooks = sorted.hooks.iter().map(|hook| {
            format!(
                "{} {} {:?} {}",
                hook.manifest.head.kind, hook.manifest.path, hook.events, hook.weight
            )
        });
        let unknown = sorted
            .unknown_hooks
            .iter()
            .map(|types| format!("unknown {types}"));
        let found: Vec<String> = generic.chain(hooks).chain(unknown).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn kinds_decide_then_paths() {
        let entries = [
            (
                "c/templates/a.yaml",
                "kind: Zebra\n---\nkind: Service\n---\nkind: MutatingWebhookConfiguration\n",
            ),
            ("c/templates/b.yaml", "kind: Ant\n---\nkind: Namespace\n"),
            ("c/templates/_c.yaml", "kind: Namespace\n"),
            ("c/templates/d.yaml", " \n# nothing\n"),
        ];
        check(
            &entries,
            Dialect::Helm4,
            &[
                "Namespace c/templates/b.yaml",
                "Service c/templates/a.yaml",
                "MutatingWebhookConfiguration c/templates/a.yaml",
                " c/templates/d.yaml",
                "Ant c/templates/b.yaml",
                "Zebra c/templates/a.yaml",
            ],
        );
        check(
            &entries,
            Dialect::Helm3,
            &[
                "Namespace c/templates/b.yaml",
                "Service c/templates/a.yaml",
                " c/templates/d.yaml",
                "Ant c/templates/b.yaml",
                "MutatingWebhookConfiguration c/templates/a.yaml",
                "Zebra c/templates/a.yaml",
            ],
        );
    }

    #[test]
    fn hooks_are_set_apart() {
        let annotated =
            |annotations: &str| format!("kind: Job\nmetadata:\n  annotations: {{{annotations}}}\n");
        let two = annotated("helm.sh/hook: 'pre-install, Test-Success', helm.sh/hook-weight: -5");
        let odd = annotated("helm.sh/hook: 'test,crd-install'");
        check(
            &[("a.yaml", &two), ("b.yaml", &odd), ("c.yaml", &annotated("x: y"))],
            Dialect::Helm4,
            &[
                "Job c.yaml",
                "Job a.yaml [PreInstall, Test] -5",
                "unknown test,crd-install",
            ],
        );
    }
}
