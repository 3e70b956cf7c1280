//! Finds namespaces that referred to a deleted control plane. No pod can be created in such a namespace, so
//! a revision must not be pruned while a namespace refers to it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::history::Entry;

/// Current objects that determine injection.
#[derive(Default)]
struct InjectionState {
    /// Revision or tag of each namespace.
    names: BTreeMap<String, String>,
    /// Revision of each tag.
    tags: BTreeMap<String, String>,
    /// Revisions that have an istiod.
    istiods: BTreeSet<String>,
    /// Namespaces that have had an injector.
    had_injector: BTreeSet<String>,
    /// Whether the user has deleted the mesh.
    deleted: bool,
}

/// Returns a description of each state in which a namespace that had an injector referred to a deleted one,
/// until the user deletes the mesh.
pub fn missing_injectors(entries: &[Entry]) -> Vec<String> {
    let (mut state, mut missing) = (InjectionState::default(), Vec::new());
    for entry in entries {
        state.apply(entry);
        if !state.deleted {
            missing.extend(state.check(entry.version));
        }
    }
    missing
}

impl InjectionState {
    fn apply(&mut self, entry: &Entry) {
        let metadata = &entry.object["metadata"];
        let name = metadata["name"].as_str().unwrap_or_default().to_owned();
        match entry.kind {
            "Istio" => self.deleted |= entry.gone || !metadata["deletionTimestamp"].is_null(),
            "Namespace" => {
                let named = referenced_name(&entry.object).filter(|_| !entry.gone);
                insert_or_remove(&mut self.names, name, named);
            }
            "IstioRevisionTag" => {
                let target = entry.object["status"]["istioRevision"].as_str();
                insert_or_remove(
                    &mut self.tags,
                    name,
                    target.filter(|_| !entry.gone).map(str::to_owned),
                );
            }
            "Deployment" if metadata["namespace"] == "istio-system" => {
                let revision = name.strip_prefix("istiod-").unwrap_or("default").to_owned();
                if entry.gone {
                    self.istiods.remove(&revision);
                } else {
                    self.istiods.insert(revision);
                }
            }
            _ => {}
        }
    }

    fn check(&mut self, version: u64) -> Vec<String> {
        let mut missing = Vec::new();
        for (namespace, name) in &self.names {
            let own = self.istiods.contains(name);
            let tagged = self
                .tags
                .get(name)
                .is_some_and(|name| self.istiods.contains(name));
            if own || tagged {
                self.had_injector.insert(namespace.clone());
            } else if self.had_injector.contains(namespace) {
                missing.push(format!(
                    "{namespace} refers to {name}, which has no istiod, at version {version}"
                ));
            }
        }
        missing
    }
}

fn insert_or_remove(map: &mut BTreeMap<String, String>, key: String, value: Option<String>) {
    match value {
        Some(value) => map.insert(key, value),
        None => map.remove(&key),
    };
}

/// Returns the revision or tag that a namespace refers to.
fn referenced_name(namespace: &Value) -> Option<String> {
    let labels = &namespace["metadata"]["labels"];
    let enabled = (labels["istio-injection"] == "enabled").then_some("default");
    let is_active = namespace["metadata"]["deletionTimestamp"].is_null();
    let named = enabled.or(labels["istio.io/rev"].as_str())?;
    is_active.then(|| named.to_owned())
}

#[cfg(test)]
#[allow(
    clippy::needless_pass_by_value,
    reason = "objects are built where they are used"
)]
mod tests {
    use super::*;
    use serde_json::json;
    use tokio::time::Instant;

    fn entry(version: u64, kind: &'static str, gone: bool, object: Value) -> Entry {
        Entry {
            version,
            at: Instant::now(),
            kind,
            gone,
            object,
        }
    }

    fn istiod(version: u64, revision: &str, gone: bool) -> Entry {
        let metadata = json!({"namespace": "istio-system", "name": format!("istiod-{revision}")});
        entry(version, "Deployment", gone, json!({"metadata": metadata}))
    }

    fn namespace(version: u64, labels: Value) -> Entry {
        entry(
            version,
            "Namespace",
            false,
            json!({"metadata": {"name": "apps", "labels": labels}}),
        )
    }

    fn tag(version: u64, revision: &str) -> Entry {
        let object = json!({"metadata": {"name": "default"}, "status": {"istioRevision": revision}});
        entry(version, "IstioRevisionTag", false, object)
    }

    fn check(entries: Vec<Entry>, expected: usize) {
        assert_eq!(
            missing_injectors(&entries).len(),
            expected,
            "{:?}",
            missing_injectors(&entries)
        );
    }

    #[test]
    fn a_control_plane_deleted_too_early_is_detected() {
        let old = || json!({"istio.io/rev": "old"});
        check(vec![istiod(1, "old", false), namespace(2, old())], 0);
        check(
            vec![
                istiod(1, "old", false),
                namespace(2, old()),
                istiod(3, "old", true),
            ],
            1,
        );
        let relabeled = namespace(3, json!({"istio.io/rev": "new"}));
        check(
            vec![
                istiod(1, "old", false),
                namespace(2, old()),
                istiod(2, "new", false),
                relabeled,
                istiod(4, "old", true),
            ],
            0,
        );
    }

    #[test]
    fn tags_refer_to_control_planes() {
        let enabled = || json!({"istio-injection": "enabled"});
        let begin = || vec![istiod(1, "old", false), tag(2, "old"), namespace(3, enabled())];
        check([begin(), vec![istiod(4, "old", true)]].concat(), 1);
        check(
            [
                begin(),
                vec![istiod(4, "new", false), tag(5, "new"), istiod(6, "old", true)],
            ]
            .concat(),
            0,
        );
        check([begin(), vec![tag(5, "nowhere")]].concat(), 1);
    }

    #[test]
    fn a_deletion_of_the_mesh_is_not_a_violation() {
        let gone = entry(3, "Istio", true, json!({"metadata": {"name": "default"}}));
        let labels = json!({"istio.io/rev": "old"});
        check(
            vec![
                istiod(1, "old", false),
                namespace(2, labels),
                gone,
                istiod(4, "old", true),
            ],
            0,
        );
    }
}
