//! Tests the validation of kubeconfigs with accepted and hostile examples and their stored errors.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a panic is how a test fails, and files to compare with"
)]

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use mainstay_cluster::remote::{AddressPolicy, Kubeconfig};

const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/kubeconfigs/kubeconfigs.txt");

/// Text that every secret in the fixtures contains.
const CANARY: &str = "CANARY";

fn pem(label: &str) -> String {
    let body = STANDARD.encode("CANARY in a block");
    STANDARD.encode(format!(
        "-----BEGIN {label}-----\n{body}\n-----END {label}-----\n"
    ))
}

fn replace_placeholders(text: &str) -> Vec<u8> {
    if text.contains("@INVALID@") {
        return b"apiVersion: v1\n\xff\xfeCANARY\n".to_vec();
    }
    text.replace("@CA@", &pem("CERTIFICATE"))
        .replace("@CERT@", &pem("CERTIFICATE"))
        .replace("@KEY@", &pem("PRIVATE KEY"))
        .into_bytes()
}

struct Case<'a> {
    is_accepted: bool,
    title: &'a str,
    expected: &'a str,
    text: &'a str,
}

fn cases(file: &str) -> Vec<Case<'_>> {
    let blocks = file.split("\n--- ").skip(1);
    let case = |block| {
        let (head, text) = str::split_once(block, '\n').unwrap();
        let (word, head) = head.split_once(' ').unwrap();
        let (first, second) = head.split_once(": ").unwrap_or((head.trim_end_matches(':'), ""));
        let is_accepted = word == "accepted";
        let (title, expected) = if is_accepted {
            (second, first)
        } else {
            (first, second)
        };
        Case {
            is_accepted,
            title,
            expected,
            text,
        }
    };
    blocks.map(case).collect()
}

#[test]
fn kubeconfigs_are_accepted_or_rejected_with_the_stored_error() {
    let file = std::fs::read_to_string(PATH).unwrap();
    let (mut rejected, mut blessed) = (0, file.split("\n--- ").next().unwrap().to_owned());
    for case in cases(&file) {
        let outcome = Kubeconfig::parse(&replace_placeholders(case.text), AddressPolicy::default());
        let found = match &outcome {
            Ok(kubeconfig) => kubeconfig.server.clone(),
            Err(error) => error.to_string(),
        };
        rejected += usize::from(outcome.is_err());
        let shown = format!("{found} {outcome:?}");
        assert!(!shown.contains(CANARY), "{}: a secret in {shown}", case.title);
        assert_eq!(outcome.is_ok(), case.is_accepted, "{}: {shown}", case.title);
        let head = if case.is_accepted {
            format!("accepted {found}: {}", case.title)
        } else {
            format!("rejected {}: {found}", case.title)
        };
        blessed.extend(["\n--- ", &head, "\n", case.text]);
        if std::env::var_os("BLESS").is_none() {
            assert_eq!(found, case.expected, "{}", case.title);
        }
    }
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(PATH, blessed).unwrap();
    }
    assert!(rejected >= 40, "{rejected}");
    println!("kubeconfigs rejected: {rejected}");
}

#[test]
fn local_addresses_are_accepted_on_request() {
    let file = std::fs::read_to_string(PATH).unwrap();
    let policy = AddressPolicy { allow_local: true };
    let mut accepted = 0;
    for case in cases(&file)
        .iter()
        .filter(|case| case.expected.contains("--allow-local-clusters"))
    {
        let outcome = Kubeconfig::parse(&replace_placeholders(case.text), policy);
        assert!(outcome.is_ok(), "{}: {outcome:?}", case.title);
        accepted += 1;
    }
    assert!(accepted > 10, "{accepted}");
}

#[test]
fn a_long_text_is_rejected() {
    let error = Kubeconfig::parse(&vec![b'#'; 300_000], AddressPolicy::default()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the kubeconfig has 300000 bytes; at most 262144 are read"
    );
}
