//! Tests of findings about annotations. Each test has a workload and its expected findings, as
//! `LINE:COLUMN+LEN SEVERITY CODE: MESSAGE [HELP]`.

use mainstay_yaml::{Budget, parse_spanned};

use super::*;
use crate::{LATER, Profile, RFC};

/// Returns a Deployment with annotations of the object and the template, and the rest of the pod spec.
fn deployment(object: &str, template: &str, spec: &str) -> String {
    let indented = |text: &str, by: usize| {
        let lines = text.lines().map(|line| format!("{}{line}\n", " ".repeat(by)));
        lines.collect::<String>()
    };
    format!(
        "kind: Deployment\nmetadata:\n  annotations:\n    a: b\n{}spec:\n  template:\n    metadata:\n      annotations:\n        a: b\n{}    spec:\n{}      runtimeClassName: contrast-cc\n",
        indented(object, 4),
        indented(template, 8),
        indented(spec, 6),
    )
}

fn report(yaml: &str, options: &Options) -> Vec<String> {
    let documents = parse_spanned(yaml, &Budget::default()).unwrap();
    let document = &documents[0];
    let object = document.root().unwrap();
    let template = document.find(&["spec", "template"]).unwrap_or(object);
    let spec = document.get(template, "spec").unwrap();
    let workload = Workload {
        text: yaml.as_bytes(),
        document,
        object,
        template,
        spec,
    };
    let format = |it: Finding| {
        let help = it.help.map(|help| format!(" [{help}]")).unwrap_or_default();
        format!(
            "{}:{}+{} {:?} {}: {}{help}",
            it.place.line,
            it.place.column,
            it.place.len,
            it.severity,
            it.code.code(),
            it.message
        )
    };
    advise(&workload, options).into_iter().map(format).collect()
}

fn check(yaml: &str, profile: &'static Profile, expected: &[&str]) {
    let options = Options {
        profile,
        ..Options::default()
    };
    assert_eq!(report(yaml, &options), expected, "{yaml}");
}

const PREFIX: &str = "contrast.edgeless.systems/";

fn contrast_annotations(rest: &str) -> String {
    rest.lines().flat_map(|line| [PREFIX, line, "\n"]).collect()
}

#[test]
fn valid_annotations_produce_no_findings() {
    check(&deployment("", "", ""), &RFC, &[]);
    check(
        &deployment(
            "",
            &contrast_annotations("servicemesh-ingress: web#8080#false"),
            "",
        ),
        &RFC,
        &[],
    );
    check(
        &deployment(&contrast_annotations("servicemesh-ingress: ''"), "", ""),
        &RFC,
        &[],
    );
    check(
        &deployment(
            "",
            &contrast_annotations(
                "servicemesh-ingress:\nservicemesh-egress: ~\nservicemesh-admin-interface-port: ''",
            ),
            "",
        ),
        &RFC,
        &[],
    );
    check(
        &deployment("", &contrast_annotations("skip-initializer: \"true\""), ""),
        &LATER,
        &[],
    );
    check(
        &deployment("", &contrast_annotations("servicemesh-ingress: DISABLED"), ""),
        &LATER,
        &[],
    );
}

#[test]
fn errors_in_the_configuration_have_positions_within_the_scalar() {
    check(
        &deployment(
            "",
            &contrast_annotations("servicemesh-ingress: web#70000#false"),
            "",
        ),
        &RFC,
        &["10:60+5 Error mesh-port-range: port 70000 is not between 1 and 65535"],
    );
    check(
        &deployment(
            "",
            &contrast_annotations("servicemesh-egress: \"a#10.0.0.1:80#b:80\""),
            "",
        ),
        &RFC,
        &[
            "10:58+8 Error mesh-listen-loopback: 10.0.0.1 is not in 127.0.0.0/8 [choose an address in 127.0.0.0/8, such as 127.137.0.1: the application connects to it, and the proxy listens on it]",
        ],
    );
    check(
        &deployment(
            "",
            "contrast.edgeless.systems/servicemesh-ingress: |\n  web#8080#false",
            "",
        ),
        &RFC,
        &[
            "11:20+0 Error mesh-bool: \"false\\n\" is not a boolean: want true or false [begin the block with `|-` or `>-`: the text ends with a line break]",
        ],
    );
    check(
        &deployment(
            "",
            "contrast.edgeless.systems/servicemesh-ingress: >-\n  web#8080#false##\n  api#http#true",
            "",
        ),
        &RFC,
        &[
            "11:27+0 Warning mesh-odd: the name \" api\" has white space around it [remove the white space from the configuration]",
            "12:15+4 Error mesh-port-number: port \"http\" is not a number",
        ],
    );
    check(
        &deployment(
            "",
            &contrast_annotations("servicemesh-admin-interface-port: '0'"),
            "",
        ),
        &RFC,
        &["10:70+1 Error mesh-port-range: port 0 is not between 1 and 65535"],
    );
}

