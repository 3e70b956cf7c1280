//! Hands a mesh to Helm: ownership of the live objects, and releases that Helm finds.

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
use crate::differences::{FieldDifference, describe, object_name};
use crate::found::{Component, ComponentKind, Installer, Observed, components};
use crate::helm::{HelmRelease, NewRelease, stored_chart};
use crate::ownership::{Owned, hand_to_helm, has_free_annotations};
use crate::plan::put;
use crate::record::HiddenRelease;
use crate::session::{Applied, Left, Session, secret_id};
use crate::umbrella::{Part, combine};

/// Name of the release with the definitions.
const BASE_RELEASE: &str = "istio-base";

/// A release for Helm.
#[derive(Clone, Debug)]
pub struct ReleasePlan {
    /// What it contains.
    pub what: String,
    /// The release.
    pub release: HelmRelease,
    /// Files of its chart, for `helm upgrade`.
    pub chart: Files,
    /// Objects that get Helm's ownership.
    pub objects: Vec<Owned>,
    /// Objects that the next `helm upgrade` will create.
    pub missing: Vec<String>,
    /// Fields that the next `helm upgrade` will change.
    pub differences: Vec<FieldDifference>,
}

/// The hand-over of a mesh.
#[derive(Clone, Debug, Default)]
pub struct HandOver {
    /// The releases.
    pub releases: Vec<ReleasePlan>,
    /// What stays as it is, with the reason.
    pub left: Vec<Left>,
}

impl HandOver {
    /// Whether the next `helm upgrade` changes nothing.
    #[must_use]
    pub fn is_equal(&self) -> bool {
        self.releases.iter().all(ReleasePlan::is_equal)
    }

    /// Namespace of the record.
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

/// What a part of a release is rendered from.
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
    /// Plans the hand-over of everything that Helm does not manage.
    pub async fn plan_helm(&self) -> Result<HandOver, AdoptError> {
        let (observed, _) = self.observe().await?;
        let found = components(&observed);
        let mut plan = HandOver::default();
        let planes = found
            .iter()
            .filter(|one| one.kind == ComponentKind::Istiod && !is_helm(one));
        let mut sources: Vec<Source> = Vec::new();
        let plane = planes.clone().next();
        if let Some(plane) = plane {
            sources.extend(self.base_source(plane)?);
        }
        for component in found.iter().filter(|one| !is_helm(one)) {
            let source = match component.kind {
                ComponentKind::Gateway => self.gateway_source(component, plane, &observed)?,
                _ => self.source(component).await?,
            };
            match source {
                Ok(source) => sources.push(source),
                Err(reason) => plan.left.push(Left {
                    what: component.describe(),
                    reason,
                }),
            }
        }
        for group in grouped(sources) {
            let release = self.equal_release(group, &mut plan.left).await?;
            plan.releases.extend(release);
        }
        Ok(plan)
    }

    /// Plans one release. Parts besides the first that Helm would change stay as they are.
    async fn equal_release(
        &self,
        group: Vec<Source>,
        left: &mut Vec<Left>,
    ) -> Result<Option<ReleasePlan>, AdoptError> {
        let mut kept: Vec<Source> = Vec::new();
        for source in group {
            if kept.iter().any(|known| known.chart == source.chart) {
                left.push(taken(&source));
                continue;
            }
            let is_equal = kept.is_empty() || self.release_plan(vec![source.clone()]).await?.is_equal();
            if is_equal {
                kept.push(source);
            } else {
                left.push(Left {
                    what: source.what,
                    reason: "its chart renders other objects; `helm upgrade` would change them".to_owned(),
                });
            }
        }
        if kept.is_empty() {
            return Ok(None);
        }
        self.release_plan(kept).await.map(Some)
    }

    /// The chart with the definitions, which has no workload.
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

