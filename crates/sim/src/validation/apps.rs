//! Validates workloads.

use serde_json::{Value, json};

use super::meta::IMMUTABLE;
use super::pod;
use crate::field::{FieldErrors, Path};
use crate::selector::LabelSelector;
use crate::tree;

/// Messages that differ by kind.
struct Messages {
    empty_selector: &'static str,
    deadline: &'static str,
}

/// Validates a Deployment.
pub(super) fn deployment(new: &Value, old: Option<&Value>, errors: &mut FieldErrors) {
    let spec = Path::new("spec");
    check_not_negative(new, "replicas", &spec, errors);
    let messages = Messages {
        empty_selector: "empty selector is invalid for deployment",
        deadline: "activeDeadlineSeconds in ReplicaSet is not Supported",
    };
    validate_selector_and_template(new, &messages, errors);
    validate_strategy(new, &spec.child("strategy"), errors);
    for field in [
        "minReadySeconds",
        "revisionHistoryLimit",
        "progressDeadlineSeconds",
    ] {
        check_not_negative(new, field, &spec, errors);
    }
    let ready = tree::int(new, &["spec", "minReadySeconds"]).unwrap_or(0);
    if let Some(deadline) =
        tree::int(new, &["spec", "progressDeadlineSeconds"]).filter(|deadline| *deadline <= ready)
    {
        errors.invalid(
            &spec.child("progressDeadlineSeconds"),
            deadline,
            "must be greater than minReadySeconds",
        );
    }
    check_immutable_selector(new, old, errors);
}

/// Validates a `ReplicaSet`.
pub(super) fn replica_set(new: &Value, old: Option<&Value>, errors: &mut FieldErrors) {
    let spec = Path::new("spec");
    check_not_negative(new, "replicas", &spec, errors);
    check_not_negative(new, "minReadySeconds", &spec, errors);
    let messages = Messages {
        empty_selector: "empty selector is invalid for deployment",
        deadline: "activeDeadlineSeconds in ReplicaSet is not Supported",
    };
    validate_selector_and_template(new, &messages, errors);
    check_immutable_selector(new, old, errors);
}

/// Validates a `DaemonSet`.
pub(super) fn daemon_set(new: &Value, old: Option<&Value>, errors: &mut FieldErrors) {
    let messages = Messages {
        empty_selector: "empty selector is invalid for daemonset",
        deadline: "activeDeadlineSeconds in DaemonSet is not Supported",
    };
    validate_selector_and_template(new, &messages, errors);
    check_not_negative(new, "minReadySeconds", &Path::new("spec"), errors);
    check_not_negative(new, "revisionHistoryLimit", &Path::new("spec"), errors);
    validate_daemon_set_strategy(new, errors);
    check_immutable_selector(new, old, errors);
}

fn validate_daemon_set_strategy(new: &Value, errors: &mut FieldErrors) {
    let path = Path::new("spec.updateStrategy.rollingUpdate");
    let part = |field| tree::get(new, &["spec", "updateStrategy", "rollingUpdate", field]);
    let (unavailable, surge) = (part("maxUnavailable"), part("maxSurge"));
    if tree::text(new, &["spec", "updateStrategy", "type"]) != "RollingUpdate" {
        return;
    }
    if amount(unavailable) != 0 && amount(surge) != 0 {
        let shown = surge.cloned().unwrap_or_default();
        let detail = "may not be set when maxUnavailable is non-zero";
        errors.invalid(&path.child("maxSurge"), shown, detail);
    } else if amount(unavailable) == 0 && amount(surge) == 0 {
        let shown = unavailable.cloned().unwrap_or_default();
        let detail = "cannot be 0 when maxSurge is 0";
        errors.invalid(&path.child("maxUnavailable"), shown, detail);
    }
}

fn validate_stateful_set_strategy(new: &Value, errors: &mut FieldErrors) {
    let path = Path::new("spec.updateStrategy");
    let rolling = tree::get(new, &["spec", "updateStrategy", "rollingUpdate"]);
    let kind = tree::text(new, &["spec", "updateStrategy", "type"]);
    if !matches!(kind, "RollingUpdate" | "OnDelete") {
        let shown = rolling.cloned().unwrap_or_default();
        let shown = format!("{{\"Type\":{kind:?},\"RollingUpdate\":{shown}}}");
        errors.invalid_shown(&path, shown, "must be 'RollingUpdate' or 'OnDelete'");
    }
    if let Some(partition) = rolling
        .and_then(|rolling| tree::int(rolling, &["partition"]))
        .filter(|at| *at < 0)
    {
        let path = path.child("rollingUpdate").child("partition");
        errors.invalid(&path, partition, "must be greater than or equal to 0");
    }
}