#[test]
fn each_profile_has_its_own_syntax() {
    check(
        &deployment("", &contrast_annotations("servicemesh-ingress: DISABLED"), ""),
        &RFC,
        &[
            "10:56+8 Error mesh-disabled: \"DISABLED\" is supported by later proxies only [use --profile later]",
        ],
    );
    check(
        &deployment("", &contrast_annotations("servicemesh-egress: ''"), ""),
        &LATER,
        &[
            "10:56+0 Error mesh-empty-egress: an egress configuration must not be empty [set the ingress annotation to \"\" instead for a mesh with default settings]",
        ],
    );
}

#[test]
fn skipped_containers_are_not_checked() {
    let options = Options {
        skip_service_mesh: true,
        ..Options::default()
    };
    assert!(
        report(
            &deployment("", &contrast_annotations("servicemesh-ingress: nonsense"), ""),
            &options
        )
        .is_empty()
    );
}

#[test]
fn the_pod_template_overrides_the_object_with_a_warning() {
    let both = deployment(
        &contrast_annotations("servicemesh-ingress: ''"),
        &contrast_annotations("servicemesh-ingress: web#80#false"),
        "",
    );
    check(
        &both,
        &RFC,
        &[
            "5:5+45 Warning annotation-level: contrast.edgeless.systems/servicemesh-ingress is also set in the pod template, which takes precedence [keep one of the two]",
        ],
    );
    check(&both, &LATER, &[]);
    let same = deployment(
        &contrast_annotations("servicemesh-ingress: ''"),
        &contrast_annotations("servicemesh-ingress: ''"),
        "",
    );
    check(&same, &RFC, &[]);
}

#[test]
fn annotations_at_ignored_levels_are_reported() {
    let message = "is not read here, only from the pod template's annotations [move it to metadata.annotations of the pod template]";
    check(
        &deployment(&contrast_annotations("skip-initializer: 'true'"), "", ""),
        &LATER,
        &[&format!(
            "5:5+42 Warning annotation-level: {PREFIX}skip-initializer {message}"
        )],
    );
    check(
        &deployment(&contrast_annotations("pod-role: coordinator"), "", ""),
        &RFC,
        &[&format!(
            "5:5+34 Warning annotation-level: {PREFIX}pod-role {message}"
        )],
    );
    let label =
        "kind: Pod\nmetadata:\n  labels:\n    contrast.edgeless.systems/skip-initializer: 'true'\nspec: {}\n";
    check(
        label,
        &RFC,
        &[&format!(
            "4:5+42 Warning annotation-level: {PREFIX}skip-initializer must be an annotation, not a label [move it to metadata.annotations of the pod template]"
        )],
    );
    let beside = "kind: Pod\nmetadata:\n  contrast.edgeless.systems/skip-initializer: 'true'\nspec: {}\n";
    check(
        beside,
        &RFC,
        &[&format!(
            "3:3+42 Warning annotation-level: {PREFIX}skip-initializer is next to `annotations`, not inside it [move it to metadata.annotations of the pod template]"
        )],
    );
}

#[test]
fn the_role_must_be_an_annotation_or_a_label_depending_on_the_profile() {
    let role = |place: &str| {
        format!(
            "kind: Pod\nmetadata:\n  {place}:\n    contrast.edgeless.systems/pod-role: coordinator\nspec: {{}}\n"
        )
    };
    check(&role("labels"), &LATER, &[]);
    check(&role("annotations"), &RFC, &[]);
    check(
        &role("annotations"),
        &LATER,
        &[
            "4:5+34 Warning annotation-level: contrast.edgeless.systems/pod-role must be a label, not an annotation [move it to metadata.labels of the pod template]",
        ],
    );
    check(
        &role("labels"),
        &RFC,
        &[
            "4:5+34 Warning annotation-level: contrast.edgeless.systems/pod-role must be an annotation, not a label [move it to metadata.annotations of the pod template]",
        ],
    );
}

