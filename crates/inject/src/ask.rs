//! Decides what a workload gets and why. Precedence: a flag of the run, then the pod template's annotation,
//! then the object's.

use mainstay_yaml::NodeId;

use crate::profile::{
    ADMIN_PORT, EGRESS, INGRESS, Level, POD_ROLE, RUNTIME_CLASS_PREFIX, Role, SKIP_INITIALIZER, Skip,
};
use crate::select::Found;
use crate::tree::View;
use crate::{Mode, Options, Profile, Reason};

/// What a workload should have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ask {
    /// Whether it gets the initializer.
    pub(crate) initializer: bool,
    /// Whether it gets the service mesh, and how configured.
    pub(crate) mesh: Option<Mesh>,
    /// Why.
    pub(crate) reason: Reason,
}

/// The service mesh's annotations; an absent one reads as empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mesh {
    pub(crate) ingress: String,
    pub(crate) egress: String,
    pub(crate) admin_port: String,
}

impl Ask {
    fn nothing(reason: Reason) -> Self {
        Self {
            initializer: false,
            mesh: None,
            reason,
        }
    }

    /// Whether nothing is asked for.
    pub(crate) fn is_nothing(&self) -> bool {
        !self.initializer && self.mesh.is_none()
    }
}

/// Whether the pod's runtime class is one of ours.
pub(crate) fn is_ours(view: &View<'_>, spec: NodeId) -> bool {
    let class = view.scalar_at(spec, &["runtimeClassName"]);
    class.is_some_and(|class| class.starts_with(RUNTIME_CLASS_PREFIX))
}

/// What the workload `found` asks for under `options`.
pub(crate) fn ask(view: &View<'_>, found: &Found, options: &Options) -> Ask {
    if options.mode == Mode::Uninject {
        return Ask::nothing(Reason::Uninject);
    }
    let Some(spec) = found.spec else {
        return Ask::nothing(Reason::NoPodSpec);
    };
    if !is_ours(view, spec) {
        return Ask::nothing(Reason::RuntimeClass);
    }
    if is_coordinator(view, found, options.profile) {
        return Ask::nothing(Reason::Coordinator);
    }
    let annotation = |key| annotation(view, found, options.profile, key);
    let opted_out = annotation(SKIP_INITIALIZER).is_some_and(|value| match options.profile.skip {
        Skip::Present => value != "false",
        Skip::True => value == "true",
    });
    let initializer = !opted_out && !options.skip_initializer;
    let asked = [INGRESS, EGRESS, ADMIN_PORT].map(annotation);
    let mesh = mesh(asked).filter(|_| !options.skip_service_mesh);
    let reason = match (initializer, mesh.is_some()) {
        (true, true) => Reason::InitializerAndServiceMesh,
        (true, false) => Reason::Initializer,
        (false, true) => Reason::ServiceMesh,
        (false, false) if options.skip_initializer => Reason::SkipFlag,
        (false, false) => Reason::SkipAnnotation,
    };
    Ask {
        initializer,
        mesh,
        reason,
    }
}

fn mesh([ingress, egress, admin_port]: [Option<&str>; 3]) -> Option<Mesh> {
    ingress.or(egress).or(admin_port)?;
    let text = |value: Option<&str>| value.unwrap_or_default().to_owned();
    Some(Mesh {
        ingress: text(ingress),
        egress: text(egress),
        admin_port: text(admin_port),
    })
}

/// The annotation `key`, from the first level that has it.
fn annotation<'a>(view: &View<'a>, found: &Found, profile: &Profile, key: &str) -> Option<&'a str> {
    profile.levels.iter().find_map(|level| {
        let owner = match level {
            Level::Template => found.template,
            Level::Object => found.object,
        };
        let annotations = view.get(view.get(owner, "metadata")?, "annotations")?;
        let value = view.get(annotations, key)?;
        if view.is_null(view.resolve(value)) {
            return Some("");
        }
        view.scalar(value)
    })
}

/// The coordinator issues the certificates that initializers fetch, so it has none itself. Only a
/// `StatefulSet` can be the coordinator.
fn is_coordinator(view: &View<'_>, found: &Found, profile: &Profile) -> bool {
    let place = match profile.role {
        Role::Annotation => "annotations",
        Role::Label => "labels",
    };
    let role = view.scalar_at(found.template, &["metadata", place, POD_ROLE]);
    found.kind == "StatefulSet" && role == Some("coordinator")
}