/// Fields of the spec of a `StatefulSet` that may be changed.
const STATEFUL_SET_MUTABLE: [&str; 7] = [
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
];

/// Validates a `StatefulSet`.
pub(super) fn stateful_set(new: &Value, old: Option<&Value>, errors: &mut FieldErrors) {
    let spec = Path::new("spec");
    if !matches!(
        tree::text(new, &["spec", "podManagementPolicy"]),
        "OrderedReady" | "Parallel"
    ) {
        let value = tree::text(new, &["spec", "podManagementPolicy"]);
        errors.invalid(
            &spec.child("podManagementPolicy"),
            value,
            "must be 'OrderedReady' or 'Parallel'",
        );
    }
    validate_stateful_set_strategy(new, errors);
    check_not_negative(new, "replicas", &spec, errors);
    check_not_negative(new, "minReadySeconds", &spec, errors);
    let messages = Messages {
        empty_selector: "empty selector is invalid for statefulset",
        deadline: "activeDeadlineSeconds in StatefulSet is not Supported",
    };
    validate_selector_and_template(new, &messages, errors);
    if old.is_some_and(|old| immutable_fields(new) != immutable_fields(old)) {
        errors.forbidden(
            &spec,
            "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden",
        );
    }
}

fn immutable_fields(value: &Value) -> Value {
    let mut spec = value.get("spec").cloned().unwrap_or_default();
    for field in STATEFUL_SET_MUTABLE {
        tree::remove(&mut spec, &[field]);
    }
    spec
}

/// Validates a Job.
pub(super) fn job(new: &Value, old: Option<&Value>, errors: &mut FieldErrors) {
    let spec = Path::new("spec");
    for field in [
        "parallelism",
        "completions",
        "backoffLimit",
        "activeDeadlineSeconds",
        "ttlSecondsAfterFinished",
    ] {
        check_not_negative(new, field, &spec, errors);
    }
    let template = spec.child("template");
    pod::template(tree::get(new, &["spec", "template"]), &template, errors);
    let policy = tree::text(new, &["spec", "template", "spec", "restartPolicy"]);
    if !matches!(policy, "OnFailure" | "Never") {
        let path = template.child("spec").child("restartPolicy");
        errors.required(&path, "valid values: \"OnFailure\", \"Never\"");
    }
    for field in ["completions", "selector", "template", "completionMode"] {
        let path = ["spec", field];
        if old.is_some_and(|old| tree::get(old, &path) != tree::get(new, &path)) {
            errors.invalid(
                &spec.child(field),
                tree::get(new, &path).cloned().unwrap_or_default(),
                IMMUTABLE,
            );
        }
    }
}

fn check_not_negative(value: &Value, field: &str, path: &Path, errors: &mut FieldErrors) {
    if let Some(number) = tree::int(value, &["spec", field]).filter(|number| *number < 0) {
        errors.invalid(&path.child(field), number, "must be greater than or equal to 0");
    }
}

fn validate_selector_and_template(new: &Value, messages: &Messages, errors: &mut FieldErrors) {
    let path = Path::new("spec");
    let selector = tree::get(new, &["spec", "selector"]).filter(|selector| selector.is_object());
    match selector {
        None => errors.required(&path.child("selector"), ""),
        Some(selector) => {
            label_selector(selector, &path.child("selector"), errors);
            if is_empty(selector) {
                errors.invalid(&path.child("selector"), selector.clone(), messages.empty_selector);
            }
        }
    }
    let template = tree::get(new, &["spec", "template"]);
    let at = path.child("template");
    let labels = template.and_then(|template| tree::get(template, &["metadata", "labels"]));
    let parsed = LabelSelector::from_object(selector);
    if selector.is_none_or(|selector| !is_empty(selector)) && !parsed.matches_map(labels) {
        let shown = labels.cloned().unwrap_or(Value::Null);
        errors.invalid(
            &at.child("metadata").child("labels"),
            shown,
            "`selector` does not match template `labels`",
        );
    }
    pod::template(template, &at, errors);
    let policy = tree::text(new, &["spec", "template", "spec", "restartPolicy"]);
    if policy != "Always" {
        errors.not_supported(&at.child("spec").child("restartPolicy"), policy, &["Always"]);
    }
    if tree::get(new, &["spec", "template", "spec", "activeDeadlineSeconds"]).is_some() {
        errors.forbidden(
            &at.child("spec").child("activeDeadlineSeconds"),
            messages.deadline,
        );
    }
}

