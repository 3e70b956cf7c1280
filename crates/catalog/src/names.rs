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
    /// Its meaning.
    pub state: VersionState,
}

/// Returns the known names in upstream's order. Invalid lines are skipped; a test checks that there are none.
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

/// Parses `v1.29-latest` to (1, 29).
pub(crate) fn parse_latest(name: &str) -> Option<(u64, u64)> {
    let (major, minor) = name
        .strip_prefix('v')
        .unwrap_or(name)
        .strip_suffix("-latest")?
        .split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// Returns at most three of `names` with a spelling similar to `wanted`, nearest first.
pub(crate) fn nearest<'a>(wanted: &str, names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let bare = |name: &'a str| name.strip_prefix('v').unwrap_or(name);
    let wanted: Vec<char> = wanted
        .strip_prefix('v')
        .unwrap_or(wanted)
        .chars()
        .take(64)
        .collect();
    let mut near: Vec<(usize, &str)> = names
        .map(|name| (distance(&wanted, bare(name)), name))
        .filter(|(far, _)| *far <= 3)
        .collect();
    near.sort_by_key(|(far, _)| *far);
    near.into_iter()
        .take(3)
        .map(|(_, name)| name.to_owned())
        .collect()
}

/// Returns the edit distance of two names.
fn distance(a: &[char], b: &str) -> usize {
    let mut row: Vec<usize> = (0..=a.len()).collect();
    for (index, letter) in b.chars().enumerate() {
        let mut next = vec![index + 1];
        for ((own, diagonal), above) in a.iter().zip(&row).zip(row.iter().skip(1)) {
            let left = next.last().copied().unwrap_or_default();
            next.push(
                (diagonal + usize::from(*own != letter))
                    .min(above + 1)
                    .min(left + 1),
            );
        }
        row = next;
    }
    row.last().copied().unwrap_or_default()
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
        let near = |wanted: &str| {
            nearest(
                wanted,
                ["v1.29.1", "v1.28.2", "v1.29-latest", "master"].into_iter(),
            )
        };
        assert_eq!(near("1.29.2"), ["v1.29.1", "v1.28.2"]);
        assert_eq!(near("mastr"), ["master"]);
        assert_eq!(near("nothing at all"), [""; 0]);
    }
}
