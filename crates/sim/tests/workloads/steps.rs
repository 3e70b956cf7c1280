//! Steps of a session: creates clusters, and creates, changes and deletes objects in them.

use std::time::Duration;

use mainstay_sim::context::Context;
use mainstay_sim::write::{self, DeleteOptions, Target};
use mainstay_sim::{Cluster, Options, tree};
use serde_json::{Value, json};

pub(crate) const fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

pub(crate) fn cluster(seed: u64) -> Cluster {
    let cluster = Cluster::new(Options {
        seed,
        ..Options::default()
    });
    cluster.run_workloads(3);
    cluster
}

pub(crate) fn change_object(cluster: &Cluster, api: (&str, &str), name: &str, change: &dyn Fn(&mut Value)) {
    cluster.with(|state| {
        let resource = state.resources.preferred(api.0, api.1).unwrap().clone();
        let target = Target {
            resource: &resource,
            namespace: "default",
            name,
        };
        let mut context = Context::for_controller("test");
        write::update(state, &target, &mut context, true, &mut |state, live, context| {
            let mut value = live
                .cloned()
                .unwrap_or_else(|| json!({"metadata": {"name": name}}));
            change(&mut value);
            write::decode(state, &resource, value, context)
        })
        .unwrap();
    });
    cluster.settle();
}

pub(crate) fn delete(cluster: &Cluster, api: (&str, &str), name: &str) {
    cluster.with(|state| {
        let resource = state.resources.preferred(api.0, api.1).unwrap().clone();
        let target = Target {
            resource: &resource,
            namespace: "default",
            name,
        };
        write::delete(
            state,
            &target,
            &DeleteOptions::default(),
            &mut Context::for_controller("test"),
        )
        .unwrap();
    });
    cluster.settle();
}

pub(crate) fn get(cluster: &Cluster, table: &str, name: &str) -> Value {
    cluster.with(|state| {
        let object = state.store.get(table, &format!("default/{name}"));
        object.map_or(Value::Null, |object| object.value())
    })
}

pub(crate) const DEPLOYMENTS: (&str, &str) = ("apps", "deployments");

pub(crate) fn template(image: &str) -> Value {
    json!({"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": image}]}})
}

pub(crate) fn deploy(cluster: &Cluster, spec: &Value) {
    change_object(cluster, DEPLOYMENTS, "web", &|value| {
        tree::set(value, &["spec", "selector", "matchLabels", "app"], "web");
        tree::set(value, &["spec", "template"], template("v1"));
        for (key, field) in spec.as_object().unwrap() {
            tree::set(value, &["spec", key], field.clone());
        }
    });
}

pub(crate) fn set_image(cluster: &Cluster, image: &str) {
    change_object(cluster, DEPLOYMENTS, "web", &|value| {
        tree::set(value, &["spec", "template"], template(image));
    });
}
