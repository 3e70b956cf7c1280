//! Derives the two flavours from upstream's files, without access to files or networks.
//!
//! ```text
//! source module ──derive_installer()──▶ release charts ──derive_operator()──▶ the operator's charts
//! ```
//!
//! The tables define the changes and their reasons. *Invariant:* a row without a match in a version it is
//! declared for is an error, so that a new upstream version cannot be derived partially.

mod edit;
mod fingerprint;
mod line;
mod table;

pub use edit::{Applies, DeriveError, Edit, Files, Op, Text};
pub use fingerprint::fingerprint;

use crate::error::CatalogError;
use crate::flavour::Flavour;
use crate::version::Version;
use edit::{apply, matching_paths};
use table::Leftover;

/// Derives the release charts and profiles from `source`, the files below `manifests/` of the source
/// module, and adds the add-ons, the files below `samples/`.
pub fn derive_installer(source: &Files, version: &Version) -> Result<Files, CatalogError> {
    relocate(source)
        .and_then(|files| apply_edits(files, table::INSTALLER, version))
        .and_then(|files| check_leftovers(files, table::INSTALLER_LEFTOVERS, version))
        .map(|files| add_addons(files, source))
        .map_err(|source| derive_error(version, Flavour::Installer, source))
}

/// Adds the add-ons of `source`. They are not edited: their images have separate versions.
fn add_addons(mut files: Files, source: &Files) -> Files {
    let addons = table::ADDONS.iter();
    let found = addons.filter_map(|path| Some(((*path).to_owned(), source.get(*path)?.clone())));
    files.extend(found);
    files
}

/// Derives the operator's charts and profiles from those of a `release`. Charts that `release` lacks are not
/// added.
pub fn derive_operator(release: &Files, version: &Version) -> Result<Files, CatalogError> {
    let kept = release.iter().filter(|(path, _)| {
        table::OPERATOR_DIRECTORIES
            .iter()
            .any(|directory| replace_directory(path, directory, directory).is_some())
    });
    let files: Files = kept.map(|(path, bytes)| (path.clone(), bytes.clone())).collect();
    apply_edits(files, table::OPERATOR, version)
        .and_then(|files| add_revision_tags(files, version))
        .and_then(|files| check_leftovers(files, table::OPERATOR_LEFTOVERS, version))
        .map_err(|source| derive_error(version, Flavour::Operator, source))
}

/// Builds a release from its published `charts` and the `profiles` of the nearest version, since published
/// charts contain no profiles.
pub fn release_from_charts(
    charts: Vec<(&str, Files)>,
    profiles: Files,
    version: &Version,
) -> Result<Files, CatalogError> {
    let below = |directory: String, files: Files| {
        files
            .into_iter()
            .map(move |(path, bytes)| (format!("{directory}/{path}"), bytes))
    };
    let charts = charts
        .into_iter()
        .flat_map(|(chart, files)| below(format!("charts/{chart}"), files));
    let files: Files = charts.chain(below("profiles".to_owned(), profiles)).collect();
    apply_edits(files, table::REUSED_PROFILES, version)
        .map_err(|source| derive_error(version, Flavour::Installer, source))
}

fn derive_error(version: &Version, flavour: Flavour, source: DeriveError) -> CatalogError {
    CatalogError::Derive {
        version: version.clone(),
        flavour,
        source,
    }
}

fn relocate(source: &Files) -> Result<Files, DeriveError> {
    let mut relocated = Files::new();
    for place in table::PLACES {
        let before = relocated.len();
        let found = source.iter().filter_map(|(path, bytes)| {
            Some((replace_directory(path, place.from, place.to)?, bytes.clone()))
        });
        relocated.extend(found);
        if relocated.len() == before {
            return Err(DeriveError::Missing(place.from.to_owned()));
        }
    }
    Ok(relocated)
}

fn replace_directory(path: &str, from: &str, to: &str) -> Option<String> {
    let rest = path.strip_prefix(from)?.strip_prefix('/')?;
    Some(format!("{to}/{rest}"))
}

fn apply_edits(mut files: Files, table: &[Edit], version: &Version) -> Result<Files, DeriveError> {
    table
        .iter()
        .try_for_each(|edit| apply(edit, version, &mut files))?;
    Ok(files)
}

fn add_revision_tags(mut files: Files, version: &Version) -> Result<Files, DeriveError> {
    let mut chart = Files::new();
    for part in table::TAGS_PARTS
        .iter()
        .filter(|part| part.applies.includes(version))
    {
        let found = matching_paths(&files, table::TAGS_SOURCE, part.file);
        if found.is_empty() {
            return Err(DeriveError::Missing(format!(
                "{}/{}",
                table::TAGS_SOURCE,
                part.file
            )));
        }
        for path in found {
            let to = replace_directory(&path, table::TAGS_SOURCE, table::TAGS_CHART).unwrap_or_default();
            chart.insert(to, files.get(&path).cloned().unwrap_or_default());
        }
    }
    let chart_yaml = format!("{}{version}\n", table::TAGS_CHART_YAML);
    files.insert(
        format!("{}/Chart.yaml", table::TAGS_CHART),
        chart_yaml.into_bytes(),
    );
    files.append(&mut chart);
    Ok(files)
}

