//! Decides what is injected into a workload, with the reason. Precedence: a flag of the run, the pod
//! template's annotation, the object's annotation.

use mainstay_yaml::NodeId;

use crate::profile::{
    ADMIN_PORT, EGRESS, INGRESS, Level, POD_ROLE, RUNTIME_CLASS_PREFIX, Role, SKIP_INITIALIZER, Skip,
};
use crate::select::PodTemplate;
use crate::tree::View;
use crate::{Mode, Options, Profile, Reason};

/// Parts to inject into a workload, with the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct InjectionRequest {
    /// Whether to inject the initializer.
    pub(crate) initializer: bool,
    /// Annotations of the service mesh to inject; `None` injects no service mesh.
    pub(crate) mesh: Option<MeshAnnotations>,
    /// Reason for the decision.
    pub(crate) reason: Reason,
}

/// Values of the service mesh annotations; empty for an absent annotation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct MeshAnnotations {
    pub(crate) ingress: String,
    pub(crate) egress: String,
    pub(crate) admin_port: String,
}

impl InjectionRequest {
    fn empty(reason: Reason) -> Self {
        Self {
            initializer: false,
            mesh: None,
            reason,
        }
    }

    /// Whether nothing is injected.
    pub(crate) fn is_empty(&self) -> bool {
        !self.initializer && self.mesh.is_none()
    }
}

/// Whether the pod has a Contrast runtime class.
pub(crate) fn is_contrast_pod(view: &View<'_>, spec: NodeId) -> bool {
    let class = view.scalar_at(spec, &["runtimeClassName"]);
    class.is_some_and(|class| class.starts_with(RUNTIME_CLASS_PREFIX))
}

/// Decides what to inject into `pod`.
pub(crate) fn resolve_request(view: &View<'_>, pod: &PodTemplate, options: &Options) -> InjectionRequest {
    if options.mode == Mode::Uninject {
        return InjectionRequest::empty(Reason::Uninject);
    }
    let Some(spec) = pod.spec else {
        return InjectionRequest::empty(Reason::NoPodSpec);
    };
    if !is_contrast_pod(view, spec) {
        return InjectionRequest::empty(Reason::RuntimeClass);
    }
    if is_coordinator(view, pod, options.profile) {
        return InjectionRequest::empty(Reason::Coordinator);
    }
    let annotation = |key| annotation(view, pod, options.profile, key);
    let is_opted_out = annotation(SKIP_INITIALIZER).is_some_and(|value| match options.profile.skip {
        Skip::Present => value != "false",
        Skip::True => value == "true",
    });
    let initializer = !is_opted_out && !options.skip_initializer;
    let values = [INGRESS, EGRESS, ADMIN_PORT].map(annotation);
    let mesh = mesh_annotations(values).filter(|_| !options.skip_service_mesh);
    let reason = match (initializer, mesh.is_some()) {
        (true, true) => Reason::InitializerAndServiceMesh,
        (true, false) => Reason::Initializer,
        (false, true) => Reason::ServiceMesh,
        (false, false) if options.skip_initializer => Reason::SkipFlag,
        (false, false) => Reason::SkipAnnotation,
    };
    InjectionRequest {
        initializer,
        mesh,
        reason,
    }
}

fn mesh_annotations([ingress, egress, admin_port]: [Option<&str>; 3]) -> Option<MeshAnnotations> {
    ingress.or(egress).or(admin_port)?;
    let text = |value: Option<&str>| value.unwrap_or_default().to_owned();
    Some(MeshAnnotations {
        ingress: text(ingress),
        egress: text(egress),
        admin_port: text(admin_port),
    })
}

/// Returns the value of annotation `key` from the first level that has it.
fn annotation<'a>(view: &View<'a>, pod: &PodTemplate, profile: &Profile, key: &str) -> Option<&'a str> {
    profile.levels.iter().find_map(|level| {
        let owner = match level {
            Level::Template => pod.template,
            Level::Object => pod.object,
        };
        let annotations = view.get(view.get(owner, "metadata")?, "annotations")?;
        let value = view.get(annotations, key)?;
        if view.is_null(view.resolve(value)) {
            return Some("");
        }
        view.scalar(value)
    })
}

/// Whether the workload is the coordinator. The coordinator issues the certificates that initializers
/// fetch, so it has no initializer itself. Only a `StatefulSet` can be the coordinator.
fn is_coordinator(view: &View<'_>, pod: &PodTemplate, profile: &Profile) -> bool {
    let place = match profile.role {
        Role::Annotation => "annotations",
        Role::Label => "labels",
    };
    let role = view.scalar_at(pod.template, &["metadata", place, POD_ROLE]);
    pod.kind == "StatefulSet" && role == Some("coordinator")
}
