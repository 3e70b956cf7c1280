//! `.Capabilities`: what templates are told about the cluster and about Helm. Asks no cluster.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::rc::Rc;

use mainstay_template::{Call, Failure, GoKind, List, ListType, Object, Signature, Str, Value};

use crate::dialect::Dialect;
use crate::go::quote;

/// What a render is told about the cluster.
#[derive(Clone, Debug)]
pub struct Capabilities {
    /// The cluster's version.
    pub kube_version: KubeVersion,
    /// The API versions it serves: `apps/v1`, `apps/v1/Deployment`.
    pub api_versions: Vec<String>,
    /// The Helm that templates believe to run in.
    pub helm_version: HelmVersion,
}

impl Capabilities {
    /// What `helm template` assumes without a cluster.
    #[must_use]
    pub fn offline(dialect: Dialect) -> Self {
        Self {
            kube_version: KubeVersion::default_of(dialect),
            api_versions: super::versions::KNOWN.iter().map(ToString::to_string).collect(),
            helm_version: HelmVersion::default_of(dialect),
        }
    }
}

/// A Kubernetes version as templates see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KubeVersion {
    /// The whole of it, with a `v`; Helm 3 drops everything after the patch level.
    pub version: String,
    /// Without suffixes: what constraints are checked against.
    pub normalized: String,
    /// The major number.
    pub major: String,
    /// The minor number.
    pub minor: String,
}

impl KubeVersion {
    fn default_of(dialect: Dialect) -> Self {
        let minor = match dialect {
            Dialect::Helm4 => "36",
            Dialect::Helm3 => "20",
        };
        let version = format!("v1.{minor}.0");
        Self {
            normalized: version.clone(),
            version,
            major: "1".into(),
            minor: minor.into(),
        }
    }

    /// Reads `1.30`, `v1.30.2-gke.1`: at least two numbers, then anything. The error is the one Helm prints.
    pub fn parse(text: &str, dialect: Dialect) -> Result<Self, String> {
        let numbers = numbers(text)?;
        let [major, minor, ..] = numbers.as_slice() else {
            return Err(format!("illegal version string {}", quote(text)));
        };
        let joined: Vec<String> = numbers.iter().map(u64::to_string).collect();
        let normalized = format!("v{}", joined.join("."));
        let full = if text.starts_with('v') {
            text.to_owned()
        } else {
            format!("v{text}")
        };
        let version = if dialect == Dialect::Helm4 {
            full
        } else {
            normalized.clone()
        };
        Ok(Self {
            version,
            normalized,
            major: major.to_string(),
            minor: minor.to_string(),
        })
    }
}

/// The leading numbers of a generic Kubernetes version: white space and one `v` before, anything after.
fn numbers(text: &str) -> Result<Vec<u64>, String> {
    let trimmed = text.trim_start();
    let rest = trimmed.strip_prefix('v').unwrap_or(trimmed);
    let parts = leading_numbers(rest);
    if parts.is_empty() {
        return Err(format!("could not parse {} as version", quote(text)));
    }
    if let Some(first) = parts
        .first()
        .filter(|first| parts.len() > 1 && first.starts_with('0') && **first != "0")
    {
        return Err(format!(
            "illegal zero-prefixed version component {} in {}",
            quote(first),
            quote(text)
        ));
    }
    parts
        .iter()
        .map(|part| part.parse().map_err(|_| out_of_range(part, text)))
        .collect()
}

fn leading_numbers(text: &str) -> Vec<&str> {
    let digits = |part: &str| part.find(|c: char| !c.is_ascii_digit()).unwrap_or(part.len());
    let mut found = Vec::new();
    for part in text.split('.') {
        let end = digits(part);
        found.extend(part.get(..end).filter(|number| !number.is_empty()));
        if end == 0 || end < part.len() {
            break;
        }
    }
    found
}

fn out_of_range(part: &str, text: &str) -> String {
    let (part, text) = (quote(part), quote(text));
    format!(
        "illegal non-numeric version component {part} in {text}: strconv.ParseUint: parsing {part}: value out of range"
    )
}