fn check_leftovers(files: Files, rules: &[Leftover], version: &Version) -> Result<Files, DeriveError> {
    for rule in rules.iter().filter(|rule| rule.applies.includes(version)) {
        let left = files
            .iter()
            .find(|(path, bytes)| applies_to(rule, path) && contains(bytes, rule.needle.as_bytes()));
        if let Some((path, _)) = left {
            return Err(DeriveError::Leftover {
                file: path.clone(),
                needle: rule.needle,
                reason: rule.reason,
            });
        }
    }
    Ok(files)
}

fn applies_to(rule: &Leftover, path: &str) -> bool {
    match rule.file.strip_prefix('*') {
        Some(tail) => path.ends_with(tail),
        None => path.rsplit('/').next() == Some(rule.file),
    }
}

fn contains(bytes: &[u8], needle: &[u8]) -> bool {
    bytes.windows(needle.len()).any(|window| window == needle)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWNER: &str = "  install.operator.istio.io/owning-resource: x\n";

    /// Returns a minimal source module of `version` that matches every row.
    fn source(version: &Version) -> Files {
        let global =
            "_internal_defaults_do_not_set:\n  global:\n    hub: gcr.io/istio-testing\n    tag: latest\n";
        let own = "_internal_defaults_do_not_set:\n  hub: gcr.io/istio-testing\n  tag: latest\n";
        let mut files = Files::new();
        let mut put = |path: String, text: &str| drop(files.insert(path, text.as_bytes().to_vec()));
        for place in table::PLACES.iter().filter(|place| place.from != "profiles") {
            let values = match place.to {
                "charts/ztunnel" => own,
                "charts/base" | "charts/gateway" | "charts/default" => "a: b\n",
                _ => global,
            };
            put(
                format!("{}/Chart.yaml", place.from),
                "name: c\nversion: 1.0.0\nappVersion: 1.0.0\n",
            );
            put(format!("{}/values.yaml", place.from), values);
            let labeled = !matches!(place.to, "charts/base" | "charts/gateway")
                || (place.to == "charts/gateway" && version.minor() >= (1, 28));
            put(
                format!("{}/templates/a.yaml", place.from),
                if labeled { OWNER } else { "a\n" },
            );
        }
        put("charts/base/templates/crds.yaml".into(), "crds\n");
        put(
            "charts/base/files/crd-all.gen.yaml".into(),
            "kind: CustomResourceDefinition\n",
        );
        put(
            "charts/istio-cni/templates/clusterrole.yaml".into(),
            "rules:\n- a\n",
        );
        let tags = if version.minor() >= (1, 28) {
            &["-mwc", "-svc"][..]
        } else {
            &[""]
        };
        for tag in tags {
            put(
                format!("charts/istio-control/istio-discovery/templates/revision-tags{tag}.yaml"),
                OWNER,
            );
        }
        put(
            "charts/istio-control/istio-discovery/templates/zzz_profile.yaml".into(),
            "z\n",
        );
        put(
            "charts/istio-control/istio-discovery/files/profile-demo.yaml".into(),
            "d\n",
        );
        let head = "apiVersion: install.istio.io/v1alpha1\nkind: IstioOperator\n";
        put(
            "profiles/minimal.yaml".into(),
            &format!("{head}spec:\n  components: {{}}\n"),
        );
        put(
            "profiles/default.yaml".into(),
            &format!(
                "{head}metadata:\n  namespace: n\nspec:\n  hub: gcr.io/istio-testing\n  tag: latest\n  components:\n    base: {{}}\n  values:\n    a: b\n    gateways:\n      c: {{}}\n"
            ),
        );
        files
    }

    fn version(text: &str) -> Version {
        text.parse().unwrap()
    }

    fn text<'a>(files: &'a Files, path: &str) -> &'a str {
        std::str::from_utf8(files.get(path).unwrap_or_else(|| panic!("no {path}"))).unwrap()
    }

    fn operator(text: &str) -> Files {
        let release = derive_installer(&source(&version(text)), &version(text)).unwrap();
        derive_operator(&release, &version(text)).unwrap()
    }

    fn error_text(result: Result<Files, CatalogError>) -> String {
        let error = result.unwrap_err();
        std::error::Error::source(&error)
            .map_or_else(|| error.to_string(), |source| format!("{error}: {source}"))
    }

    #[test]
    fn a_release_is_stamped() {
        let files = derive_installer(&source(&version("1.29.1")), &version("1.29.1")).unwrap();
        assert_eq!(
            text(&files, "charts/istiod/Chart.yaml"),
            "name: c\nversion: 1.29.1\nappVersion: 1.29.1\n"
        );
        let hub = "hub: registry.istio.io/release\n";
        assert_eq!(
            text(&files, "charts/cni/values.yaml"),
            format!("_internal_defaults_do_not_set:\n  global:\n    {hub}    tag: 1.29.1\n")
        );
        assert_eq!(
            text(&files, "charts/ztunnel/values.yaml"),
            format!("_internal_defaults_do_not_set:\n  {hub}  tag: 1.29.1\n")
        );
        assert!(
            text(&files, "profiles/default.yaml")
                .contains("  hub: registry.istio.io/release\n  tag: 1.29.1\n")
        );
    }

    #[test]
    fn a_snapshot_keeps_the_development_images() {
        let files =
            derive_installer(&source(&version("1.31.0-alpha.x")), &version("1.31.0-alpha.x")).unwrap();
        assert!(text(&files, "charts/istiod/Chart.yaml").contains("version: 1.31.0-alpha.x"));
        assert!(
            text(&files, "charts/istiod/values.yaml").contains("hub: gcr.io/istio-testing\n    tag: latest")
        );
    }

    #[test]
    fn operator_charts_equal_those_of_the_sail_operator() {
        let files = operator("1.29.1");
        assert!(files.values().all(|bytes| !contains(bytes, b"owning-resource")));
        assert!(
            !files.contains_key("charts/base/templates/crds.yaml")
                && !files.contains_key("charts/base/files/crd-all.gen.yaml")
        );
        assert!(
            files
                .keys()
                .all(|path| !path.starts_with("charts/istio-ingress") && !path.starts_with("charts/default"))
        );
        assert_eq!(
            text(&files, "charts/cni/templates/clusterrole.yaml"),
            "rules:\n- apiGroups: [\"security.openshift.io\"]\n  resources: [\"securitycontextconstraints\"]\n  resourceNames: [\"privileged\"]\n  verbs: [\"use\"]\n- a\n"
        );
        assert_eq!(
            text(&files, "profiles/default.yaml"),
            "apiVersion: sailoperator.io/v1\nkind: Istio\nspec:\n  values:\n    a: b\n"
        );
        assert!(!files.contains_key("profiles/minimal.yaml"));
    }

    #[test]
    fn revision_tags_come_from_the_istiod_chart() {
        let parts = |version: &str| {
            operator(version)
                .into_keys()
                .filter(|path| path.contains("revisiontags/templates"))
                .collect::<Vec<_>>()
        };
        let all = |names: &[&str]| {
            names
                .iter()
                .map(|name| format!("charts/revisiontags/templates/{name}.yaml"))
                .collect::<Vec<_>>()
        };
        assert_eq!(parts("1.27.9"), all(&["revision-tags", "zzz_profile"]));
        assert_eq!(
            parts("1.28.0"),
            all(&["revision-tags-mwc", "revision-tags-svc", "zzz_profile"])
        );
    }

    #[test]
    fn a_source_without_a_chart_is_rejected() {
        let mut files = source(&version("1.29.1"));
        files.retain(|path, _| !path.starts_with("charts/ztunnel"));
        assert_eq!(
            error_text(derive_installer(&files, &version("1.29.1"))),
            "cannot derive the installer charts of Istio 1.29.1: the source does not contain charts/ztunnel"
        );
    }

    #[test]
    fn texts_that_no_edit_removes_are_errors() {
        let mut files = source(&version("1.29.1"));
        files.insert("charts/base/templates/new.yaml".into(), OWNER.as_bytes().to_vec());
        let release = derive_installer(&files, &version("1.29.1")).unwrap();
        let message = error_text(derive_operator(&release, &version("1.29.1")));
        assert!(message.starts_with("cannot derive the operator charts of Istio 1.29.1: charts/base/templates/new.yaml still contains \"install.operator.istio.io/owning-resource\" after all edits"), "{message}");
        files.insert(
            "charts/gateway/values.yaml".into(),
            b"hub: gcr.io/istio-testing\n".to_vec(),
        );
        let message = error_text(derive_installer(&files, &version("1.29.1")));
        assert!(
            message.starts_with(
                "cannot derive the installer charts of Istio 1.29.1: charts/gateway/values.yaml still contains"
            ),
            "{message}"
        );
    }

    #[test]
    fn an_edit_without_a_match_is_an_error() {
        let mut files = source(&version("1.29.1"));
        files.insert("charts/istio-cni/values.yaml".into(), b"a: b\n".to_vec());
        let message = error_text(derive_installer(&files, &version("1.29.1")));
        assert!(message.starts_with("cannot derive the installer charts of Istio 1.29.1: edit \"release-hub\" matches nothing in charts/cni/values.yaml"), "{message}");
    }
}
