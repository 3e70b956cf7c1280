//! Calls functions as the engine does and compares the results with Go's.

use std::fmt::Write as _;

use mainstay_sprig::functions;
use mainstay_template::{Call, Failure, Host, IntKind, Limits, Meter, Templates, Value};
use mainstay_testkit::{Oracle, OracleRequest};

/// Returns the number of random cases: `MAINSTAY_CASES`, by default 1,000.
pub(crate) fn cases() -> usize {
    std::env::var("MAINSTAY_CASES")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(1_000)
}

/// A deterministic random number generator.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    pub(crate) fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    pub(crate) fn pick<'a, T: ?Sized>(&mut self, items: &[&'a T]) -> &'a T {
        items[self.below(items.len())]
    }
}

/// A host with entropy and a clock that are determined by a seed.
pub(crate) struct SeededHost(pub(crate) Random, pub(crate) i128);

impl SeededHost {
    pub(crate) fn new(seed: u64) -> Self {
        Self(Random(seed), 1_700_000_000_123_456_789)
    }
}

impl Host for SeededHost {
    fn entropy(&mut self, buffer: &mut [u8]) {
        buffer.fill_with(|| self.0.next() as u8);
    }

    fn now(&mut self) -> i128 {
        self.1
    }
}

struct NoTemplates;

impl Templates for NoTemplates {
    fn execute(&mut self, _: &str, _: Value, _: &mut Meter, _: &mut dyn Host) -> Result<Vec<u8>, Failure> {
        Err(Failure::message("templates are not available in this test"))
    }

    fn execute_text(
        &mut self,
        _: &str,
        _: &[u8],
        _: Value,
        _: &mut Meter,
        _: &mut dyn Host,
    ) -> Result<Vec<u8>, Failure> {
        Err(Failure::message("templates are not available in this test"))
    }
}

/// Calls `name` with `args`.
pub(crate) fn call(name: &str, args: &[Value]) -> Result<Value, String> {
    call_with(name, args, &mut SeededHost::new(1))
}

/// Calls `name` with `args` and a fuel limit.
pub(crate) fn call_limited(name: &str, args: &[Value], fuel: u64) -> Result<Value, String> {
    call_metered(
        name,
        args,
        &mut SeededHost::new(1),
        Limits {
            fuel,
            ..Limits::default()
        },
    )
}

/// Calls `name` with `args` and a host.
pub(crate) fn call_with(name: &str, args: &[Value], host: &mut dyn Host) -> Result<Value, String> {
    call_metered(name, args, host, Limits::default())
}

fn call_metered(name: &str, args: &[Value], host: &mut dyn Host, limits: Limits) -> Result<Value, String> {
    let function = functions()
        .iter()
        .find(|f| f.name == name)
        .unwrap_or_else(|| panic!("no function {name}"));
    let mut meter = Meter::new(limits);
    let mut call = Call {
        args,
        meter: &mut meter,
        host,
        templates: &mut NoTemplates,
    };
    (function.run)(&mut call).map_err(|failure| message(&failure))
}

/// Calls a method of an object.
pub(crate) fn method(value: &Value, name: &str, args: &[Value]) -> Result<Value, String> {
    let Value::Object(object) = value else {
        panic!("not an object: {value:?}")
    };
    object
        .method(name)
        .ok_or_else(|| format!("can't evaluate field {name}"))?;
    let mut meter = Meter::new(Limits::default());
    let (host, templates) = (&mut SeededHost::new(1), &mut NoTemplates);
    object
        .call(
            name,
            &mut Call {
                args,
                meter: &mut meter,
                host,
                templates,
            },
        )
        .map_err(|failure| message(&failure))
}

fn message(failure: &Failure) -> String {
    match failure {
        Failure::Message(text) => text.clone(),
        Failure::Template(error) | Failure::Parse(error) => error.to_string(),
        Failure::LimitExceeded(limit) => limit.to_string(),
    }
}

/// Formats a value as the templates of [`compare_with_go`] print it.
pub(crate) fn format_value(value: &Value) -> Vec<u8> {
    match value {
        Value::Nil => b"<no value>".to_vec(),
        Value::Bool(value) => value.to_string().into_bytes(),
        Value::Int(value, _) => value.to_string().into_bytes(),
        Value::Uint(value, _) => value.to_string().into_bytes(),
        Value::Float(value) => value.to_string().into_bytes(),
        Value::String(text) => text.to_vec(),
        Value::List(list) => list
            .items()
            .iter()
            .flat_map(|item| bracketed(&format_value(item)))
            .collect(),
        Value::Map(map) => map
            .entries()
            .iter()
            .flat_map(|(k, v)| bracketed(&[k.as_bytes(), b"=", &format_value(v)].concat()))
            .collect(),
        Value::Object(object) => object.print().to_vec(),
        other => panic!("cannot format {other:?}"),
    }
}

