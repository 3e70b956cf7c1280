//! Computes the status of a resource from the controller's observations.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use mainstay_api::istio_operator::{ComponentStatus, InstallState, IstioOperator, IstioOperatorStatus};
use mainstay_api::{Condition, ConditionStatus, ConditionType, Reason};

use crate::component::ComponentName;

/// Time after which a component that is not ready counts as failed. Equal to the timeout of upstream's
/// controller.
pub const READINESS_TIMEOUT: Duration = Duration::from_mins(5);

/// Maximum number of pods or tags in a message.
const MAX_NAMED: usize = 10;

/// Observed state of a component.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ComponentState {
    /// Installed and ready.
    Ready,
    /// Applied, but objects are not ready. The text is the reason.
    Waiting(String),
    /// Not applied, because another component is not ready.
    Blocked(ComponentName),
    /// Applying the component failed.
    Failed(String),
}

/// Observed state of a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Situation {
    /// The configuration is invalid.
    Invalid(String),
    /// Nothing was installed, for this reason.
    Rejected(Reason, String),
    /// The components were applied as far as possible.
    Applied(Vec<(ComponentName, ComponentState)>),
    /// An API call failed before any component was applied.
    Failed(String),
    /// The deletion waits for pods and tags that use the revision.
    Blocked {
        /// Pods with a connected proxy.
        pods: Vec<String>,
        /// Tags that point to the revision.
        tags: Vec<String>,
    },
    /// Deleting the objects failed.
    NotDeleted(String),
}

/// An observation of the controller.
#[derive(Clone, Debug)]
pub struct Observation {
    /// Observed state.
    pub situation: Situation,
    /// Istio version.
    pub version: String,
    /// Time of the observation.
    pub now: Timestamp,
}

/// Returns the status of a resource after an observation.
#[must_use]
pub fn next_status(operator: &IstioOperator, observation: &Observation) -> IstioOperatorStatus {
    let mut status = operator.status.clone();
    status.observed_generation = operator.metadata.generation;
    status.message = String::new();
    let mut next = NextStatus {
        status,
        now: observation.now,
    };
    match &observation.situation {
        Situation::Invalid(message) => next.reject(Reason::InvalidSpec, message),
        Situation::Rejected(reason, message) => next.reject(reason.clone(), message),
        Situation::Failed(message) => next.reject(Reason::ReconcileError, message),
        Situation::Applied(components) => next.apply(components, &observation.version),
        Situation::Blocked { pods, tags } => next.block(pods, tags),
        Situation::NotDeleted(message) => {
            next.status.status = InstallState::Error;
            message.clone_into(&mut next.status.message);
        }
    }
    next.status
}

struct NextStatus {
    status: IstioOperatorStatus,
    now: Timestamp,
}

impl NextStatus {
    fn set_condition(&mut self, kind: ConditionType, holds: bool, reason: Reason, message: &str) {
        let condition = Condition::new(kind, ConditionStatus::from(holds), reason, message);
        self.status.conditions.set(condition, self.now);
    }

    /// Records that nothing was applied. The states of the components are not changed.
    fn reject(&mut self, reason: Reason, message: &str) {
        self.status.status = InstallState::Error;
        message.clone_into(&mut self.status.message);
        self.set_condition(ConditionType::Reconciled, false, reason, message);
    }

    fn apply(&mut self, components: &[(ComponentName, ComponentState)], version: &str) {
        let known = std::mem::take(&mut self.status.component_status);
        let is_late = self.is_late();
        let row = |(name, state): &(ComponentName, ComponentState)| {
            let row = component_status(state, version, known.get(name.name()), is_late);
            (name.name().to_owned(), row)
        };
        self.status.component_status = components.iter().map(row).collect();
        self.status.status = aggregate_state(&self.status.component_status);
        self.status.message = summarize_errors(&self.status.component_status);
        let failures = join_states(components, |state| match state {
            ComponentState::Failed(error) => Some(error.clone()),
            _ => None,
        });
        let unready = join_states(components, |state| match state {
            ComponentState::Waiting(reason) => Some(reason.clone()),
            ComponentState::Blocked(other) => Some(format!("waits for {}", other.title())),
            ComponentState::Failed(_) => Some("failed".to_owned()),
            ComponentState::Ready => None,
        });
        let reason = if failures.is_empty() {
            Reason::Reconciled
        } else {
            Reason::ComponentsFailed
        };
        self.set_condition(ConditionType::Reconciled, failures.is_empty(), reason, &failures);
        let reason = if unready.is_empty() {
            Reason::Ready
        } else {
            Reason::ComponentsNotReady
        };
        self.set_condition(ConditionType::Ready, unready.is_empty(), reason, &unready);
    }

