//! Transfers a mesh to Helm: changes the ownership of the live objects, and creates releases that Helm
//! finds.

mod skip;

use mainstay_api::{ObjectKind, Values, names};
use mainstay_catalog::Flavour;
use mainstay_catalog::derive::Files;
use mainstay_cluster::compare::content_differences;
use mainstay_cluster::desired::{HELM, HELM_MANAGED_BY, HELM_NAME, HELM_NAMESPACE, ObjectId};
use mainstay_cluster::installer::{label, text};
use mainstay_mesh::values::Pipeline;
use serde_json::{Map, Value, json};

use crate::AdoptError;
use crate::chart_release::ChartRelease;
use crate::differences::{FieldDifference, ObjectPair, describe, object_name};
use crate::found::{Component, ComponentKind, Installer, Observed, components};
use crate::helm::{HelmRelease, NewRelease, stored_chart};
use crate::ownership::{OwnershipChange, has_free_annotations, transfer_to_helm};
use crate::plan::put;
use crate::record::HiddenRelease;
use crate::session::{Applied, Session, Skipped, secret_id};
use crate::umbrella::{Part, combine};
use skip::SkipReason;

/// Maximum number of attempts to change an object that controllers change at the same time.
const MAX_ATTEMPTS: usize = 5;

/// Name of the release with the custom resource definitions.
const BASE_RELEASE: &str = "istio-base";

/// Plan of a Helm release.
#[derive(Clone, Debug)]
pub struct ReleasePlan {
    /// Description of the components in the release.
    pub what: String,
    /// The release.
    pub release: HelmRelease,
    /// Files of the chart, for `helm upgrade`.
    pub chart: Files,
    /// Live objects that get Helm's ownership marks.
    pub objects: Vec<OwnershipChange>,
    /// Objects that the next `helm upgrade` will create.
    pub missing: Vec<String>,
    /// Fields that the next `helm upgrade` will change.
    pub differences: Vec<FieldDifference>,
}

/// Plan of the transfer of a mesh to Helm.
#[derive(Clone, Debug, Default)]
pub struct HelmTransfer {
    /// The releases.
    pub releases: Vec<ReleasePlan>,
    /// Components that are not transferred, with the reason.
    pub skipped: Vec<Skipped>,
}

impl HelmTransfer {
    /// Whether the next `helm upgrade` changes nothing.
    #[must_use]
    pub fn is_equal(&self) -> bool {
        self.releases.iter().all(ReleasePlan::is_equal)
    }

    /// Returns the namespace of the record; `None` if there are no releases.
    #[must_use]
    pub fn namespace(&self) -> Option<String> {
        self.releases.first().map(|plan| plan.release.namespace.clone())
    }
}

impl ReleasePlan {
    fn is_equal(&self) -> bool {
        self.differences.iter().all(|one| one.harmless.is_some())
    }
}

/// Chart, values and names of a part of a release.
#[derive(Clone, Debug)]
struct Source {
    what: String,
    kind: ComponentKind,
    chart: &'static str,
    version: String,
    name: String,
    namespace: String,
    values: Values,
}

impl Session {
    /// Plans the transfer of all components that Helm does not manage.
    pub async fn plan_helm(&self) -> Result<HelmTransfer, AdoptError> {
        let (observed, _) = self.observe().await?;
        let found = components(&observed, &self.catalog);
        let mut plan = HelmTransfer::default();
        let planes = found
            .iter()
            .filter(|one| one.kind == ComponentKind::Istiod && !is_managed_by_helm(one));
        let mut sources: Vec<Source> = Vec::new();
        let plane = planes.clone().next();
        if let Some(plane) = plane {
            sources.extend(self.base_source(plane)?);
        }
        for component in found.iter().filter(|one| !is_managed_by_helm(one)) {
            let source = match component.kind {
                ComponentKind::Gateway => self.gateway_source(component, plane, &observed)?,
                _ => self.source(component).await?,
            };
            match source {
                Ok(source) => sources.push(source),
                Err(reason) => plan.skipped.push(reason.skip(component.describe())),
            }
        }
        for group in group_by_release(sources) {
            let release = self.plan_release(group, &mut plan.skipped).await?;
            plan.releases.extend(release);
        }
        Ok(plan)
    }

    /// Plans one release. Except for the first part, parts that Helm would change are skipped.
    async fn plan_release(
        &self,
        group: Vec<Source>,
        skipped: &mut Vec<Skipped>,
    ) -> Result<Option<ReleasePlan>, AdoptError> {
        let mut kept: Vec<Source> = Vec::new();
        for source in group {
            if kept.iter().any(|known| known.chart == source.chart) {
                skipped.push(duplicate_chart(&source).skip(source.what));
                continue;
            }
            let is_equal = kept.is_empty() || self.render_release(vec![source.clone()]).await?.is_equal();
            if is_equal {
                kept.push(source);
            } else {
                skipped.push(SkipReason::Different.skip(source.what));
            }
        }
        if kept.is_empty() {
            return Ok(None);
        }
        self.render_release(kept).await.map(Some)
    }

