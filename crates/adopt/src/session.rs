//! Reads a live mesh, plans its adoption, and executes the plan.

use std::collections::BTreeMap;
use std::sync::Arc;

use kube::Client;
use mainstay_api::{ObjectKind, OwnerReference, names};
use mainstay_catalog::{Catalog, Flavour};
use mainstay_cluster::adopt::{Adopter, read_installed_mesh};
use mainstay_cluster::desired::{Desired, DesiredObject, ObjectId};
use mainstay_cluster::write::WriteError;
use mainstay_mesh::{Library, Settings};
use mainstay_operator::Renderer;
use serde_json::{Value, json};

use crate::AdoptError;
use crate::derive::{Derivation, Derived, derive};
use crate::found::{Component, Observed, components};
use crate::helm::{HelmRelease, newest_versions};
use crate::plan::{ComponentPlan, LiveObjects, with_live_values, without_chart_defaults};
use crate::record::{HiddenRelease, Record, Resource};
use crate::releases::{Environment, Owners, PlaceholderOwners};
use crate::stored_operator::{describe, is_record};

/// Default namespace of the operator, unless a Lease or a flag specifies another one.
pub const OPERATOR_NAMESPACE: &str = "sail-operator";

/// Annotation of resources that an adoption created. Undoing the adoption deletes them.
const ADOPTED: &str = "mainstay.dev/adopted";

/// A connection to a cluster, with the charts and settings of the operator.
pub struct Session {
    pub(crate) adopter: Adopter,
    pub(crate) client: Client,
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) library: Library,
    pub(crate) settings: Settings,
    renderer: Renderer,
    pub(crate) kube_version: String,
}

/// Plan of the adoption of a mesh.
#[derive(Clone, Debug)]
pub struct Adoption {
    /// All components, with their installers.
    pub found: Vec<Component>,
    /// Plans of the components that are adopted.
    pub plans: Vec<ComponentPlan>,
    /// Plans of the components that are not adopted because the operator would change them.
    pub rejected: Vec<ComponentPlan>,
    /// Releases that Helm will no longer find.
    pub hidden: Vec<HelmRelease>,
    /// Components and objects that are not adopted, with the reason.
    pub skipped: Vec<Skipped>,
    /// Error of reading Helm's releases, if it failed.
    pub secrets_error: Option<String>,
}

/// A component or object that is not adopted.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Skipped {
    /// Description of the component or object.
    pub what: String,
    /// Reason for skipping it.
    pub reason: String,
}

impl Observed {
    /// Reads a mesh from a cluster, and the error of reading Helm's releases, if any.
    pub async fn read(client: &Client) -> Result<(Self, Option<String>), AdoptError> {
        let found = read_installed_mesh(client).await;
        let found = found.map_err(AdoptError::call("cannot read the mesh"))?;
        let mut releases = Vec::new();
        for secret in &found.secrets {
            releases.extend(HelmRelease::from_secret(secret)?);
        }
        let observed = Self {
            releases: newest_versions(releases),
            deployments: found.deployments,
            daemon_sets: found.daemon_sets,
            webhooks: found.webhooks,
            values: found.values,
            gateways: found.gateways,
            operators: found.operators,
        };
        Ok((observed, found.secrets_error))
    }
}

impl Session {
    /// Creates a session. `operator_namespace` is the namespace of the operator that will manage the
    /// mesh.
    pub async fn new(
        client: Client,
        catalog: Arc<Catalog>,
        operator_namespace: &str,
    ) -> Result<Self, AdoptError> {
        let adopter = Adopter::new(client.clone());
        let version = adopter.server_version().await;
        let version = version.map_err(AdoptError::call("cannot read the version of the cluster"))?;
        let (library, _) = Library::from_catalog(&catalog);
        Ok(Self {
            adopter,
            client,
            library,
            settings: Settings {
                operator_namespace: operator_namespace.to_owned(),
                ..Settings::default()
            },
            renderer: Renderer::for_version(catalog.clone(), &version),
            kube_version: version,
            catalog,
        })
    }

    /// Reads the mesh, and the error of reading Helm's releases, if any.
    pub async fn observe(&self) -> Result<(Observed, Option<String>), AdoptError> {
        Observed::read(&self.client).await
    }

