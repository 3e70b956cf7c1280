//! `.Capabilities`: the cluster and the Helm version as visible in templates, without access to a cluster.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::rc::Rc;

use mainstay_gostd::quote::quote;
use mainstay_template::{
    Call, Failure, GoKind, List, ListType, Method, NamedType, Object, Signature, Str, Type, Value,
};

use crate::dialect::Dialect;

/// Cluster and Helm version that are visible in templates.
#[derive(Clone, Debug)]
pub struct Capabilities {
    /// Version of the cluster.
    pub kube_version: KubeVersion,
    /// API versions that the cluster serves, such as `apps/v1` and `apps/v1/Deployment`.
    pub api_versions: Vec<String>,
    /// Helm version that is visible in templates.
    pub helm_version: HelmVersion,
}

impl Capabilities {
    /// Returns the capabilities that `helm template` assumes without a cluster.
    #[must_use]
    pub fn offline(dialect: Dialect) -> Self {
        Self {
            kube_version: KubeVersion::offline(),
            api_versions: super::versions::KNOWN.iter().map(ToString::to_string).collect(),
            helm_version: HelmVersion::default_for(dialect),
        }
    }
}

/// A Kubernetes version as visible in templates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KubeVersion {
    /// Full version with a leading `v`. Helm 3 removes everything after the patch number.
    pub version: String,
    /// Version without suffixes, which is used to check constraints.
    pub normalized: String,
    /// Major number, for example `1`.
    pub major: String,
    /// Minor number, for example `30`.
    pub minor: String,
}

impl KubeVersion {
    /// Returns the version that releases of Helm assume without a cluster, which is that of their client
    /// library.
    fn offline() -> Self {
        Self {
            version: "v1.36.0".into(),
            normalized: "v1.36.0".into(),
            major: "1".into(),
            minor: "36".into(),
        }
    }

    /// Parses a version such as `1.30` or `v1.30.2-gke.1`: at least two numbers, followed by any suffix.
    pub fn parse(text: &str, dialect: Dialect) -> Result<Self, KubeVersionError> {
        let numbers = parse_numbers(text)?;
        let [major, minor, ..] = numbers.as_slice() else {
            return Err(KubeVersionError::TooShort(text.into()));
        };
        let joined: Vec<String> = numbers.iter().map(u64::to_string).collect();
        let normalized = format!("v{}", joined.join("."));
        let full = if text.starts_with('v') {
            text.to_owned()
        } else {
            format!("v{text}")
        };
        let version = if dialect.keeps_kube_version_suffix() {
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

/// Error of parsing a Kubernetes version. The messages are those of Kubernetes' version parser, which Helm
/// prints.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KubeVersionError {
    /// The text has fewer than two numbers.
    #[error("illegal version string {}", quote(.0))]
    TooShort(String),
    /// The text does not start with a number.
    #[error("could not parse {} as version", quote(.0))]
    NoNumber(String),
    /// The first number starts with a zero.
    #[error("illegal zero-prefixed version component {} in {}", quote(.component), quote(.version))]
    ZeroPrefix {
        /// Number that is invalid, as written.
        component: String,
        /// Whole text of the version.
        version: String,
    },
    /// A number exceeds 64 bits.
    #[error(
        "illegal non-numeric version component {0} in {1}: strconv.ParseUint: parsing {0}: value out of range",
        quote(.component),
        quote(.version)
    )]
    OutOfRange {
        /// Number that is invalid, as written.
        component: String,
        /// Whole text of the version.
        version: String,
    },
}

