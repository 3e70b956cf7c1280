//! Every name a version goes by: takes the text of `versions.list`, gives what each name stands for. Knows no charts.

use crate::version::Version;

/// What a name stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VersionState {
    /// A version whose charts are pinned.
    Pinned(Version),
    /// A version that exists, but whose charts must be pulled.
    Known(Version),
    /// Refused: end of life.
    EndOfLife,
    /// Another name for this one.
    Alias(String),
}

/// A name and what it stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VersionName {
    /// As resources spell it: `v1.29.1`, `v1.29-latest`, `master`.
    pub name: String,
    /// What it stands for.
    pub state: VersionState,
}

/// The names this build knows, in upstream's order. Lines that cannot be read are a defect a test finds; they are skipped.
pub(crate) fn known_names() -> Vec<VersionName> {
    include_str!("../../../versions.list")
        .lines()
        .filter_map(|line| parse_line(line).ok().flatten())
        .collect()
}

fn parse_line(line: &str) -> Result<Option<VersionName>, String> {
    let fields: Vec<&str> = line
        .split('#')
        .next()
        .unwrap_or_default()
        .split_whitespace()
        .collect();
    let version = |text: &str| text.parse::<Version>().map_err(|error| error.to_string());
    let (name, state) = match fields.as_slice() {
        [] => return Ok(None),
        [name, "pinned"] => (name, VersionState::Pinned(version(name)?)),
        [name, "known"] => (name, VersionState::Known(version(name)?)),
        [name, "eol"] => (name, VersionState::EndOfLife),
        [name, "=", target] => (name, VersionState::Alias((*target).to_owned())),
        _ => return Err(format!("cannot read {line:?}")),
    };
    Ok(Some(VersionName {
        name: (*name).to_owned(),
        state,
    }))
}

/// `v1.29-latest` → (1, 29).
pub(crate) fn latest_of(name: &str) -> Option<(u64, u64)> {
    let (major, minor) = name
        .strip_prefix('v')
        .unwrap_or(name)
        .strip_suffix("-latest")?
        .split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// At most three of `names` that are spelled nearly as `wanted`, nearest first.
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

/// How many characters must be put in, taken out or exchanged.
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
    fn every_line_is_understood_and_the_lock_agrees() {
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
    fn every_alias_names_a_version() {
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
    fn lines_that_say_nothing_are_errors() {
        assert_eq!(parse_line("v1.2.3"), Err("cannot read \"v1.2.3\"".into()));
        assert_eq!(
            parse_line("v1.2 pinned"),
            Err("\"v1.2\" is not a version (expected X.Y.Z, for example 1.29.1)".into())
        );
        assert_eq!(parse_line(" # v1.2 pinned"), Ok(None));
    }

    #[test]
    fn near_names_are_found() {
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
