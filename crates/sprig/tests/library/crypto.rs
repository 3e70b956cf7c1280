//! Compares hashes with Go's. Checks keys and certificates with openssl, and compares the fields of
//! certificates with Go's.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::process::{Command, Stdio};

use mainstay_template::{UintKind, Value};
use mainstay_testkit::Oracle;

use crate::support::{
    Case, Print, Random, SeededHost, call, call_limited, call_with, cases, compare_with_go, format_value,
    request,
};

fn text(name: &str, args: &[Value]) -> String {
    String::from_utf8(format_value(&call(name, args).unwrap())).unwrap()
}

fn fails(name: &str, args: &[Value], expected: &str) {
    assert_eq!(
        call(name, args).err().as_deref(),
        Some(expected),
        "{name} {args:?}"
    );
}

fn field(value: &Value, name: &str) -> String {
    let Value::Object(object) = value else {
        panic!("not an object: {value:?}")
    };
    String::from_utf8(format_value(&object.field(name).unwrap())).unwrap()
}

fn list(items: &[&str]) -> Value {
    Value::list(items.iter().map(|item| Value::from(*item)).collect())
}

#[test]
fn random_texts_hash_as_in_go() {
    let mut random = Random(11);
    let cases: Vec<_> = (0..cases() / 4)
        .map(|_| {
            let bytes: Vec<u8> = (0..random.below(300)).map(|_| random.next() as u8).collect();
            let name = random.pick(&["sha1sum", "sha256sum", "sha512sum", "adler32sum"]);
            Case(name, vec![Value::string(bytes)])
        })
        .collect();
    compare_with_go("hashes", Print::Plain, &cases);
}

#[test]
fn long_texts_hash_as_in_go() {
    let long = Value::string(vec![0xff_u8; 100_000]);
    compare_with_go(
        "hashes of long texts",
        Print::Plain,
        &[
            Case("adler32sum", vec![long.clone()]),
            Case("sha1sum", vec![long]),
        ],
    );
}

#[test]
fn derived_passwords_equal_those_of_go() {
    let mut oracle = Oracle::start().unwrap();
    for kind in ["maximum", "long", "medium", "short", "basic", "pin", "none"] {
        let template = format!("{{{{ derivePassword 7 {kind:?} \"secret\" \"user\" \"example.com\" }}}}");
        let theirs = String::from_utf8(oracle.query(&request(&template)).unwrap().out).unwrap();
        let counter = Value::Uint(7, UintKind::Uint32);
        let ours = text(
            "derivePassword",
            &[
                counter,
                kind.into(),
                "secret".into(),
                "user".into(),
                "example.com".into(),
            ],
        );
        assert_eq!(ours, theirs, "{kind}");
    }
}

#[test]
fn ciphertexts_are_interchangeable_with_go() {
    let mut oracle = Oracle::start().unwrap();
    for plain in ["x", "sixteen bytes ok", "a longer text of more than one block"] {
        let crypt = text("encryptAES", &["secret".into(), plain.into()]);
        let template = format!("{{{{ decryptAES \"secret\" {crypt:?} }}}}");
        assert_eq!(oracle.query(&request(&template)).unwrap().out, plain.as_bytes());
        let template = format!("{{{{ encryptAES \"secret\" {plain:?} }}}}");
        let crypt = String::from_utf8(oracle.query(&request(&template)).unwrap().out).unwrap();
        assert_eq!(text("decryptAES", &["secret".into(), crypt.into()]), plain);
    }
    assert_eq!(text("encryptAES", &["secret".into(), "".into()]), "");
}

#[test]
fn broken_ciphertexts_fail_as_in_go() {
    let mut random = Random(12);
    let cases: Vec<_> = (0..cases() / 4)
        .map(|_| {
            let mut bytes: Vec<u8> = (0..random.below(70))
                .map(|_| b'A' + random.below(26) as u8)
                .collect();
            if random.chance(70) {
                bytes.truncate(bytes.len() / 4 * 4);
            }
            if random.chance(30) {
                bytes.extend_from_slice(random.pick(&["=", "==", "!", "\n"]).as_bytes());
            }
            Case("decryptAES", vec!["key".into(), Value::string(bytes)])
        })
        .collect();
    compare_with_go("broken ciphertexts", Print::Plain, &cases);
}

#[test]
fn bcrypt_hashes_have_the_known_form() {
    let hash = text("bcrypt", &["secret".into()]);
    assert_eq!((hash.len(), hash.get(..7)), (60, Some("$2a$10$")));
    assert_eq!(
        text("htpasswd", &["user".into(), "secret".into()]),
        format!("user:{hash}")
    );
    assert_eq!(
        text("htpasswd", &["a:b".into(), "c".into()]),
        "invalid username: a:b"
    );
    let long = "failed to encrypt string with bcrypt: bcrypt: password length exceeds 72 bytes";
    assert_eq!(text("bcrypt", &["x".repeat(73).into()]), long);
}