fn bracketed(text: &[u8]) -> Vec<u8> {
    [b"<", text, b">"].concat()
}

/// A function call: name and arguments.
#[derive(Clone)]
pub(crate) struct Case(pub(crate) &'static str, pub(crate) Vec<Value>);

/// Format of a result in Go's template.
#[derive(Clone, Copy)]
pub(crate) enum Print {
    Plain,
    List,
    Map,
}

impl Case {
    /// Returns a template with the same call.
    pub(crate) fn template(&self, print: Print) -> String {
        let call = self
            .1
            .iter()
            .fold(self.0.to_owned(), |text, arg| text + " " + &literal(arg));
        match print {
            Print::Plain => format!("{{{{ {call} }}}}"),
            Print::List => format!("{{{{ range ({call}) }}}}<{{{{ . }}}}>{{{{ end }}}}"),
            Print::Map => {
                format!("{{{{ range $k, $v := ({call}) }}}}<{{{{ $k }}}}={{{{ $v }}}}>{{{{ end }}}}")
            }
        }
    }
}

/// Formats a value as a Go literal.
pub(crate) fn literal(value: &Value) -> String {
    match value {
        Value::String(text) => quoted(text),
        Value::Int(number, IntKind::Int64) => format!("(int64 {number})"),
        Value::Int(number, _) => number.to_string(),
        Value::Object(object) => {
            format!(
                "(toDate \"2006-01-02T15:04:05.999999999Z07:00\" {})",
                literal(&object.plain())
            )
        }
        Value::Map(map) => {
            map.entries().iter().fold("(dict".to_owned(), |text, (k, v)| {
                text + " " + &quoted(k) + " " + &literal(v)
            }) + ")"
        }
        other => panic!("no literal for {other:?}"),
    }
}

fn quoted(bytes: &[u8]) -> String {
    let mut out = String::from("\"");
    for byte in bytes {
        match byte {
            b'"' | b'\\' => {
                out.push('\\');
                out.push(char::from(*byte));
            }
            b' '..=b'~' => out.push(char::from(*byte)),
            _ => {
                let _ = write!(out, "\\x{byte:02x}");
            }
        }
    }
    out + "\""
}

/// Runs all cases with both implementations and prints `N run, N equal`. Fails the test if there are
/// differences.
pub(crate) fn compare_with_go(what: &str, print: Print, cases: &[Case]) {
    let requests: Vec<_> = cases.iter().map(|case| request(&case.template(print))).collect();
    let responses = Oracle::start().unwrap().query_all(&requests).unwrap();
    let mut wrong = Vec::new();
    for (case, response) in cases.iter().zip(&responses) {
        let theirs = match response.err.split_once(&format!("error calling {}: ", case.0)) {
            Some((_, text)) => Err(text.to_owned()),
            None if response.err.is_empty() => Ok(response.out.clone()),
            None => Err(response.err.clone()),
        };
        let ours = call(case.0, &case.1).map(|value| format_value(&value));
        if ours != theirs {
            wrong.push(format!(
                "{}\n  go:   {}\n  ours: {}",
                case.template(print),
                text(&theirs),
                text(&ours)
            ));
        }
    }
    println!(
        "differential {what}: {} run, {} equal",
        cases.len(),
        cases.len() - wrong.len()
    );
    let format_value = wrong.iter().take(20).cloned().collect::<Vec<_>>().join("\n");
    assert!(
        wrong.is_empty(),
        "{} of {} differ:\n{format_value}",
        wrong.len(),
        cases.len()
    );
}

/// Creates an oracle request for a template.
pub(crate) fn request(template: &str) -> OracleRequest {
    OracleRequest {
        op: "template",
        text: template.into(),
        json: b"null".to_vec(),
        funcs: "sprig",
        ..OracleRequest::default()
    }
}

fn text(result: &Result<Vec<u8>, String>) -> String {
    match result {
        Ok(bytes) => format!("ok {:?}", String::from_utf8_lossy(bytes)),
        Err(text) => format!("error {text:?}"),
    }
}