    /// Returns the source of the chart `base`, which contains the definitions and has no workload.
    fn base_source(&self, plane: &Component) -> Result<Option<Source>, AdoptError> {
        let mut values = Values::new();
        let default = plane.revision == names::DEFAULT_REVISION;
        if !default && !plane.tags.iter().any(|tag| tag == names::DEFAULT_REVISION) {
            values.insert("defaultRevision".to_owned(), "".into());
        }
        if plane.namespace != names::ISTIO_SYSTEM {
            values.insert("global".to_owned(), json!({"istioNamespace": plane.namespace}));
        }
        Ok(Some(Source {
            what: "definitions and shared objects".to_owned(),
            kind: ComponentKind::Istiod,
            chart: names::BASE_CHART,
            version: self.version(plane)?,
            name: BASE_RELEASE.to_owned(),
            namespace: plane.namespace.clone(),
            values,
        }))
    }

    /// Returns the source of a component's release, or the reason why it has none.
    async fn source(&self, component: &Component) -> Result<Result<Source, SkipReason>, AdoptError> {
        let (chart, values) = match component.kind {
            ComponentKind::Istiod => (names::ISTIOD_CHART, component.values.clone()),
            ComponentKind::Cni => (names::CNI_CHART, self.node_values(component).await?),
            ComponentKind::Ztunnel => (
                names::ZTUNNEL_CHART,
                flatten_ztunnel_values(self.node_values(component).await?),
            ),
            ComponentKind::Gateway => return Ok(Err(SkipReason::Gateway)),
        };
        if component.instance.is_empty() {
            return Ok(Err(SkipReason::NoReleaseName));
        }
        Ok(Ok(Source {
            what: component.describe(),
            kind: component.kind,
            chart,
            version: self.version(component)?,
            name: component.instance.clone(),
            namespace: component.namespace.clone(),
            values,
        }))
    }

    /// Returns the values of a node agent. If an operator manages it, they are computed from its
    /// resource.
    async fn node_values(&self, component: &Component) -> Result<Values, AdoptError> {
        if !component.is_managed() {
            return Ok(component.values.clone());
        }
        let kind = match component.kind {
            ComponentKind::Cni => ObjectKind::IstioCni,
            _ => ObjectKind::ZTunnel,
        };
        let found = self.adopter.resource(kind, names::SINGLETON).await;
        let found = found.map_err(AdoptError::call(format!("cannot read {}", kind.name())))?;
        let values = found
            .as_ref()
            .and_then(|found| found.pointer("/spec/values")?.as_object());
        let profile = found
            .as_ref()
            .map(|found| text(found, "/spec/profile"))
            .unwrap_or_default();
        let version = self.version(component)?;
        let version = self
            .catalog
            .resolve(&version)
            .map_err(|_| AdoptError::NoVersion(version))?;
        let pipeline = Pipeline::new(&self.settings, &self.library);
        let computed = match kind {
            ObjectKind::IstioCni => pipeline.cni_values(values, profile, &version),
            _ => pipeline.ztunnel_values(values, None, &version),
        };
        computed.map_err(|source| AdoptError::Values {
            component: component.describe(),
            source: Box::new(source),
        })
    }

    /// Returns the source of a gateway, or the reason why it has none. The charts with which istioctl
    /// renders gateways are part of every Istio release.
    fn gateway_source(
        &self,
        component: &Component,
        plane: Option<&Component>,
        observed: &Observed,
    ) -> Result<Result<Source, SkipReason>, AdoptError> {
        let is_it = |object: &&Value| {
            text(object, "/metadata/name") == component.workload
                && text(object, "/metadata/namespace") == component.namespace
        };
        let Some(object) = observed.gateways.iter().find(is_it) else {
            return Ok(Err(SkipReason::Deleted));
        };
        let (chart, root) = match label(object, "operator.istio.io/component") {
            "IngressGateways" => ("istio-ingress", "istio-ingressgateway"),
            "EgressGateways" => ("istio-egress", "istio-egressgateway"),
            _ => return Ok(Err(SkipReason::UnknownChart)),
        };
        if component.instance.is_empty() {
            return Ok(Err(SkipReason::NoReleaseName));
        }
        let mut values = plane.map(|plane| plane.values.clone()).unwrap_or_default();
        let labels = object.pointer("/spec/selector/matchLabels").cloned();
        put(
            &mut values,
            &["gateways", root, "name"],
            component.workload.as_str().into(),
        );
        put(
            &mut values,
            &["gateways", root, "labels"],
            labels.unwrap_or_default(),
        );
        Ok(Ok(Source {
            what: component.describe(),
            kind: component.kind,
            chart,
            version: self.version(component)?,
            name: component.instance.clone(),
            namespace: component.namespace.clone(),
            values,
        }))
    }