#[test]
fn seed_determines_the_hash() {
    let with = |seed| format_value(&call_with("bcrypt", &["x".into()], &mut SeededHost::new(seed)).unwrap());
    assert_eq!(with(1), with(1));
    assert_ne!(with(1), with(2));
}

/// Passes `input` to openssl and returns its output. Panics if openssl is missing or fails.
fn openssl(args: &[&str], input: &str) -> String {
    let mut child = Command::new("openssl")
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("cannot run openssl ({error}): install openssl"));
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "openssl {args:?}: {errors}\n{input}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn openssl_accepts_every_kind_of_key() {
    let rsa = field(&call("genCA", &["ca".into(), Value::int(1)]).unwrap(), "Key");
    assert!(rsa.starts_with("-----BEGIN RSA PRIVATE KEY-----\n"));
    assert_eq!(openssl(&["rsa", "-check", "-noout"], &rsa), "RSA key ok\n");
    let ec = text("genPrivateKey", &["ecdsa".into()]);
    assert!(ec.starts_with("-----BEGIN EC PRIVATE KEY-----\n"));
    assert!(openssl(&["ec", "-text", "-noout"], &ec).contains("prime256v1"));
    let ed = text("genPrivateKey", &["ed25519".into()]);
    assert!(ed.starts_with("-----BEGIN PRIVATE KEY-----\n"));
    assert!(openssl(&["pkey", "-text", "-noout"], &ed).starts_with("ED25519 Private-Key"));
    assert_eq!(text("genPrivateKey", &["x25519".into()]), "Unknown type x25519");
}

/// Uses seeds for which the search for primes is short.
#[test]
fn openssl_accepts_the_large_keys() {
    let key = |kind: &str, seed| {
        let made = call_with("genPrivateKey", &[kind.into()], &mut SeededHost::new(seed)).unwrap();
        String::from_utf8(format_value(&made)).unwrap()
    };
    let dsa = key("dsa", 4);
    assert!(dsa.starts_with("-----BEGIN DSA PRIVATE KEY-----\n"));
    assert!(
        openssl(&["pkey", "-check", "-noout", "-text"], &dsa)
            .starts_with("Key is valid\nPrivate-Key: (2048 bit)")
    );
    let rsa = key("rsa", 5);
    assert!(
        openssl(&["rsa", "-check", "-noout", "-text"], &rsa).contains("Private-Key: (4096 bit, 2 primes)")
    );
    fails(
        "genCAWithKey",
        &["x".into(), Value::int(1), dsa.into()],
        "error creating certificate: x509: certificate private key does not implement crypto.Signer",
    );
}

/// Returns the fields of a certificate that are the same for every key and time.
fn shape(cert: &str) -> String {
    let text = openssl(
        &[
            "x509",
            "-noout",
            "-text",
            "-certopt",
            "no_sigdump,no_serial,no_validity,no_pubkey",
        ],
        cert,
    );
    let ids = ["Subject Key Identifier", "Authority Key Identifier"];
    let mut hidden = false;
    let mut out = String::new();
    for line in text.lines() {
        out += if std::mem::replace(&mut hidden, ids.iter().any(|id| line.contains(id))) {
            "ID"
        } else {
            line
        };
        out.push('\n');
    }
    out
}

const EC_KEY: &str = "-----BEGIN EC PRIVATE KEY-----
MHcCAQEEIIrYSSNQFaA2Hwf1duRSxKtLYX5CB04fSeQ6tF1aY/PuoAoGCCqGSM49
AwEHoUQDQgAEPR3tU2Fta9ktY+6P9G0cWO+0kETA6SFs38GecTyudlHz6xvCdz8q
EKTcWGekdmdDPsHloRNtsiCa697B2O9IFA==
-----END EC PRIVATE KEY-----
";

