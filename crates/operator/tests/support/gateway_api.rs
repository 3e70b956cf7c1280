//! Definitions of Gateway API, from the module that Istio's peer pins.

use mainstay_testkit::{GATEWAY_API, peer};
use mainstay_yaml::{Budget, parse, to_json};
use serde_json::Value;

/// Returns the definitions of `GatewayClass`, `Gateway` and `HTTPRoute`.
pub fn gateway_api_definitions() -> Vec<Value> {
    GATEWAY_API
        .iter()
        .map(|name| {
            let text = std::fs::read(peer(name).unwrap()).unwrap();
            let json = to_json(&parse(&text, &Budget::default()).unwrap()).unwrap();
            let definition: Value = serde_json::from_str(&json).unwrap();
            assert_eq!(definition["kind"], "CustomResourceDefinition", "{name}");
            definition
        })
        .collect()
}
