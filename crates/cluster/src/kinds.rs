//! Every kind that a chart of a pinned version can render, with plural and scope. Watches and RBAC rules are
//! generated from this list.

/// Written by `cargo xtask codegen`: a line is `group/version Kind plural scope`.
const TABLE: &str = include_str!("kinds.txt");

/// A kind as the API serves it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InstalledKind {
    /// Empty for Kubernetes' core.
    pub group: &'static str,
    /// `v1`.
    pub version: &'static str,
    /// `ConfigMap`.
    pub kind: &'static str,
    /// `configmaps`.
    pub plural: &'static str,
    /// Whether the kind is namespaced.
    pub namespaced: bool,
}

impl InstalledKind {
    /// `apps/v1`, or `v1` for the core.
    #[must_use]
    pub fn api_version(&self) -> String {
        match self.group {
            "" => self.version.to_owned(),
            group => format!("{group}/{}", self.version),
        }
    }
}

/// Returns all kinds, sorted by group, version and kind.
pub fn installed_kinds() -> impl Iterator<Item = InstalledKind> {
    TABLE
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(read)
}

fn read(line: &'static str) -> Option<InstalledKind> {
    let mut words = line.split(' ');
    let (api_version, kind, plural) = (words.next()?, words.next()?, words.next()?);
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let namespaced = match words.next()? {
        "namespaced" => true,
        "cluster" => false,
        _ => return None,
    };
    Some(InstalledKind {
        group,
        version,
        kind,
        plural,
        namespaced,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_a_kind() {
        let lines = TABLE.lines().filter(|line| !line.starts_with('#')).count();
        assert_eq!(installed_kinds().count(), lines);
        assert!(lines >= 20, "{lines}");
    }

    #[test]
    fn groups_and_scopes_are_distinguished() {
        let found = |kind| installed_kinds().find(|one| one.kind == kind).unwrap();
        let deployment = found("Deployment");
        assert_eq!(
            (deployment.group, deployment.version, deployment.plural),
            ("apps", "v1", "deployments")
        );
        assert!(deployment.namespaced);
        assert_eq!(deployment.api_version(), "apps/v1");
        assert_eq!(found("ConfigMap").api_version(), "v1");
        assert!(!found("ClusterRole").namespaced);
    }

    #[test]
    fn a_line_without_a_scope_is_not_a_kind() {
        assert_eq!(read("v1 ConfigMap configmaps"), None);
        assert_eq!(read("v1 ConfigMap configmaps somewhere"), None);
    }
}
