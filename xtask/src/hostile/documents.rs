//! Values, schemas and manifests that are small as text and large when they are used.
#![allow(
    clippy::format_collect,
    clippy::too_many_lines,
    reason = "a table of generated inputs"
)]

use super::Hostile;
use super::cases::{files, template, values_file};

/// Returns all cases.
pub(super) fn all() -> Vec<Hostile> {
    let mut cases = aliases();
    cases.extend(schemas());
    cases.extend(manifests());
    cases
}

/// Returns cases with aliases of a large anchor, in every kind of file.
fn aliases() -> Vec<Hostile> {
    let long = "x".repeat(1 << 20);
    let list = "x,".repeat(100_000);
    let map: String = (0..50_000).map(|number| format!("k{number}: 1, ")).collect();
    let shapes = [
        ("string", format!("a: &a {long}\nb: [{}]\n", "*a, ".repeat(4_000))),
        ("list", format!("a: &a [{list}]\nb: [{}]\n", "*a, ".repeat(2_000))),
        ("map", format!("a: &a {{{map}}}\nb: [{}]\n", "*a, ".repeat(2_000))),
        (
            "merged map",
            format!("a: &a {{{map}}}\nb: [{}]\n", "{<<: *a}, ".repeat(2_000)),
        ),
        (
            "key",
            format!("a: &a {long}\nb: {{{}}}\n", "*a : 1, ".repeat(4_000)),
        ),
    ];
    let mut cases = Vec::new();
    for (shape, text) in shapes {
        let bytes = text.into_bytes();
        cases.push(values_file(
            format!("aliases of a {shape} in values.yaml"),
            bytes.clone(),
            "values.yaml",
        ));
        let mut files = files(&[]);
        files.push(("more.yaml".into(), bytes.clone()));
        cases.push(Hostile::new(
            format!("aliases of a {shape} in -f"),
            files,
            &["@chart", "-f", "@more.yaml"],
            "more.yaml",
        ));
        cases.push(template(
            format!("aliases of a {shape} in a manifest"),
            bytes,
            "YAML",
        ));
    }
    cases.push(values_file(
        "values.yaml of 2,400,000 numbers",
        format!("a: [{}1]\n", "1,".repeat(2_400_000)),
        "values.yaml",
    ));
    cases.push(values_file(
        "values.yaml of 1,000,000 keys",
        (0..500_000)
            .map(|number| format!("{number:x}:\n"))
            .collect::<String>(),
        "values.yaml",
    ));
    cases
}

fn schema(name: &str, schema: String, values: String) -> Hostile {
    let schema = ("values.schema.json", schema.into_bytes());
    let values = ("values.yaml", values.into_bytes());
    Hostile::new(name, files(&[schema, values]), &["@chart"], "Error")
}

