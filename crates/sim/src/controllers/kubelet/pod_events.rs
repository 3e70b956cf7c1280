//! Events that a kubelet records about its pods.

use serde_json::Value;

use crate::events::{self, NewEvent};
use crate::script::ContainerPhase;
use crate::state::State;
use crate::tree;

const KUBELET: &str = "kubelet";

/// Change of the phase of a pod.
#[derive(Clone, Copy, Debug)]
pub(super) struct PhaseChange {
    pub(super) before: ContainerPhase,
    pub(super) after: ContainerPhase,
}

/// Records the events of a phase change.
pub(super) fn record_phase_change(state: &mut State, key: &str, node: &str, change: PhaseChange) {
    match (change.before, change.after) {
        (ContainerPhase::Running { .. }, ContainerPhase::Running { .. }) => {}
        (_, ContainerPhase::Running { .. }) => record_per_container(state, key, node, &started_events),
        (_, ContainerPhase::BackOff) => record_per_container(state, key, node, &back_off_events),
        (_, ContainerPhase::NoImage { backing_off: false }) => {
            record_per_container(state, key, node, &missing_image_events);
        }
        (_, ContainerPhase::NoImage { backing_off: true }) => {
            record_per_container(state, key, node, &image_back_off_events);
        }
        _ => {}
    }
}

/// Records the events of a terminating pod.
pub(super) fn record_stopping(state: &mut State, key: &str, node: &str) {
    record_per_container(state, key, node, &|_, container| {
        let text = format!("Stopping container {}", tree::text(container, &["name"]));
        vec![("Killing", text, false)]
    });
}

/// Reason and message of an event, and whether it is a warning.
type ContainerEvent = (&'static str, String, bool);

fn record_per_container(
    state: &mut State,
    key: &str,
    node: &str,
    events: &dyn Fn(&Value, &Value) -> Vec<ContainerEvent>,
) {
    if !state.options.events {
        return;
    }
    let Some(pod) = state.store.get("pods", key).map(|pod| pod.packed()) else {
        return;
    };
    for container in tree::list(&pod, &["spec", "containers"]) {
        let field_path = format!("spec.containers{{{}}}", tree::text(container, &["name"]));
        for (reason, message, warning) in events(&pod, container) {
            let event = NewEvent {
                component: KUBELET,
                node,
                object: &pod,
                field_path: &field_path,
                warning,
                reason,
                message: &message,
            };
            events::record(state, &event);
        }
    }
}

fn image(container: &Value) -> &str {
    tree::text(container, &["image"])
}

fn started_events(_: &Value, container: &Value) -> Vec<ContainerEvent> {
    let pulled = format!(
        "Container image {:?} already present on machine and can be accessed by the pod",
        image(container)
    );
    vec![
        ("Pulled", pulled, false),
        ("Created", "Container created".into(), false),
        ("Started", "Container started".into(), false),
    ]
}

fn back_off_events(pod: &Value, container: &Value) -> Vec<ContainerEvent> {
    let meta = |field| tree::text(pod, &["metadata", field]);
    let text = format!(
        "Back-off restarting failed container {} in pod {}_{}({})",
        tree::text(container, &["name"]),
        meta("name"),
        meta("namespace"),
        meta("uid")
    );
    vec![("BackOff", text, true)]
}

fn missing_image_events(_: &Value, container: &Value) -> Vec<ContainerEvent> {
    let image = image(container);
    vec![
        ("Pulling", format!("Pulling image {image:?}"), false),
        (
            "Failed",
            format!("Failed to pull image {image:?}: failed to pull and unpack image {image:?}: not found"),
            true,
        ),
        ("Failed", "Error: ErrImagePull".into(), true),
    ]
}

fn image_back_off_events(_: &Value, container: &Value) -> Vec<ContainerEvent> {
    let image = image(container);
    vec![
        ("BackOff", format!("Back-off pulling image {image:?}"), false),
        ("Failed", "Error: ImagePullBackOff".into(), true),
    ]
}