#[test]
fn certificates_have_the_same_fields_as_gos() {
    let mut oracle = Oracle::start().unwrap();
    let mut ask = |template: &str| {
        let data = serde_json::to_vec(&BTreeMap::from([("key", EC_KEY)])).unwrap();
        let mut request = request(template);
        request.json = data;
        let response = oracle.query(&request).unwrap();
        assert_eq!(response.err, "", "{template}");
        String::from_utf8(response.out).unwrap()
    };
    let (key, days) = (Value::from(EC_KEY), Value::int(365));
    let (ips, names) = (["10.0.0.1", "::1", "::ffff:1.2.3.4"], ["example.com", "*.svc"]);
    let lists = "(list \"10.0.0.1\" \"::1\" \"::ffff:1.2.3.4\") (list \"example.com\" \"*.svc\")";
    for name in ["my-ca", "My CA, Inc. é", "under_score", ""] {
        let ca = call("genCAWithKey", &[name.into(), days.clone(), key.clone()]).unwrap();
        assert_eq!(
            shape(&field(&ca, "Cert")),
            shape(&ask(&format!("{{{{ (genCAWithKey {name:?} 365 .key).Cert }}}}")))
        );
        let own = [name.into(), list(&ips), list(&names), days.clone(), key.clone()];
        let own = call("genSelfSignedCertWithKey", &own).unwrap();
        let theirs = ask(&format!(
            "{{{{ (genSelfSignedCertWithKey {name:?} {lists} 365 .key).Cert }}}}"
        ));
        assert_eq!(shape(&field(&own, "Cert")), shape(&theirs));
        let signed = [
            "svc".into(),
            list(&[]),
            list(&names),
            days.clone(),
            ca,
            key.clone(),
        ];
        let signed = call("genSignedCertWithKey", &signed).unwrap();
        let theirs = ask(&format!(
            "{{{{ (genSignedCertWithKey \"svc\" list (list \"example.com\" \"*.svc\") 365 (genCAWithKey {name:?} 365 .key) .key).Cert }}}}"
        ));
        assert_eq!(shape(&field(&signed, "Cert")), shape(&theirs));
        assert_eq!(field(&signed, "Key"), EC_KEY);
    }
}

