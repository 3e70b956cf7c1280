//! What the operator asked of the server: takes a trace or an audit log, gives calls; what leader election needs is not counted.

/// One request of the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// What it was about, `PATCH /apis/…` or `patch /apis/…`.
    pub line: String,
    /// What it is.
    pub sort: Sort,
}

/// What a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    Read,
    Watch,
    Write,
}

/// From where on calls are counted.
#[derive(Clone, Debug)]
pub enum Mark {
    /// Bytes of the trace.
    Trace(usize),
    /// The audit log from some place on.
    Audit(mainstay_testkit::cluster::Audit),
}

/// Who the operator is, to the server.
pub const OPERATOR: &str = "operator";

/// A line of the simulator's trace: `TIME CLIENT: METHOD PATH -> OUTCOME`.
pub fn of_trace(line: &str) -> Option<Call> {
    let (_, rest) = line.split_once(' ')?;
    let call = rest.strip_prefix(OPERATOR)?.strip_prefix(": ")?;
    let (request, outcome) = call.split_once(" -> ")?;
    // Whoever is dead asks nothing, whatever it still tries.
    if outcome == "crashed" {
        return None;
    }
    let sort = match request.split(' ').next()? {
        "GET" | "HEAD" if outcome == "watch" || is_unserved(request, outcome) => Sort::Watch,
        "GET" | "HEAD" => Sort::Read,
        _ => Sort::Write,
    };
    counted(request, sort)
}

/// A watch of a kind that the server does not serve: the trace shows no query, but whole kinds are only ever watched.
fn is_unserved(request: &str, outcome: &str) -> bool {
    outcome.starts_with("404 ") && request.split('/').count() == 5
}

/// An entry of an audit log.
pub fn of_entry(entry: &mainstay_testkit::cluster::Entry) -> Option<Call> {
    let sort = match entry.verb.as_str() {
        "watch" => Sort::Watch,
        _ if entry.is_read() => Sort::Read,
        _ => Sort::Write,
    };
    let line = format!("{} {}", entry.verb, entry.uri);
    if entry.user == OPERATOR {
        counted(&line, sort)
    } else {
        None
    }
}

/// Leases are how operators take turns, and are written all the time.
fn counted(line: &str, sort: Sort) -> Option<Call> {
    let line = line.to_owned();
    (!line.contains("/leases")).then_some(Call { line, sort })
}

/// Only the writes, one line each.
pub fn writes(calls: &[Call]) -> Vec<&str> {
    of_sort(calls, Sort::Write)
}

/// Writes and reads; a watch that is taken up again when its time was over is no question about anything.
pub fn asked(calls: &[Call]) -> Vec<&str> {
    calls
        .iter()
        .filter(|call| call.sort != Sort::Watch)
        .map(|call| call.line.as_str())
        .collect()
}

pub fn of_sort(calls: &[Call], sort: Sort) -> Vec<&str> {
    calls
        .iter()
        .filter(|call| call.sort == sort)
        .map(|call| call.line.as_str())
        .collect()
}
