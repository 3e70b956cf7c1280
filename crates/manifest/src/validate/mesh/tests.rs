//! Tests the rules of the mesh configuration.

use mainstay_yaml::{Budget, parse};

use super::*;
use crate::diagnostic::Diagnostic;

const PASSING: &str = include_str!("../../../tests/validation/04-mesh-config-meaning.pass.yaml");
const FAILING: &str = include_str!("../../../tests/validation/04-mesh-config-meaning.fail.yaml");

/// Runs a rule on the mesh configurations of a fixture.
fn run(fixture: &str, field: &str, check: Check) -> Diagnostics {
    let operator = parse(fixture, &Budget::default()).unwrap();
    let mut found = Diagnostics::default();
    for keys in [&["spec", "meshConfig"][..], &["spec", "values", "meshConfig"]] {
        if let Some(config) = operator.at(keys) {
            let steps: Vec<&str> = field.split('.').collect();
            check_field(config, &Path::from_keys(keys), &steps, check, &mut found);
        }
    }
    found
}

#[test]
fn the_fixtures_contain_every_rule() {
    let mark: Check = |_, path, found| found.push(Diagnostic::error(path.clone(), "set"));
    for (field, check) in MESH_RULES {
        assert!(
            !run(FAILING, field, *check).list().is_empty(),
            "{field} does not fail"
        );
        assert_eq!(run(PASSING, field, *check), Diagnostics::default());
        assert!(!run(PASSING, field, mark).list().is_empty(), "{field} is not set");
    }
}

/// Checks a mesh configuration and compares the messages.
fn check(config: &str, expected: &[&str]) {
    let config = parse(config, &Budget::default()).unwrap();
    let mut found = Diagnostics::default();
    for (field, check) in MESH_RULES {
        let steps: Vec<&str> = field.split('.').collect();
        check_field(&config, &Path::default(), &steps, *check, &mut found);
    }
    let found: Vec<String> = found
        .list()
        .iter()
        .map(|one| format!("{}: {}", one.path, one.message))
        .collect();
    assert_eq!(found, expected);
}

#[test]
fn durations_have_limits() {
    check(
        "{connectTimeout: 0s, protocolDetectionTimeout: 1500us, defaultConfig: {drainDuration: 1500ms}}",
        &[
            "connectTimeout: expected whole milliseconds, from 1ms to 1h",
            "protocolDetectionTimeout: expected whole milliseconds",
            "defaultConfig.drainDuration: expected whole seconds, at least 1s",
        ],
    );
    check(
        "{connectTimeout: 61m, defaultConfig: {drainDuration: 0s}}",
        &[
            "connectTimeout: expected whole milliseconds, from 1ms to 1h",
            "defaultConfig.drainDuration: expected whole seconds, at least 1s",
        ],
    );
    check(
        "{connectTimeout: 1h, protocolDetectionTimeout: 0s, defaultConfig: {drainDuration: 45s}}",
        &[],
    );
}

#[test]
fn fields_in_snake_case_are_checked() {
    check(
        "{default_config: {proxy_admin_port: 0}, service_settings: [{hosts: ['a b']}]}",
        &[
            "service_settings[0].hosts[0]: is not a host name",
            "default_config.proxy_admin_port: is not a port: expected 1 to 65535",
        ],
    );
}

#[test]
fn client_tls_needs_a_certificate() {
    let check = |settings: &str, expected: &[&str]| {
        let path = "defaultConfig.tracing.tlsSettings";
        let expected: Vec<String> = expected.iter().map(|one| format!("{path}{one}")).collect();
        let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
        check(
            &format!("{{defaultConfig: {{tracing: {{tlsSettings: {settings}}}}}}}"),
            &expected,
        );
    };
    check("{mode: ISTIO_MUTUAL}", &[]);
    check("{mode: SIMPLE, caCertificates: /ca.pem}", &[]);
    check(
        "{mode: MUTUAL, clientCertificate: /c.pem, privateKey: /k.pem}",
        &[],
    );
    check(
        "{mode: MUTUAL}",
        &[
            ": has no clientCertificate, which the mode MUTUAL requires",
            ": has no privateKey, which the mode MUTUAL requires",
        ],
    );
    check("{mode: MUTUAL, credentialName: secret}", &[]);
    check(
        "{mode: SIMPLE, credentialName: secret, caCertificates: /ca.pem}",
        &[".caCertificates: cannot be combined with credentialName"],
    );
    check(
        "{mode: SIMPLE, insecureSkipVerify: true, credentialName: secret, subjectAltNames: [a]}",
        &[
            ".subjectAltNames: cannot be combined with insecureSkipVerify",
            ".credentialName: cannot be combined with insecureSkipVerify",
        ],
    );
    check(
        "{mode: MUTUAL, insecureSkipVerify: true, credentialName: secret, subjectAltNames: []}",
        &[],
    );
    check(
        "{credentialName: 'configmap://a'}",
        &[".credentialName: a ConfigMap is not possible, because the mesh configuration has no namespace"],
    );
}