    /// Plans the adoption of all components that no operator manages. Components that the operator would
    /// change are included only if `allow_differences` is true.
    pub async fn plan(&self, allow_differences: bool) -> Result<Adoption, AdoptError> {
        let (observed, secrets_error) = self.observe().await?;
        let found = components(&observed, &self.catalog);
        let mut adoption = Adoption {
            plans: Vec::new(),
            rejected: Vec::new(),
            hidden: Vec::new(),
            skipped: Vec::new(),
            secrets_error,
            found,
        };
        for component in adoption.found.iter().filter(|one| !one.is_managed()) {
            match self.plan_component(component).await? {
                Some(plan) if plan.is_equal() || allow_differences => adoption.plans.push(plan),
                Some(plan) => adoption.rejected.push(plan),
                None => adoption.skipped.push(Skipped {
                    what: component.describe(),
                    reason: format!(
                        "no resource manages gateways; installed by {}",
                        component.installer
                    ),
                }),
            }
        }
        adoption
            .skipped
            .extend(observed.operators.iter().map(skipped_operator));
        adoption.hide_releases(&observed);
        Ok(adoption)
    }

    fn environment(&self) -> Environment<'_> {
        Environment {
            settings: &self.settings,
            library: &self.library,
        }
    }

    async fn plan_component(&self, component: &Component) -> Result<Option<ComponentPlan>, AdoptError> {
        let version = self.version(component)?;
        let Some(derivation) = derive(component, &version) else {
            return Ok(None);
        };
        let mut live = LiveObjects::new();
        let full = self.compare_component(component, derivation, &mut live).await?;
        let defaults = self.defaults(component, &version);
        let short = without_chart_defaults(&full.derivation, component.kind, &defaults);
        let short = self.compare_component(component, short, &mut live).await;
        let best = match short {
            Ok(short) if short.differences.len() <= full.differences.len() => short,
            _ => full,
        };
        self.improve_values(best, &mut live).await.map(Some)
    }

    /// Returns the plan with the live values of fields that differ, if that reduces the number of
    /// differences.
    async fn improve_values(
        &self,
        plan: ComponentPlan,
        live: &mut LiveObjects,
    ) -> Result<ComponentPlan, AdoptError> {
        let mut derivation = plan.derivation.clone();
        let values = derivation.derived.values_mut();
        let Some(better) = with_live_values(values, &plan.differences) else {
            return Ok(plan);
        };
        *values = better;
        match self.compare_component(&plan.component, derivation, live).await {
            Ok(better) if better.effective().count() < plan.effective().count() => Ok(better),
            _ => Ok(plan),
        }
    }

    async fn compare_component(
        &self,
        component: &Component,
        derivation: Derivation,
        live: &mut LiveObjects,
    ) -> Result<ComponentPlan, AdoptError> {
        let releases = self.desired(&derivation.derived, &PlaceholderOwners)?;
        for wanted in releases.iter().flat_map(|release| &release.objects) {
            if !live.contains_key(&wanted.id) {
                let object = self.adopter.get(&wanted.id).await;
                let object = object.map_err(AdoptError::call(format!("cannot read {}", wanted.id)))?;
                live.insert(wanted.id.clone(), object);
            }
        }
        Ok(ComponentPlan::new(component.clone(), derivation, releases, live))
    }

    fn desired(&self, derived: &Derived, owners: &dyn Owners) -> Result<Vec<Desired>, AdoptError> {
        let releases = self.environment().releases(derived, owners)?;
        let desired = releases.into_iter().map(|release| {
            let rendered = self
                .renderer
                .render(&release)
                .map_err(|source| AdoptError::Render {
                    component: release.key.name.clone(),
                    source: Box::new(source),
                })?;
            let desired = Desired::new(release.key, release.owner, rendered, self.adopter.kinds());
            desired.map_err(|error| AdoptError::Apply(error.into()))
        });
        desired.collect()
    }

    /// Returns the first of the possible versions with available charts, as `v1.29.1`.
    pub(crate) fn version(&self, component: &Component) -> Result<String, AdoptError> {
        let mut known = component
            .versions
            .iter()
            .filter_map(|name| self.catalog.resolve(name).ok());
        if let Some(version) = known.next() {
            return Ok(version.name());
        }
        match component.versions.first() {
            None => Err(AdoptError::NoVersion(component.describe())),
            Some(version) => Err(AdoptError::NoCharts {
                component: component.describe(),
                version: version.clone(),
            }),
        }
    }

    /// Returns the default values of the component's chart.
    fn defaults(&self, component: &Component, version: &str) -> mainstay_api::Values {
        use crate::found::ComponentKind;
        let chart = match component.kind {
            ComponentKind::Istiod | ComponentKind::Gateway => names::ISTIOD_CHART,
            ComponentKind::Cni => names::CNI_CHART,
            ComponentKind::Ztunnel => names::ZTUNNEL_CHART,
        };
        let version = self.catalog.resolve(version).ok();
        version
            .map(|version| crate::plan::defaults(&self.catalog, &version, Flavour::Operator, chart))
            .unwrap_or_default()
    }

    /// Executes an adoption: writes the record, then the resources and ownership of each component, and
    /// finally labels Helm's Secrets.
    pub async fn apply(&self, adoption: &Adoption) -> Result<Applied, AdoptError> {
        let namespace = adoption.namespace().ok_or(AdoptError::NothingFound)?;
        let mut record = self.read_record(&namespace).await?.unwrap_or_default();
        record.add(adoption);
        self.write_record(&namespace, &record).await?;
        let mut applied = Applied::default();
        for plan in &adoption.plans {
            self.adopt_component(plan, &mut record, &mut applied).await?;
            self.write_record(&namespace, &record).await?;
        }
        for hidden in &record.hidden {
            self.label_secret(hidden, "mainstay").await?;
            applied.hidden += 1;
        }
        Ok(applied)
    }

    async fn adopt_component(
        &self,
        plan: &ComponentPlan,
        record: &mut Record,
        applied: &mut Applied,
    ) -> Result<(), AdoptError> {
        let owners = self
            .create_resources(&plan.derivation.derived, record, applied)
            .await?;
        let releases = self.desired(&plan.derivation.derived, &owners)?;
        let mut objects: Vec<&DesiredObject> = releases.iter().flat_map(|release| &release.objects).collect();
        // Workloads are last, because they determine whether a component counts as managed: after an
        // interruption, the next run continues with the component.
        objects.sort_by_key(|wanted| matches!(wanted.id.kind.as_str(), "Deployment" | "DaemonSet"));
        for wanted in objects {
            let what = || format!("cannot adopt {}", wanted.id);
            let live = self
                .adopter
                .get(&wanted.id)
                .await
                .map_err(AdoptError::call(what()))?;
            let Some(live) = live else { continue };
            let owned = crate::ownership::adopt(&wanted.id, &live, &wanted.body);
            record.add_original(owned.original);
            let Some(patch) = owned.patch else { continue };
            let patched = self.adopter.patch(&wanted.id, &patch).await;
            patched.map_err(AdoptError::call(what()))?;
            applied.objects += 1;
        }
        Ok(())
    }

    /// Returns the releases that the operator installs for an adoption. The resources must exist.
    pub async fn operator_releases(&self, adoption: &Adoption) -> Result<Vec<Desired>, AdoptError> {
        let mut releases = Vec::new();
        for plan in &adoption.plans {
            let derived = &plan.derivation.derived;
            let owners = self
                .create_resources(derived, &mut Record::default(), &mut Applied::default())
                .await?;
            releases.extend(self.desired(derived, &owners)?);
        }
        Ok(releases)
    }

    /// Creates the resources that do not exist. A revision gets the spec that the operator would compute.
    async fn create_resources(
        &self,
        derived: &Derived,
        record: &mut Record,
        applied: &mut Applied,
    ) -> Result<CreatedOwners, AdoptError> {
        let mut created = CreatedOwners::default();
        for document in derived.documents() {
            let kind = object_kind(&document);
            let made = self.create(kind, &document, record, applied).await?;
            created.add(kind, &made);
            if let (ObjectKind::Istio, Derived::Istio(istio, _)) = (kind, derived) {
                let revision = json!({
                    "apiVersion": names::API_VERSION,
                    "kind": "IstioRevision",
                    "metadata": {
                        "name": istio.name(),
                        "ownerReferences": [created.owner("Istio", istio.name())],
                    },
                    "spec": {
                        "version": istio.spec.version,
                        "namespace": istio.spec.namespace,
                        "values": self.environment().revision_values(derived)?,
                    },
                });
                let made = self
                    .create(ObjectKind::IstioRevision, &revision, record, applied)
                    .await?;
                created.add(ObjectKind::IstioRevision, &made);
            }
        }
        Ok(created)
    }

    async fn create(
        &self,
        kind: ObjectKind,
        document: &Value,
        record: &mut Record,
        applied: &mut Applied,
    ) -> Result<Value, AdoptError> {
        let name = mainstay_cluster::installer::text(document, "/metadata/name").to_owned();
        let what = format!("cannot create {} {name}", kind.name());
        let mut document = document.clone();
        if let Some(Value::Object(metadata)) = document.get_mut("metadata") {
            metadata.insert("annotations".to_owned(), json!({ADOPTED: "true"}));
        }
        let (_, made) = self
            .adopter
            .ensure(kind, &document)
            .await
            .map_err(AdoptError::call(what))?;
        let is_ours = made
            .pointer("/metadata/annotations")
            .is_some_and(|map| map.get(ADOPTED).is_some());
        let is_known = record
            .resources
            .iter()
            .any(|known| known.kind == kind && known.name == name);
        if is_ours && !is_known {
            record.resources.push(Resource {
                kind,
                name,
                uid: mainstay_cluster::installer::text(&made, "/metadata/uid").to_owned(),
            });
            applied.resources += 1;
        }
        Ok(made)
    }

    pub(crate) async fn label_secret(&self, hidden: &HiddenRelease, owner: &str) -> Result<(), AdoptError> {
        let id = secret_id(&hidden.namespace, &hidden.secret);
        let patch = json!([{"op": "add", "path": "/metadata/labels/owner", "value": owner}]);
        match self.adopter.patch(&id, &patch).await {
            Err(error) if !error.is_not_found() => Err(AdoptError::call(format!("cannot label {id}"))(error)),
            _ => Ok(()),
        }
    }
}

