//! Health of the `IstioCNI` and `ZTunnel` that a revision depends on, according to its values.

use mainstay_api::{
    Condition, ConditionStatus, ConditionType, IstioRevision, Kind, ObjectKind, Reason, Status, Values,
    names, values,
};

use super::condition::unknown_condition;
use crate::Snapshot;
use crate::snapshot::{Objects, Source};
use crate::values::{ControlPlane, Pipeline};

/// Returns the `DependenciesHealthy` condition of a revision: `IstioCNI` first, then `ZTunnel`.
pub(super) fn healthy_condition(snapshot: &Snapshot, revision: &IstioRevision) -> Condition {
    let values = compute_values(snapshot, revision);
    let needs = |check: fn(&Values) -> bool| values.as_ref().is_some_and(check);
    let cni = needs(needs_cni)
        .then(|| unhealthy_condition(snapshot, snapshot.cnis(), &CNI))
        .flatten();
    let found = cni.or_else(|| {
        needs(needs_ztunnel)
            .then(|| unhealthy_condition(snapshot, snapshot.ztunnels(), &ZTUNNEL))
            .flatten()
    });
    found.unwrap_or_else(|| {
        let (kind, reason) = (ConditionType::DependenciesHealthy, Reason::DependenciesHealthy);
        Condition::new(kind, ConditionStatus::True, reason, "")
    })
}

/// A dependency and its reasons.
struct Dependency {
    kind: ObjectKind,
    missing: Reason,
    unhealthy: Reason,
}

const CNI: Dependency = Dependency {
    kind: ObjectKind::IstioCni,
    missing: Reason::IstioCniNotFound,
    unhealthy: Reason::IstioCniNotHealthy,
};

const ZTUNNEL: Dependency = Dependency {
    kind: ObjectKind::ZTunnel,
    missing: Reason::ZTunnelNotFound,
    unhealthy: Reason::ZTunnelNotHealthy,
};

/// Returns the condition if a dependency is missing or not healthy, or cannot be checked.
fn unhealthy_condition<S: Kind>(
    snapshot: &Snapshot,
    objects: &Objects<S>,
    dependency: &Dependency,
) -> Option<Condition> {
    let kind = ConditionType::DependenciesHealthy;
    let name = dependency.kind.name();
    if let Err(error) = snapshot.readable(Source::Objects(dependency.kind)) {
        let message = format!("failed to get {name} status: {error}");
        return Some(unknown_condition(kind, Reason::DependencyCheckFailed, message));
    }
    let (reason, message) = match objects.get(names::SINGLETON) {
        None => (&dependency.missing, format!("{name} resource does not exist")),
        Some(object) if *object.status.state() != Reason::Healthy => (
            &dependency.unhealthy,
            format!("{name} resource status indicates that the component is not healthy"),
        ),
        Some(_) => return None,
    };
    Some(Condition::new(
        kind,
        ConditionStatus::False,
        reason.clone(),
        message,
    ))
}

/// Returns the computed values without TLS, or `None` if they cannot be computed. Such a revision has no
/// dependencies.
fn compute_values(snapshot: &Snapshot, revision: &IstioRevision) -> Option<Values> {
    let version = revision.spec.version.parse().ok()?;
    let pipeline = Pipeline {
        tls: None,
        ..Pipeline::for_snapshot(snapshot)
    };
    let plane = ControlPlane {
        revision: revision.name(),
        namespace: &revision.spec.namespace,
        profile: "",
        values: revision.spec.values.as_ref(),
    };
    pipeline.revision_values(plane, &version).ok()
}

/// Whether a control plane with these values needs `IstioCNI`: on `OpenShift` unless disabled, elsewhere
/// only if enabled.
fn needs_cni(computed: &Values) -> bool {
    let switched = values::flag(computed, &["pilot", "cni", "enabled"]);
    let openshift = values::text(computed, &["global", "platform"]) == Some("openshift");
    switched.unwrap_or(openshift)
}

fn needs_ztunnel(computed: &Values) -> bool {
    values::text(computed, &["pilot", "env", "PILOT_ENABLE_AMBIENT"]) == Some("true")
        || values::text(computed, &["profile"]) == Some("ambient")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::testing::map;

    #[test]
    fn cni_is_required_on_openshift_or_if_enabled() {
        let check = |name: &str, json: &str, expected| assert_eq!(needs_cni(&map(json)), expected, "{name}");
        check("NilValues", "{}", false);
        check(
            "PlatformOpenshift",
            r#"{"global":{"platform":"openshift"}}"#,
            true,
        );
        check("NilPilot", r#"{"pilot":null}"#, false);
        check("NilPilotCni", r#"{"pilot":{}}"#, false);
        check("NilPilotCniEnabled", r#"{"pilot":{"cni":{}}}"#, false);
        check("PilotCniEnabled", r#"{"pilot":{"cni":{"enabled":true}}}"#, true);
        check(
            "PilotCniDisabled",
            r#"{"pilot":{"cni":{"enabled":false}}}"#,
            false,
        );
        let openshift = |pilot: &str| format!(r#"{{"global":{{"platform":"openshift"}},"pilot":{pilot}}}"#);
        check(
            "OpenshiftPlatformCNIExplicitlyDisabled",
            &openshift(r#"{"cni":{"enabled":false}}"#),
            false,
        );
        check(
            "OpenshiftPlatformCNIExplicitlyEnabled",
            &openshift(r#"{"cni":{"enabled":true}}"#),
            true,
        );
        check("OpenshiftPlatformCNINotConfigured", &openshift("{}"), true);
    }

    #[test]
    fn ztunnel_is_required_in_ambient_mode() {
        let check =
            |name: &str, json: &str, expected| assert_eq!(needs_ztunnel(&map(json)), expected, "{name}");
        check("NilValues", "{}", false);
        check("NoPilot", r#"{"pilot":null}"#, false);
        check("NoPilotEnv", r#"{"pilot":{}}"#, false);
        let env = |value: &str| format!(r#"{{"pilot":{{"env":{{"PILOT_ENABLE_AMBIENT":"{value}"}}}}}}"#);
        check("PilotEnvAmbientDisabled", &env("false"), false);
        check("PilotEnvAmbientEnabled", &env("true"), true);
        check("AmbientProfileSet", r#"{"profile":"ambient"}"#, true);
        check("NonAmbientProfile", r#"{"profile":"default"}"#, false);
        check(
            "AmbientProfileWithPilotEnvTrue",
            r#"{"profile":"ambient","pilot":{"env":{"PILOT_ENABLE_AMBIENT":"true"}}}"#,
            true,
        );
        check("EmptyProfile", r#"{"profile":""}"#, false);
    }
}
