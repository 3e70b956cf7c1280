//! Determines the order in which components are started: a component starts when its parent is ready, and
//! is skipped if its parent failed.

use crate::component::ComponentName;

use super::plan::InstallationPlan;

/// Progress of one component.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Pending,
    Running,
    Ready,
    Failed,
    Skipped,
}

#[derive(Clone, Debug)]
struct Node {
    component: ComponentName,
    parent: Option<ComponentName>,
    state: State,
}

/// Components of a plan with their progress.
#[derive(Clone, Debug)]
pub struct Schedule {
    nodes: Vec<Node>,
}

/// A component that is not installed because another component failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SkippedComponent {
    /// Skipped component.
    pub component: ComponentName,
    /// Component that failed.
    pub failed: ComponentName,
}

impl Schedule {
    /// Creates the schedule of a plan.
    #[must_use]
    pub fn new(plan: &InstallationPlan) -> Self {
        let nodes = plan.components.iter().map(|planned| Node {
            component: planned.component,
            parent: planned.parent,
            state: State::Pending,
        });
        Self {
            nodes: nodes.collect(),
        }
    }

    /// Marks every pending component whose parent is ready as running, and returns these components.
    pub fn start_ready(&mut self) -> Vec<ComponentName> {
        let can_start = |node: &Node| {
            let parent = node.parent.and_then(|parent| self.state(parent));
            node.state == State::Pending && matches!(parent, None | Some(State::Ready))
        };
        let ready: Vec<ComponentName> = self
            .nodes
            .iter()
            .filter(|node| can_start(node))
            .map(|node| node.component)
            .collect();
        for component in &ready {
            self.set_state(*component, State::Running);
        }
        ready
    }

    /// Records that a component is ready.
    pub fn succeed(&mut self, component: ComponentName) {
        self.set_state(component, State::Ready);
    }

    /// Records that a component failed. Returns the components that are skipped as a result.
    pub fn fail(&mut self, component: ComponentName) -> Vec<SkippedComponent> {
        self.set_state(component, State::Failed);
        let mut skipped = Vec::new();
        loop {
            let is_blocked = |node: &&Node| {
                let parent = node.parent.and_then(|parent| self.state(parent));
                node.state == State::Pending && matches!(parent, Some(State::Failed | State::Skipped))
            };
            let blocked = self.nodes.iter().find(is_blocked).map(|node| node.component);
            let Some(blocked) = blocked else {
                return skipped;
            };
            self.set_state(blocked, State::Skipped);
            skipped.push(SkippedComponent {
                component: blocked,
                failed: component,
            });
        }
    }

    /// Whether every component is ready, failed or skipped.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        !self
            .nodes
            .iter()
            .any(|node| matches!(node.state, State::Pending | State::Running))
    }

    /// Whether every component is ready.
    #[must_use]
    pub fn is_successful(&self) -> bool {
        self.nodes.iter().all(|node| node.state == State::Ready)
    }

    fn state(&self, component: ComponentName) -> Option<State> {
        let found = self.nodes.iter().find(|node| node.component == component);
        found.map(|node| node.state)
    }

    fn set_state(&mut self, component: ComponentName, state: State) {
        for node in self.nodes.iter_mut().filter(|node| node.component == component) {
            node.state = state;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ComponentName::{Base, Cni, EgressGateways, IngressGateways, Pilot, Ztunnel};

    fn schedule(components: &[ComponentName]) -> Schedule {
        Schedule::new(&InstallationPlan::for_components(components))
    }

    #[test]
    fn a_component_starts_when_its_parent_is_ready() {
        let mut schedule = schedule(&[Base, Pilot, Cni, Ztunnel, IngressGateways]);
        assert_eq!(schedule.start_ready(), [Base]);
        assert_eq!(schedule.start_ready(), []);
        schedule.succeed(Base);
        assert_eq!(schedule.start_ready(), [Pilot, Cni]);
        schedule.succeed(Cni);
        assert_eq!(schedule.start_ready(), [Ztunnel]);
        schedule.succeed(Pilot);
        assert_eq!(schedule.start_ready(), [IngressGateways]);
        schedule.succeed(Ztunnel);
        assert!(!schedule.is_finished());
        schedule.succeed(IngressGateways);
        assert!(schedule.is_finished() && schedule.is_successful());
    }

    #[test]
    fn children_of_a_failed_component_are_skipped() {
        let mut schedule = schedule(&[Base, Pilot, Cni, Ztunnel, IngressGateways, EgressGateways]);
        schedule.start_ready();
        schedule.succeed(Base);
        schedule.start_ready();
        let skipped = schedule.fail(Pilot);
        let names: Vec<_> = skipped.iter().map(|one| one.component).collect();
        assert_eq!(names, [IngressGateways, EgressGateways]);
        assert!(skipped.iter().all(|one| one.failed == Pilot));
        schedule.succeed(Cni);
        assert_eq!(schedule.start_ready(), [Ztunnel]);
        schedule.succeed(Ztunnel);
        assert!(schedule.is_finished() && !schedule.is_successful());
    }

    #[test]
    fn a_failed_root_skips_everything() {
        let mut schedule = schedule(&[Base, Pilot, Cni, Ztunnel]);
        schedule.start_ready();
        assert_eq!(schedule.fail(Base).len(), 3);
        assert!(schedule.is_finished());
    }

    #[test]
    fn a_disabled_parent_is_replaced_by_its_own_parent() {
        let mut schedule = schedule(&[Base, Ztunnel]);
        assert_eq!(schedule.start_ready(), [Base]);
        schedule.succeed(Base);
        assert_eq!(schedule.start_ready(), [Ztunnel]);
        let mut alone = self::schedule(&[IngressGateways]);
        assert_eq!(alone.start_ready(), [IngressGateways]);
    }
}
