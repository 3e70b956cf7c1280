//! Tests for valid and invalid configuration files.

use super::*;

/// Compares the images as `version=istiod,proxy,cni,ztunnel`, or the error and its position.
fn check(text: &str, expected: &str) {
    let shown = match parse(text) {
        Ok(images) => images
            .into_iter()
            .map(|(version, it)| format!("{version}={},{},{},{}", it.istiod, it.proxy, it.cni, it.ztunnel))
            .collect::<Vec<_>>()
            .join(" "),
        Err(error) => {
            let at = position(text, error.offset);
            format!("{}:{} {}", at.line, at.column, error.problem)
        }
    };
    assert_eq!(shown, expected, "{text:?}");
}

fn all_images(version: &str) -> String {
    let line = |part: &str| format!("images.{version}.{part}={part}-test\n");
    ["istiod", "proxy", "cni", "ztunnel"].map(line).concat()
}

const TESTS: &str = "istiod-test,proxy-test,cni-test,ztunnel-test";

#[test]
fn upstream_cases() {
    check("", "");
    check(
        &format!("\n{}", all_images("v1_20_0")),
        &format!("v1.20.0={TESTS}"),
    );
    let several = ["v1_20_0", "v1_20_1", "latest"].map(all_images).concat();
    check(
        &several,
        &format!("latest={TESTS} v1.20.0={TESTS} v1.20.1={TESTS}"),
    );
    let without_proxy = all_images("v1_20_0").replace("proxy=", "other=");
    check(&without_proxy, "1:1 missing required key images.v1_20_0.proxy");
}

#[test]
fn annotations_written_by_the_downward_api() {
    let text = r#"images.v1_29_1.cni="r/cni@sha256:a"
images.v1_29_1.istiod="r/istiod@sha256:b"
images.v1_29_1.proxy="r/proxy@sha256:c"
images.v1_29_1.ztunnel="r/ztunnel@sha256:d"
kubectl.kubernetes.io/last-applied-configuration="{\"apiVersion\":\"v1\",\"x\":\"${HOME}\"}\n"
kubernetes.io/config.source="api""#;
    check(
        text,
        "v1.29.1=r/istiod@sha256:b,r/proxy@sha256:c,r/cni@sha256:a,r/ztunnel@sha256:d",
    );
}

#[test]
fn the_syntax_is_that_of_properties() {
    let text = "# a comment\n  ! another\r\n\
        images.v1.istiod : a\nimages.v1.proxy\tb\n  images.v1.cni=c\\\n   d\nimages.v1.ztunnel = \\u0065\\=\\q\n\
        images.v1.istiod=again\nimages.v1.unknown=x\nlonely";
    check(text, "v1=again,b,cd,e=q");
    check("other = \\", "1:9 premature EOF");
    check("a=b\n\nother = \\u12x4", "3:9 invalid unicode literal");
    check("other = \\u+123", "1:9 invalid unicode literal");
    check("a=b\n = c\n", "2:2 a value without a key");
    check("images.v1=x", "1:1 missing required key images.v1.istiod");
    check(
        "a=b\nimages.v1.istiod=${OTHER}",
        "2:1 images.v1.istiod refers to another value, which is not supported",
    );
}

#[test]
fn a_missing_file_is_an_error_only_if_it_is_required() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("config.properties");
    assert_eq!(read(&path, false).unwrap(), BTreeMap::new());
    let error = read(&path, true).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("unable to read config file at {}", path.display())
    );

    std::fs::write(&path, all_images("v1_29_1")).unwrap();
    assert_eq!(read(&path, false).unwrap().len(), 1);
    std::fs::write(&path, "a=b\n=\\\n").unwrap();
    let ConfigError::Line {
        problem, position, ..
    } = read(&path, false).unwrap_err()
    else {
        panic!("a line")
    };
    let expected = Position {
        line: 2,
        column: 1,
        source: "=\\".into(),
    };
    assert_eq!((problem.as_str(), position), ("a value without a key", expected));

    std::fs::write(&path, vec![b'x'; 2 << 20]).unwrap();
    assert!(
        matches!(read(&path, true), Err(ConfigError::Read { .. })),
        "too large"
    );
}