#[test]
fn openssl_verifies_a_chain() {
    let directory = std::env::temp_dir().join(format!("mainstay-sprig-chain-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let file = directory.join("ca.pem");
    let at = "1700000100";
    for kind in ["rsa", "ecdsa", "ed25519"] {
        let host = &mut SeededHost::new(5);
        let ca = if kind == "rsa" {
            call_with("genCA", &["root".into(), Value::int(10)], host).unwrap()
        } else {
            let key = call_with("genPrivateKey", &[kind.into()], host).unwrap();
            call_with("genCAWithKey", &["root".into(), Value::int(10), key], host).unwrap()
        };
        let key = call_with("genPrivateKey", &["ecdsa".into()], host).unwrap();
        let args = [
            "leaf".into(),
            list(&["10.0.0.1"]),
            list(&["leaf.example.com"]),
            Value::int(5),
            ca.clone(),
            key,
        ];
        let leaf = call_with("genSignedCertWithKey", &args, host).unwrap();
        std::fs::write(&file, field(&ca, "Cert")).unwrap();
        let verify = [
            "verify",
            "-x509_strict",
            "-attime",
            at,
            "-verify_hostname",
            "leaf.example.com",
            "-CAfile",
        ];
        let output = openssl(
            &[&verify[..], &[file.to_str().unwrap()]].concat(),
            &field(&leaf, "Cert"),
        );
        assert_eq!(output, "stdin: OK\n", "{kind}");
        let again = call_with("genSignedCertWithKey", &args, &mut SeededHost::new(9)).unwrap();
        assert_ne!(
            field(&again, "Cert"),
            field(&leaf, "Cert"),
            "another serial number"
        );
    }
    std::fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn go_accepts_our_key_pair() {
    let ca = call("genCA", &["ca".into(), Value::int(10)]).unwrap();
    let (cert, key) = (field(&ca, "Cert"), field(&ca, "Key"));
    let template = "{{ $ca := buildCustomCert (b64enc .cert) (b64enc .key) }}{{ (genSignedCert \"leaf\" nil nil 1 $ca).Cert | trunc 27 }}";
    let mut request = request(template);
    request.json = serde_json::to_vec(&BTreeMap::from([("cert", &cert), ("key", &key)])).unwrap();
    let response = Oracle::start().unwrap().query(&request).unwrap();
    assert_eq!(
        (response.err.as_str(), response.out.as_slice()),
        ("", &b"-----BEGIN CERTIFICATE-----"[..])
    );
    let encode = |text: &str| text_value("b64enc", text);
    let built = call("buildCustomCert", &[encode(&cert), encode(&key)]).unwrap();
    assert_eq!((field(&built, "Cert"), field(&built, "Key")), (cert, key));
}

fn text_value(name: &str, arg: &str) -> Value {
    call(name, &[arg.into()]).unwrap()
}

#[test]
fn seed_determines_keys_and_certificates() {
    let with = |seed| {
        field(
            &call_with("genCA", &["ca".into(), Value::int(1)], &mut SeededHost::new(seed)).unwrap(),
            "Cert",
        )
    };
    assert_eq!(with(1), with(1));
    assert_ne!(with(1), with(2));
}

#[test]
fn errors_equal_those_of_go() {
    let key = || Value::from(EC_KEY);
    let days = || Value::int(1);
    fails(
        "genCAWithKey",
        &["x".into(), days(), "junk".into()],
        "parsing private key: no PEM data in input",
    );
    let other = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    fails(
        "genCAWithKey",
        &["x".into(), days(), other.into()],
        "parsing private key: no private key data in PEM block of type CERTIFICATE",
    );
    let odd = "-----BEGIN FOO PRIVATE KEY-----\nAAAA\n-----END FOO PRIVATE KEY-----\n";
    fails(
        "genCAWithKey",
        &["x".into(), days(), odd.into()],
        "parsing private key: invalid private key type FOO PRIVATE KEY",
    );
    let numbers = Value::list(vec![Value::int(1)]);
    let own = |ips: Value, names: Value| ["x".into(), ips, names, days(), key()];
    fails(
        "genSelfSignedCertWithKey",
        &own(numbers.clone(), Value::Nil),
        "error parsing ip: 1 is not a string",
    );
    fails(
        "genSelfSignedCertWithKey",
        &own(list(&["1.2.3"]), Value::Nil),
        "error parsing ip: 1.2.3",
    );
    fails(
        "genSelfSignedCertWithKey",
        &own(Value::Nil, numbers),
        "error processing alternate dns name: 1 is not a string",
    );
    fails(
        "genSelfSignedCertWithKey",
        &own(Value::Nil, list(&["é"])),
        "error creating certificate: x509: \"é\" cannot be encoded as an IA5String",
    );
    fails(
        "buildCustomCert",
        &["!".into(), "".into()],
        "unable to decode base64 certificate",
    );
    fails(
        "buildCustomCert",
        &["".into(), "!".into()],
        "unable to decode base64 private key",
    );
    fails(
        "buildCustomCert",
        &["".into(), "".into()],
        "unable to decode certificate",
    );
    let ca = call("genCAWithKey", &["a".into(), days(), key()]).unwrap();
    let cert = call("b64enc", &[field(&ca, "Cert").into()]).unwrap();
    let stranger = call("b64enc", &[text("genPrivateKey", &["ed25519".into()]).into()]).unwrap();
    let mixed = call("buildCustomCert", &[cert, stranger]).unwrap();
    fails(
        "genSignedCertWithKey",
        &["x".into(), Value::Nil, Value::Nil, days(), mixed, key()],
        "error creating certificate: x509: provided PrivateKey doesn't match parent's PublicKey",
    );
}

#[test]
fn broken_keys_and_certificates_never_panic() {
    let mut random = Random(13);
    let ca = call("genCAWithKey", &["a".into(), Value::int(1), EC_KEY.into()]).unwrap();
    let rsa = field(&call("genCA", &["a".into(), Value::int(1)]).unwrap(), "Key");
    let texts = [
        field(&ca, "Cert"),
        EC_KEY.to_owned(),
        rsa,
        text("genPrivateKey", &["ed25519".into()]),
    ];
    for _ in 0..cases() / 2 {
        let mut broken = texts[random.below(4)].clone().into_bytes();
        for _ in 0..=random.below(4) {
            let at = 30 + random.below(broken.len() - 60);
            broken[at] = b'A' + random.below(26) as u8;
        }
        let whole = |name: &str| call(name, &[Value::string(broken.clone())]).unwrap();
        let key = call("b64enc", &[EC_KEY.into()]).unwrap();
        let _ = call("buildCustomCert", &[whole("b64enc"), key]);
        let _ = call(
            "genCAWithKey",
            &["x".into(), Value::int(1), Value::string(broken.clone())],
        );
    }
}

#[test]
fn slow_functions_consume_fuel_first() {
    let counter = Value::Uint(1, UintKind::Uint32);
    let slow: [(&str, Vec<Value>); 7] = [
        ("genCA", vec!["x".into(), Value::int(1)]),
        (
            "genSelfSignedCert",
            vec!["x".into(), Value::Nil, Value::Nil, Value::int(1)],
        ),
        ("genCAWithKey", vec!["x".into(), Value::int(1), EC_KEY.into()]),
        ("genPrivateKey", vec!["rsa".into()]),
        ("genPrivateKey", vec!["dsa".into()]),
        ("bcrypt", vec!["x".into()]),
        (
            "derivePassword",
            vec![counter, "pin".into(), "x".into(), "x".into(), "x".into()],
        ),
    ];
    for (name, args) in slow {
        let output = call_limited(name, &args, 50_000).err();
        assert_eq!(
            output.as_deref(),
            Some("the template did not finish within its step limit"),
            "{name}"
        );
    }
}