/// Returns cases with schemas whose validation is expensive, or whose messages are long.
fn schemas() -> Vec<Hostile> {
    let numbers = |from: usize, count: usize| {
        let numbers: Vec<String> = (from..from + count).map(|number| number.to_string()).collect();
        numbers.join(",")
    };
    let patterns = |count: usize| {
        let patterns: Vec<String> = (0..count)
            .map(|number| format!("{{\"pattern\":\"^z{number}$\"}}"))
            .collect();
        patterns.join(",")
    };
    let keys = |count: usize| {
        (0..count)
            .map(|number| format!("k{number}: 1\n"))
            .collect::<String>()
    };
    let enumeration =
        |items: String| format!("{{\"properties\":{{\"a\":{{\"items\":{{\"enum\":[{items}]}}}}}}}}");
    let text = "x".repeat(1_000_000);
    vec![
        schema(
            "enum of 20,000 against 20,000 items",
            enumeration(numbers(0, 20_000)),
            format!("a: [{}]\n", numbers(100_000, 20_000)),
        ),
        schema(
            "enum of 10,000 maps against 10,000 maps",
            enumeration(vec!["{\"a\":[1,2,3]}".to_owned(); 10_000].join(",")),
            format!("a: [{}]\n", vec!["{a: [1, 2, 4]}"; 10_000].join(",")),
        ),
        schema(
            "enum of 10,000 long strings",
            enumeration(
                (0..10_000)
                    .map(|number| format!("\"{}{number:05}\"", "x".repeat(300)))
                    .collect::<Vec<_>>()
                    .join(","),
            ),
            format!(
                "a: [{}]\n",
                vec![format!("{}y0000", "x".repeat(300)); 10_000].join(",")
            ),
        ),
        schema(
            "3,000 patterns, the value in each message",
            format!("{{\"properties\":{{\"a\":{{\"allOf\":[{}]}}}}}}", patterns(3_000)),
            format!("a: {text}\n"),
        ),
        schema(
            "100,000 patterns",
            format!(
                "{{\"properties\":{{\"a\":{{\"anyOf\":[{}]}}}}}}",
                patterns(100_000)
            ),
            "a: x\n".into(),
        ),
        schema(
            "1,000 large patterns",
            format!(
                "{{\"properties\":{{\"a\":{{\"allOf\":[{}]}}}}}}",
                (0..1_000)
                    .map(|number| format!("{{\"pattern\":\"(\\\\pL{{{}}}|b){number}\"}}", 900))
                    .collect::<Vec<_>>()
                    .join(",")
            ),
            "a: x\n".into(),
        ),
        schema(
            "3,000 pattern properties, 3,000 keys",
            format!(
                "{{\"patternProperties\":{{{}}}}}",
                (0..3_000)
                    .map(|number| format!("\"^z{number}.*x$\":false"))
                    .collect::<Vec<_>>()
                    .join(",")
            ),
            keys(3_000) + "z1x: 1\n",
        ),
        schema(
            "unevaluatedProperties below 1,000 schemas",
            format!(
                "{{\"allOf\":[{}],\"unevaluatedProperties\":false}}",
                vec!["{\"properties\":{\"k1\":{}}}"; 1_000].join(",")
            ),
            keys(20_000),
        ),
        schema(
            "uniqueItems in 1,000 schemas",
            format!(
                "{{\"properties\":{{\"a\":{{\"allOf\":[{}],\"maxItems\":1}}}}}}",
                vec!["{\"uniqueItems\":true}"; 1_000].join(",")
            ),
            format!("a: [{}]\n", numbers(0, 50_000)),
        ),
        schema(
            "nested anyOf",
            format!(
                "{}{{\"type\":\"string\"}}{}",
                "{\"anyOf\":[{\"type\":\"string\"},".repeat(150),
                "]}".repeat(150)
            ),
            "a: 1\n".into(),
        ),
        schema(
            "references that double",
            format!(
                "{{\"$defs\":{{\"d0\":{{\"type\":\"string\"}},{}}},\"$ref\":\"#/$defs/d60\"}}",
                (1..=60)
                    .map(|level| {
                        let below = format!("{{\"$ref\":\"#/$defs/d{}\"}}", level - 1);
                        format!("\"d{level}\":{{\"anyOf\":[{below},{below}]}}")
                    })
                    .collect::<Vec<_>>()
                    .join(",")
            ),
            "a: 1\n".into(),
        ),
        schema(
            "a long name in 20,000 messages",
            "{\"additionalProperties\":{\"additionalProperties\":{\"type\":\"string\"}}}".into(),
            format!(
                "{}: {{{}}}\n",
                "n".repeat(100_000),
                (0..20_000)
                    .map(|number| format!("k{number}: 1"))
                    .collect::<Vec<_>>()
                    .join(", ")
            ),
        ),
        schema(
            "100,000 missing properties",
            format!(
                "{{\"required\":[{}]}}",
                (0..100_000)
                    .map(|number| format!("\"m{number}\""))
                    .collect::<Vec<_>>()
                    .join(",")
            ),
            "a: 1\n".into(),
        ),
        schema(
            "formats of a long string",
            format!(
                "{{\"$schema\":\"http://json-schema.org/draft-07/schema#\",\"properties\":{{\"a\":{{\"allOf\":[{}]}}}}}}",
                ["email", "hostname", "uri", "regex", "json-pointer", "date-time"]
                    .map(|format| format!("{{\"format\":\"{format}\"}}"))
                    .join(",")
            ),
            format!("a: \"{}(\"\n", "x".repeat(2_000_000)),
        ),
    ]
}

/// Returns cases with manifests that Helm parses after rendering.
fn manifests() -> Vec<Hostile> {
    vec![
        template(
            "100,000 documents",
            "{{ range until 100000 }}\n---\na: b: c\n{{ end }}",
            "YAML",
        ),
        template(
            "a manifest of 30 MB on one line",
            "a: {{ repeat 30000000 \"x\" }}: b: c",
            "Error",
        ),
        template(
            "a message of 20 MB",
            "{{ fail (repeat 20000000 \"x\") }}",
            "Error",
        ),
    ]
}
