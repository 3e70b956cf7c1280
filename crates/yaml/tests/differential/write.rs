//! Compares the writers with Helm's functions.

use mainstay_testkit::{CaseCounts, Oracle, OracleRequest, Random, case_count};
use mainstay_yaml::{
    Map, Sink, Value, YamlWriter, to_json, to_json_pretty, to_json_raw, to_yaml_v2, to_yaml_v3,
};

use crate::generate;

type Writer = fn(&Value) -> Result<String, mainstay_yaml::Error>;

const WRITERS: &[(&str, Writer)] = &[
    ("toYaml", to_yaml_v2),
    ("toYamlPretty", to_yaml_v3),
    ("toJson", to_json),
    ("toPrettyJson", to_json_pretty),
    ("toRawJson", to_json_raw),
];

fn compare(name: &str, values: &[Value], writers: &[(&'static str, Writer)]) {
    let mut oracle = Oracle::start().unwrap();
    for (op, writer) in writers {
        let mut counts = CaseCounts::default();
        for batch in values.chunks(1000) {
            let requests: Vec<_> = batch.iter().map(|value| request(op, value)).collect();
            for (value, response) in batch.iter().zip(oracle.query_all(&requests).unwrap()) {
                // In a template, a failed `toYaml` prints nothing, and a trailing newline is removed.
                let ours = writer(value).unwrap_or_default();
                let ours = if op.contains("Yaml") {
                    ours.strip_suffix('\n').unwrap_or(&ours)
                } else {
                    &ours
                };
                let theirs = String::from_utf8_lossy(&response.out).into_owned();
                counts.count(ours == theirs && response.err.is_empty(), || {
                    let (left, right) = around_difference(ours, &theirs);
                    format!(
                        "{op} of {}\nours   {left:?}\ntheirs {right:?} {}",
                        to_json(value).unwrap_or_default(),
                        response.err
                    )
                });
            }
        }
        counts.assert_all_equal(&format!("{name} {op}"));
    }
}

/// Returns the parts of both texts around their first difference.
fn around_difference(a: &str, b: &str) -> (String, String) {
    let same = a.chars().zip(b.chars()).take_while(|(x, y)| x == y).count();
    let cut = |text: &str| text.chars().skip(same.saturating_sub(80)).take(240).collect();
    (cut(a), cut(b))
}

fn request(op: &'static str, value: &Value) -> OracleRequest {
    OracleRequest {
        op,
        json: to_json(value).unwrap_or_default().into_bytes(),
        ..OracleRequest::default()
    }
}

fn entry(key: String, value: Value) -> Value {
    Value::Map(Map::from([(key, value)]))
}

#[test]
fn string_values_are_written_as_in_helm() {
    let mut random = Random::new(1);
    let values: Vec<_> = (0..case_count(2000))
        .map(|_| entry("k".into(), generate::string(&mut random).into()))
        .collect();
    compare("yaml strings", &values, WRITERS);
}

#[test]
fn string_keys_and_items_are_written_as_in_helm() {
    let mut random = Random::new(2);
    let values: Vec<_> = (0..case_count(2000))
        .map(|_| match random.below(4) {
            0 => Value::List(vec![generate::string(&mut random).into()]),
            1 => generate::string(&mut random).into(),
            2 => entry(
                generate::string(&mut random),
                Value::List(vec![Value::Bool(true)]),
            ),
            _ => entry(
                generate::string(&mut random),
                generate::string(&mut random).into(),
            ),
        })
        .collect();
    compare("yaml keys", &values, WRITERS);
}

#[test]
fn numbers_are_written_as_in_helm() {
    let mut random = Random::new(3);
    let values: Vec<_> = (0..case_count(2000))
        .map(|_| generate::number(&mut random))
        .filter(|value| value.as_f64().is_some_and(f64::is_finite))
        .collect();
    compare("yaml numbers", &values, WRITERS);
}

#[test]
fn documents_are_written_as_in_helm() {
    let mut random = Random::new(4);
    let values: Vec<_> = (0..case_count(2000))
        .map(|_| generate::document(&mut random, 5))
        .collect();
    compare("yaml documents", &values, WRITERS);
}

/// A template creates the strings, because JSON cannot contain strings that are not UTF-8.
#[test]
fn invalid_utf8_is_written_as_in_helm() {
    let mut random = Random::new(5);
    let mut oracle = Oracle::start().unwrap();
    let mut counts = CaseCounts::default();
    for _ in 0..case_count(2000) / 4 {
        let mut bytes = generate::string(&mut random).into_bytes();
        let at = random.below(bytes.len() + 1);
        bytes.insert(at, 0x80 | random.next_u64() as u8);
        for (op, writer) in [("toYaml", YamlWriter::v2()), ("toYamlPretty", YamlWriter::v3(2))] {
            let mut writer = writer;
            writer.begin_map(1);
            writer.key(b"k");
            writer.begin_list(1);
            writer.string(&bytes);
            writer.end_list();
            writer.end_map();
            let ours = writer.finish().unwrap_or_default();
            let ours = ours.strip_suffix('\n').unwrap_or(&ours);
            let list: Vec<String> = bytes.iter().map(ToString::to_string).collect();
            let text = format!("{{{{ dict \"k\" (list (printf \"%s\" (b64dec .Values.v))) | {op} }}}}");
            let request = OracleRequest {
                op: "template",
                funcs: "helm",
                text: text.into_bytes(),
                json: format!("{{\"v\":\"{}\"}}", base64(&bytes)).into_bytes(),
                ..OracleRequest::default()
            };
            let response = oracle.query(&request).unwrap();
            counts.count(ours.as_bytes() == response.out, || {
                let theirs = String::from_utf8_lossy(&response.out);
                format!(
                    "{op} of {}\nours   {ours:?}\ntheirs {theirs:?} {}",
                    list.join(" "),
                    response.err
                )
            });
        }
    }
    counts.assert_all_equal("yaml bytes");
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let groups = bytes.chunks(3).map(|chunk| {
        let bits = (0..3).fold(0, |bits, at| {
            bits << 8 | u32::from(chunk.get(at).copied().unwrap_or(0))
        });
        let digit = |at: usize| char::from(DIGITS[(bits >> (18 - 6 * at) & 63) as usize]);
        (0..4)
            .map(|at| if at <= chunk.len() { digit(at) } else { '=' })
            .collect::<String>()
    });
    groups.collect()
}
