//! Annotations at a level where they are not read: a warning for each, with the right level.

use super::context::{AnnotationContext, Entry, entries, find, named, warning};
use crate::profile::{ADMIN_PORT, ANNOTATION_PREFIX, EGRESS, INGRESS, POD_ROLE, SKIP_INITIALIZER};
use crate::{Code, Finding, Role};

/// The annotations that change what is injected.
const READ: [&str; 4] = [SKIP_INITIALIZER, INGRESS, EGRESS, ADMIN_PORT];

/// Finds Contrast annotations at a level where they have no effect.
pub(super) fn check(context: &AnnotationContext<'_>) -> Vec<Finding> {
    let mut findings = on_object(context);
    findings.extend(on_job_template(context));
    findings.extend(as_labels(context));
    findings.extend(beside_annotations(context));
    findings
}

fn on_object(context: &AnnotationContext<'_>) -> Vec<Finding> {
    let report = |entry: &Entry<'_>| match named(&context.template, entry.key) {
        Some(winner) if context.reads_object() && READ.contains(&entry.key) => overruled(entry, &winner),
        Some(_) => None,
        None if entry.key == POD_ROLE && context.options.profile.role == Role::Annotation => {
            Some(unread(entry))
        }
        None => (!context.reads_object() && READ.contains(&entry.key)).then(|| unread(entry)),
    };
    context.object.iter().filter_map(report).collect()
}

fn unread(entry: &Entry<'_>) -> Finding {
    let message = format!(
        "{} is not read here, only from the pod template's annotations",
        entry.key
    );
    moved(warning(Code::AnnotationLevel, entry.key_node, message))
}

fn moved(finding: Finding) -> Finding {
    Finding {
        help: Some("move it to metadata.annotations of the pod template".to_owned()),
        ..finding
    }
}

fn overruled(entry: &Entry<'_>, winner: &Entry<'_>) -> Option<Finding> {
    if entry.value.kind == winner.value.kind {
        return None;
    }
    let message = format!("{} is also in the pod template, which wins", entry.key);
    let finding = warning(Code::AnnotationLevel, entry.key_node, message);
    Some(Finding {
        help: Some("keep one of the two".to_owned()),
        ..finding
    })
}

/// A `CronJob` has a level between object and pod.
fn on_job_template(context: &AnnotationContext<'_>) -> Vec<Finding> {
    let document = context.workload.document;
    let id = find(
        document,
        context.workload.object,
        &["spec", "jobTemplate", "metadata", "annotations"],
    );
    let ours = entries(document, id)
        .into_iter()
        .filter(|entry| READ.contains(&entry.key));
    ours.filter(|entry| context.effective(entry.key).is_none())
        .map(|entry| unread(&entry))
        .collect()
}

/// The role is a label in one spelling and an annotation in the other; everything else is an annotation.
fn as_labels(context: &AnnotationContext<'_>) -> Vec<Finding> {
    let document = context.workload.document;
    let labels = |id| entries(document, find(document, id, &["metadata", "labels"]));
    let mut all = labels(context.workload.template);
    if context.workload.object != context.workload.template {
        all.extend(labels(context.workload.object));
    }
    let role_is_label = context.options.profile.role == Role::Label;
    let misplaced =
        |entry: &Entry<'_>| READ.contains(&entry.key) || (entry.key == POD_ROLE && !role_is_label);
    let report = |entry: Entry<'_>| {
        let message = format!("{} is an annotation, here it is a label", entry.key);
        moved(warning(Code::AnnotationLevel, entry.key_node, message))
    };
    let mut findings: Vec<_> = all.into_iter().filter(misplaced).map(report).collect();
    if role_is_label {
        findings.extend(named(&context.template, POD_ROLE).map(|entry| {
            let message = format!("{POD_ROLE} is a label, here it is an annotation");
            Finding {
                help: Some("move it to metadata.labels of the pod template".to_owned()),
                ..warning(Code::AnnotationLevel, entry.key_node, message)
            }
        }));
    }
    findings
}

/// The line `annotations:` is easily forgotten.
fn beside_annotations(context: &AnnotationContext<'_>) -> Vec<Finding> {
    let document = context.workload.document;
    let metadata = |id| entries(document, document.get(id, "metadata"));
    let mut all = metadata(context.workload.template);
    if context.workload.object != context.workload.template {
        all.extend(metadata(context.workload.object));
    }
    let report = |entry: Entry<'_>| {
        let message = format!("{} stands beside `annotations`, not in it", entry.key);
        moved(warning(Code::AnnotationLevel, entry.key_node, message))
    };
    all.into_iter()
        .filter(|entry| entry.key.starts_with(ANNOTATION_PREFIX))
        .map(report)
        .collect()
}
