//! Settings: what the server refuses, what it fills in, and what is left to the operator to complain about.

use serde_json::json;

use super::*;

fn with(migration: Value) -> Value {
    made::istio(
        "default",
        OLD,
        json!({"updateStrategy": {"type": "RevisionBased", "workloadMigration": migration}}),
    )
}

pub async fn the_server_refuses_what_cannot_be_meant(world: World) -> World {
    for (migration, words) in [
        (json!({"strategy": "Rolling"}), "Unsupported value: \"Rolling\""),
        (json!({"strategy": "batched"}), "Unsupported value: \"batched\""),
        (
            json!({"strategy": "Batched", "failurePolicy": "Never"}),
            "Unsupported value: \"Never\"",
        ),
        (
            json!({"strategy": "Batched", "batched": {"batchSize": 0}}),
            "batchSize in body should be greater than or equal to 1",
        ),
        (
            json!({"strategy": "Batched", "batched": {"batchSize": -3}}),
            "batchSize in body should be greater than or equal to 1",
        ),
        (
            json!({"strategy": "Batched", "batched": {"batchSize": "3"}}),
            "batchSize in body must be of type integer",
        ),
        (
            json!({"strategy": "Batched", "batched": {"delayBetweenBatches": 30}}),
            "delayBetweenBatches in body must be of type string",
        ),
    ] {
        let refusal = world.try_create(with(migration.clone())).await.unwrap_err();
        assert!(
            refusal.starts_with("422 ") && refusal.contains(words),
            "{migration}: {refusal}"
        );
    }
    world
}

pub async fn the_server_fills_in_what_is_not_said(world: World) -> World {
    let defaults = json!({"batchSize": 1, "delayBetweenBatches": "30s", "readinessTimeout": "5m"});
    let check = async |migration: Value, expected: Value| {
        let (code, body) = world
            .call(
                "POST",
                &format!("{}?dryRun=All", at::istio("").collection()),
                "application/json",
                Some(with(migration)),
            )
            .await;
        assert_eq!(code, 201, "{body}");
        assert_eq!(body["spec"]["updateStrategy"]["workloadMigration"], expected);
    };
    check(json!({}), json!({"strategy": ""})).await;
    check(
        json!({"batched": {}}),
        json!({"strategy": "", "batched": defaults}),
    )
    .await;
    check(
        json!({"strategy": "Batched", "batched": {"batchSize": 7}}),
        json!({"strategy": "Batched", "batched": made::merged(defaults.clone(), json!({"batchSize": 7}))}),
    )
    .await;
    world
}