    /// Renders the parts as one release and compares its objects with the live ones.
    async fn render_release(&self, sources: Vec<Source>) -> Result<ReleasePlan, AdoptError> {
        let Some(first) = sources.first().cloned() else {
            return Err(AdoptError::NothingFound);
        };
        let mut parts = Vec::new();
        for source in &sources {
            parts.push(Part {
                chart: source.chart,
                files: self.chart_files(source)?,
                values: source.values.clone(),
            });
        }
        let (files, values) = combine(&first.name, &first.version, parts);
        let chart = stored_chart(&files).ok_or_else(|| AdoptError::NoVersion(first.version.clone()))?;
        let rendered = ChartRelease {
            chart: first.chart,
            name: &first.name,
            namespace: &first.namespace,
            values: &values,
            kube_version: &self.kube_version,
            is_upgrade: true,
        };
        let manifest = rendered.render(&files)?;
        let release = NewRelease {
            name: &first.name,
            namespace: &first.namespace,
            chart,
            values,
            manifest,
            now: jiff::Timestamp::now(),
        };
        let what: Vec<&str> = sources.iter().map(|source| source.what.as_str()).collect();
        let mut plan = ReleasePlan {
            what: what.join(", "),
            release: release.release(),
            chart: files,
            objects: Vec::new(),
            missing: Vec::new(),
            differences: Vec::new(),
        };
        for object in plan.release.objects()? {
            self.compare_object(&mut plan, &first, object).await?;
        }
        Ok(plan)
    }

    fn chart_files(&self, source: &Source) -> Result<Files, AdoptError> {
        let unknown = || AdoptError::NoVersion(source.version.clone());
        let version = self.catalog.resolve(&source.version).map_err(|_| unknown())?;
        let files = self.catalog.chart(&version, Flavour::Installer, source.chart);
        files.map_err(|_| unknown())
    }

    async fn compare_object(
        &self,
        plan: &mut ReleasePlan,
        source: &Source,
        mut wanted: Value,
    ) -> Result<(), AdoptError> {
        let Ok(mut id) = ObjectId::from_object(&wanted) else {
            return Ok(());
        };
        self.adopter.set_namespace(&mut id, &source.namespace);
        add_helm_marks(&mut wanted, source, has_free_annotations(&id));
        let live = self.adopter.get(&id).await;
        let live = live.map_err(AdoptError::call(format!("cannot read {id}")))?;
        let Some(live) = live else {
            plan.missing.push(object_name(&id));
            return Ok(());
        };
        let owned = transfer_to_helm(&id, &live, &wanted);
        let found = content_differences(&wanted, &owned.object);
        let pair = ObjectPair {
            live: &owned.object,
            desired: &wanted,
        };
        let described = found.iter().map(|one| describe(source.kind, &id, one, pair));
        plan.differences.extend(described);
        plan.objects.push(owned);
        Ok(())
    }

    /// Executes a transfer: writes the record and the releases, changes ownership, and deletes the
    /// operator's resources.
    pub async fn apply_helm(&self, plan: &HelmTransfer) -> Result<Applied, AdoptError> {
        let namespace = plan.namespace().ok_or(AdoptError::NothingFound)?;
        let mut record = self.read_record(&namespace).await?.unwrap_or_default();
        let mut applied = Applied::default();
        let owners = released_owners(plan);
        for release in &plan.releases {
            for owned in release.objects.iter().filter(|owned| owned.released.is_empty()) {
                record.add_original(owned.original.clone());
            }
            record.created.push(HiddenRelease {
                namespace: release.release.namespace.clone(),
                secret: release.release.secret.clone(),
            });
        }
        self.write_record(&namespace, &record).await?;
        for release in &plan.releases {
            let mut objects: Vec<&OwnershipChange> = release.objects.iter().collect();
            objects.sort_by_key(|owned| matches!(owned.original.kind.as_str(), "Deployment" | "DaemonSet"));
            let secret = release.release.to_secret()?;
            let id = secret_id(&release.release.namespace, &release.release.secret);
            let written = self.adopter.put(&id, &secret).await;
            written.map_err(AdoptError::call(format!("cannot write {id}")))?;
            applied.hidden += 1;
            for owned in objects {
                applied.objects += usize::from(self.patch_owned(owned).await?);
            }
        }
        applied.resources = self.delete_owners(owners).await?;
        Ok(applied)
    }

