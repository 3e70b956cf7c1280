//! How far a scenario reaches: takes its script, says whether others could notice it.

use mainstay_conformance::{Command, Script};

/// How far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Its own namespace, and objects named after it.
    Namespace,
    /// The whole cluster: it reads or writes what others share.
    Cluster,
}

/// What decides about the requests of others, whatever it is called.
const MEDDLERS: [&str; 4] = ["webhookconfigurations", "admissionpolic", "/nodes", "apiservices"];

/// What only tells something about whoever asks.
const HARMLESS: [&str; 6] = [
    "selfsubject",
    "subjectaccessreviews",
    "tokenreviews",
    "/version",
    "/apis",
    "/api",
];

const REQUESTS: [&str; 7] = ["GET", "POST", "PUT", "PATCH", "DELETE", "WATCH", "UNTIL"];

impl Reach {
    pub(crate) fn of(script: &str) -> Self {
        let commands = Script::parse(script).0;
        let wide = commands
            .iter()
            .filter(|command| REQUESTS.contains(&command.word()))
            .any(reaches_out);
        if wide { Self::Cluster } else { Self::Namespace }
    }
}

fn reaches_out(command: &Command) -> bool {
    let path = command.arguments().last().unwrap_or("");
    let harmless = HARMLESS
        .iter()
        .any(|part| path == *part || (!part.starts_with('/') && path.contains(part)));
    let own = path.contains("{ns}") || command.body.contains("{ns}");
    MEDDLERS.iter().any(|part| path.contains(part)) || !(own || harmless)
}