#[test]
fn misspelled_keys_suggest_the_nearest_name() {
    check(
        &deployment(
            "",
            "contrast.edgeless.systems/service-mesh-ingress: ''\ncontrast.edgless.systems/skip-initializer: 'true'\ncontrast.edgeless.systems/what: ''",
            "",
        ),
        &RFC,
        &[
            "10:9+46 Warning annotation-name: contrast.edgeless.systems/service-mesh-ingress looks misspelled [did you mean contrast.edgeless.systems/servicemesh-ingress?]",
            "11:9+41 Warning annotation-name: contrast.edgless.systems/skip-initializer looks misspelled [did you mean contrast.edgeless.systems/skip-initializer?]",
            "12:9+30 Warning annotation-name: unknown annotation contrast.edgeless.systems/what",
        ],
    );
}

#[test]
fn values_must_be_strings() {
    check(
        &deployment(
            "",
            &contrast_annotations(
                "skip-initializer: true\nservicemesh-admin-interface-port: 9901\nservicemesh-ingress: [a]",
            ),
            "",
        ),
        &RFC,
        &[
            "10:53+4 Warning annotation-type: the value of contrast.edgeless.systems/skip-initializer is a boolean, not a string [quote it: \"true\"]",
            "11:69+4 Warning annotation-type: the value of contrast.edgeless.systems/servicemesh-admin-interface-port is a number, not a string [quote it: \"9901\"]",
            "12:9+45 Warning mesh-without-initializer: a service mesh without an initializer: its certificates are not fetched [remove contrast.edgeless.systems/skip-initializer, or add your own initializer]",
            "12:56+3 Error annotation-type: the value of contrast.edgeless.systems/servicemesh-ingress is a list, not a string",
        ],
    );
}

#[test]
fn skip_values_without_effect_are_reported() {
    check(
        &deployment("", &contrast_annotations("skip-initializer: 'yes'"), ""),
        &LATER,
        &["10:53+5 Warning annotation-type: \"yes\" skips nothing [only \"true\" skips the initializer]"],
    );
    check(
        &deployment("", &contrast_annotations("skip-initializer: 'yes'"), ""),
        &RFC,
        &[],
    );
}

#[test]
fn conflicting_ports_are_reported() {
    let spec = "containers:\n- ports:\n  - containerPort: 9901\n  - {containerPort: 8080}";
    check(
        &deployment(
            "",
            &contrast_annotations(
                "servicemesh-admin-interface-port: '9901'\nservicemesh-egress: a#127.0.0.1:8080#b:80",
            ),
            spec,
        ),
        &RFC,
        &[
            "10:70+4 Warning mesh-port-conflict: the admin port 9901 is also a containerPort",
            "11:57+14 Warning mesh-port-conflict: egress \"a\" listens on port 8080, which is also a containerPort",
        ],
    );
    check(
        &deployment(
            "",
            &contrast_annotations(
                "servicemesh-admin-interface-port: '9901'\nservicemesh-egress: a#127.0.0.1:9901#b:80",
            ),
            "",
        ),
        &RFC,
        &["11:57+14 Error mesh-port-conflict: egress \"a\" listens on the admin port 9901"],
    );
}

#[test]
fn settings_that_break_the_mesh_are_reported() {
    check(
        &deployment(
            "",
            &contrast_annotations("servicemesh-ingress: ''"),
            "hostNetwork: true",
        ),
        &RFC,
        &[
            "12:20+4 Warning mesh-host-network: hostNetwork with a service mesh: its rules would redirect all traffic of the node",
        ],
    );
    check(&deployment("", "", "hostNetwork: true"), &RFC, &[]);
}

#[test]
fn aliases_are_followed() {
    let yaml = "kind: Pod\nx: &i web#x#false\nmetadata:\n  annotations:\n    contrast.edgeless.systems/servicemesh-ingress: *i\nspec: {}\n";
    check(
        yaml,
        &RFC,
        &["2:11+1 Error mesh-port-number: port \"x\" is not a number"],
    );
}
