//! Who injects: takes every version of every object in order, gives the moments at which a namespace named a control plane that was gone.
//! No pod can be made in such a namespace, so a revision must not be pruned as long as one may resolve to it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::history::Entry;

/// What there is at a moment.
#[derive(Default)]
struct Scene {
    /// What namespaces of applications name.
    names: BTreeMap<String, String>,
    /// Where tags lead.
    tags: BTreeMap<String, String>,
    /// Revisions that have an istiod.
    istiods: BTreeSet<String>,
    /// Namespaces that had an injector once.
    served: BTreeSet<String>,
    /// Somebody takes the mesh away.
    over: bool,
}

/// Each moment at which a namespace that had an injector named one that was gone, until somebody takes the mesh away.
pub fn lost(entries: &[Entry]) -> Vec<String> {
    let (mut scene, mut lost) = (Scene::default(), Vec::new());
    for entry in entries {
        scene.put(entry);
        if !scene.over {
            lost.extend(scene.look(entry.version));
        }
    }
    lost
}

impl Scene {
    fn put(&mut self, entry: &Entry) {
        let metadata = &entry.object["metadata"];
        let name = metadata["name"].as_str().unwrap_or_default().to_owned();
        match entry.kind {
            "Istio" => self.over |= entry.gone || !metadata["deletionTimestamp"].is_null(),
            "Namespace" => {
                let named = reference(&entry.object).filter(|_| !entry.gone);
                put(&mut self.names, name, named);
            }
            "IstioRevisionTag" => {
                let target = entry.object["status"]["istioRevision"].as_str();
                put(
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

    fn look(&mut self, version: u64) -> Vec<String> {
        let mut lost = Vec::new();
        for (namespace, name) in &self.names {
            let own = self.istiods.contains(name);
            let tagged = self
                .tags
                .get(name)
                .is_some_and(|name| self.istiods.contains(name));
            if own || tagged {
                self.served.insert(namespace.clone());
            } else if self.served.contains(namespace) {
                lost.push(format!(
                    "{namespace} names {name}, which has no istiod, at version {version}"
                ));
            }
        }
        lost
    }
}

fn put(map: &mut BTreeMap<String, String>, key: String, value: Option<String>) {
    match value {
        Some(value) => map.insert(key, value),
        None => map.remove(&key),
    };
}

/// The revision or tag that a namespace names.
fn reference(namespace: &Value) -> Option<String> {
    let labels = &namespace["metadata"]["labels"];
    let enabled = (labels["istio-injection"] == "enabled").then_some("default");
    let stays = namespace["metadata"]["deletionTimestamp"].is_null();
    let named = enabled.or(labels["istio.io/rev"].as_str())?;
    stays.then(|| named.to_owned())
}

#[cfg(test)]
#[allow(
    clippy::needless_pass_by_value,
    reason = "objects are made where they are used"
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

    fn space(version: u64, labels: Value) -> Entry {
        entry(
            version,
            "Namespace",
            false,
            json!({"metadata": {"name": "shop", "labels": labels}}),
        )
    }

    fn tag(version: u64, revision: &str) -> Entry {
        let object = json!({"metadata": {"name": "default"}, "status": {"istioRevision": revision}});
        entry(version, "IstioRevisionTag", false, object)
    }

    fn check(entries: Vec<Entry>, expected: usize) {
        assert_eq!(lost(&entries).len(), expected, "{:?}", lost(&entries));
    }

    #[test]
    fn a_control_plane_that_goes_too_soon_is_seen() {
        let old = || json!({"istio.io/rev": "old"});
        check(vec![istiod(1, "old", false), space(2, old())], 0);
        check(
            vec![istiod(1, "old", false), space(2, old()), istiod(3, "old", true)],
            1,
        );
        let moved = space(3, json!({"istio.io/rev": "new"}));
        check(
            vec![
                istiod(1, "old", false),
                space(2, old()),
                istiod(2, "new", false),
                moved,
                istiod(4, "old", true),
            ],
            0,
        );
    }

    #[test]
    fn tags_lead_to_control_planes() {
        let enabled = || json!({"istio-injection": "enabled"});
        let begin = || vec![istiod(1, "old", false), tag(2, "old"), space(3, enabled())];
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
    fn whoever_takes_the_mesh_away_means_it() {
        let gone = entry(3, "Istio", true, json!({"metadata": {"name": "default"}}));
        let labels = json!({"istio.io/rev": "old"});
        check(
            vec![
                istiod(1, "old", false),
                space(2, labels),
                gone,
                istiod(4, "old", true),
            ],
            0,
        );
    }
}
