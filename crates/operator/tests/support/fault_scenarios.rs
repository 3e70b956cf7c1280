//! Fault scenarios, each with an initial state and a user's action that runs with faults. Scenarios that
//! migrate workloads are in [`migrations`].

pub mod migrations;

use std::future::Future;
use std::pin::Pin;

use mainstay_api::names;
use serde_json::{Value, json};

use super::World;
use super::fixtures::{self, NEW, OLD};
use super::path::{self, ObjectPath};

/// Steps of a scenario.
pub type Steps = for<'a> fn(&'a World) -> Pin<Box<dyn Future<Output = ()> + 'a>>;

/// A scenario of the fault matrix.
pub struct FaultScenario {
    pub name: &'static str,
    /// Creates the initial state, once and without faults.
    pub set_up: Steps,
    /// Modifies the initial state.
    pub transform: fn(Vec<Value>) -> Vec<Value>,
    /// Action that runs with faults.
    pub action: Steps,
    /// Whether the action deletes revisions in use.
    pub deletes_in_use: bool,
    /// Whether workloads migrate, so that istiods must inject.
    pub migrates: bool,
}

impl FaultScenario {
    /// Returns a scenario whose action deletes no revision in use and migrates no workloads.
    pub const fn new(name: &'static str, set_up: Steps, action: Steps) -> Self {
        Self {
            name,
            set_up,
            transform: unchanged,
            action,
            deletes_in_use: false,
            migrates: false,
        }
    }
}

/// Converts a block into steps.
macro_rules! steps {
    ($world:ident => $body:block) => {
        |$world: &World| Box::pin(async move { $body })
    };
}

/// Passes the names of the scenarios to a macro.
#[allow(unused_macros, reason = "each test program uses a part")]
macro_rules! each_fault_scenario {
    ($then:ident) => {
        $then! {
            install,
            in_place_upgrade,
            revision_upgrade,
            tag_move,
            prune,
            name_clash,
            deletion,
            takeover,
            revision_takeover,
            rejected_tag
        }
    };
}

/// Passes the names of the scenarios that migrate workloads to a macro.
#[allow(unused_macros, reason = "each test program uses a part")]
macro_rules! each_migration_scenario {
    ($then:ident) => {
        $then! {
            moves_by_namespace,
            moves_by_template,
            moves_by_tag,
            moves_but_one_fails,
            moves_until_one_fails,
            moves_elsewhere_halfway,
            moves_from_several
        }
    };
}
#[allow(unused_imports, reason = "each test program uses a part")]
pub(crate) use {each_fault_scenario, each_migration_scenario, steps};

/// Returns the scenario of this name.
pub fn scenario(name: &str) -> &'static FaultScenario {
    let mut all = FAULT_SCENARIOS.iter().chain(migrations::MIGRATIONS);
    all.find(|scenario| scenario.name == name).unwrap()
}

fn unchanged(state: Vec<Value>) -> Vec<Value> {
    state
}

pub async fn create_healthy(world: &World, object: Value) {
    let at = ObjectPath::from_object(&object);
    world.create(object).await;
    world.until_state(&at, "Healthy").await;
}

pub async fn upgrade(world: &World) {
    world
        .patch(&path::istio("default"), json!({"spec": {"version": NEW}}))
        .await;
}

/// Namespace of the initial state that the action uses.
const NAMESPACE: &str = "app";

/// Grace period in seconds that is longer than any scenario.
const LONG_GRACE: u64 = 86_400;

/// Upgrades, and waits until istiod runs the new image.
const UPGRADE_IN_PLACE: Steps = steps!(world => {
    upgrade(world).await;
    let at = ObjectPath::namespaced("Deployment", "istio-system", "istiod");
    world.until_object(&at, "runs the new image", |object| object["spec"].to_string().contains(":1.29.1")).await;
    world.until_state(&path::istio("default"), "Healthy").await;
});

