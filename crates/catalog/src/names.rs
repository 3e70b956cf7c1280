//! The known names of versions, from `versions.list`.

use crate::version::Version;

/// Meaning of a version name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VersionState {
    /// A version with pinned charts.
    Pinned(Version),
    /// An existing version whose charts must be pulled.
    Known(Version),
    /// A version that has reached its end of life.
    EndOfLife,
    /// An alias of this name.
    Alias(String),
}

/// A version name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VersionName {
    /// The name as used in resources: `v1.29.1`, `v1.29-latest`, `master`.
    pub name: String,
    /// Meaning of the name.
    pub state: VersionState,
}

/// Returns the known names in upstream's order. Skips invalid lines; a test checks that there are none.
pub(crate) fn known_names() -> Vec<VersionName> {
    include_str!("../../../versions.list")
        .lines()
        .filter_map(|line| parse_line(line).ok().flatten())
        .collect()
}

/// A line of `versions.list` that is invalid.
#[derive(Debug, thiserror::Error)]
enum LineError {
    #[error("cannot parse {0:?}")]
    Syntax(String),
    #[error(transparent)]
    Version(#[from] crate::error::CatalogError),
}

fn parse_line(line: &str) -> Result<Option<VersionName>, LineError> {
    let fields: Vec<&str> = line
        .split('#')
        .next()
        .unwrap_or_default()
        .split_whitespace()
        .collect();
    let (name, state) = match fields.as_slice() {
        [] => return Ok(None),
        [name, "pinned"] => (name, VersionState::Pinned(name.parse()?)),
        [name, "known"] => (name, VersionState::Known(name.parse()?)),
        [name, "eol"] => (name, VersionState::EndOfLife),
        [name, "=", target] => (name, VersionState::Alias((*target).to_owned())),
        _ => return Err(LineError::Syntax(line.to_owned())),
    };
    Ok(Some(VersionName {
        name: (*name).to_owned(),
        state,
    }))
}

/// Parses `v1.29-latest` as (1, 29).
pub(crate) fn parse_latest(name: &str) -> Option<(u64, u64)> {
    let (major, minor) = name
        .strip_prefix('v')
        .unwrap_or(name)
        .strip_suffix("-latest")?
        .split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// Maximum number of suggested names.
const MAX_SUGGESTIONS: usize = 5;
/// Maximum number of characters of a name that are compared.
const MAX_COMPARED: usize = 64;
/// Maximum edit distance of names with a similar spelling.
const MAX_DISTANCE: usize = 3;

/// Returns at most five of `names`, nearest first: the nearest versions if `wanted` is a version, otherwise
/// names with a similar spelling.
pub(crate) fn nearest_names<'a>(wanted: &str, names: impl Iterator<Item = &'a str>) -> Vec<String> {
    match wanted.parse::<Version>() {
        Ok(wanted) => nearest_versions(&wanted, names),
        Err(_) => similar_names(wanted, names),
    }
}

/// Returns lower and higher versions alternately, nearest first.
fn nearest_versions<'a>(wanted: &Version, names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut versions: Vec<Version> = names.filter_map(|name| name.parse().ok()).collect();
    versions.sort();
    let (lower, higher): (Vec<Version>, Vec<Version>) =
        versions.into_iter().partition(|version| version < wanted);
    let mut lower = lower.iter().rev();
    let mut higher = higher.iter();
    let pairs = std::iter::from_fn(|| match [lower.next(), higher.next()] {
        [None, None] => None,
        pair => Some(pair),
    });
    let nearest = pairs.flatten().flatten().take(MAX_SUGGESTIONS);
    nearest.map(Version::name).collect()
}

fn similar_names<'a>(wanted: &str, names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let start: String = strip_v(wanted).chars().take(MAX_COMPARED).collect();
    let mut near: Vec<(usize, &str)> = names
        .map(|name| (strsim::levenshtein(&start, strip_v(name)), name))
        .filter(|(distance, _)| *distance <= MAX_DISTANCE)
        .collect();
    near.sort_by_key(|(distance, _)| *distance);
    let nearest = near.into_iter().take(MAX_SUGGESTIONS);
    nearest.map(|(_, name)| name.to_owned()).collect()
}

/// Returns a version name without its leading `v`.
fn strip_v(name: &str) -> &str {
    name.strip_prefix('v').unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lock::parse_lock;

    #[test]
    fn every_line_is_valid_and_matches_the_lock_file() {
        let text = include_str!("../../../versions.list");
        let names: Vec<VersionName> = text
            .lines()
            .filter_map(|line| parse_line(line).unwrap())
            .collect();
        let mut pinned: Vec<_> = names
            .iter()
            .filter_map(|name| match &name.state {
                VersionState::Pinned(version) => Some(version.clone()),
                _ => None,
            })
            .collect();
        assert_eq!(
            pinned.first().map(ToString::to_string).as_deref(),
            Some("1.29.1"),
            "the default"
        );
        pinned.sort();
        let locked: Vec<_> = parse_lock(include_str!("../../../charts.lock"))
            .unwrap()
            .into_iter()
            .map(|pin| pin.version)
            .collect();
        assert_eq!(pinned, locked);
    }

    #[test]
    fn every_alias_refers_to_a_version() {
        let names = known_names();
        for VersionName { name, state } in &names {
            let VersionState::Alias(target) = state else {
                continue;
            };
            let found = names
                .iter()
                .find(|other| other.name == *target)
                .map(|other| &other.state);
            assert!(
                matches!(found, Some(VersionState::Pinned(_) | VersionState::Known(_))),
                "{name} = {target}"
            );
        }
    }

    #[test]
    fn invalid_lines_are_errors() {
        let error = |line| parse_line(line).unwrap_err().to_string();
        assert_eq!(error("v1.2.3"), "cannot parse \"v1.2.3\"");
        assert_eq!(
            error("v1.2 pinned"),
            "\"v1.2\" is not a version (expected X.Y.Z, for example 1.29.1)"
        );
        assert_eq!(parse_line(" # v1.2 pinned").unwrap(), None);
    }

    #[test]
    fn similar_names_are_found() {
        let names = [
            "v1.29.1",
            "v1.28.2",
            "v1.29-latest",
            "v1.27.9",
            "v1.30.0",
            "v2.0.0",
            "v1.26.8",
            "master",
        ];
        let near = |wanted: &str| nearest_names(wanted, names.into_iter());
        let expected = ["v1.29.1", "v1.30.0", "v1.28.2", "v2.0.0", "v1.27.9"];
        assert_eq!(near("1.29.2"), expected);
        assert_eq!(near("v1.29.2"), expected);
        assert_eq!(
            near("9.9.9"),
            ["v2.0.0", "v1.30.0", "v1.29.1", "v1.28.2", "v1.27.9"]
        );
        assert_eq!(near("mastr"), ["master"]);
        assert_eq!(near("1.29-lates"), ["v1.29-latest"]);
        assert_eq!(near("nothing at all"), [""; 0]);
    }
}
