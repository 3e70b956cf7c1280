//! The state that a plan starts from and the change, read from documents.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use mainstay_api::delivery::{
    AnalysisTemplate, Application, ApplicationDeployment, ApplicationDeploymentSpec, ApplicationRevision,
    Cluster, Provider, Resource,
};
use mainstay_rollout::model::{FixedBehavior, Model, ModelCluster};
use mainstay_rollout::revision::{RevisionChange, record_revision, render_component};

use super::assume;
use super::running::RunningGroup;
use crate::commands::rollout::documents::{FileFlags, Located, read};
use crate::commands::rollout::flags::AssumedProvider;
use crate::error::{CliError, Kind};
use crate::flag_value::signed_duration;
use crate::kubeconfig::block_on;

/// Flags with assumptions about a rollout.
#[derive(clap::Args)]
pub(crate) struct Assumptions {
    /// Time until a new pod is available
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = signed_duration)]
    pub(crate) ready_after: SignedDuration,

    /// Time until a written route is in effect
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = signed_duration)]
    pub(crate) route_after: SignedDuration,

    /// Route provider of the clusters, unless the deployment sets one
    #[arg(long, value_enum, default_value_t = AssumedProvider::Istio, value_name = "KIND")]
    pub(crate) provider: AssumedProvider,

    /// Stop at pauses that wait for a promotion
    #[arg(long)]
    pub(crate) no_promote: bool,

    /// Assume that pods of this revision never become available; can be repeated
    #[arg(long, value_name = "REVISION")]
    pub(crate) never_ready: Vec<String>,

    /// Assume that measurements of this analysis template fail; can be repeated
    #[arg(long, value_name = "TEMPLATE")]
    pub(crate) failing: Vec<String>,

    /// Assume that this cluster cannot be reached; can be repeated
    #[arg(long, value_name = "CLUSTER")]
    pub(crate) unreachable: Vec<String>,

    /// Give up after this time of the rollout
    #[arg(long, value_name = "DURATION", default_value = "24h", value_parser = signed_duration)]
    pub(crate) limit: SignedDuration,
}

impl Assumptions {
    /// Returns the assumed behavior of clusters during the rollout.
    pub(super) fn behavior(&self) -> FixedBehavior {
        FixedBehavior {
            never_ready: self.never_ready.iter().cloned().collect(),
            failing: self.failing.iter().cloned().collect(),
            ..self.healthy_behavior()
        }
    }

    /// Returns the assumed behavior of clusters before the change.
    pub(super) fn healthy_behavior(&self) -> FixedBehavior {
        FixedBehavior {
            pod_delay: self.ready_after,
            route_delay: self.route_after,
            ..FixedBehavior::default()
        }
    }

    /// Sets the provider of all clusters.
    pub(super) fn set_provider(&self, model: &mut Model) {
        let own = model
            .deployment
            .spec
            .traffic
            .as_ref()
            .and_then(|traffic| traffic.provider);
        let provider = own
            .filter(|own| *own != Provider::Auto)
            .unwrap_or(self.provider.into());
        for cluster in model
            .clusters
            .values_mut()
            .filter(|cluster| cluster.providers.is_empty())
        {
            cluster.providers.insert(provider);
        }
    }

    /// Makes clusters unreachable.
    pub(super) fn disconnect(&self, model: &mut Model, known: &[String]) {
        for name in self.unreachable.iter().chain(known) {
            let now = model.now;
            if let Some(cluster) = model.clusters.get_mut(name) {
                cluster.down_since = Some(now);
            }
        }
    }
}

/// A model and the change to run on it.
pub(crate) struct Scenario {
    /// State before the change.
    pub(crate) model: Model,
    /// The change; `None` if the model's deployment is the change itself.
    pub(crate) next: Option<Next>,
    /// Assumptions, one sentence each.
    pub(crate) notes: Vec<String>,
    /// Clusters that cannot be reached from the change on.
    pub(crate) unreachable: Vec<String>,
}

/// Transition from the initial state of a model to the start of the change.
pub(crate) enum Next {
    /// The model is empty: start with this spec.
    First(Box<ApplicationDeploymentSpec>),
    /// Run the model until it settles, then change the spec.
    Change(Box<ApplicationDeploymentSpec>),
    /// Run the model until it settles, then continue with the stored status, at this time.
    Continue {
        /// State before, by group of clusters.
        running: Vec<RunningGroup>,
        /// The deployment as it is stored.
        stored: Box<ApplicationDeployment>,
        /// Spec that replaces the stored one; `None` to keep the stored spec.
        change: Option<Box<ApplicationDeploymentSpec>>,
        /// Time at which the rollout continues.
        now: Timestamp,
    },
}

impl Next {
    /// Brings a model to the start of the change; `settle` runs it until it settles.
    pub(super) fn prepare(self, model: &mut Model, settle: impl Fn(&mut Model)) {
        match self {
            Self::First(spec) => model.set_spec(*spec),
            Self::Change(spec) => {
                settle(model);
                model.set_spec(*spec);
            }
            Self::Continue {
                running,
                stored,
                change,
                now,
            } => {
                for group in running {
                    group.settle(model, &settle);
                }
                model.advance(now.duration_since(model.now));
                model.set_spec(stored.spec);
                model.deployment.metadata.generation = stored.metadata.generation;
                model.deployment.status = stored.status;
                if let Some(change) = change {
                    model.set_spec(*change);
                }
            }
        }
    }
}

