//! Defaults of workloads: groups `apps` and `batch`.

use serde_json::{Value, json};

use super::pod_spec;
use crate::tree;

fn default_template(value: &mut Value, path: &[&str]) {
    if let Some(spec) = tree::get_mut(value, path) {
        pod_spec(spec);
    }
}

/// Applies the defaults of a Deployment.
pub(super) fn deployment(value: &mut Value) {
    default_template(value, &["spec", "template", "spec"]);
    tree::set_default(value, &["spec", "replicas"], 1);
    tree::set_default_text(value, &["spec", "strategy", "type"], "RollingUpdate");
    if tree::text(value, &["spec", "strategy", "type"]) == "RollingUpdate" {
        tree::set_default(
            value,
            &["spec", "strategy", "rollingUpdate", "maxUnavailable"],
            "25%",
        );
        tree::set_default(value, &["spec", "strategy", "rollingUpdate", "maxSurge"], "25%");
    }
    tree::set_default(value, &["spec", "revisionHistoryLimit"], 10);
    tree::set_default(value, &["spec", "progressDeadlineSeconds"], 600);
}

/// Applies the defaults of a `ReplicaSet`.
pub(super) fn replica_set(value: &mut Value) {
    default_template(value, &["spec", "template", "spec"]);
    tree::set_default(value, &["spec", "replicas"], 1);
}

/// Applies the defaults of a `DaemonSet`.
pub(super) fn daemon_set(value: &mut Value) {
    default_template(value, &["spec", "template", "spec"]);
    tree::set_default_text(value, &["spec", "updateStrategy", "type"], "RollingUpdate");
    if tree::text(value, &["spec", "updateStrategy", "type"]) == "RollingUpdate" {
        tree::set_default(
            value,
            &["spec", "updateStrategy", "rollingUpdate", "maxUnavailable"],
            1,
        );
        tree::set_default(value, &["spec", "updateStrategy", "rollingUpdate", "maxSurge"], 0);
    }
    tree::set_default(value, &["spec", "revisionHistoryLimit"], 10);
}

/// Applies the defaults of a `StatefulSet`.
pub(super) fn stateful_set(value: &mut Value) {
    default_template(value, &["spec", "template", "spec"]);
    tree::set_default_text(value, &["spec", "podManagementPolicy"], "OrderedReady");
    if tree::set_default_text(value, &["spec", "updateStrategy", "type"], "RollingUpdate") {
        tree::set_default(value, &["spec", "updateStrategy", "rollingUpdate"], json!({}));
    }
    if tree::text(value, &["spec", "updateStrategy", "type"]) == "RollingUpdate"
        && tree::get(value, &["spec", "updateStrategy", "rollingUpdate"]).is_some()
    {
        tree::set_default(
            value,
            &["spec", "updateStrategy", "rollingUpdate", "partition"],
            0,
        );
    }
    for field in ["whenDeleted", "whenScaled"] {
        tree::set_default_text(
            value,
            &["spec", "persistentVolumeClaimRetentionPolicy", field],
            "Retain",
        );
    }
    tree::set_default(value, &["spec", "replicas"], 1);
    tree::set_default(value, &["spec", "revisionHistoryLimit"], 10);
    for claim in tree::list_mut(value, &["spec", "volumeClaimTemplates"])
        .into_iter()
        .flatten()
    {
        tree::set_default_text(claim, &["status", "phase"], "Pending");
        tree::set_default(claim, &["spec", "volumeMode"], "Filesystem");
        tree::set_default_text(claim, &["apiVersion"], "v1");
        tree::set_default_text(claim, &["kind"], "PersistentVolumeClaim");
    }
}

/// Applies the defaults of a Job.
pub(super) fn job(value: &mut Value) {
    default_template(value, &["spec", "template", "spec"]);
    let labels = tree::get(value, &["spec", "template", "metadata", "labels"]).cloned();
    if let Some(labels) =
        labels.filter(|_| tree::map(value, &["metadata", "labels"]).is_none_or(serde_json::Map::is_empty))
    {
        tree::set(value, &["metadata", "labels"], labels);
    }
    if let Some(spec) = value.get_mut("spec") {
        default_job_spec(spec);
    }
}

fn default_job_spec(spec: &mut Value) {
    if tree::get(spec, &["completions"]).is_none() && tree::get(spec, &["parallelism"]).is_none() {
        tree::set(spec, &["completions"], 1);
    }
    tree::set_default(spec, &["parallelism"], 1);
    let limit = if tree::get(spec, &["backoffLimitPerIndex"]).is_some() {
        i64::from(i32::MAX)
    } else {
        6
    };
    tree::set_default(spec, &["backoffLimit"], limit);
    tree::set_default(spec, &["completionMode"], "NonIndexed");
    tree::set_default(spec, &["suspend"], false);
    let replacement = if tree::get(spec, &["podFailurePolicy"]).is_some() {
        "Failed"
    } else {
        "TerminatingOrFailed"
    };
    tree::set_default(spec, &["podReplacementPolicy"], replacement);
    tree::set_default(spec, &["manualSelector"], false);
}

/// Applies the defaults of a `CronJob`. Of its job template, only the pod has defaults.
pub(super) fn cron_job(value: &mut Value) {
    default_template(value, &["spec", "jobTemplate", "spec", "template", "spec"]);
    tree::set_default_text(value, &["spec", "concurrencyPolicy"], "Allow");
    tree::set_default(value, &["spec", "suspend"], false);
    tree::set_default(value, &["spec", "successfulJobsHistoryLimit"], 3);
    tree::set_default(value, &["spec", "failedJobsHistoryLimit"], 1);
}
