//! `cargo xtask codegen`: generates tables of facts from the definitions in the pinned modules and from the
//! charts in `resources/`.
//!
//! Chart values are defined upstream in protobuf (Istio) and `OpenAPI` (Kubernetes types). Only facts are
//! taken over (names, types, required fields), no descriptions. The kinds that charts install and the
//! permissions that their roles grant are determined by rendering all charts.

mod charts;
mod openapi;
mod overrides;
mod proto;
mod upstream;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use mainstay_catalog::{Pin, Version};

use crate::charts::{module, read_lock};
use overrides::{Change, Overrides};

/// The schema of chart values.
const VALUES: &str = "crates/api/src/crd/upstream.txt";

/// The schema of `IstioOperator` files, which contain all values.
const OPERATOR_VALUES: &str = "crates/manifest/src/schema/upstream.txt";

/// Root types of [`OPERATOR_VALUES`]. The schema also contains all types that they refer to.
const OPERATOR_ROOTS: &[&str] = &[
    "Values",
    "mesh.MeshConfig",
    "k8s.Affinity",
    "k8s.DeploymentStrategy",
    "k8s.EnvVar",
    "k8s.HorizontalPodAutoscalerSpec",
    "k8s.PodDisruptionBudgetSpec",
    "k8s.PodSecurityContext",
    "k8s.Probe",
    "k8s.ResourceRequirements",
    "k8s.ServiceSpec",
    "k8s.Toleration",
    "k8s.Volume",
    "k8s.VolumeMount",
];

/// Root types of [`VALUES`]. The schema also contains all types that they refer to.
const ROOTS: &[&str] = &[
    "Values",
    "CNIConfig",
    "k8s.DaemonSetUpdateStrategy",
    "k8s.PodDNSConfig",
    "k8s.SELinuxOptions",
];

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Only check whether the files are up to date
    #[arg(long)]
    check: bool,
    /// Generate the table of facts about the Sail Operator's definitions from its CRD files in DIR instead
    #[arg(long, value_name = "DIR", conflicts_with = "check")]
    upstream: Option<PathBuf>,
}

/// One type with its attributes and fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Type {
    /// Attributes of the type: `map=atomic`.
    pub(crate) attributes: String,
    /// `(name, type, attributes)`.
    pub(crate) fields: Vec<(String, String, String)>,
    /// Groups of mutually exclusive fields.
    pub(crate) one_of: Vec<Vec<String>>,
}

/// Types and enumerations by name.
#[derive(Debug, Default)]
pub(crate) struct Definitions {
    pub(crate) types: BTreeMap<String, Type>,
    pub(crate) enumerations: BTreeMap<String, Vec<String>>,
}

/// A generated file.
struct Output {
    path: &'static str,
    text: String,
}

/// Writes the files, or compares them with the stored ones.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let root = mainstay_testkit::repository_root();
    if let Some(directory) = &arguments.upstream {
        return upstream::output(directory)?.write(&root);
    }
    let mut outputs = vec![
        Output {
            path: VALUES,
            text: generate(&root)?,
        },
        Output {
            path: OPERATOR_VALUES,
            text: generate_operator_values(&root)?,
        },
    ];
    outputs.extend(charts::outputs(&root)?);
    for output in &outputs {
        if arguments.check {
            output.compare(&root)?;
        } else {
            output.write(&root)?;
        }
    }
    if arguments.check {
        Ok(())
    } else {
        write_chart(&root)
    }
}

/// Writes the generated parts of the operator's chart. The example runs in its own crate, because xtask does
/// not depend on a Kubernetes client; a test of that crate checks that they are up to date.
fn write_chart(root: &Path) -> Result<()> {
    let status = crate::build::cargo()
        .args([
            "run",
            "--quiet",
            "-p",
            "mainstay-cluster",
            "--example",
            "deploy",
            "--",
            "deploy/chart",
            "deploy/delivery",
            "deploy/istio-operator",
        ])
        .current_dir(root)
        .status()
        .context("starting cargo")?;
    ensure!(status.success(), "writing deploy/chart failed");
    Ok(())
}

impl Output {
    fn compare(&self, root: &Path) -> Result<()> {
        let stored = std::fs::read_to_string(root.join(self.path)).with_context(|| self.path.to_owned())?;
        ensure!(
            stored == self.text,
            "{} is out of date: run `cargo xtask codegen`",
            self.path
        );
        Ok(())
    }

    fn write(&self, root: &Path) -> Result<()> {
        std::fs::write(root.join(self.path), &self.text).with_context(|| self.path.to_owned())?;
        println!("codegen: {}, {} lines", self.path, self.text.lines().count());
        Ok(())
    }
}

fn generate(root: &Path) -> Result<String> {
    let mut definitions = read_definitions(root)?;
    Overrides::parse(include_str!("codegen/overrides.txt"))?.apply(&mut definitions)?;
    print(&definitions, ROOTS, "../facts.rs")
}

/// Generates the schema of `IstioOperator` files, which may set fields that the operator's API omits.
fn generate_operator_values(root: &Path) -> Result<String> {
    let mut definitions = read_definitions(root)?;
    let texts = [
        include_str!("codegen/overrides.txt"),
        include_str!("codegen/operator_overrides.txt"),
    ];
    let lines = texts.iter().flat_map(|text| text.lines());
    let lines: Vec<&str> = lines.filter(|line| !line.ends_with(" absent")).collect();
    Overrides::parse(&lines.join("\n"))?.apply(&mut definitions)?;
    print(&definitions, OPERATOR_ROOTS, "../schema.rs")
}

