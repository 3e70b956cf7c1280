//! Tests that charts whose objects depend on random values or on the time are rejected.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    dead_code,
    reason = "tests fail by panicking, and use a part of the helpers"
)]

#[path = "support/mod.rs"]
mod support;

use mainstay_catalog::derive::Files;
use mainstay_manifest::{CatalogPackage, Charts, Minor, PackageError, Request, generate};
use support::with_package;

/// Charts of the catalog, with an additional template in the chart of istiod.
struct WithTemplate<'a> {
    package: &'a CatalogPackage<'a>,
    template: String,
}

impl Charts for WithTemplate<'_> {
    fn minor(&self) -> Minor {
        self.package.minor()
    }

    fn chart(&self, name: &str) -> Result<Files, PackageError> {
        let mut files = self.package.chart(name)?;
        if name == "istiod" {
            let template = self.template.clone().into_bytes();
            files.insert("templates/generated.yaml".into(), template);
        }
        Ok(files)
    }
}

/// Generates the objects of the minimal profile, with a `ConfigMap` that contains this value. Returns the
/// text of the objects, or the errors.
fn generate_with(value: &str) -> Result<String, String> {
    let template =
        format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: generated}}\ndata:\n  key: {value}\n");
    with_package(|package| {
        let charts = WithTemplate { package, template };
        let mut request = Request::new(package);
        request.sets = vec!["profile=minimal".into()];
        request.charts = &charts;
        let rendered = generate(&request).map_err(|problems| problems.to_string())?;
        let texts = rendered
            .sorted_objects()
            .into_iter()
            .map(|object| format!("{object:?}"));
        Ok(texts.collect())
    })
}

#[test]
fn charts_that_generate_values_are_rejected() {
    let cases = [
        "{{ randAlphaNum 20 }}",
        "{{ uuidv4 }}",
        "{{ genPrivateKey \"ecdsa\" | b64enc }}",
        "{{ now | date \"2006-01-02\" | quote }}",
        "{{ (genSelfSignedCert \"a\" nil nil 365).Key | b64enc }}",
    ];
    for value in cases {
        let error = generate_with(value).unwrap_err();
        let expected = "spec.components.pilot: chart \"istiod\": ConfigMap generated differs between two renders, because the chart uses random values or the current time; use a chart without them";
        assert!(error.contains(expected), "{value}: {error}");
    }
    println!(
        "harden entropy: {} kinds of generated values rejected",
        cases.len()
    );
}

#[test]
fn unused_random_values_are_accepted_and_every_output_is_equal() {
    let value = "{{ randAlphaNum 20 | len }}";
    let first = generate_with(value).unwrap();
    assert!(first.contains("generated"), "{first}");
    assert_eq!(generate_with(value).unwrap(), first);
}
