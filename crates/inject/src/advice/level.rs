//! Reports annotations at a level where they are not read, with the correct level.

use super::context::{AnnotationContext, Entry, entries, find_node, last_named, warning};
use crate::profile::{ADMIN_PORT, ANNOTATION_PREFIX, EGRESS, INGRESS, POD_ROLE, SKIP_INITIALIZER};
use crate::{Code, Finding, Role};

/// Annotations that affect the injection.
const INJECTION_ANNOTATIONS: [&str; 4] = [SKIP_INITIALIZER, INGRESS, EGRESS, ADMIN_PORT];

/// Finds Contrast annotations at a level where they have no effect.
pub(super) fn check(context: &AnnotationContext<'_>) -> Vec<Finding> {
    let mut findings = check_object(context);
    findings.extend(check_job_template(context));
    findings.extend(check_labels(context));
    findings.extend(check_metadata(context));
    findings
}

fn check_object(context: &AnnotationContext<'_>) -> Vec<Finding> {
    let report = |entry: &Entry<'_>| match last_named(&context.template, entry.key) {
        Some(winner) if context.reads_object() && INJECTION_ANNOTATIONS.contains(&entry.key) => {
            overridden(entry, &winner)
        }
        Some(_) => None,
        None if entry.key == POD_ROLE && context.options.profile.role == Role::Annotation => {
            Some(not_read(entry))
        }
        None => {
            (!context.reads_object() && INJECTION_ANNOTATIONS.contains(&entry.key)).then(|| not_read(entry))
        }
    };
    context.object.iter().filter_map(report).collect()
}

fn not_read(entry: &Entry<'_>) -> Finding {
    let message = format!(
        "{} is not read here, only from the pod template's annotations",
        entry.key
    );
    with_move_help(warning(Code::AnnotationLevel, entry.key_node, message))
}

fn with_move_help(finding: Finding) -> Finding {
    Finding {
        help: Some("move it to metadata.annotations of the pod template".to_owned()),
        ..finding
    }
}

fn overridden(entry: &Entry<'_>, winner: &Entry<'_>) -> Option<Finding> {
    if entry.value.kind == winner.value.kind {
        return None;
    }
    let message = format!(
        "{} is also set in the pod template, which takes precedence",
        entry.key
    );
    let finding = warning(Code::AnnotationLevel, entry.key_node, message);
    Some(Finding {
        help: Some("keep one of the two".to_owned()),
        ..finding
    })
}

/// Reports annotations of a `CronJob`'s job template, which is a level between object and pod template.
fn check_job_template(context: &AnnotationContext<'_>) -> Vec<Finding> {
    let document = context.workload.document;
    let id = find_node(
        document,
        context.workload.object,
        &["spec", "jobTemplate", "metadata", "annotations"],
    );
    let ours = entries(document, id)
        .into_iter()
        .filter(|entry| INJECTION_ANNOTATIONS.contains(&entry.key));
    ours.filter(|entry| context.effective(entry.key).is_none())
        .map(|entry| not_read(&entry))
        .collect()
}

/// Reports keys that are labels instead of annotations. The role is a label or an annotation, depending on
/// the profile; all other keys are annotations.
fn check_labels(context: &AnnotationContext<'_>) -> Vec<Finding> {
    let document = context.workload.document;
    let labels = |id| entries(document, find_node(document, id, &["metadata", "labels"]));
    let mut all = labels(context.workload.template);
    if context.workload.object != context.workload.template {
        all.extend(labels(context.workload.object));
    }
    let role_is_label = context.options.profile.role == Role::Label;
    let misplaced = |entry: &Entry<'_>| {
        INJECTION_ANNOTATIONS.contains(&entry.key) || (entry.key == POD_ROLE && !role_is_label)
    };
    let report = |entry: Entry<'_>| {
        let message = format!("{} must be an annotation, not a label", entry.key);
        with_move_help(warning(Code::AnnotationLevel, entry.key_node, message))
    };
    let mut findings: Vec<_> = all.into_iter().filter(misplaced).map(report).collect();
    if role_is_label {
        findings.extend(last_named(&context.template, POD_ROLE).map(|entry| {
            let message = format!("{POD_ROLE} must be a label, not an annotation");
            Finding {
                help: Some("move it to metadata.labels of the pod template".to_owned()),
                ..warning(Code::AnnotationLevel, entry.key_node, message)
            }
        }));
    }
    findings
}

/// Reports annotations directly in `metadata`: the line `annotations:` was probably forgotten.
fn check_metadata(context: &AnnotationContext<'_>) -> Vec<Finding> {
    let document = context.workload.document;
    let metadata = |id| entries(document, document.get(id, "metadata"));
    let mut all = metadata(context.workload.template);
    if context.workload.object != context.workload.template {
        all.extend(metadata(context.workload.object));
    }
    let report = |entry: Entry<'_>| {
        let message = format!("{} is next to `annotations`, not inside it", entry.key);
        with_move_help(warning(Code::AnnotationLevel, entry.key_node, message))
    };
    all.into_iter()
        .filter(|entry| entry.key.starts_with(ANNOTATION_PREFIX))
        .map(report)
        .collect()
}