/// Returns the identity of a Secret.
pub(crate) fn secret_id(namespace: &str, name: &str) -> ObjectId {
    ObjectId {
        group: String::new(),
        version: "v1".to_owned(),
        kind: "Secret".to_owned(),
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    }
}

/// Number of changes that an adoption made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Applied {
    /// Number of resources that were created or deleted.
    pub resources: usize,
    /// Number of objects with changed ownership.
    pub objects: usize,
    /// Number of Helm releases that were hidden, shown again or created.
    pub hidden: usize,
}

/// Owner references to resources that exist.
#[derive(Default)]
struct CreatedOwners(BTreeMap<(&'static str, String), OwnerReference>);

impl CreatedOwners {
    fn add(&mut self, kind: ObjectKind, made: &Value) {
        let name = mainstay_cluster::installer::text(made, "/metadata/name").to_owned();
        let owner = OwnerReference {
            uid: mainstay_cluster::installer::text(made, "/metadata/uid").to_owned(),
            ..PlaceholderOwners.owner(kind.name(), &name)
        };
        self.0.insert((kind.name(), name), owner);
    }
}

impl Owners for CreatedOwners {
    fn owner(&self, kind: &'static str, name: &str) -> OwnerReference {
        let found = self.0.get(&(kind, name.to_owned()));
        found
            .cloned()
            .unwrap_or_else(|| PlaceholderOwners.owner(kind, name))
    }
}

fn object_kind(document: &Value) -> ObjectKind {
    let name = mainstay_cluster::installer::text(document, "/kind");
    let found = ObjectKind::ALL.into_iter().find(|kind| kind.name() == name);
    found.unwrap_or(ObjectKind::Istio)
}

impl Adoption {
    /// Returns the namespace of the record, which is that of the first adopted component; `None` if
    /// nothing is adopted.
    #[must_use]
    pub fn namespace(&self) -> Option<String> {
        self.plans.first().map(|plan| plan.component.namespace.clone())
    }

    /// Hides the releases that contain an adopted object, because `helm uninstall` would delete the
    /// object.
    fn hide_releases(&mut self, observed: &Observed) {
        let adopted: Vec<_> = self
            .plans
            .iter()
            .flat_map(|plan| &plan.objects)
            .map(|one| &one.original)
            .collect();
        for release in &observed.releases {
            let is_adopted = |object: &Value| {
                let text = |at: &str| mainstay_cluster::installer::text(object, at);
                adopted.iter().any(|before| {
                    before.kind == text("/kind")
                        && before.name == text("/metadata/name")
                        && (before.namespace.is_empty()
                            || text("/metadata/namespace").is_empty()
                            || before.namespace == text("/metadata/namespace"))
                })
            };
            let objects = release.objects().unwrap_or_default();
            if !objects.iter().any(&is_adopted) {
                continue;
            }
            for (kind, count) in crate::found::count_unadopted_objects(release, is_adopted) {
                self.skipped.push(Skipped {
                    what: format!(
                        "{count} {kind} of Helm release {}/{}",
                        release.namespace, release.name
                    ),
                    reason: skip_reason(&kind),
                });
            }
            self.hidden.push(release.clone());
        }
    }
}

/// Returns the note about a stored `IstioOperator`. A running in-cluster operator would install a
/// resource again, and deleting the resource would delete the mesh; nothing reconciles a record of
/// istioctl.
fn skipped_operator(object: &Value) -> Skipped {
    let reason = if is_record(object) {
        "a record of `istioctl install` that nothing reconciles; delete it after the adoption"
    } else {
        "scale the Deployment of the in-cluster operator to 0 before the adoption; afterwards remove the finalizer of \
         this resource and delete it"
    };
    Skipped {
        what: describe(object),
        reason: reason.to_owned(),
    }
}

fn skip_reason(kind: &str) -> String {
    if kind == "CustomResourceDefinition" {
        "definitions have no owner; `mainstay crds install` updates them".to_owned()
    } else {
        "the operator does not install it; it stays without an owner".to_owned()
    }
}

/// Whether a resource could not be created because its definition does not exist.
#[must_use]
pub fn is_undefined(error: &AdoptError) -> bool {
    matches!(error, AdoptError::Call { source: WriteError { code: 404, .. }, what } if what.starts_with("cannot create"))
}
