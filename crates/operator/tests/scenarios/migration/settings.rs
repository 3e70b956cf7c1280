//! Settings: values that the server rejects, defaults, and reports of the operator.

use serde_json::json;

use super::*;

fn with(migration: Value) -> Value {
    fixtures::istio(
        "default",
        OLD,
        json!({"updateStrategy": {"type": "RevisionBased", "workloadMigration": migration}}),
    )
}

pub async fn invalid_settings_are_rejected(world: World) -> World {
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
        let rejection = world
            .try_create(with(migration.clone()))
            .await
            .unwrap_err()
            .to_string();
        assert!(
            rejection.starts_with("422 ") && rejection.contains(words),
            "{migration}: {rejection}"
        );
    }
    world
}

pub async fn defaults_are_applied(world: World) -> World {
    let defaults = json!({"batchSize": 1, "delayBetweenBatches": "30s", "readinessTimeout": "5m"});
    let check = async |migration: Value, expected: Value| {
        let (code, body) = world
            .call(
                "POST",
                &format!("{}?dryRun=All", path::istio("").collection()),
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
        json!({"strategy": "Batched", "batched": fixtures::merged(defaults.clone(), json!({"batchSize": 7}))}),
    )
    .await;
    world
}
