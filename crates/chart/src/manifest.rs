//! Splitting of rendered files into manifests. Separates hooks from other manifests and sorts both in
//! install order.

mod head;
mod order;
pub(crate) mod split;

use std::collections::BTreeMap;

pub use head::Head;
pub(crate) use split::{trim, trim_end, trim_start};

use crate::dialect::Dialect;
use crate::error::ChartError;
use order::InstallOrder;

/// A manifest.
#[derive(Clone, Debug)]
pub struct Manifest<'a> {
    /// Path of the template: `chart/templates/x.yaml`.
    pub path: &'a str,
    /// Text of the manifest.
    pub content: &'a [u8],
    /// Decoded head.
    pub head: Head,
}

/// A manifest that runs at a point of the release lifecycle.
#[derive(Clone, Debug)]
pub struct Hook<'a> {
    /// Manifest of the hook.
    pub manifest: Manifest<'a>,
    /// Lifecycle events at which it runs.
    pub events: Vec<HookEvent>,
    /// Value of `helm.sh/hook-weight`: order among the hooks of one event.
    pub weight: i64,
    /// Values of `helm.sh/hook-delete-policy`, as written.
    pub delete_policies: Vec<String>,
    /// Values of `helm.sh/hook-output-log-policy`, as written.
    pub output_log_policies: Vec<String>,
}

/// A point of the release lifecycle.
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

/// Manifests of a render.
#[derive(Clone, Debug, Default)]
pub struct Manifests<'a> {
    /// Manifests without hooks, in install order.
    pub generic: Vec<Manifest<'a>>,
    /// Hooks, in install order.
    pub hooks: Vec<Hook<'a>>,
    /// Values of `helm.sh/hook` annotations with an unknown event. Their hooks are not included.
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

/// Splits and sorts `files`, which contains rendered text by template path.
pub fn sort_manifests(
    files: &BTreeMap<String, Vec<u8>>,
    dialect: Dialect,
) -> Result<Manifests<'_>, ChartError> {
    let mut sorter = Sorter {
        dialect,
        sorted: Manifests::default(),
    };
    for (path, text) in files {
        let is_partial = path.rsplit('/').next().unwrap_or(path).starts_with('_');
        if !is_partial {
            sorter.add_file(path, text)?;
        }
    }
    Ok(sorter.finish())
}

/// Collects manifests and sorts them.
struct Sorter<'a> {
    dialect: Dialect,
    sorted: Manifests<'a>,
}

impl<'a> Sorter<'a> {
    fn add_file(&mut self, path: &'a str, text: &'a [u8]) -> Result<(), ChartError> {
        for content in self.dialect.split_documents(text) {
            let head =
                Head::parse(content, self.dialect).map_err(|error| error.in_file(path, text, content))?;
            self.add(Manifest { path, content, head });
        }
        Ok(())
    }

    fn add(&mut self, manifest: Manifest<'a>) {
        let Some(types) = manifest.head.annotations.get("helm.sh/hook").cloned() else {
            self.sorted.generic.push(manifest);
            return;
        };
        let events: Option<Vec<HookEvent>> = types.split(',').map(parse_event).collect();
        match events {
            Some(events) => self.sorted.hooks.push(to_hook(manifest, events)),
            None => self.sorted.unknown_hooks.push(types),
        }
    }

    fn finish(mut self) -> Manifests<'a> {
        let order = InstallOrder::new(self.dialect);
        self.sorted
            .generic
            .sort_by(|a, b| order.compare(&a.head.kind, &b.head.kind));
        self.sorted
            .hooks
            .sort_by(|a, b| order.compare(&a.manifest.head.kind, &b.manifest.head.kind));
        self.sorted
    }
}

fn parse_event(name: &str) -> Option<HookEvent> {
    let name = name.trim().to_lowercase();
    EVENTS
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, event)| *event)
}

fn to_hook(manifest: Manifest<'_>, events: Vec<HookEvent>) -> Hook<'_> {
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
    fn manifests_are_sorted_by_kind_then_path() {
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
    fn hooks_are_separated() {
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