/// Returns the leading numbers of a Kubernetes version. White space and one `v` may precede them.
fn parse_numbers(text: &str) -> Result<Vec<u64>, KubeVersionError> {
    let trimmed = text.trim_start();
    let rest = trimmed.strip_prefix('v').unwrap_or(trimmed);
    let parts = leading_numbers(rest);
    if parts.is_empty() {
        return Err(KubeVersionError::NoNumber(text.into()));
    }
    if let Some(first) = parts
        .first()
        .filter(|first| parts.len() > 1 && first.starts_with('0') && **first != "0")
    {
        return Err(KubeVersionError::ZeroPrefix {
            component: (*first).into(),
            version: text.into(),
        });
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

fn out_of_range(part: &str, text: &str) -> KubeVersionError {
    KubeVersionError::OutOfRange {
        component: part.into(),
        version: text.into(),
    }
}

/// A Helm version, visible in templates as `.Capabilities.HelmVersion`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HelmVersion {
    /// Version with a leading `v`, for example `v4.2.4`.
    pub version: String,
    /// Commit of the build.
    pub git_commit: String,
    /// `clean` or `dirty`.
    pub git_tree_state: String,
    /// Go version of the build.
    pub go_version: String,
    /// Version of the Kubernetes client library; `None` in Helm 3.
    pub kube_client_version: Option<String>,
}

impl HelmVersion {
    /// Returns the release that this crate is compared with. Its commit is omitted, because charts cannot
    /// depend on it.
    fn default_for(dialect: Dialect) -> Self {
        Self {
            version: dialect.helm_version().into(),
            git_commit: String::new(),
            git_tree_state: "clean".into(),
            go_version: "go1.26.8".into(),
            kube_client_version: dialect.kube_client_version().map(Into::into),
        }
    }
}

/// Type of `.Capabilities.APIVersions` in Helm 3.
pub(crate) static HELM3_VERSION_SET: NamedType = NamedType {
    name: "chartutil.VersionSet",
    methods: &[HAS],
};

/// Type of `.Capabilities.APIVersions` in Helm 4.
pub(crate) static HELM4_VERSION_SET: NamedType = NamedType {
    name: "common.VersionSet",
    methods: &[HAS],
};

const HAS: Method = Method {
    name: "Has",
    signature: Signature {
        params: &[Type::String],
        variadic: false,
    },
    run: |receiver, call| {
        let wanted = call.str(0);
        let is_wanted = |item: &Value| matches!(item, Value::String(text) if *text == wanted);
        let found = matches!(receiver, Value::List(list) if list.items().iter().any(is_wanted));
        Ok(Value::Bool(found))
    },
};

/// Returns `.Capabilities`, a pointer to a struct in Go.
pub(crate) fn object(capabilities: &Capabilities, dialect: Dialect) -> Value {
    let types = dialect.capabilities_types();
    let versions = capabilities
        .api_versions
        .iter()
        .map(|version| Value::string(version.as_str()))
        .collect();
    let kube_version = KubeObject {
        version: capabilities.kube_version.clone(),
        type_name: types.kube_version,
        prints_normalized: dialect.prints_normalized_kube_version(),
    };
    Value::object(CapabilitiesObject {
        kube_version: Value::Object(Rc::new(kube_version)),
        api_versions: Value::List(List::new(ListType::Named(types.version_set), versions)),
        helm_version: Value::object(HelmObject(capabilities.helm_version.clone())),
        type_name: types.capabilities,
    })
}

#[derive(Clone)]
struct CapabilitiesObject {
    kube_version: Value,
    api_versions: Value,
    helm_version: Value,
    type_name: &'static str,
}

impl Object for CapabilitiesObject {
    fn type_name(&self) -> Cow<'static, str> {
        self.type_name.into()
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

    fn method(&self, name: &str) -> Option<Signature> {
        (name == "Copy").then_some(Signature {
            params: &[],
            variadic: false,
        })
    }

    /// Calls `Copy`, the only method. Templates cannot modify a copy, so the copy equals the original.
    fn call(&self, _name: &str, _call: &mut Call<'_>) -> Result<Value, Failure> {
        Ok(Value::object(self.clone()))
    }

    fn print(&self) -> Str {
        format!("&{}", self.print_addressed()).into()
    }

    fn print_addressed(&self) -> Str {
        let text = |value: &Value| match value {
            Value::Object(object) => object.print().to_string(),
            Value::List(list) => {
                let items: Vec<String> = list.items().iter().map(string_text).collect();
                format!("[{}]", items.join(" "))
            }
            _ => String::new(),
        };
        let [kube, apis, helm] = [&self.kube_version, &self.api_versions, &self.helm_version].map(text);
        format!("{{{kube} {apis} {helm}}}").into()
    }

    fn plain(&self) -> Value {
        fields_to_map(self.json_fields())
    }

    fn json_fields(&self) -> Option<Vec<(Str, Value)>> {
        Some(vec![
            ("KubeVersion".into(), self.kube_version.clone()),
            ("APIVersions".into(), self.api_versions.clone()),
            ("HelmVersion".into(), self.helm_version.clone()),
        ])
    }
}

fn string_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.to_string(),
        _ => String::new(),
    }
}

/// Converts the fields of a struct to a map.
fn fields_to_map(fields: Option<Vec<(Str, Value)>>) -> Value {
    Value::map(fields.unwrap_or_default().into_iter().collect::<BTreeMap<_, _>>())
}

struct KubeObject {
    version: KubeVersion,
    type_name: &'static str,
    prints_normalized: bool,
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

    /// Uses the `String` method of the pointer type.
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
        if self.prints_normalized {
            format!("{{{version} {normalized} {major} {minor}}}").into()
        } else {
            format!("{{{version} {major} {minor}}}").into()
        }
    }

    fn plain(&self) -> Value {
        fields_to_map(self.json_fields())
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
        fields_to_map(self.json_fields())
    }

    fn json_fields(&self) -> Option<Vec<(Str, Value)>> {
        let fields = [
            ("version", Some(&self.0.version)),
            ("git_commit", Some(&self.0.git_commit)),
            ("git_tree_state", Some(&self.0.git_tree_state)),
            ("go_version", Some(&self.0.go_version)),
            ("kube_client_version", self.0.kube_client_version.as_ref()),
        ];
        let present = fields
            .into_iter()
            .filter_map(|(key, text)| Some((key, text.filter(|text| !text.is_empty())?)));
        Some(
            present
                .map(|(key, text)| (key.into(), Value::string(text.as_str())))
                .collect(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kubernetes_versions_may_have_suffixes() {
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
    fn invalid_versions_are_rejected() {
        let check = |text: &str, expected: &str| {
            assert_eq!(
                KubeVersion::parse(text, Dialect::Helm4).unwrap_err().to_string(),
                expected
            );
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
