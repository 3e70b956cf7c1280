//! Decides the next action of the controller for a resource.

use mainstay_api::istio_operator::IstioOperator;

/// Next action for a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControllerAction {
    /// No action: another operator is responsible, or an annotation disables the controller.
    Ignore,
    /// Add the finalizer before anything is installed.
    AddFinalizer,
    /// Remove the finalizer and keep all objects.
    Release,
    /// Install the components.
    Install,
    /// Delete all objects, then remove the finalizer.
    Uninstall,
}

/// Returns the next action. If `filter` is set, this operator is responsible for that revision only;
/// `default` means resources without a revision.
#[must_use]
pub fn decide_action(operator: &IstioOperator, filter: Option<&str>) -> ControllerAction {
    let filter = filter.map(|revision| if revision == "default" { "" } else { revision });
    if filter.is_some_and(|revision| revision != operator.revision()) {
        return ControllerAction::Ignore;
    }
    match (operator.metadata.is_deleting(), operator.has_finalizer()) {
        (true, false) => ControllerAction::Ignore,
        (true, true) if operator.is_ignored() => ControllerAction::Release,
        (true, true) => ControllerAction::Uninstall,
        (false, _) if operator.is_ignored() => ControllerAction::Ignore,
        (false, false) => ControllerAction::AddFinalizer,
        (false, true) => ControllerAction::Install,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(metadata: &serde_json::Value, filter: Option<&str>, expected: ControllerAction) {
        let object = json!({"metadata": metadata, "spec": {"revision": "canary"}});
        let operator: IstioOperator = serde_json::from_value(object.clone()).unwrap();
        assert_eq!(decide_action(&operator, filter), expected, "{object}");
    }

    #[test]
    fn the_finalizer_is_added_first_and_removed_last() {
        let finalizers = json!(["istio-finalizer.install.istio.io"]);
        let deleted = json!("2026-01-01T00:00:00Z");
        check(&json!({}), None, ControllerAction::AddFinalizer);
        check(
            &json!({"finalizers": finalizers}),
            None,
            ControllerAction::Install,
        );
        check(
            &json!({"finalizers": finalizers, "deletionTimestamp": deleted}),
            None,
            ControllerAction::Uninstall,
        );
        check(
            &json!({"deletionTimestamp": deleted}),
            None,
            ControllerAction::Ignore,
        );
    }

    #[test]
    fn an_ignored_resource_changes_nothing_and_can_be_deleted() {
        let annotations = json!({"install.istio.io/ignoreReconcile": "true"});
        check(
            &json!({"annotations": annotations}),
            None,
            ControllerAction::Ignore,
        );
        let finalizers = json!(["istio-finalizer.install.istio.io"]);
        check(
            &json!({"annotations": annotations, "finalizers": finalizers, "deletionTimestamp": "2026-01-01T00:00:00Z"}),
            None,
            ControllerAction::Release,
        );
        let other = json!({"install.istio.io/ignoreReconcile": "false"});
        check(
            &json!({"annotations": other}),
            None,
            ControllerAction::AddFinalizer,
        );
    }

    #[test]
    fn the_filter_selects_one_revision() {
        check(&json!({}), Some("canary"), ControllerAction::AddFinalizer);
        check(&json!({}), Some("stable"), ControllerAction::Ignore);
        check(&json!({}), Some("default"), ControllerAction::Ignore);
    }
}
