//! Options of a run.

use crate::{Images, InjectError, Profile, RFC};

/// Whether to add or to take away.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Bring every workload to what its annotations and the run ask for.
    #[default]
    Inject,
    /// Give back what the user wrote.
    Uninject,
}

/// Options of a run. `Options::default()` is `mainstay generate` without flags.
#[derive(Clone, Debug)]
pub struct Options {
    /// Add or take away.
    pub mode: Mode,
    /// Which spelling of names, variables and paths.
    pub profile: &'static Profile,
    /// `--skip-initializer`: no pod gets one, whatever annotations say.
    pub skip_initializer: bool,
    /// `--skip-service-mesh`: no pod gets one, whatever annotations say.
    pub skip_service_mesh: bool,
    /// The images of what is injected.
    pub images: Images,
    /// Where further kinds keep their pod templates.
    pub pod_template_paths: Vec<PodTemplatePath>,
    /// Namespace of the coordinator, for profiles that name it in an address; `default` if none is known.
    pub coordinator_namespace: Option<String>,
    /// How many threads may share a large input. The outcome is the same with any number.
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

/// Where one more kind keeps a pod template: the map that has the pod's `metadata` and `spec`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodTemplatePath {
    /// The API group; any group if none.
    pub group: Option<String>,
    /// The kind, such as `Rollout`.
    pub kind: String,
    /// Keys from the object's root; `tasks[]` goes into every item of the list `tasks`.
    pub path: Vec<String>,
}

impl PodTemplatePath {
    /// Reads `KIND=a.b.c`, `GROUP/KIND=a.b.c` or `KIND=a.b[].c`.
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
