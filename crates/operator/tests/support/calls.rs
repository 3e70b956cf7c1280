//! API calls of the operator from a trace or an audit log, except those of leader election.

/// A request of the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Method and path: `PATCH /apis/…` or `patch /apis/…`.
    pub line: String,
    /// Kind of the call.
    pub kind: CallKind,
}

/// Kind of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallKind {
    Read,
    Watch,
    Write,
}

/// Position after which calls are counted.
#[derive(Clone, Debug)]
pub enum CallMarker {
    /// Offset in the trace.
    Trace(usize),
    /// Position in the audit log.
    Audit(mainstay_testkit::cluster::Audit),
}

/// User name of the operator.
pub const OPERATOR: &str = "operator";

/// Parses a line of the simulator's trace: `TIME CLIENT: METHOD PATH -> OUTCOME`.
pub fn parse_trace_line(line: &str) -> Option<Call> {
    let (_, rest) = line.split_once(' ')?;
    let call = rest.strip_prefix(OPERATOR)?.strip_prefix(": ")?;
    let (request, outcome) = call.split_once(" -> ")?;
    // Calls of a crashed client do not reach the server.
    if outcome == "crashed" {
        return None;
    }
    let kind = match request.split(' ').next()? {
        "GET" | "HEAD" if outcome == "watch" || is_unserved(request, outcome) => CallKind::Watch,
        "GET" | "HEAD" => CallKind::Read,
        _ => CallKind::Write,
    };
    call_unless_lease(request, kind)
}

/// Whether a failed request is the watch of a kind that the server does not serve. The trace contains no
/// query parameters, but the operator requests complete collections only by watches.
fn is_unserved(request: &str, outcome: &str) -> bool {
    outcome.starts_with("404 ") && request.split('/').count() == 5
}

/// Converts an entry of an audit log.
pub fn from_audit_entry(entry: &mainstay_testkit::cluster::Entry) -> Option<Call> {
    let kind = match entry.verb.as_str() {
        "watch" => CallKind::Watch,
        _ if entry.is_read() => CallKind::Read,
        _ => CallKind::Write,
    };
    let line = format!("{} {}", entry.verb, entry.uri);
    if entry.user == OPERATOR {
        call_unless_lease(&line, kind)
    } else {
        None
    }
}

/// Returns the call, or `None` if it is about a Lease, because renewals do not count.
fn call_unless_lease(line: &str, kind: CallKind) -> Option<Call> {
    let line = line.to_owned();
    (!line.contains("/leases")).then_some(Call { line, kind })
}

/// Returns the writes, one line each.
pub fn writes(calls: &[Call]) -> Vec<&str> {
    of_kind(calls, CallKind::Write)
}

/// Returns the writes and reads, one line each. Watches are excluded, because they are resumed after their
/// timeout.
pub fn requests(calls: &[Call]) -> Vec<&str> {
    calls
        .iter()
        .filter(|call| call.kind != CallKind::Watch)
        .map(|call| call.line.as_str())
        .collect()
}

pub fn of_kind(calls: &[Call], kind: CallKind) -> Vec<&str> {
    calls
        .iter()
        .filter(|call| call.kind == kind)
        .map(|call| call.line.as_str())
        .collect()
}
