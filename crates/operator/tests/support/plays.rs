//! The plays of the matrix: what is there before, and what somebody does. Here the eight in which a mesh lives; those in which workloads move have a
//! room of their own.

pub mod migrations;

use std::future::Future;
use std::pin::Pin;

use serde_json::{Value, json};

use super::World;
use super::at::{self, At};
use super::made::{self, NEW, OLD};

/// Steps in a world.
pub type Steps = for<'a> fn(&'a World) -> Pin<Box<dyn Future<Output = ()> + 'a>>;

/// One play.
pub struct Play {
    pub name: &'static str,
    /// Without faults, and only once.
    pub before: Steps,
    /// What the state is made to look like afterwards.
    pub disguise: fn(Vec<Value>) -> Vec<Value>,
    /// With faults.
    pub act: Steps,
    /// Whether what is referred to may go: somebody said so.
    pub destroys: bool,
    /// Whether workloads move, so that somebody must inject them.
    pub moves: bool,
}

/// Steps as a plain function.
macro_rules! steps {
    ($world:ident => $body:block) => {
        |$world: &World| Box::pin(async move { $body })
    };
}

/// Their names, for whoever makes a test of each.
#[allow(unused_macros, reason = "every test program uses its own share")]
macro_rules! each_play {
    ($then:ident) => {
        $then! {
            install,
            in_place_upgrade,
            revision_upgrade,
            tag_move,
            prune,
            name_clash,
            deletion,
            takeover
        }
    };
}

/// The same of those in which workloads move.
#[allow(unused_macros, reason = "every test program uses its own share")]
macro_rules! each_move {
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
#[allow(unused_imports, reason = "every test program uses its own share")]
pub(crate) use {each_move, each_play, steps};

/// The play of this name.
pub fn play(name: &str) -> &'static Play {
    let mut all = PLAYS.iter().chain(migrations::MIGRATIONS);
    all.find(|play| play.name == name).unwrap()
}

pub fn same(state: Vec<Value>) -> Vec<Value> {
    state
}

pub async fn healthy(world: &World, object: Value) {
    let at = At::of(&object);
    world.create(object).await;
    world.until_state(&at, "Healthy").await;
}

pub async fn upgrade(world: &World) {
    world
        .patch(&at::istio("default"), json!({"spec": {"version": NEW}}))
        .await;
}

/// A namespace that the steps before and the act both know.
const KNOWN: &str = "app";

/// Longer than any play.
const LONG: u64 = 86_400;

