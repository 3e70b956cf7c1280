//! Counts reads and writes per user from an API server's audit log.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::PathBuf;

use serde::Deserialize;

/// The audit log of one API server.
#[derive(Clone, Debug)]
pub struct Audit {
    path: PathBuf,
    from: u64,
}

/// Request counts of one user.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Number of `get`, `list` and `watch` requests.
    pub reads: usize,
    /// Number of other requests.
    pub writes: usize,
}

/// A request in the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// User name.
    pub user: String,
    /// Verb: `get`, `create`, …
    pub verb: String,
    /// Path and query.
    pub uri: String,
    /// Status code.
    pub code: u16,
}

impl Entry {
    /// Whether the request is a read.
    #[must_use]
    pub fn is_read(&self) -> bool {
        ["get", "list", "watch"].contains(&self.verb.as_str())
    }
}

impl Audit {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, from: 0 }
    }

    /// Ignores all entries up to now.
    pub fn reset(&mut self) -> io::Result<()> {
        self.from = std::fs::metadata(&self.path)?.len();
        Ok(())
    }

    /// Returns every request since the last [`reset`](Self::reset). An entry is written before the response
    /// is sent, so all completed requests are included.
    pub fn entries(&self) -> io::Result<Vec<Entry>> {
        let mut file = File::open(&self.path)?;
        file.seek(SeekFrom::Start(self.from))?;
        let mut text = String::new();
        file.read_to_string(&mut text)?;
        Ok(text
            .lines()
            .filter_map(|line| serde_json::from_str::<AuditEvent>(line).ok())
            .filter_map(AuditEvent::entry)
            .collect())
    }

    /// Returns the number of reads and writes per user.
    pub fn counts(&self) -> io::Result<BTreeMap<String, Count>> {
        let mut counts: BTreeMap<String, Count> = BTreeMap::new();
        for entry in self.entries()? {
            let read = entry.is_read();
            let count = counts.entry(entry.user).or_default();
            *(if read { &mut count.reads } else { &mut count.writes }) += 1;
        }
        Ok(counts)
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AuditEvent {
    stage: String,
    verb: String,
    #[serde(rename = "requestURI")]
    uri: String,
    user: Username,
    response_status: Option<Response>,
}

#[derive(Deserialize)]
struct Username {
    #[serde(default)]
    username: String,
}

#[derive(Deserialize)]
struct Response {
    #[serde(default)]
    code: u16,
}

impl AuditEvent {
    /// Returns the entry, or `None` if the event is not counted. A watch is counted when it begins, because
    /// it may never end. Other requests are counted when they are complete.
    fn entry(self) -> Option<Entry> {
        let counted = if self.verb == "watch" {
            "ResponseStarted"
        } else {
            "ResponseComplete"
        };
        (self.stage == counted).then(|| Entry {
            user: self.user.username,
            verb: self.verb,
            uri: self.uri,
            code: self.response_status.map_or(0, |status| status.code),
        })
    }
}
