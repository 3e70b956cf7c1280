//! Tests that a resource cannot create objects that do not belong to its charts.

use serde_json::{Value, json};

use crate::virtual_time::run;
use crate::world::{NAMESPACE, World, operator, operator_path};

/// Returns a value that ends the document of istiod's Deployment after the arguments of its container, and
/// starts another Deployment that contains the rest of the template.
fn document_injection(namespace: &str) -> String {
    format!(
        "default:info\n---\napiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: evil\n  namespace: {namespace}\n\
         spec:\n  selector: {{matchLabels: {{a: b}}}}\n  template:\n    metadata: {{labels: {{a: b}}}}\n    spec:\n\
         \u{20}     hostPID: true\n      containers:\n        - name: evil\n          image: evil\n          args:\n\
         \u{20}         - rest"
    )
}

fn with_level(level: &str) -> Value {
    json!({"profile": "minimal", "values": {"global": {"logging": {"level": level}}}})
}

fn message(live: &Value) -> String {
    let conditions = live["status"]["conditions"].as_array().unwrap();
    let reconciled = conditions.iter().find(|one| one["type"] == "Reconciled").unwrap();
    assert_eq!(reconciled["reason"], "InvalidSpec", "{reconciled}");
    reconciled["message"].as_str().unwrap().to_owned()
}

fn evil(namespace: &str) -> String {
    format!("/apis/apps/v1/namespaces/{namespace}/deployments/evil")
}

#[test]
fn a_value_of_a_resource_cannot_add_an_object() {
    run(async {
        let mut world = World::simulated().await;
        for namespace in ["default", NAMESPACE] {
            let level = document_injection(namespace);
            world.create(&operator("mesh", with_level(&level))).await.unwrap();
            let live = world.until_state("mesh", "ERROR").await;
            let expected = format!("Deployment {namespace}/evil is not part of chart");
            assert!(message(&live).contains(&expected), "{}", message(&live));
            assert!(world.get(&evil(namespace)).await.is_none(), "{namespace}");
            assert!(world.event_reasons("mesh").await.contains("InvalidSpec"));
            let fixed = json!({"spec": with_level("default:info")});
            world.patch(&operator_path("mesh"), fixed).await;
            world.until_state("mesh", "HEALTHY").await;
            world.delete(&operator_path("mesh")).await;
            world.until_gone(&operator_path("mesh")).await;
        }
    });
}

#[test]
fn an_invalid_change_leaves_the_installation_as_it_is() {
    run(async {
        let mut world = World::simulated().await;
        world
            .create(&operator("mesh", with_level("default:info")))
            .await
            .unwrap();
        world.until_state("mesh", "HEALTHY").await;
        world.until_idle().await;
        let before = world.inventory().await;
        let change = json!({"spec": with_level(&document_injection("default"))});
        world.patch(&operator_path("mesh"), change).await;
        world.until_state("mesh", "ERROR").await;
        world.until_idle().await;
        world.until_inventory(&before).await;
    });
}
