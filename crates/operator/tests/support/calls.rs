//! The operator's API calls, from a trace or an audit log, without those of leader election.

/// One request of the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Method and path: `PATCH /apis/…` or `patch /apis/…`.
    pub line: String,
    /// The kind of call.
    pub kind: CallKind,
}

/// The kind of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallKind {
    Read,
    Watch,
    Write,
}

/// A position from which calls are counted.
#[derive(Clone, Debug)]
pub enum CallMarker {
    /// Offset in the trace.
    Trace(usize),
    /// Position in the audit log.
    Audit(mainstay_testkit::cluster::Audit),
}

/// The operator's user name.
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
    counted(request, kind)
}

/// Whether a failed request is the watch of a kind that the server does not serve. The trace contains no
/// query parameters, but the operator requests whole collections only as watches.
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
        counted(&line, kind)
    } else {
        None
    }
}

/// Returns the call, or `None` for a Lease: renewals do not count.
fn counted(line: &str, kind: CallKind) -> Option<Call> {
    let line = line.to_owned();
    (!line.contains("/leases")).then_some(Call { line, kind })
}

/// Returns the writes, one line each.
pub fn writes(calls: &[Call]) -> Vec<&str> {
    of_kind(calls, CallKind::Write)
}

/// Returns writes and reads; watches that are resumed after their timeout do not count.
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