pub const PLAYS: &[Play] = &[
    Play {
        name: "install",
        before: steps!(_world => {}),
        disguise: same,
        act: steps!(world => {
            world.create(made::istio("default", NEW, json!({}))).await;
            world.until_state(&at::istio("default"), "Healthy").await;
        }),
        destroys: false,
        moves: false,
    },
    Play {
        name: "in_place_upgrade",
        before: steps!(world => {
            healthy(world, made::istio("default", OLD, json!({}))).await;
            world.namespace("istio-injection=enabled").await;
        }),
        disguise: same,
        act: steps!(world => {
            upgrade(world).await;
            let at = At::inside("Deployment", "istio-system", "istiod");
            world.until_object(&at, "runs the new image", |object| object["spec"].to_string().contains(":1.29.1")).await;
            world.until_state(&at::istio("default"), "Healthy").await;
        }),
        destroys: false,
        moves: false,
    },
    Play {
        name: "revision_upgrade",
        before: steps!(world => {
            healthy(world, made::revision_based("default", OLD, LONG, &[])).await;
            world.namespace("istio.io/rev=default-v1-28-2").await;
        }),
        disguise: same,
        act: steps!(world => {
            upgrade(world).await;
            world.until_state(&at::revision("default-v1-29-1"), "Healthy").await;
            world.until_state(&at::istio("default"), "Healthy").await;
        }),
        destroys: false,
        moves: false,
    },
    Play {
        name: "tag_move",
        before: steps!(world => {
            healthy(world, made::revision_based("default", OLD, LONG, &["default", "stable"])).await;
            world.namespace("istio.io/rev=stable").await;
            world.namespace("istio-injection=enabled").await;
            world.until_state(&at::tag("stable"), "Healthy").await;
            world.until_state(&at::tag("default"), "Healthy").await;
        }),
        disguise: same,
        act: steps!(world => {
            upgrade(world).await;
            for name in ["stable", "default"] {
                world.until_object(&at::tag(name), "has moved", |tag| tag["status"]["istioRevision"] == "default-v1-29-1").await;
                world.until_state(&at::tag(name), "Healthy").await;
            }
        }),
        destroys: false,
        moves: false,
    },
    Play {
        name: "prune",
        before: steps!(world => {
            healthy(world, made::revision_based("default", OLD, world.grace(), &[])).await;
            world.known_namespace(KNOWN, "istio.io/rev=default-v1-28-2").await;
            world.until_condition(&at::revision("default-v1-28-2"), "InUse=True").await;
            upgrade(world).await;
            world.until_state(&at::revision("default-v1-29-1"), "Healthy").await;
        }),
        disguise: same,
        act: steps!(world => {
            world.label(&world.space(KNOWN), "istio.io/rev=default-v1-29-1").await;
            world.until_gone(&at::revision("default-v1-28-2")).await;
            world.until_state(&at::istio("default"), "Healthy").await;
        }),
        destroys: false,
        moves: false,
    },
    Play {
        name: "name_clash",
        before: steps!(world => {
            healthy(world, made::revision("mine", NEW, "istio-system", json!({}))).await;
            world.create(made::tag("default", "IstioRevision", "mine")).await;
            world.until_condition(&at::tag("default"), "Reconciled=True").await;
            world.namespace("istio-injection=enabled").await;
            world.until_state(&at::tag("default"), "Healthy").await;
            world.pass(std::time::Duration::from_secs(2)).await;
        }),
        disguise: same,
        act: steps!(world => {
            world.create(made::revision("default", NEW, "istio-system", json!({}))).await;
            world.until_condition(&at::revision("default"), "Reconciled=False/NameAlreadyExists").await;
            world.rest().await;
            world.delete(&at::tag("default")).await;
            world.until_gone(&at::tag("default")).await;
            world.until_state(&at::revision("default"), "Healthy").await;
        }),
        destroys: true,
        moves: false,
    },
    Play {
        name: "deletion",
        before: steps!(world => {
            healthy(world, made::revision_based("default", NEW, LONG, &["default"])).await;
            world.namespace("istio-injection=enabled").await;
            world.until_state(&at::tag("default"), "Healthy").await;
            healthy(world, made::cni(json!({}))).await;
        }),
        disguise: same,
        act: steps!(world => {
            world.delete(&at::istio("default")).await;
            world.delete(&at::cni()).await;
            world.until_gone(&at::revision("default-v1-29-1")).await;
            world.until_gone(&at::tag("default")).await;
            world.until_gone(&at::cni()).await;
        }),
        destroys: true,
        moves: false,
    },
    Play {
        name: "takeover",
        before: steps!(world => {
            healthy(world, made::istio("default", OLD, json!({}))).await;
            world.namespace("istio-injection=enabled").await;
            world.until_condition(&at::revision("default"), "InUse=True").await;
        }),
        disguise: as_installed_by_others,
        act: steps!(world => {
            upgrade(world).await;
            let at = At::inside("Deployment", "istio-system", "istiod");
            world.until_object(&at, "runs the new image", |object| object["spec"].to_string().contains(":1.29.1")).await;
            world.until_state(&at::istio("default"), "Healthy").await;
        }),
        destroys: false,
        moves: false,
    },
];

/// What the Sail Operator leaves: its manager wrote everything by plain updates, and there is no inventory of ours.
pub fn as_installed_by_others(state: Vec<Value>) -> Vec<Value> {
    let ours = |object: &Value| {
        object["kind"] == "ConfigMap" && object["metadata"]["labels"]["applyset.kubernetes.io/id"].is_string()
    };
    let mut state: Vec<Value> = state.into_iter().filter(|object| !ours(object)).collect();
    for object in &mut state {
        disown(object);
    }
    state
}

fn disown(object: &mut Value) {
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