pub const FAULT_SCENARIOS: &[FaultScenario] = &[
    FaultScenario::new(
        "install",
        steps!(_world => {}),
        steps!(world => {
            world.create(fixtures::istio("default", NEW, json!({}))).await;
            world.until_state(&path::istio("default"), "Healthy").await;
        }),
    ),
    FaultScenario::new(
        "in_place_upgrade",
        steps!(world => {
            create_healthy(world, fixtures::istio("default", OLD, json!({}))).await;
            world.namespace("istio-injection=enabled").await;
        }),
        UPGRADE_IN_PLACE,
    ),
    FaultScenario::new(
        "revision_upgrade",
        steps!(world => {
            create_healthy(world, fixtures::revision_based("default", OLD, LONG_GRACE, &[])).await;
            world.namespace("istio.io/rev=default-v1-28-2").await;
        }),
        steps!(world => {
            upgrade(world).await;
            world.until_state(&path::revision("default-v1-29-1"), "Healthy").await;
            world.until_state(&path::istio("default"), "Healthy").await;
        }),
    ),
    FaultScenario::new(
        "tag_move",
        steps!(world => {
            create_healthy(world, fixtures::revision_based("default", OLD, LONG_GRACE, &["default", "stable"])).await;
            world.namespace("istio.io/rev=stable").await;
            world.namespace("istio-injection=enabled").await;
            world.until_state(&path::tag("stable"), "Healthy").await;
            world.until_state(&path::tag("default"), "Healthy").await;
        }),
        steps!(world => {
            upgrade(world).await;
            for name in ["stable", "default"] {
                world.until_object(&path::tag(name), "has moved", |tag| tag["status"]["istioRevision"] == "default-v1-29-1").await;
                world.until_state(&path::tag(name), "Healthy").await;
            }
        }),
    ),
    FaultScenario::new(
        "prune",
        steps!(world => {
            create_healthy(world, fixtures::revision_based("default", OLD, world.grace_seconds(), &[])).await;
            world.create_scenario_namespace(NAMESPACE, "istio.io/rev=default-v1-28-2").await;
            world.until_condition(&path::revision("default-v1-28-2"), "InUse=True").await;
            upgrade(world).await;
            world.until_state(&path::revision("default-v1-29-1"), "Healthy").await;
        }),
        steps!(world => {
            world.label(&world.unique_namespace(NAMESPACE), "istio.io/rev=default-v1-29-1").await;
            world.until_gone(&path::revision("default-v1-28-2")).await;
            world.until_state(&path::istio("default"), "Healthy").await;
        }),
    ),
    FaultScenario {
        deletes_in_use: true,
        ..FaultScenario::new(
            "name_clash",
            steps!(world => {
                create_healthy(world, fixtures::revision("mine", NEW, "istio-system", json!({}))).await;
                world.create(fixtures::tag("default", "IstioRevision", "mine")).await;
                world.until_condition(&path::tag("default"), "Reconciled=True").await;
                world.namespace("istio-injection=enabled").await;
                world.until_state(&path::tag("default"), "Healthy").await;
                world.sleep(std::time::Duration::from_secs(2)).await;
            }),
            steps!(world => {
                world.create(fixtures::revision("default", NEW, "istio-system", json!({}))).await;
                world.until_condition(&path::revision("default"), "Reconciled=False/NameAlreadyExists").await;
                world.wait_until_idle().await;
                world.delete(&path::tag("default")).await;
                world.until_gone(&path::tag("default")).await;
                world.until_state(&path::revision("default"), "Healthy").await;
            }),
        )
    },
    FaultScenario {
        deletes_in_use: true,
        ..FaultScenario::new(
            "deletion",
            steps!(world => {
                create_healthy(world, fixtures::revision_based("default", NEW, LONG_GRACE, &["default"])).await;
                world.namespace("istio-injection=enabled").await;
                world.until_state(&path::tag("default"), "Healthy").await;
                create_healthy(world, fixtures::cni(json!({}))).await;
            }),
            steps!(world => {
                world.delete(&path::istio("default")).await;
                world.delete(&path::cni()).await;
                world.until_gone(&path::revision("default-v1-29-1")).await;
                world.until_gone(&path::tag("default")).await;
                world.until_gone(&path::cni()).await;
            }),
        )
    },
    FaultScenario {
        transform: as_installed_by_sail,
        ..FaultScenario::new(
            "takeover",
            steps!(world => {
                create_healthy(world, fixtures::istio("default", OLD, json!({}))).await;
                world.namespace("istio-injection=enabled").await;
                world.until_condition(&path::revision("default"), "InUse=True").await;
            }),
            UPGRADE_IN_PLACE,
        )
    },
    FaultScenario {
        transform: as_sample_of_sail,
        ..FaultScenario::new(
            "revision_takeover",
            steps!(world => {
                create_healthy(world, fixtures::revision_based("default", OLD, LONG_GRACE, &[])).await;
                world.namespace("istio.io/rev=default-v1-28-2").await;
                world.until_condition(&path::revision("default-v1-28-2"), "InUse=True").await;
            }),
            steps!(world => {
                upgrade(world).await;
                world.until_state(&path::revision("default-v1-29-1"), "Healthy").await;
                world.until_state(&path::istio("default"), "Healthy").await;
                world.wait_until_idle().await;
                assert!(world.get(&path::tag("default")).await.is_none(), "an implicit tag after a takeover");
            }),
        )
    },
    FaultScenario::new(
        "rejected_tag",
        steps!(world => { reject_tag(world, "blocked").await; }),
        steps!(world => {
            let tags = ["a", "blocked", "stable"];
            world.create(fixtures::revision_based("default", NEW, LONG_GRACE, &tags)).await;
            world.until_state(&path::istio("default"), "Healthy").await;
            for tag in ["a", "stable"] {
                world.until_condition(&path::tag(tag), "Reconciled=True/Reconciled").await;
            }
            world.until_condition(&path::istio("default"), "TagsReconciled=False/TagFailed").await;
            world.delete(&ObjectPath::cluster_scoped("ValidatingAdmissionPolicyBinding", "tags")).await;
            world.until_condition(&path::istio("default"), "TagsReconciled=True/TagsReconciled").await;
            world.delete(&ObjectPath::cluster_scoped("ValidatingAdmissionPolicy", "tags")).await;
        }),
    ),
];

