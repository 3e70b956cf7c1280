//! Compares acceptance, value and error text of the parsers with Helm's functions.

use mainstay_testkit::{CaseCounts, Oracle, OracleRequest, Random, case_count};
use mainstay_yaml::{
    Budget, Error, Map, Numbers, Value, parse, parse_json_list, parse_json_map_partial, parse_list,
    parse_map, to_json,
};

use crate::generate;

fn compare(name: &str, texts: &[Vec<u8>], op: &'static str, read: impl Fn(&[u8]) -> (String, String)) {
    let mut oracle = Oracle::start().unwrap();
    let mut counts = CaseCounts::default();
    for batch in texts.chunks(1000) {
        let requests: Vec<_> = batch.iter().map(|text| request(op, text)).collect();
        for (text, response) in batch.iter().zip(oracle.query_all(&requests).unwrap()) {
            let ours = read(text);
            let theirs = (String::from_utf8_lossy(&response.out).into_owned(), response.err);
            counts.count(ours == theirs, || {
                format!(
                    "{op} of {:?}\nours   {ours:?}\ntheirs {theirs:?}",
                    String::from_utf8_lossy(text)
                )
            });
        }
    }
    counts.assert_all_equal(&format!("{name} {op}"));
}

fn request(op: &'static str, text: &[u8]) -> OracleRequest {
    OracleRequest {
        op,
        text: text.to_vec(),
        ..OracleRequest::default()
    }
}

fn texts(seed: u64) -> Vec<Vec<u8>> {
    let mut random = Random::new(seed);
    (0..case_count(2000))
        .map(|_| generate::text(&mut random))
        .collect()
}

fn shown(result: Result<Value, Error>) -> (String, String) {
    match result {
        Ok(value) => (to_json(&value).unwrap(), String::new()),
        Err(error) => (String::new(), error.to_string()),
    }
}

/// Helm's functions return the error inside their result.
fn in_map(result: Result<Map, Error>) -> (String, String) {
    let map = result.unwrap_or_else(|error| Map::from([("Error".into(), error.to_string().into())]));
    (to_json(&Value::Map(map)).unwrap(), String::new())
}

fn in_list(result: Result<Vec<Value>, Error>) -> (String, String) {
    let list = result.unwrap_or_else(|error| vec![error.to_string().into()]);
    (to_json(&Value::List(list)).unwrap(), String::new())
}

#[test]
fn documents_are_parsed_as_in_go() {
    compare("yaml texts", &texts(11), "unmarshal", |text| {
        shown(parse(text, &Budget::default()))
    });
}

#[test]
fn yaml_maps_are_parsed_as_in_helm() {
    compare("yaml texts", &texts(12), "fromYaml", |text| {
        in_map(parse_map(text, &Budget::default()))
    });
}

#[test]
fn yaml_lists_are_parsed_as_in_helm() {
    compare("yaml texts", &texts(13), "fromYamlArray", |text| {
        in_list(parse_list(text, &Budget::default()))
    });
}

#[test]
fn json_maps_are_parsed_as_in_helm() {
    let read = |text: &[u8]| {
        let (mut map, error) = parse_json_map_partial(text, Numbers::Float, &Budget::default());
        map.extend(error.map(|error| ("Error".into(), error.to_string().into())));
        in_map(Ok(map))
    };
    compare("json texts", &json_texts(14), "fromJson", read);
}

#[test]
fn json_lists_are_parsed_as_in_helm() {
    let read = |text: &[u8]| in_list(parse_json_list(text, Numbers::Float, &Budget::default()));
    compare("json texts", &json_texts(15), "fromJsonArray", read);
}

fn json_texts(seed: u64) -> Vec<Vec<u8>> {
    let mut random = Random::new(seed);
    (0..case_count(2000))
        .map(|_| generate::json_text(&mut random))
        .collect()
}
