//! Runs arbitrary bytes as a template with all Sprig functions and small limits. Every run must have the same
//! result.

use mainstay_template::{Limits, Meter, NoHost, TemplateSet, Value, execute};
use mainstay_yaml::{Budget, Numbers, parse_json};

const LIMITS: Limits = Limits {
    fuel: 50_000,
    output: 1 << 20,
    string: 1 << 16,
    memory: 1 << 22,
    depth: 50,
};
const DATA: &str = r#"{"a": 1, "s": "text", "l": [1, "b", null], "m": {"k": {"d": true}}, "n": null}"#;

pub(super) fn check(text: &[u8]) {
    let mut set = TemplateSet::new();
    set.add_functions(mainstay_sprig::functions());
    if set.parse("t", text).is_err() {
        return;
    }
    let run = || execute(&set, "t", dot(), &mut Meter::new(LIMITS), &mut NoHost);
    match (run(), run()) {
        (Ok(one), Ok(two)) => assert_eq!(one, two),
        (Err(one), Err(two)) => assert_eq!(one.text, two.text),
        _ => panic!("two runs of the same input ended differently"),
    }
}

fn dot() -> Value {
    parse_json(DATA, Numbers::Float, &Budget::default())
        .map(Value::from)
        .unwrap_or_default()
}