fn is_empty(selector: &Value) -> bool {
    tree::map(selector, &["matchLabels"]).is_none_or(serde_json::Map::is_empty)
        && tree::list(selector, &["matchExpressions"]).is_empty()
}

/// Validates a `metav1.LabelSelector`.
pub(super) fn label_selector(selector: &Value, path: &Path, errors: &mut FieldErrors) {
    super::meta::labels(selector.get("matchLabels"), &path.child("matchLabels"), errors);
    for (at, expression) in tree::list(selector, &["matchExpressions"]).iter().enumerate() {
        let path = path.child("matchExpressions").index(at);
        let values = tree::list(expression, &["values"]);
        match tree::text(expression, &["operator"]) {
            "In" | "NotIn" if values.is_empty() => {
                errors.required(
                    &path.child("values"),
                    "must be specified when `operator` is 'In' or 'NotIn'",
                );
            }
            "Exists" | "DoesNotExist" if !values.is_empty() => errors.forbidden(
                &path.child("values"),
                "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
            ),
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            other => errors.invalid(&path.child("operator"), other, "not a valid selector operator"),
        }
        let key = tree::text(expression, &["key"]);
        for wrong in super::names::qualified(key) {
            errors.invalid(&path.child("key"), key, wrong);
        }
    }
}

fn check_immutable_selector(new: &Value, old: Option<&Value>, errors: &mut FieldErrors) {
    let path = ["spec", "selector"];
    if old.is_some_and(|old| tree::get(old, &path) != tree::get(new, &path)) {
        let shown = tree::get(new, &path).cloned().unwrap_or_default();
        errors.invalid(&Path::new("spec.selector"), shown, IMMUTABLE);
    }
}

fn validate_strategy(new: &Value, path: &Path, errors: &mut FieldErrors) {
    let rolling = tree::get(new, &["spec", "strategy", "rollingUpdate"]);
    match tree::text(new, &["spec", "strategy", "type"]) {
        "Recreate" if rolling.is_some() => {
            errors.forbidden(
                &path.child("rollingUpdate"),
                "may not be specified when strategy `type` is 'Recreate'",
            );
        }
        "Recreate" => {}
        "RollingUpdate" => {
            let path = path.child("rollingUpdate");
            let (unavailable, surge) = (
                rolling.and_then(|r| r.get("maxUnavailable")),
                rolling.and_then(|r| r.get("maxSurge")),
            );
            int_or_percent(unavailable, &path.child("maxUnavailable"), errors);
            int_or_percent(surge, &path.child("maxSurge"), errors);
            if amount(unavailable) == 0 && amount(surge) == 0 {
                let shown = unavailable.cloned().unwrap_or(json!(0));
                errors.invalid(
                    &path.child("maxUnavailable"),
                    shown,
                    "may not be 0 when `maxSurge` is 0",
                );
            }
            at_most_100_percent(unavailable, &path.child("maxUnavailable"), errors);
        }
        _ => {
            let shown = tree::get(new, &["spec", "strategy"]).cloned().unwrap_or_default();
            errors.not_supported(path, shown, &["Recreate", "RollingUpdate"]);
        }
    }
}

fn amount(value: Option<&Value>) -> i64 {
    match value {
        Some(Value::Number(number)) => number.as_i64().unwrap_or(0),
        Some(Value::String(text)) => text.trim_end_matches('%').parse().unwrap_or(0),
        _ => 0,
    }
}

/// Checks that a value is a non-negative number or a percentage.
pub(super) fn int_or_percent(value: Option<&Value>, path: &Path, errors: &mut FieldErrors) {
    match value {
        Some(Value::Number(number)) if number.as_i64().unwrap_or(0) < 0 => {
            errors.invalid(
                path,
                number.as_i64().unwrap_or(0),
                "must be greater than or equal to 0",
            );
        }
        Some(Value::String(text)) => {
            let digits = text.strip_suffix('%').unwrap_or("");
            if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
                errors.invalid(
                    path,
                    text.as_str(),
                    "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')",
                );
            }
        }
        _ => {}
    }
}

/// Checks that a percentage is not greater than 100%.
pub(super) fn at_most_100_percent(value: Option<&Value>, path: &Path, errors: &mut FieldErrors) {
    if let Some(Value::String(text)) = value
        && amount(value) > 100
    {
        errors.invalid(path, text.as_str(), "must not be greater than 100%");
    }
}
