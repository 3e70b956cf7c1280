//! Compares all functions and relevant argument types with stored results of Go: see `cases.txt`.

use crate::engine::{Outcome, render};

const CASES: &str = include_str!("../cases.txt");

#[test]
fn each_case_returns_what_go_returned() {
    let mut dot = "null";
    let mut wrong = Vec::new();
    let mut run = 0;
    for line in CASES.lines() {
        if let Some(json) = line.strip_prefix(". ") {
            dot = json;
        } else if let Some((template, expected)) = case(line) {
            run += 1;
            let ours = render(template, dot);
            if ours != expected {
                wrong.push(format!("{template}\n  go: {expected}\n  us: {ours}"));
            }
        }
    }
    println!("sprig cases: {run} run, {} equal", run - wrong.len());
    assert!(run > 1_000);
    assert!(wrong.is_empty(), "{} differ\n{}", wrong.len(), wrong.join("\n"));
}

/// Parses a line: `TEMPLATE ⇒ OUTPUT` or `TEMPLATE ⇒! ERROR`.
fn case(line: &str) -> Option<(&str, Outcome)> {
    let (template, expected) = line.split_once(" ⇒")?;
    Some(match expected.strip_prefix("! ") {
        Some(error) => (template, Outcome::Error(String::from_utf8(unescape(error)).ok()?)),
        None => (template, Outcome::Output(unescape(expected.strip_prefix(' ')?))),
    })
}

fn unescape(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    let mut left = text.as_bytes();
    while let [byte, rest @ ..] = left {
        left = match (byte, rest) {
            (b'\\', [b'x', high, low, rest @ ..]) => {
                let digits = [*high, *low];
                let code = u8::from_str_radix(std::str::from_utf8(&digits).unwrap(), 16);
                out.push(code.expect("two hexadecimal digits"));
                rest
            }
            (b'\\', [escaped, rest @ ..]) => {
                out.push(match escaped {
                    b'n' => b'\n',
                    b't' => b'\t',
                    b'r' => b'\r',
                    other => *other,
                });
                rest
            }
            _ => {
                out.push(*byte);
                rest
            }
        };
    }
    out
}