impl Scenario {
    /// Reads the change from `files`, and the state before from the documents `from`.
    pub(crate) fn from_files(
        files: &FileFlags,
        from: &[String],
        name: Option<&str>,
    ) -> Result<Self, CliError> {
        let documents = read(files)?;
        let before = if from.is_empty() {
            Vec::new()
        } else {
            read(&FileFlags {
                files: from.to_vec(),
                recursive: files.recursive,
            })?
        };
        for documents in [&documents, &before] {
            block_on(crate::commands::rollout::validate_documents(documents))?;
        }
        let next = deployment(&documents, name)?;
        let previous = if before.is_empty() {
            None
        } else {
            Some(deployment(&before, Some(next.name()))?)
        };
        let mut known = Known::default();
        for located in before.iter().chain(&documents) {
            known.add(located)?;
        }
        Ok(known.scenario(previous, next))
    }
}

/// Returns the deployment of this name, or the only one.
pub(super) fn deployment(
    documents: &[Located],
    name: Option<&str>,
) -> Result<ApplicationDeployment, CliError> {
    let mut found: Vec<ApplicationDeployment> = Vec::new();
    for located in documents {
        found.extend(located.typed().transpose()?);
    }
    let names = found.iter().map(Resource::name).collect::<Vec<_>>().join(", ");
    if let Some(name) = name {
        let own = found.into_iter().find(|deployment| deployment.name() == name);
        return own.ok_or_else(|| {
            let error = CliError::new(
                Kind::Usage,
                format!("applicationdeployment {name:?} is not in the documents"),
            );
            if names.is_empty() {
                error
            } else {
                error.hint(format!("use one of {names}"))
            }
        });
    }
    match found.len() {
        1 => found
            .pop()
            .ok_or_else(|| CliError::new(Kind::Usage, "no ApplicationDeployment found")),
        0 => Err(
            CliError::new(Kind::Usage, "the documents contain no ApplicationDeployment")
                .hint("add the file of the deployment with -f"),
        ),
        _ => Err(
            CliError::new(Kind::Usage, "the documents contain several deployments")
                .hint(format!("name one of {names}")),
        ),
    }
}

/// Objects in documents, except deployments.
#[derive(Default)]
struct Known {
    revisions: Vec<ApplicationRevision>,
    clusters: BTreeMap<String, ModelCluster>,
    templates: BTreeMap<String, AnalysisTemplate>,
    notes: Vec<String>,
}

impl Known {
    fn add(&mut self, located: &Located) -> Result<(), CliError> {
        if let Some(revision) = located.typed().transpose()? {
            let revision: ApplicationRevision = revision;
            self.revisions.retain(|known| known.name() != revision.name());
            self.revisions.push(revision);
        }
        if let Some(cluster) = located.typed().transpose()? {
            let cluster: Cluster = cluster;
            let model = ModelCluster::from_cluster(&cluster);
            self.clusters.insert(cluster.name().to_owned(), model);
        }
        if let Some(template) = located.typed().transpose()? {
            let template: AnalysisTemplate = template;
            self.templates.insert(template.name().to_owned(), template);
        }
        match located.typed().transpose()? {
            Some(application) => self.record(located, &application),
            None => Ok(()),
        }
    }

    /// Records the revision of an application, as the operator does.
    fn record(&mut self, located: &Located, application: &Application) -> Result<(), CliError> {
        let mut components = Vec::new();
        for component in &application.spec.components {
            match render_component(component, None) {
                Ok(rendered) => components.push(rendered),
                Err(mainstay_rollout::RenderError::NotRendered(name)) => {
                    self.notes.push(format!(
                        "assuming one Deployment for component {name}: charts are rendered by the operator"
                    ));
                    components.push(assume::component(&name, &component.name));
                }
                Err(error) => return Err(located.error(error.to_string(), "spec.components")),
            }
        }
        if let RevisionChange::Create(revision) = record_revision(application, components, &self.revisions) {
            self.revisions.push(*revision);
        }
        Ok(())
    }

    fn scenario(mut self, previous: Option<ApplicationDeployment>, next: ApplicationDeployment) -> Scenario {
        for deployment in previous.iter().chain([&next]) {
            self.assume(deployment);
        }
        let (first, next) = match previous {
            Some(previous) => (previous, Some(Next::Change(Box::new(next.spec)))),
            None => (next, None),
        };
        let mut model = Model::new(Timestamp::UNIX_EPOCH, prepared(first));
        let revisions = self.revisions.into_iter();
        model.revisions = revisions
            .map(|revision| (revision.name().to_owned(), Arc::new(revision)))
            .collect();
        self.clusters.entry(String::new()).or_default();
        model.clusters = self.clusters;
        model.templates = self.templates;
        Scenario {
            model,
            next,
            notes: self.notes,
            unreachable: Vec::new(),
        }
    }

    /// Adds the revisions and clusters that a deployment names and no document contains.
    fn assume(&mut self, deployment: &ApplicationDeployment) {
        for revision in assume::missing_revisions(deployment, &self.revisions) {
            let names: Vec<&str> = revision
                .spec
                .components
                .iter()
                .map(|component| component.name.as_str())
                .collect();
            self.notes.push(format!(
                "assuming revision {} with one Deployment for {}",
                revision.name(),
                names.join(", ")
            ));
            self.revisions.push(revision);
        }
        for (name, labels) in assume::missing_clusters(deployment, &self.clusters) {
            self.notes.push(format!("assuming cluster {name}"));
            self.clusters.entry(name).or_default().labels = labels;
        }
    }
}

/// Returns a deployment as the API server would store it.
fn prepared(mut deployment: ApplicationDeployment) -> ApplicationDeployment {
    if deployment.metadata.namespace.is_empty() {
        "default".clone_into(&mut deployment.metadata.namespace);
    }
    "assumed".clone_into(&mut deployment.metadata.uid);
    deployment.metadata.generation = 1;
    deployment.status = mainstay_api::delivery::DeploymentStatus::default();
    deployment
}
