//! From upstream's tree to the two flavours: takes the files of a source module or of a release, gives the files of a
//! flavour. Pure: reads no file, knows no network.
//!
//! ```text
//! source module ──derive_installer()──▶ release charts ──derive_operator()──▶ the operator's charts
//! ```
//!
//! The tables say what changes and why. *Invariant:* a row that matches nothing in a version it is declared for is an
//! error, so a new upstream version cannot slip through half-derived.

mod edit;
mod line;
mod table;

pub use edit::{Applies, DeriveError, Edit, Files, Op, Text};

use crate::error::CatalogError;
use crate::flavour::Flavour;
use crate::version::Version;
use edit::{apply, matching};
use table::Leftover;

/// Raised whenever the code (not a table) derives something else than before.
const ENGINE: u32 = 1;

/// Release charts and profiles from `source`, the files below `manifests/` of the source module.
pub fn derive_installer(source: &Files, version: &Version) -> Result<Files, CatalogError> {
    place(source)
        .and_then(|files| edited(files, table::INSTALLER, version))
        .and_then(|files| checked(files, table::INSTALLER_LEFTOVERS, version))
        .map_err(|source| failed(version, Flavour::Installer, source))
}

/// The operator's charts and profiles from those of a `release`. Charts that `release` lacks are not invented.
pub fn derive_operator(release: &Files, version: &Version) -> Result<Files, CatalogError> {
    let kept = release.iter().filter(|(path, _)| {
        table::OPERATOR_KEEPS
            .iter()
            .any(|folder| moved(path, folder, folder).is_some())
    });
    let files: Files = kept.map(|(path, bytes)| (path.clone(), bytes.clone())).collect();
    edited(files, table::OPERATOR, version)
        .and_then(|files| with_revision_tags(files, version))
        .and_then(|files| checked(files, table::OPERATOR_LEFTOVERS, version))
        .map_err(|source| failed(version, Flavour::Operator, source))
}

/// A release from its published `charts` and the `profiles` of the nearest version: published charts come without.
pub fn release_of(
    charts: Vec<(&str, Files)>,
    profiles: Files,
    version: &Version,
) -> Result<Files, CatalogError> {
    let below = |folder: String, files: Files| {
        files
            .into_iter()
            .map(move |(path, bytes)| (format!("{folder}/{path}"), bytes))
    };
    let charts = charts
        .into_iter()
        .flat_map(|(chart, files)| below(format!("charts/{chart}"), files));
    let files: Files = charts.chain(below("profiles".to_owned(), profiles)).collect();
    edited(files, table::BORROWED_PROFILES, version)
        .map_err(|source| failed(version, Flavour::Installer, source))
}

/// Changes whenever the derivation does: a stamp that tells whether derived files are up to date.
#[must_use]
pub fn fingerprint() -> u64 {
    let tables = format!(
        "{ENGINE} {:?} {:?} {:?} {:?} {:?} {:?} {:?}",
        table::PLACES,
        table::OPERATOR_KEEPS,
        table::INSTALLER,
        table::OPERATOR,
        (table::TAGS_PARTS, table::TAGS_CHART_YAML),
        table::INSTALLER_LEFTOVERS,
        table::OPERATOR_LEFTOVERS,
    );
    // FNV-1a: a stamp needs no more.
    tables.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

fn failed(version: &Version, flavour: Flavour, source: DeriveError) -> CatalogError {
    CatalogError::Derive {
        version: version.clone(),
        flavour,
        source,
    }
}

fn place(source: &Files) -> Result<Files, DeriveError> {
    let mut placed = Files::new();
    for place in table::PLACES {
        let before = placed.len();
        let found = source
            .iter()
            .filter_map(|(path, bytes)| Some((moved(path, place.from, place.to)?, bytes.clone())));
        placed.extend(found);
        if placed.len() == before {
            return Err(DeriveError::Missing(place.from.to_owned()));
        }
    }
    Ok(placed)
}

fn moved(path: &str, from: &str, to: &str) -> Option<String> {
    let rest = path.strip_prefix(from)?.strip_prefix('/')?;
    Some(format!("{to}/{rest}"))
}

fn edited(mut files: Files, table: &[Edit], version: &Version) -> Result<Files, DeriveError> {
    table
        .iter()
        .try_for_each(|edit| apply(edit, version, &mut files))?;
    Ok(files)
}

fn with_revision_tags(mut files: Files, version: &Version) -> Result<Files, DeriveError> {
    let mut chart = Files::new();
    for part in table::TAGS_PARTS
        .iter()
        .filter(|part| part.applies.holds(version))
    {
        let found = matching(&files, table::TAGS_SOURCE, part.file);
        if found.is_empty() {
            return Err(DeriveError::Missing(format!(
                "{}/{}",
                table::TAGS_SOURCE,
                part.file
            )));
        }
        for path in found {
            let to = moved(&path, table::TAGS_SOURCE, table::TAGS_CHART).unwrap_or_default();
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

fn checked(files: Files, rules: &[Leftover], version: &Version) -> Result<Files, DeriveError> {
    for rule in rules.iter().filter(|rule| rule.applies.holds(version)) {
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