#[test]
fn tracing_collectors_need_an_address() {
    check(
        "{defaultConfig: {tracing: {zipkin: {}, datadog: {address: '$(HOST_IP):8126'}}}}",
        &["defaultConfig.tracing.zipkin: has no address"],
    );
    check(
        "{defaultConfig: {tracing: {lightstep: {address: '$(HOST_IP):8126'}}}}",
        &[
            "defaultConfig.tracing.lightstep.address: is not an address with a port",
            "defaultConfig.tracing.lightstep: has no accessToken",
        ],
    );
}

#[test]
fn localities_do_not_overlap() {
    check(
        "{localityLbSetting: {failover: [{from: a, to: b}], distribute: [{from: a}]}}",
        &["localityLbSetting: distribute and failover exclude each other"],
    );
    check(
        "{localityLbSetting: {failover: [{from: a, to: a}, {from: a/b, to: 'c*'}], failoverPriority: [app, topology.kubernetes.io/zone]}}",
        &[
            "localityLbSetting.failoverPriority[1]: a locality label cannot be combined with failover",
            "localityLbSetting.failover[0]: from and to are the same region",
            "localityLbSetting.failover[1].from: is not a region",
            "localityLbSetting.failover[1].to: is not a region",
        ],
    );
    let check = |distribute: &str, expected: &[&str]| {
        check(
            &format!("{{localityLbSetting: {{distribute: {distribute}}}}}"),
            expected,
        );
    };
    check(
        "[{from: a/b/*, to: {a/b/*: 80, 'c': 20}}, {from: a/*, to: {'*': 100}}]",
        &[],
    );
    check(
        "[{from: a/*, to: {a: 0, b: 101}}, {from: a/b, to: {'a*b': 50, a//c: 50}}]",
        &[
            "localityLbSetting.distribute[0].to.a: is not a weight: expected 1 to 100",
            "localityLbSetting.distribute[0].to.b: is not a weight: expected 1 to 100",
            "localityLbSetting.distribute[0].to: the sum of the weights is 101, not 100",
            "localityLbSetting.distribute[1].from: an earlier locality contains this one",
            "localityLbSetting.distribute[1].to.a*b: * is only possible at the end",
            "localityLbSetting.distribute[1].to.a//c: is not a locality: a part is empty",
        ],
    );
    check(
        "[{from: '*', to: {a/b/c: 50, a/b/d: 50}}, {from: a, to: {a/b/c: 50, a: 50}}]",
        &[
            "localityLbSetting.distribute[1].from: an earlier locality contains this one",
            "localityLbSetting.distribute[1].to.a/b/c: an earlier locality contains this one",
        ],
    );
}

#[test]
fn curves_are_known_and_listed_once() {
    check(
        "{meshMTLS: {ecdhCurves: [P-256]}, tlsDefaults: {ecdhCurves: [P-256, P-256, P-255, '']}}",
        &[
            "meshMTLS.ecdhCurves: is not supported",
            "tlsDefaults.ecdhCurves[1]: is listed twice",
            "tlsDefaults.ecdhCurves[2]: is not a known curve",
        ],
    );
    check(
        "{meshMTLS: {ecdhCurves: []}, tlsDefaults: {ecdhCurves: [X25519MLKEM768]}}",
        &[],
    );
}

#[test]
fn a_private_key_provider_has_a_poll_delay() {
    let check = |provider: &str, expected: &[&str]| {
        check(
            &format!("{{defaultConfig: {{privateKeyProvider: {provider}}}}}"),
            expected,
        );
    };
    check("{qat: {pollDelay: 1ms}}", &[]);
    check(
        "{}",
        &["defaultConfig.privateKeyProvider: has neither cryptomb nor qat"],
    );
    check(
        "{cryptomb: {}}",
        &["defaultConfig.privateKeyProvider.cryptomb: has no pollDelay"],
    );
    check(
        "{qat: {pollDelay: 0s}}",
        &["defaultConfig.privateKeyProvider.qat.pollDelay: expected more than 0s"],
    );
}