    /// Returns the source of a component's release, or why it has none.
    async fn source(&self, component: &Component) -> Result<Result<Source, String>, AdoptError> {
        let (chart, values) = match component.kind {
            ComponentKind::Istiod => (names::ISTIOD_CHART, component.values.clone()),
            ComponentKind::Cni => (names::CNI_CHART, self.node_values(component).await?),
            ComponentKind::Ztunnel => (names::ZTUNNEL_CHART, flat(self.node_values(component).await?)),
            ComponentKind::Gateway => return Ok(Err("gateways have no resource".to_owned())),
        };
        if component.instance.is_empty() {
            return Ok(Err("its pods do not name a release".to_owned()));
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

    /// Values of a node agent: those of its resource if an operator manages it.
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

    /// The charts that istioctl renders gateways with are part of every release of Istio.
    fn gateway_source(
        &self,
        component: &Component,
        plane: Option<&Component>,
        observed: &Observed,
    ) -> Result<Result<Source, String>, AdoptError> {
        let is_it = |object: &&Value| {
            text(object, "/metadata/name") == component.workload
                && text(object, "/metadata/namespace") == component.namespace
        };
        let Some(object) = observed.gateways.iter().find(is_it) else {
            return Ok(Err("it does not exist any more".to_owned()));
        };
        let (chart, root) = match label(object, "operator.istio.io/component") {
            "IngressGateways" => ("istio-ingress", "istio-ingressgateway"),
            "EgressGateways" => ("istio-egress", "istio-egressgateway"),
            _ => return Ok(Err("its labels name no chart of Istio".to_owned())),
        };
        if component.instance.is_empty() {
            return Ok(Err("its pods do not name a release".to_owned()));
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
    async fn release_plan(&self, sources: Vec<Source>) -> Result<ReleasePlan, AdoptError> {
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
        self.adopter.settle(&mut id, &source.namespace);
        mark(&mut wanted, source, has_free_annotations(&id));
        let live = self.adopter.get(&id).await;
        let live = live.map_err(AdoptError::call(format!("cannot read {id}")))?;
        let Some(live) = live else {
            plan.missing.push(object_name(&id));
            return Ok(());
        };
        let owned = hand_to_helm(&id, &live, &wanted);
        let found = content_differences(&wanted, &owned.object);
        let described = found
            .iter()
            .map(|one| describe(source.kind, &id, one, (Some(&owned.object), &wanted)));
        plan.differences.extend(described);
        plan.objects.push(owned);
        Ok(())
    }

    /// Executes a hand-over: the record first, then ownership, releases, and the operator's resources.
    pub async fn apply_helm(&self, plan: &HandOver) -> Result<Applied, AdoptError> {
        let namespace = plan.namespace().ok_or(AdoptError::NothingFound)?;
        let mut record = self.read_record(&namespace).await?.unwrap_or_default();
        let mut applied = Applied::default();
        let owners = released_owners(plan);
        for release in &plan.releases {
            for owned in release.objects.iter().filter(|owned| owned.released.is_empty()) {
                record.keep(owned.before.clone());
            }
            record.created.push(HiddenRelease {
                namespace: release.release.namespace.clone(),
                secret: release.release.secret.clone(),
            });
        }
        self.write_record(&namespace, &record).await?;
        for release in &plan.releases {
            let mut objects: Vec<&Owned> = release.objects.iter().collect();
            objects.sort_by_key(|owned| matches!(owned.before.kind.as_str(), "Deployment" | "DaemonSet"));
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

    /// Deletes the resources that owned the objects, those that would create others first.
    async fn delete_owners(&self, owners: Vec<(ObjectKind, String)>) -> Result<usize, AdoptError> {
        let mut all = Vec::new();
        for (kind, name) in &owners {
            let found = self.adopter.resource(*kind, name).await;
            let found = found.map_err(AdoptError::call(format!("cannot read {} {name}", kind.name())))?;
            let above = found
                .as_ref()
                .and_then(|found| found.pointer("/metadata/ownerReferences/0"));
            if let Some(above) = above.filter(|above| text(above, "/kind") == "Istio") {
                all.push((ObjectKind::Istio, text(above, "/name").to_owned()));
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

    async fn patch_owned(&self, owned: &Owned) -> Result<bool, AdoptError> {
        let Some(patch) = &owned.patch else {
            return Ok(false);
        };
        let id = crate::record::object_id(&owned.before);
        let patched = self.adopter.patch(&id, patch).await;
        patched.map_err(AdoptError::call(format!("cannot hand over {id}")))?;
        Ok(true)
    }
}

/// Kinds and names of the resources whose objects Helm gets.
fn released_owners(plan: &HandOver) -> Vec<(ObjectKind, String)> {
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

/// Parts by the release that contains them, in order.
fn grouped(sources: Vec<Source>) -> Vec<Vec<Source>> {
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

fn is_helm(component: &Component) -> bool {
    matches!(component.installer, Installer::Helm { .. })
}

fn taken(source: &Source) -> Left {
    Left {
        what: source.what.clone(),
        reason: format!(
            "its pods name the release {}/{}, which contains the chart {} already; another name would restart them",
            source.namespace, source.name, source.chart
        ),
    }
}

/// The chart of ztunnel reads its values at the top level.
fn flat(mut values: Values) -> Values {
    if let Some(Value::Object(own)) = values.remove("ztunnel") {
        crate::derive::merge(&mut values, own);
    }
    values
}

/// Adds the marks that Helm adds when it applies. Those of a Deployment are left to the next `helm upgrade`,
/// which finds it in the manifest of the release: a change of its annotations is a new generation.
fn mark(object: &mut Value, source: &Source, has_annotations: bool) {
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