/// Changes a state like [`as_installed_by_sail`], and removes what the Sail Operator's `RevisionBased` sample
/// lacks: `revisionTags`, and our annotation on revisions.
pub fn as_sample_of_sail(state: Vec<Value>) -> Vec<Value> {
    let mut state = as_installed_by_sail(state);
    for object in &mut state {
        let (parent, key) = match object["kind"].as_str() {
            Some("Istio") => ("/spec/updateStrategy", "revisionTags"),
            Some("IstioRevision") => ("/metadata/annotations", names::IMPLICIT_TAG),
            _ => continue,
        };
        if let Some(Value::Object(parent)) = object.pointer_mut(parent) {
            parent.remove(key);
        }
    }
    state
}

/// Returns a policy that rejects the creation of a tag with this name.
fn tag_policy(name: &str) -> Value {
    let rule = json!({"apiGroups": ["sailoperator.io"], "apiVersions": ["v1"], "operations": ["CREATE"],
        "resources": ["istiorevisiontags"]});
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "tags"},
        "spec": {
            "failurePolicy": "Fail", "matchConstraints": {"resourceRules": [rule]},
            "validations": [{"expression": format!("object.metadata.name != '{name}'")}],
        },
    })
}

/// Lets the server reject the creation of a tag, until the binding `tags` is deleted.
pub async fn reject_tag(world: &World, name: &str) {
    for kind in ["ValidatingAdmissionPolicyBinding", "ValidatingAdmissionPolicy"] {
        world.delete(&ObjectPath::cluster_scoped(kind, "tags")).await;
    }
    world.create(tag_policy(name)).await;
    world
        .create(json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": {"name": "tags"}, "spec": {"policyName": "tags", "validationActions": ["Deny"]},
        }))
        .await;
    world
        .until("the policy is in effect", async |world: &World| {
            let path = "/apis/sailoperator.io/v1/istiorevisiontags?dryRun=All";
            let tag = fixtures::tag(name, "Istio", "default");
            let (code, response) = world.call("POST", path, "application/json", Some(tag)).await;
            if code == 422 {
                Ok(())
            } else {
                Err(response.to_string())
            }
        })
        .await;
}

/// Changes a state to one that the Sail Operator would have created: with its field manager, written by
/// updates instead of server-side apply, and without our inventory.
pub fn as_installed_by_sail(state: Vec<Value>) -> Vec<Value> {
    let ours = |object: &Value| {
        object["kind"] == "ConfigMap" && object["metadata"]["labels"]["applyset.kubernetes.io/id"].is_string()
    };
    let mut state: Vec<Value> = state.into_iter().filter(|object| !ours(object)).collect();
    for object in &mut state {
        remove_inventory_label(object);
    }
    state
}

fn remove_inventory_label(object: &mut Value) {
    if let Some(labels) = object
        .pointer_mut("/metadata/labels")
        .and_then(Value::as_object_mut)
    {
        labels.remove("applyset.kubernetes.io/part-of");
    }
    let Some(managers) = object
        .pointer_mut("/metadata/managedFields")
        .and_then(Value::as_array_mut)
    else {
        return;
    };
    for entry in managers {
        if entry["manager"] == "mainstay" {
            entry["manager"] = "sail-operator".into();
            entry["operation"] = "Update".into();
            let label = entry.pointer_mut("/fieldsV1/f:metadata/f:labels");
            if let Some(Value::Object(labels)) = label {
                labels.remove("f:applyset.kubernetes.io/part-of");
            }
        }
    }
}
