//! Tests of expressions and their results.

use serde_json::{Value, json};

use super::{Failure, KnownNames, PER_CALL_LIMIT, Type, Val, compile};
use crate::crd::schema::Node;

fn show(value: &Val<'_>) -> String {
    match value {
        Val::Text(text) => format!("{text:?}"),
        Val::Int(number) => number.to_string(),
        Val::Bool(flag) => flag.to_string(),
        Val::Double(number) => format!("{number:?}"),
        other => format!("{other:?}"),
    }
}

/// Checks the result of an expression. `self` is an object of dynamic type.
fn check(source: &str, expected: &str) {
    let object = json!({"a": 1, "b": "text", "list": [1, 2, 3], "map": {"x": 1, "y": 2}, "none": null});
    let found = match compile(source, &[("self", Type::Dyn)]) {
        Err(error) => error.to_string(),
        Ok((program, _)) => {
            let names = KnownNames(vec![("self", Val::from_json(&object, None))]);
            match program.evaluate(&names, &mut PER_CALL_LIMIT.clone()) {
                Ok(value) => show(&value),
                Err(failure) => format!("! {failure}"),
            }
        }
    };
    assert_eq!(found, expected, "{source}");
}

#[test]
fn expressions_return_values() {
    check("1 + 2 * 3", "7");
    check("self.a > 0 && self.b == 'text'", "true");
    check("self.list.all(x, x > 0)", "true");
    check("self.list.exists(x, x > 2)", "true");
    check("self.list.exists_one(x, x > 2)", "true");
    check("self.list.map(x, x * 2) == [2, 4, 6]", "true");
    check("self.list.filter(x, x > 1).size()", "2");
    check("self.map.all(k, self.map[k] > 0)", "true");
    check("self.list.all(i, v, v == i + 1)", "true");
    check("self.map.transformMap(k, v, v + 1)['x']", "2");
    check("has(self.a) && !has(self.q)", "true");
    check("self.?q.orValue('none')", "\"none\"");
    check("self.?a.optMap(x, x + 1).value()", "2");
    check("'x' in self.map && 2 in self.list", "true");
    check("self.b.startsWith('te') ? 'yes' : 'no'", "\"yes\"");
    check("self.b.matches('^t.*t$')", "true");
    check("'a,b'.split(',').size()", "2");
    check("'%s-%d'.format(['a', 1])", "\"a-1\"");
    check("quantity('1Gi').isGreaterThan(quantity('1Mi'))", "true");
    check("duration('1h') > duration('1m')", "true");
    check("timestamp('2024-01-01T00:00:00Z').getFullYear()", "2024");
    check("isIP('10.0.0.1')", "true");
    check("sets.contains([1, 2], [2])", "true");
    check("type(1) == int", "true");
    // Doubles are formatted like Go formats them with `%g`.
    check("string(1.5) + ' ' + string(2500000.0)", "\"1.5 2.5e+06\"");
    check("-5 / 2", "-2");
    check("int('12') + 1", "13");
    check("self.none == null", "true");
    check("dyn(1) == 1.0", "true");
    check("(has(self.q) ? self.q : {}).exists(t, has(t.x))", "false");
    check("url('https://a.example:8080/x?y=1').getPort()", "\"8080\"");
}

#[test]
fn invalid_expressions_fail() {
    check("self.q", "! no such key: q");
    check("self.list[5]", "! index out of bounds: 5");
    check("1 / 0", "! division by zero");
    check("1 % 0", "! modulus by zero");
    check("9223372036854775807 + 1", "! integer overflow");
    check("self.a > 'x'", "! no such overload");
    check("self.q > 1 || true", "true");
    check("int('x')", "! type conversion error from 'string' to 'int'");
    check(
        "foo == 1",
        "ERROR: <input>:1:1: undeclared reference to 'foo' (in container '')\n | foo == 1\n | ^",
    );
    check(
        "1 + 'a'",
        "ERROR: <input>:1:3: found no matching overload for '_+_' applied to '(int, string)'\n | 1 + 'a'\n | ..^",
    );
    check(
        "self.a ==",
        "ERROR: <input>:1:10: Syntax error: mismatched input '<EOF>' expecting {'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}\n | self.a ==\n | .........^",
    );
}

#[test]
fn oversized_sources_are_rejected() {
    for source in [
        "(".repeat(5000),
        "-".repeat(5000) + "x",
        "!".repeat(9999),
        "a".to_owned() + &".a".repeat(9999),
        "[".repeat(9999),
        "1".to_owned() + &"+1".repeat(9999),
        "x?".repeat(9999),
        "\"".into(),
        "{".repeat(999),
        "\\".into(),
    ] {
        assert!(
            compile(&source, &[]).is_err(),
            "{}",
            &source[..source.len().min(20)]
        );
    }
    let many = "true".to_owned() + &" && true".repeat(5000);
    assert!(compile(&many, &[]).is_ok());
}

#[test]
fn cost_is_bounded() {
    let list: Vec<Value> = (0..2000).map(Value::from).collect();
    let object = json!({ "list": list });
    let source = "self.list.all(a, self.list.all(b, self.list.all(c, a + b + c >= 0)))";
    let (program, _) = compile(source, &[("self", Type::Dyn)]).unwrap();
    let names = KnownNames(vec![("self", Val::from_json(&object, None))]);
    let outcome = program.evaluate(&names, &mut PER_CALL_LIMIT.clone());
    assert_eq!(outcome.unwrap_err(), Failure::Cost);
}

#[test]
fn schemas_determine_types() {
    let schema = json!({"type": "object", "properties": {
        "a": {"type": "integer"}, "when": {"type": "string", "format": "date-time"}, "my-name": {"type": "string"},
        "namespace": {"type": "string"}, "n": {"type": "number"}, "any": {"x-kubernetes-int-or-string": true}}});
    let node = Node::compile(&schema);
    let object =
        json!({"a": 1, "when": "2024-01-01T00:00:00Z", "my-name": "x", "namespace": "y", "n": 1, "any": "z"});
    let check = |source: &str, expected: &str| {
        let kind = Type::from_schema(&node, true).unwrap();
        let found = match compile(source, &[("self", kind)]) {
            Err(error) => error.to_string().lines().next().unwrap_or("").to_owned(),
            Ok((program, kind)) => {
                let names = KnownNames(vec![("self", Val::from_json(&object, Some(&node)))]);
                let value = program.evaluate(&names, &mut PER_CALL_LIMIT.clone());
                format!(
                    "{} {}",
                    kind.name(),
                    value.map_or_else(|failure| failure.to_string(), |value| show(&value))
                )
            }
        };
        assert_eq!(found, expected, "{source}");
    };
    check("self.a + 1", "int 2");
    check("self.when > timestamp('2020-01-01T00:00:00Z')", "bool true");
    check("self.my__dash__name", "string \"x\"");
    check("self.__namespace__", "string \"y\"");
    check("self.n", "double 1.0");
    check(
        "self.n == 1",
        "ERROR: <input>:1:8: found no matching overload for '_==_' applied to '(double, int)'",
    );
    check("self.b", "ERROR: <input>:1:5: undefined field 'b'");
    check("self.any == 'z'", "bool true");
    check(
        "self.a == null",
        "ERROR: <input>:1:8: found no matching overload for '_==_' applied to '(int, null)'",
    );
}