/// Which Helm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HelmVersion {
    /// `v4.2.4`.
    pub version: String,
    /// The commit it was built from.
    pub git_commit: String,
    /// `clean` or `dirty`.
    pub git_tree_state: String,
    /// The Go it was built with.
    pub go_version: String,
    /// The Kubernetes client inside; Helm 3 does not say.
    pub kube_client_version: Option<String>,
}

impl HelmVersion {
    /// The releases we compare with. A release also names its commit, which no chart can mean to depend on.
    fn default_of(dialect: Dialect) -> Self {
        let (version, client) = match dialect {
            Dialect::Helm4 => ("v4.2.4", Some("v1.36".into())),
            Dialect::Helm3 => ("v3.21.4", None),
        };
        Self {
            version: version.into(),
            git_commit: String::new(),
            git_tree_state: String::new(),
            go_version: "go1.26.8".into(),
            kube_client_version: client,
        }
    }
}

/// The value templates get: a pointer to a struct.
pub(crate) fn object(capabilities: &Capabilities, dialect: Dialect) -> Value {
    let (version_set, kube) = match dialect {
        Dialect::Helm4 => ("common.VersionSet", "common.KubeVersion"),
        Dialect::Helm3 => ("chartutil.VersionSet", "chartutil.KubeVersion"),
    };
    let versions = capabilities
        .api_versions
        .iter()
        .map(|version| Value::string(version.as_str()))
        .collect();
    let kube_version = KubeObject {
        version: capabilities.kube_version.clone(),
        type_name: kube,
        dialect,
    };
    Value::object(CapabilitiesObject {
        kube_version: Value::Object(Rc::new(kube_version)),
        api_versions: Value::List(List::new(ListType::Named(version_set), versions)),
        helm_version: Value::object(HelmObject(capabilities.helm_version.clone())),
        dialect,
    })
}

struct CapabilitiesObject {
    kube_version: Value,
    api_versions: Value,
    helm_version: Value,
    dialect: Dialect,
}

impl Object for CapabilitiesObject {
    fn type_name(&self) -> Cow<'static, str> {
        match self.dialect {
            Dialect::Helm4 => "*common.Capabilities".into(),
            Dialect::Helm3 => "*chartutil.Capabilities".into(),
        }
    }

    fn go_kind(&self) -> GoKind {
        GoKind::Pointer
    }

    fn field(&self, name: &str) -> Option<Value> {
        match name {
            "KubeVersion" => Some(self.kube_version.clone()),
            "APIVersions" => Some(self.api_versions.clone()),
            "HelmVersion" => Some(self.helm_version.clone()),
            _ => None,
        }
    }

    fn print(&self) -> Str {
        let text = |value: &Value| match value {
            Value::Object(object) => object.print().to_string(),
            Value::List(list) => {
                let items: Vec<String> = list.items().iter().map(string_of).collect();
                format!("[{}]", items.join(" "))
            }
            _ => String::new(),
        };
        let [kube, apis, helm] = [&self.kube_version, &self.api_versions, &self.helm_version].map(text);
        format!("{{{kube} {apis} {helm}}}").into()
    }

    fn plain(&self) -> Value {
        sorted(self.json_fields())
    }

    fn json_fields(&self) -> Option<Vec<(Str, Value)>> {
        Some(vec![
            ("KubeVersion".into(), self.kube_version.clone()),
            ("APIVersions".into(), self.api_versions.clone()),
            ("HelmVersion".into(), self.helm_version.clone()),
        ])
    }
}

fn string_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.to_string(),
        _ => String::new(),
    }
}

/// A struct as a map.
fn sorted(fields: Option<Vec<(Str, Value)>>) -> Value {
    Value::map(fields.unwrap_or_default().into_iter().collect::<BTreeMap<_, _>>())
}

struct KubeObject {
    version: KubeVersion,
    type_name: &'static str,
    dialect: Dialect,
}

