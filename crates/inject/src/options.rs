//! Options of a run.

use crate::{Images, InjectError, Profile, RFC};

/// Direction of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Updates every workload to what its annotations and the options request.
    #[default]
    Inject,
    /// Removes earlier injections and restores the original text.
    Uninject,
}

/// Options of a run. `Options::default()` is `mainstay generate` without flags.
#[derive(Clone, Debug)]
pub struct Options {
    /// Whether to inject or to remove earlier injections.
    pub mode: Mode,
    /// Contrast generation, which determines names, variables and paths.
    pub profile: &'static Profile,
    /// `--skip-initializer`: no pod gets an initializer, regardless of annotations.
    pub skip_initializer: bool,
    /// `--skip-service-mesh`: no pod gets a service mesh, regardless of annotations.
    pub skip_service_mesh: bool,
    /// Images of the injected containers.
    pub images: Images,
    /// Pod template paths of additional kinds.
    pub pod_template_paths: Vec<PodTemplatePath>,
    /// Namespace of the coordinator, for profiles whose coordinator address contains it; `default` if
    /// `None`.
    pub coordinator_namespace: Option<String>,
    /// Maximum number of threads for a large input. The outcome does not depend on it.
    pub threads: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            mode: Mode::Inject,
            profile: &RFC,
            skip_initializer: false,
            skip_service_mesh: false,
            images: Images::default(),
            pod_template_paths: Vec::new(),
            coordinator_namespace: None,
            threads: 1,
        }
    }
}

/// Path of the pod template in objects of an additional kind. The pod template is the map with the pod's
/// `metadata` and `spec`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodTemplatePath {
    /// API group; `None` matches any group.
    pub group: Option<String>,
    /// The kind, such as `Rollout`.
    pub kind: String,
    /// Keys from the object's root; `tasks[]` selects every item of the list `tasks`.
    pub path: Vec<String>,
}

impl PodTemplatePath {
    /// Parses `KIND=a.b.c`, `GROUP/KIND=a.b.c` or `KIND=a.b[].c`.
    pub fn parse(given: &str) -> Result<Self, InjectError> {
        let reject = |problem| InjectError::PodTemplatePath {
            given: given.to_owned(),
            problem,
        };
        let (object, path) = given.split_once('=').ok_or_else(|| reject("no `=`"))?;
        let (group, kind) = match object.rsplit_once('/') {
            Some((group, kind)) => (Some(group.to_owned()), kind),
            None => (None, object),
        };
        if kind.is_empty() {
            return Err(reject("no kind"));
        }
        let path: Vec<String> = path.split('.').map(str::to_owned).collect();
        if path.iter().any(|key| key.trim_end_matches("[]").is_empty()) {
            return Err(reject("an empty key"));
        }
        Ok(Self {
            group,
            kind: kind.to_owned(),
            path,
        })
    }
}