/// Reads the definitions of all pinned modules.
fn read_definitions(root: &Path) -> Result<Definitions> {
    let mut definitions = Definitions::default();
    let istio = read_lock(root)?.pop().context("charts.lock is empty")?;
    let istio = module::download(&istio)?;
    proto::read(
        &istio.join("operator/pkg/apis/values_types.proto"),
        "",
        &mut definitions,
    )?;
    let api = module::download(&pin(
        "istio.io/api",
        "v1.31.1",
        "h1:5Yb5ihcz4YQsCkciusK7DnFpBMwRB6EFWeUKH1Atuyk=",
    )?)?;
    for (file, prefix) in [
        ("mesh/v1alpha1/config.proto", "mesh."),
        ("mesh/v1alpha1/network.proto", "mesh."),
        ("mesh/v1alpha1/proxy.proto", "mesh."),
        ("networking/v1alpha3/destination_rule.proto", "net."),
        ("networking/v1alpha3/virtual_service.proto", "net."),
        ("networking/v1beta1/proxy_config.proto", "net."),
    ] {
        proto::read(&api.join(file), prefix, &mut definitions)?;
    }
    let specs = kubernetes_specs()?;
    for file in [
        "api__v1",
        "apis__apps__v1",
        "apis__autoscaling__v2",
        "apis__policy__v1",
    ] {
        openapi::read(&specs.join(format!("{file}_openapi.json")), &mut definitions)?;
    }
    Ok(definitions)
}

/// Returns the directory of the published Kubernetes `OpenAPI`.
fn kubernetes_specs() -> Result<PathBuf> {
    let kubernetes = pin(
        "k8s.io/kubernetes",
        "v1.36.4",
        "h1:08GT0ZOMtyCcRnslyvnpWurf1wm20KHbC/aRS+0LxSo=",
    )?;
    Ok(module::download(&kubernetes)?.join("api/openapi-spec/v3"))
}

fn pin(module: &str, version: &str, sum: &str) -> Result<Pin> {
    // The version is used to stamp Istio charts and has no meaning here.
    let none: Version = "0.0.0".parse()?;
    Ok(Pin {
        version: none,
        module: module.into(),
        module_version: version.into(),
        sum: sum.into(),
    })
}

/// Prints every type that the roots refer to, sorted by name.
fn print(definitions: &Definitions, roots: &[&str], reader: &str) -> Result<String> {
    let mut wanted: Vec<String> = roots.iter().map(|root| (*root).to_owned()).collect();
    let mut seen = BTreeSet::new();
    while let Some(name) = wanted.pop() {
        let Some(kind) = definitions.types.get(&name) else {
            ensure!(
                definitions.enumerations.contains_key(&name),
                "undefined type {name}"
            );
            seen.insert(name);
            continue;
        };
        if seen.insert(name) {
            wanted.extend(kind.fields.iter().filter_map(|(_, kind, _)| reference(kind)));
        }
    }
    let mut out = format!(
        "# Written by `cargo xtask codegen` from Istio's and Kubernetes' own definitions. Facts only; how to read them: {reader}.\n"
    );
    for name in seen {
        out.push('\n');
        match (definitions.types.get(&name), definitions.enumerations.get(&name)) {
            (Some(kind), _) => print_type(&name, kind, &mut out),
            (None, Some(values)) => out.extend([name.as_str(), " = ", &values.join("|"), "\n"]),
            (None, None) => bail!("undefined type {name}"),
        }
    }
    Ok(out)
}

fn print_type(name: &str, kind: &Type, out: &mut String) {
    let line = |text: String, out: &mut String| {
        out.push_str(text.trim_end());
        out.push('\n');
    };
    line(format!("{name} {}", kind.attributes), out);
    for (field, kind, attributes) in &kind.fields {
        line(format!("  {field} {kind} {attributes}"), out);
    }
    for group in &kind.one_of {
        line(format!("  oneof {}", group.join(" ")), out);
    }
}

/// Returns the type name inside `[…]` and `{…}`, unless it is built in.
fn reference(kind: &str) -> Option<String> {
    let name = kind.trim_matches(['[', ']', '{', '}']);
    let is_built_in = name.contains('|')
        || matches!(
            name,
            "string"
                | "bool"
                | "int32"
                | "int64"
                | "number"
                | "quantity"
                | "int-or-string"
                | "any"
                | "date-time"
                | "object"
        );
    (!is_built_in).then(|| name.to_owned())
}

impl Definitions {
    /// Applies an override; a missing type or field is an error, because the override is then out of date.
    pub(crate) fn change(&mut self, owner: &str, field: Option<&str>, change: &Change) -> Result<()> {
        if let (Change::Add(text), Some(field)) = (change, field) {
            let kind = self.types.entry(owner.to_owned()).or_default();
            kind.fields.push((field.to_owned(), text.clone(), String::new()));
            return Ok(());
        }
        let kind = self
            .types
            .get_mut(owner)
            .with_context(|| format!("override of unknown type {owner}"))?;
        let Some(field) = field else {
            let Change::Attributes(attributes) = change else {
                bail!("{owner}: only attributes of a whole type can be changed")
            };
            kind.attributes.clone_from(attributes);
            return Ok(());
        };
        if *change == Change::Absent {
            let before = kind.fields.len();
            kind.fields.retain(|(name, ..)| name != field);
            ensure!(
                kind.fields.len() < before,
                "override of unknown field {owner}.{field}"
            );
            return Ok(());
        }
        let (_, expression, attributes) = kind
            .fields
            .iter_mut()
            .find(|(name, ..)| name == field)
            .with_context(|| format!("override of unknown field {owner}.{field}"))?;
        match change {
            Change::Type(text) => expression.clone_from(text),
            Change::Attributes(text) => attributes.clone_from(text),
            Change::Absent | Change::Add(_) => {}
        }
        Ok(())
    }
}
