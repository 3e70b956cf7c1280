//! Tests of name resolution, aliases and errors on catalogs with placeholder charts.

use super::*;
use crate::pack::pack;

/// Creates a catalog that embeds one chart `c` and one profile for each of `versions`.
fn catalog(versions: &[&str]) -> Catalog {
    let file = |name: &str| Files::from([(name.to_owned(), b"x".to_vec())]);
    let directories = versions.iter().flat_map(|version| {
        [
            (format!("{version}/installer/charts/c"), file("Chart.yaml")),
            (format!("{version}/installer/profiles"), file("p.yaml")),
        ]
    });
    let bytes = pack(&directories.collect::<Vec<_>>());
    Catalog::from_pack(Some(Pack::open(bytes.leak()).unwrap()))
}

fn check(catalog: &Catalog, name: &str, expected: Result<&str, (&str, &str)>) {
    let found = catalog.resolve(name).map(|version| version.to_string());
    match (found, expected) {
        (Ok(found), Ok(expected)) => assert_eq!(found, expected, "{name}"),
        (Err(error), Err((message, hint))) => {
            assert_eq!(
                (
                    error.to_string().as_str(),
                    error.hint().unwrap_or_default().as_str()
                ),
                (message, hint),
                "{name}"
            );
        }
        (found, _) => panic!("{name} resolves to {found:?}"),
    }
}

#[test]
fn names_and_aliases_resolve_with_or_without_v() {
    let catalog = catalog(&["1.28.2", "1.29.1", "1.31.0-alpha.eed52ebb"]);
    for name in ["1.29.1", "v1.29.1", "v1.29-latest", "1.29-latest"] {
        check(&catalog, name, Ok("1.29.1"));
    }
    check(&catalog, "master", Ok("1.31.0-alpha.eed52ebb"));
    check(&catalog, "v1.31-latest", Ok("1.31.0-alpha.eed52ebb"));
    assert_eq!(catalog.default_version().unwrap().to_string(), "1.29.1");
}

#[test]
fn a_newer_patch_changes_the_alias_of_its_minor() {
    let catalog = catalog(&["1.28.2", "1.29.1", "1.31.0-alpha.eed52ebb"]);
    let change = |version: &str| {
        let change = catalog.alias_change(&version.parse().unwrap())?;
        let current = change.current.map(|version| version.to_string());
        Some((change.alias, current.unwrap_or_default()))
    };
    let expected = |alias: &str, current: &str| Some((alias.to_owned(), current.to_owned()));
    assert_eq!(change("1.29.6"), expected("v1.29-latest", "1.29.1"));
    assert_eq!(change("1.29.0"), None);
    assert_eq!(change("1.29.1"), None);
    assert_eq!(change("1.29.2-beta.1"), None);
    assert_eq!(change("1.30.3"), expected("v1.30-latest", ""));
    assert_eq!(
        change("1.31.0"),
        expected("v1.31-latest", "1.31.0-alpha.eed52ebb")
    );
}

#[test]
fn unresolvable_names_have_an_error_and_a_hint() {
    let catalog = catalog(&["1.28.2", "1.29.1"]);
    check(
        &catalog,
        "v1.23.4",
        Err((
            "Istio version \"v1.23.4\" has reached its end of life and cannot be installed",
            "use 1.28.2 or later",
        )),
    );
    check(
        &catalog,
        "v1.22-latest",
        Err((
            "Istio version \"v1.22-latest\" has reached its end of life and cannot be installed",
            "use 1.28.2 or later",
        )),
    );
    for unlisted in ["v1.21.0", "1.22.9", "v1.20-latest", "0.8.0"] {
        check(
            &catalog,
            unlisted,
            Err((
                &format!("Istio version {unlisted:?} has reached its end of life and cannot be installed"),
                "use 1.28.2 or later",
            )),
        );
    }
    check(
        &catalog,
        "1.30.3",
        Err((
            "the charts of Istio 1.30.3 are not available",
            "run `mainstay charts pull 1.30.3`",
        )),
    );
    check(
        &catalog,
        "v1.30-latest",
        Err((
            "the charts of Istio 1.30.3 are not available",
            "run `mainstay charts pull 1.30.3`",
        )),
    );
    check(
        &catalog,
        "1.29.7",
        Err((
            "Istio version \"1.29.7\" is not in the catalog",
            "did you mean v1.29.1 or v1.28.2? if the version exists, run `mainstay charts pull 1.29.7`",
        )),
    );
    check(
        &catalog,
        "newest",
        Err((
            "Istio version \"newest\" is not in the catalog",
            "run `mainstay charts list` to show the installable versions",
        )),
    );
}

#[test]
fn an_empty_catalog_hints_at_commands() {
    let empty = Catalog::from_pack(None);
    let hint = "run `cargo xtask charts` and build again, or `mainstay charts pull VERSION`, or specify a directory with --charts";
    check(
        &empty,
        "1.29.1",
        Err((
            "no charts found: this build embeds none, and the catalog is empty",
            hint,
        )),
    );
    assert!(matches!(empty.default_version(), Err(CatalogError::Empty)));
    assert_eq!(empty.installable(), []);
}

#[test]
fn the_alias_resolves_to_the_newest_patch() {
    let catalog = catalog(&["1.29.1", "1.29.3", "1.29.4-rc.1"]);
    check(&catalog, "v1.29-latest", Ok("1.29.3"));
    let listed: Vec<_> = catalog
        .installable()
        .iter()
        .map(|one| format!("{} {:?} {}", one.version, one.aliases, one.default))
        .collect();
    assert_eq!(
        listed,
        [
            "1.29.4-rc.1 [] false",
            "1.29.3 [\"v1.29-latest\"] false",
            "1.29.1 [] true"
        ]
    );
}

#[test]
fn unknown_charts_and_profiles_are_errors() {
    let catalog = catalog(&["1.29.1"]);
    let version = catalog.default_version().unwrap();
    assert_eq!(catalog.charts(&version, Flavour::Installer).unwrap(), ["c"]);
    assert_eq!(catalog.profiles(&version, Flavour::Installer).unwrap(), ["p"]);
    assert_eq!(catalog.profile(&version, Flavour::Installer, "p").unwrap(), b"x");
    let error = catalog.chart(&version, Flavour::Installer, "d").unwrap_err();
    assert_eq!(
        (error.to_string().as_str(), error.hint().as_deref()),
        (
            "Istio 1.29.1 has no chart \"d\" for the installer",
            Some("choose one of c")
        )
    );
    let error = catalog.profile(&version, Flavour::Installer, "../p").unwrap_err();
    assert_eq!(
        error.to_string(),
        "Istio 1.29.1 has no profile \"../p\" for the installer"
    );
}