impl Object for KubeObject {
    fn type_name(&self) -> Cow<'static, str> {
        self.type_name.into()
    }

    fn go_kind(&self) -> GoKind {
        GoKind::Struct
    }

    fn field(&self, name: &str) -> Option<Value> {
        match name {
            "Version" => Some(Value::string(self.version.version.as_str())),
            "Major" => Some(Value::string(self.version.major.as_str())),
            "Minor" => Some(Value::string(self.version.minor.as_str())),
            _ => None,
        }
    }

    fn method(&self, name: &str) -> Option<Signature> {
        matches!(name, "String" | "GitVersion").then_some(Signature {
            params: &[],
            variadic: false,
        })
    }

    fn call(&self, name: &str, _call: &mut Call<'_>) -> Result<Value, Failure> {
        let text = if name == "String" {
            &self.version.normalized
        } else {
            &self.version.version
        };
        Ok(Value::string(text.as_str()))
    }

    /// `String` is a method of the pointer.
    fn print_addressed(&self) -> Str {
        self.version.normalized.as_str().into()
    }

    fn print(&self) -> Str {
        let KubeVersion {
            version,
            normalized,
            major,
            minor,
        } = &self.version;
        match self.dialect {
            Dialect::Helm4 => format!("{{{version} {normalized} {major} {minor}}}").into(),
            Dialect::Helm3 => format!("{{{version} {major} {minor}}}").into(),
        }
    }

    fn plain(&self) -> Value {
        sorted(self.json_fields())
    }

    fn json_fields(&self) -> Option<Vec<(Str, Value)>> {
        let KubeVersion {
            version,
            major,
            minor,
            ..
        } = &self.version;
        let fields = [("Version", version), ("Major", major), ("Minor", minor)];
        Some(
            fields
                .into_iter()
                .map(|(key, text)| (key.into(), Value::string(text.as_str())))
                .collect(),
        )
    }
}

struct HelmObject(HelmVersion);

impl Object for HelmObject {
    fn type_name(&self) -> Cow<'static, str> {
        "version.BuildInfo".into()
    }

    fn go_kind(&self) -> GoKind {
        GoKind::Struct
    }

    fn field(&self, name: &str) -> Option<Value> {
        let text = match name {
            "Version" => &self.0.version,
            "GitCommit" => &self.0.git_commit,
            "GitTreeState" => &self.0.git_tree_state,
            "GoVersion" => &self.0.go_version,
            "KubeClientVersion" => self.0.kube_client_version.as_ref()?,
            _ => return None,
        };
        Some(Value::string(text.as_str()))
    }

    fn print(&self) -> Str {
        let HelmVersion {
            version,
            git_commit,
            git_tree_state,
            go_version,
            kube_client_version,
        } = &self.0;
        let client = kube_client_version
            .as_ref()
            .map(|client| format!(" {client}"))
            .unwrap_or_default();
        format!("{{{version} {git_commit} {git_tree_state} {go_version}{client}}}").into()
    }

    fn plain(&self) -> Value {
        sorted(self.json_fields())
    }

    fn json_fields(&self) -> Option<Vec<(Str, Value)>> {
        let fields = [
            ("version", Some(&self.0.version)),
            ("git_commit", Some(&self.0.git_commit)),
            ("git_tree_state", Some(&self.0.git_tree_state)),
            ("go_version", Some(&self.0.go_version)),
            ("kube_client_version", self.0.kube_client_version.as_ref()),
        ];
        let said = fields
            .into_iter()
            .filter_map(|(key, text)| Some((key, text.filter(|text| !text.is_empty())?)));
        Some(
            said.map(|(key, text)| (key.into(), Value::string(text.as_str())))
                .collect(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kubernetes_versions_are_generic() {
        let check = |text: &str, dialect: Dialect, version: &str, normalized: &str| {
            let parsed = KubeVersion::parse(text, dialect).unwrap();
            assert_eq!(
                (parsed.version.as_str(), parsed.normalized.as_str()),
                (version, normalized)
            );
        };
        check("1.30", Dialect::Helm4, "v1.30", "v1.30");
        check("v1.30.2-gke.1", Dialect::Helm4, "v1.30.2-gke.1", "v1.30.2");
        check("v1.30.2-gke.1", Dialect::Helm3, "v1.30.2", "v1.30.2");
    }

    #[test]
    fn what_is_no_version_is_refused() {
        let check = |text: &str, expected: &str| {
            assert_eq!(KubeVersion::parse(text, Dialect::Helm4).unwrap_err(), expected);
        };
        check("one", "could not parse \"one\" as version");
        check("1", "illegal version string \"1\"");
        check("1.x", "illegal version string \"1.x\"");
        check(
            "01.2",
            "illegal zero-prefixed version component \"01\" in \"01.2\"",
        );
    }
}