    /// Whether the installation has been unready for longer than the timeout.
    fn is_late(&self) -> bool {
        let ready = self.status.conditions.find(&ConditionType::Ready);
        let since = ready
            .filter(|ready| !ready.is_true())
            .and_then(|ready| ready.last_transition_time);
        since.is_some_and(|since| {
            self.now.duration_since(since.timestamp()).unsigned_abs() >= READINESS_TIMEOUT
        })
    }

    fn block(&mut self, pods: &[String], tags: &[String]) {
        let message = describe_users(pods, tags);
        self.status.status = InstallState::ActionRequired;
        message.clone_into(&mut self.status.message);
        self.set_condition(
            ConditionType::DeletionBlocked,
            true,
            Reason::ProxiesConnected,
            &message,
        );
    }
}

fn component_status(
    state: &ComponentState,
    version: &str,
    known: Option<&ComponentStatus>,
    is_late: bool,
) -> ComponentStatus {
    let is_new_version = known.is_some_and(|known| known.version != version);
    let pending = if is_new_version {
        InstallState::Updating
    } else {
        InstallState::Reconciling
    };
    let (state, error) = match state {
        ComponentState::Ready => (InstallState::Healthy, String::new()),
        ComponentState::Waiting(reason) if is_late => (InstallState::Error, reason.clone()),
        ComponentState::Waiting(reason) => (pending, reason.clone()),
        ComponentState::Blocked(other) => (pending, format!("waits for {}", other.title())),
        ComponentState::Failed(error) => (InstallState::Error, error.clone()),
    };
    // While another version is being installed, the status contains the old version, so that the state
    // remains UPDATING.
    let shown = match known {
        Some(known) if is_new_version && state != InstallState::Healthy => known.version.clone(),
        _ => version.to_owned(),
    };
    ComponentStatus {
        version: shown,
        status: state,
        error,
    }
}

/// Returns the state of an installation, which is the worst state of its components.
#[must_use]
pub fn aggregate_state(components: &BTreeMap<String, ComponentStatus>) -> InstallState {
    let worst_first = [
        InstallState::Error,
        InstallState::Updating,
        InstallState::Reconciling,
    ];
    let has = |state: &InstallState| components.values().any(|one| one.status == *state);
    worst_first.into_iter().find(has).unwrap_or(InstallState::Healthy)
}

fn summarize_errors(components: &BTreeMap<String, ComponentStatus>) -> String {
    let rows = components.iter().filter(|(_, row)| !row.error.is_empty());
    let lines: Vec<String> = rows.map(|(name, row)| format!("{name}: {}", row.error)).collect();
    lines.join("; ")
}

fn join_states(
    components: &[(ComponentName, ComponentState)],
    text: impl Fn(&ComponentState) -> Option<String>,
) -> String {
    let lines = components
        .iter()
        .filter_map(|(name, state)| Some(format!("{}: {}", name.name(), text(state)?)));
    lines.collect::<Vec<_>>().join("; ")
}

fn describe_users(pods: &[String], tags: &[String]) -> String {
    let mut parts = Vec::new();
    if !pods.is_empty() {
        let pods = list_names(pods);
        parts.push(format!(
            "proxies are connected to the revision: {pods}; move their workloads to another revision or delete them"
        ));
    }
    if !tags.is_empty() {
        let tags = list_names(tags);
        parts.push(format!("tags point to the revision: {tags}; move or remove them"));
    }
    parts.join("; ")
}

