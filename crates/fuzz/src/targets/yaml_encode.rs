//! Writes arbitrary text as a value, an item and a key. The output must parse to the same value.

use mainstay_yaml::{Budget, Map, Value, parse, to_yaml_v2, to_yaml_v3};

use super::utf8_prefix;

pub(super) fn check(input: &[u8]) {
    let text = utf8_prefix(input);
    let string = Value::String(text.to_owned());
    let list = Value::List(vec![string.clone(), Value::Null, string.clone()]);
    let map = Value::Map(Map::from([
        (text.to_owned(), list.clone()),
        ("k".into(), string.clone()),
    ]));
    for value in [string, list, map] {
        let written = to_yaml_v2(&value);
        // v3 writes blocks that start with a tab, which v2's rules reject.
        let _ = to_yaml_v3(&value);
        // go-yaml writes the key `<<` plain and parses it as a merge.
        if text == "<<" {
            continue;
        }
        // go-yaml folds U+0085 when it converts through JSON, and skips byte order marks inside the text.
        if text.contains(['\u{85}', '\u{feff}']) || text.len() > 100 {
            continue;
        }
        if let Ok(yaml) = written {
            let read = parse(&yaml, &Budget::default());
            assert_eq!(read.as_ref(), Ok(&value), "{yaml}");
        }
    }
}