    /// Deletes the resources that owned the objects. Resources that would create others again are deleted
    /// first.
    async fn delete_owners(&self, owners: Vec<(ObjectKind, String)>) -> Result<usize, AdoptError> {
        let mut all = Vec::new();
        for (kind, name) in &owners {
            let found = self.adopter.resource(*kind, name).await;
            let found = found.map_err(AdoptError::call(format!("cannot read {} {name}", kind.name())))?;
            let owner = found
                .as_ref()
                .and_then(|found| found.pointer("/metadata/ownerReferences/0"));
            if let Some(owner) = owner.filter(|owner| text(owner, "/kind") == "Istio") {
                all.push((ObjectKind::Istio, text(owner, "/name").to_owned()));
            }
        }
        all.extend(owners);
        all.sort();
        all.dedup();
        for (kind, name) in &all {
            let deleted = self.adopter.delete(*kind, name).await;
            deleted.map_err(AdoptError::call(format!("cannot delete {} {name}", kind.name())))?;
        }
        Ok(all.len())
    }

    async fn patch_owned(&self, owned: &OwnershipChange) -> Result<bool, AdoptError> {
        let id = crate::record::object_id(&owned.original);
        let what = || format!("cannot transfer {id} to Helm");
        let mut patch = owned.patch.clone();
        for attempt in 1.. {
            let Some(changes) = &patch else { break };
            match self.adopter.patch(&id, changes).await {
                Ok(_) => return Ok(true),
                // A controller has changed the status since the plan.
                Err(error) if error.code == 409 && attempt < MAX_ATTEMPTS => {
                    let live = self.adopter.get(&id).await;
                    let live = live.map_err(AdoptError::call(what()))?;
                    patch = live.and_then(|live| transfer_to_helm(&id, &live, &owned.wanted).patch);
                }
                Err(error) => return Err(AdoptError::call(what())(error)),
            }
        }
        Ok(false)
    }
}

/// Returns kind and name of the resources that owned the transferred objects.
fn released_owners(plan: &HelmTransfer) -> Vec<(ObjectKind, String)> {
    let owned = plan.releases.iter().flat_map(|release| &release.objects);
    let owners = owned.flat_map(|owned| &owned.released);
    let named = owners.filter_map(|owner| {
        let kind = ObjectKind::ALL
            .into_iter()
            .find(|kind| kind.name() == text(owner, "/kind"))?;
        Some((kind, text(owner, "/name").to_owned()))
    });
    named.collect()
}

/// Groups parts by their release, in order.
fn group_by_release(sources: Vec<Source>) -> Vec<Vec<Source>> {
    let mut groups: Vec<Vec<Source>> = Vec::new();
    for source in sources {
        let same = groups.iter_mut().find(|group| {
            let first = group.first();
            first.is_some_and(|first| first.name == source.name && first.namespace == source.namespace)
        });
        match same {
            Some(group) => group.push(source),
            None => groups.push(vec![source]),
        }
    }
    groups
}

fn is_managed_by_helm(component: &Component) -> bool {
    matches!(component.installer, Installer::Helm { .. })
}

fn duplicate_chart(source: &Source) -> SkipReason {
    SkipReason::DuplicateChart {
        namespace: source.namespace.clone(),
        release: source.name.clone(),
        chart: source.chart,
    }
}

/// Moves the values below `ztunnel` to the top level, where the chart of ztunnel reads them.
fn flatten_ztunnel_values(mut values: Values) -> Values {
    if let Some(Value::Object(own)) = values.remove("ztunnel") {
        crate::derive::merge(&mut values, own);
    }
    values
}

/// Adds the marks that Helm sets when it applies an object. The annotations of a Deployment are not set,
/// because changing them increments its generation; the next `helm upgrade` finds the Deployment in the
/// manifest of the release and sets them.
fn add_helm_marks(object: &mut Value, source: &Source, has_annotations: bool) {
    let Some(Value::Object(metadata)) = object.get_mut("metadata") else {
        return;
    };
    let labels = metadata
        .entry("labels")
        .or_insert_with(|| Value::Object(Map::new()));
    if let Value::Object(labels) = labels {
        labels.insert(HELM_MANAGED_BY.to_owned(), HELM.into());
    }
    if !has_annotations {
        return;
    }
    let annotations = metadata
        .entry("annotations")
        .or_insert_with(|| Value::Object(Map::new()));
    if let Value::Object(annotations) = annotations {
        annotations.insert(HELM_NAME.to_owned(), source.name.as_str().into());
        annotations.insert(HELM_NAMESPACE.to_owned(), source.namespace.as_str().into());
    }
}
