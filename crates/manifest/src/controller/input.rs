//! Converts a resource to input of a generation, so that the controller uses the same functions as the
//! command line.

use mainstay_api::istio_operator::{API_VERSION, IstioOperator, KIND};
use mainstay_catalog::Version;
use serde_json::json;

use crate::component::{COMPONENTS, ComponentName, is_enabled};
use crate::diagnostic::{Diagnostic, Diagnostics, Severity};
use crate::generate::generate;
use crate::installation::{InstallationPlan, Package, platform_file};
use crate::merge::{merge_inputs, text_at};
use crate::path::Path;
use crate::request::{GatewayLists, Request};
use crate::source::InputFile;
use crate::translate::{Translator, translate};

use super::claim::Claim;

/// Plans the installation of a resource, without the default tag. Also returns the warnings. Fails if an
/// object does not belong to the charts of the resource's components, or to their namespaces.
pub fn plan_operator(
    operator: &IstioOperator,
    package: Package<'_>,
    version: &Version,
    kube_version: &str,
) -> Result<(InstallationPlan, Diagnostics), Diagnostics> {
    check_package_path(operator)?;
    let rendered = generate(&build_request(operator, package, kube_version))?;
    let warnings = rendered.warnings.clone();
    let mut plan = InstallationPlan::new(rendered, &version.to_string());
    plan.set_owner(&operator.metadata.namespace, &operator.metadata.name);
    Ok((plan, warnings))
}

/// Returns the claim of a resource without rendering. Returns `None` if its configuration cannot be merged.
#[must_use]
pub fn claim_of(operator: &IstioOperator, package: Package<'_>, version: &Version) -> Option<Claim> {
    let merged = merge_inputs(&build_request(operator, package, "")).ok()?;
    let translated = translate(&merged, Translator::for_minor(package.charts.minor())).operator;
    let text_or = |text: String, default: &str| if text.is_empty() { default.to_owned() } else { text };
    let base = COMPONENTS.iter().find(|one| one.name == ComponentName::Base);
    Some(Claim {
        metadata: operator.metadata.clone(),
        namespace: text_or(text_at(&translated, &["metadata", "namespace"]), "istio-system"),
        revision: text_or(text_at(&translated, &["spec", "values", "revision"]), "default"),
        version: version.clone(),
        has_base: base.is_some_and(|base| is_enabled(base, &translated)),
    })
}

fn build_request<'a>(operator: &IstioOperator, package: Package<'a>, kube_version: &str) -> Request<'a> {
    let mut files: Vec<InputFile> = platform_file(kube_version).into_iter().collect();
    files.push(operator_file(operator));
    Request {
        files,
        sets: Vec::new(),
        revision: None,
        force: false,
        gateway_lists: GatewayLists::default(),
        kube_version: Some(kube_version.to_owned()).filter(|version| !version.is_empty()),
        is_confined: true,
        profiles: package.profiles,
        charts: package.charts,
    }
}

/// Returns the resource as an input file in JSON, which is valid YAML. Metadata set by the server is
/// omitted.
fn operator_file(operator: &IstioOperator) -> InputFile {
    let metadata = json!({"name": operator.metadata.name, "namespace": operator.metadata.namespace});
    let object =
        json!({"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata, "spec": operator.spec});
    InputFile {
        name: operator.path(),
        text: object.to_string().into_bytes(),
    }
}

/// Fails if the resource sets a package path, which would refer to a directory in the operator's pod.
fn check_package_path(operator: &IstioOperator) -> Result<(), Diagnostics> {
    let path = operator.spec.get("installPackagePath");
    match path
        .and_then(serde_json::Value::as_str)
        .filter(|path| !path.is_empty())
    {
        None => Ok(()),
        Some(path) => {
            let at = Path::from_keys(&["spec", "installPackagePath"]);
            let error = Diagnostic::fatal(at, "not supported in a cluster").value(path);
            Err(error
                .hint("remove it; the operator uses the charts of its catalog")
                .into())
        }
    }
}

/// Returns all errors as one text. Locations are omitted, because a resource has no lines.
#[must_use]
pub fn describe_errors(problems: &Diagnostics) -> String {
    let errors = problems
        .list()
        .iter()
        .filter(|one| one.severity == Severity::Error);
    let text = |one: &Diagnostic| {
        let mut one = one.clone();
        one.position = None;
        let text = one.to_string();
        text.strip_prefix("error: ")
            .unwrap_or(&text)
            .replace("\n  hint: ", "; ")
    };
    let mut lines: Vec<String> = errors.map(text).collect();
    if problems.dropped() > 0 {
        lines.push(format!("and {} more", problems.dropped()));
    }
    lines.join("\n")
}
