//! Generates the files of the operator's Helm chart that are derived from code: RBAC rules, webhook,
//! versions and definitions.

use std::collections::BTreeSet;

use mainstay_api::crd::{delivery_definitions, istio_operator_definition};
use mainstay_catalog::Catalog;
use mainstay_yaml::{Budget, Numbers, parse_json, to_yaml_v3};
use serde_json::Value;

use crate::access::{
    Rule, definition_rules, delivery_rules, granted_rules, istio_operator_rules, member_rules,
    namespace_rules, operator_rules, to_yaml, webhook_rules,
};
use crate::admission::{WebhookAddress, configuration};
use crate::definitions::{DefinitionsError, istio_definitions, name, own_definitions};

/// Errors of generating the files.
#[derive(Debug, thiserror::Error)]
pub enum DeployError {
    /// Definitions cannot be read from the catalog.
    #[error(transparent)]
    Definitions(#[from] DefinitionsError),
    /// A definition cannot be printed.
    #[error("cannot print a definition: {0}")]
    Print(#[from] mainstay_yaml::Error),
}

/// Returns the generated files of the chart with their paths.
pub fn files(catalog: &Catalog) -> Result<Vec<(String, String)>, DeployError> {
    let ours = own_definitions(catalog).map_err(DefinitionsError::from)?;
    let mut names = names_of(&ours);
    for version in catalog.installable() {
        names.extend(names_of(&istio_definitions(catalog, &version.version)?));
    }
    let istio: BTreeSet<String> = names.iter().filter(|name| !is_ours(name)).cloned().collect();
    names.push(name(&istio_operator_definition()).to_owned());
    let mut files = vec![
        ("templates/_rules.tpl".to_owned(), rules(&names, &istio)),
        ("templates/_webhook.tpl".to_owned(), webhook()?),
        ("templates/_versions.tpl".to_owned(), versions(catalog)),
    ];
    for definition in &ours {
        files.push((format!("crds/{}.yaml", name(definition)), document(definition)?));
    }
    Ok(files)
}

/// Returns the definitions of application delivery and the role for other clusters, with their file
/// names.
pub fn delivery_files() -> Result<Vec<(String, String)>, DeployError> {
    let file = |definition: &Value| Ok((format!("{}.yaml", name(definition)), document(definition)?));
    let mut files: Vec<_> = delivery_definitions()
        .iter()
        .map(file)
        .collect::<Result<_, DeployError>>()?;
    files.push(("member-role.yaml".to_owned(), member_role()));
    Ok(files)
}

/// Returns the definition of `IstioOperator` with its file name.
pub fn istio_operator_files() -> Result<Vec<(String, String)>, DeployError> {
    let definition = istio_operator_definition();
    Ok(vec![(
        format!("{}.yaml", name(&definition)),
        document(&definition)?,
    )])
}

/// Returns the template with the versions and aliases that the operator's binary can install. The chart's
/// admission policy warns about all others.
fn versions(catalog: &Catalog) -> String {
    let names = catalog.installable().into_iter().flat_map(|one| {
        let aliases = one.aliases.into_iter();
        aliases.chain([one.version.name()]).collect::<Vec<_>>()
    });
    let names = Value::from(names.collect::<Vec<_>>());
    format!(
        "{{{{- /* Written by `cargo xtask codegen` from the embedded charts. */ -}}}}\n\
         {{{{- define \"mainstay.versions\" -}}}}\n{names}\n{{{{- end }}}}\n"
    )
}

/// Returns the role for the account in a Cluster's kubeconfig.
fn member_role() -> String {
    let head = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata:\n  name: mainstay-member\nrules:\n";
    format!("{head}{}", to_yaml(&member_rules()))
}

fn names_of(definitions: &[Value]) -> Vec<String> {
    definitions
        .iter()
        .map(|definition| name(definition).to_owned())
        .collect()
}

/// Formats an object as YAML with keys in Go's order.
pub fn document(object: &Value) -> Result<String, mainstay_yaml::Error> {
    let value = parse_json(object.to_string(), Numbers::Exact, &Budget::default())?;
    to_yaml_v3(&value)
}

fn is_ours(definition: &str) -> bool {
    definition.ends_with(mainstay_api::names::GROUP)
}

/// Returns the template with the webhook for `IstioOperator`s. The operator adds the CA certificate.
fn webhook() -> Result<String, DeployError> {
    let address = WebhookAddress::Service {
        namespace: "NAMESPACE".into(),
        name: "SERVICE".into(),
    };
    let object = configuration(&address, None);
    let webhooks = object.get("webhooks").cloned().unwrap_or_default();
    let text = document(&webhooks)?
        .replace("NAMESPACE", "{{ .Release.Namespace }}")
        .replace("SERVICE", "{{ include \"mainstay.name\" . }}-webhook");
    let head = "{{- /* Written by `cargo xtask codegen` from crates/cluster/src/admission.rs. */ -}}\n\n{{- define \"mainstay.webhooks\" -}}\n";
    Ok(format!("{head}{text}{{{{- end }}}}\n"))
}

fn rules(definitions: &[String], istio: &BTreeSet<String>) -> String {
    let split = istio.iter().filter_map(|name| name.split_once('.'));
    let mut out = String::from(
        "{{- /* Written by `cargo xtask codegen` from the list of the operator's actions: crates/cluster/src/access.rs. */ -}}\n",
    );
    for (role, rules) in [
        ("operator", operator_rules()),
        ("grants", granted_rules()),
        ("namespace", namespace_rules()),
        ("delivery", delivery_rules()),
        ("istiooperator", istio_operator_rules(split)),
        ("webhook", webhook_rules()),
        (
            "definitions",
            definition_rules(definitions.iter().map(String::as_str)),
        ),
    ] {
        out.push_str(&rules_template(role, &rules));
    }
    out
}

fn rules_template(role: &str, rules: &[Rule]) -> String {
    format!(
        "\n{{{{- define \"mainstay.rules.{role}\" -}}}}\n{}{{{{- end }}}}\n",
        to_yaml(rules)
    )
}