fn list_names(names: &[String]) -> String {
    let named: Vec<&str> = names.iter().take(MAX_NAMED).map(String::as_str).collect();
    match names.len().saturating_sub(MAX_NAMED) {
        0 => named.join(", "),
        more => format!("{} and {more} more", named.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ComponentName::{Base, IngressGateways, Pilot};

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn observe(operator: &mut IstioOperator, second: i64, version: &str, situation: Situation) {
        let observation = Observation {
            situation,
            version: version.into(),
            now: at(second),
        };
        operator.status = next_status(operator, &observation);
    }

    fn shown(status: &IstioOperatorStatus) -> String {
        let rows = status.component_status.iter();
        let rows: Vec<String> = rows
            .map(|(name, row)| format!("{name}={}@{}", row.status, row.version))
            .collect();
        format!("{} {}", status.status, rows.join(" "))
    }

    #[test]
    fn an_installation_becomes_healthy() {
        let mut operator = IstioOperator::default();
        operator.metadata.generation = 3;
        let waiting = ComponentState::Waiting("0 of 1 replicas updated".into());
        let parts = vec![
            (Base, ComponentState::Ready),
            (Pilot, waiting),
            (IngressGateways, ComponentState::Blocked(Pilot)),
        ];
        observe(&mut operator, 1, "1.29.1", Situation::Applied(parts));
        assert_eq!(
            shown(&operator.status),
            "RECONCILING Base=HEALTHY@1.29.1 IngressGateways=RECONCILING@1.29.1 Pilot=RECONCILING@1.29.1"
        );
        assert_eq!(operator.status.observed_generation, 3);
        assert_eq!(
            operator.status.message,
            "IngressGateways: waits for Istiod; Pilot: 0 of 1 replicas updated"
        );
        let parts = [Base, Pilot, IngressGateways].map(|name| (name, ComponentState::Ready));
        observe(&mut operator, 2, "1.29.1", Situation::Applied(parts.to_vec()));
        assert_eq!(operator.status.status, InstallState::Healthy);
        assert!(operator.status.conditions.is_true(&ConditionType::Ready));
        assert!(operator.status.conditions.is_true(&ConditionType::Reconciled));
        let parts = vec![
            (Base, ComponentState::Ready),
            (Pilot, ComponentState::Waiting("old".into())),
        ];
        observe(&mut operator, 3, "1.30.0", Situation::Applied(parts));
        assert_eq!(
            shown(&operator.status),
            "UPDATING Base=HEALTHY@1.30.0 Pilot=UPDATING@1.29.1",
            "a disabled component has no entry"
        );
    }

    #[test]
    fn a_component_that_is_not_ready_in_time_has_failed() {
        let mut operator = IstioOperator::default();
        let parts = || Situation::Applied(vec![(Pilot, ComponentState::Waiting("image not found".into()))]);
        observe(&mut operator, 0, "1.29.1", parts());
        observe(&mut operator, 299, "1.29.1", parts());
        assert_eq!(operator.status.status, InstallState::Reconciling);
        observe(&mut operator, 300, "1.29.1", parts());
        assert_eq!(operator.status.status, InstallState::Error);
        assert_eq!(operator.status.message, "Pilot: image not found");
        let ready = Situation::Applied(vec![(Pilot, ComponentState::Ready)]);
        observe(&mut operator, 301, "1.29.1", ready);
        assert_eq!(operator.status.status, InstallState::Healthy);
    }

    #[test]
    fn an_invalid_change_keeps_the_state_of_components() {
        let mut operator = IstioOperator::default();
        let ready = Situation::Applied(vec![(Pilot, ComponentState::Ready)]);
        observe(&mut operator, 0, "1.29.1", ready);
        observe(
            &mut operator,
            1,
            "1.29.1",
            Situation::Invalid("spec.hub: wrong".into()),
        );
        assert_eq!(shown(&operator.status), "ERROR Pilot=HEALTHY@1.29.1");
        let condition = operator.status.conditions.get(&ConditionType::Reconciled);
        assert_eq!(
            (condition.reason, condition.message.as_str()),
            (Reason::InvalidSpec, "spec.hub: wrong")
        );
    }

    #[test]
    fn connected_proxies_are_listed_in_the_message() {
        let mut operator = IstioOperator::default();
        let pods: Vec<String> = (0..12).map(|number| format!("shop/web-{number}")).collect();
        let tags = vec!["prod".to_owned()];
        observe(&mut operator, 0, "", Situation::Blocked { pods, tags });
        assert_eq!(operator.status.status, InstallState::ActionRequired);
        let message = &operator.status.message;
        assert!(
            message.contains("shop/web-0, shop/web-1,") && message.contains("and 2 more"),
            "{message}"
        );
        assert!(message.contains("tags point to the revision: prod"), "{message}");
        assert!(
            operator
                .status
                .conditions
                .is_true(&ConditionType::DeletionBlocked)
        );
    }

    #[test]
    fn the_state_is_that_of_the_worst_component() {
        use InstallState::{Error, Healthy, Reconciling, Updating};
        let check = |states: &[InstallState], expected: InstallState| {
            let rows = states.iter().enumerate().map(|(number, state)| {
                let row = ComponentStatus {
                    status: state.clone(),
                    ..ComponentStatus::default()
                };
                (number.to_string(), row)
            });
            assert_eq!(aggregate_state(&rows.collect()), expected);
        };
        check(&[], Healthy);
        check(&[Healthy, Reconciling], Reconciling);
        check(&[Reconciling, Updating, Healthy], Updating);
        check(&[Updating, Error, Healthy], Error);
    }
}
