//! How far a scenario reaches: takes its script, says whether others could notice it.

use std::collections::BTreeSet;

use mainstay_conformance::{Command, Scenario, Script};

/// How far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Its own namespace, objects named after it, and custom kinds of a group that no other scenario has.
    Namespace,
    /// The whole cluster: it reads or writes what others share.
    Cluster,
}

/// What decides about the requests of others, whatever it is called.
const CLUSTER_WIDE_PARTS: [&str; 4] = ["webhookconfigurations", "admissionpolic", "/nodes", "apiservices"];

/// Paths that only describe the caller.
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
    /// How far `script` reaches, one of `all`.
    pub(crate) fn of(script: &str, all: &[Scenario]) -> Self {
        let commands = Script::parse(script).0;
        let groups: Vec<&str> = groups(script)
            .into_iter()
            .filter(|group| all.iter().filter(|one| one.text.contains(group)).count() == 1)
            .collect();
        let wide = commands
            .iter()
            .filter(|command| REQUESTS.contains(&command.word()))
            .any(|command| reaches_out(command, &groups));
        if wide { Self::Cluster } else { Self::Namespace }
    }
}

/// The groups of custom kinds that a script mentions.
fn groups(script: &str) -> BTreeSet<&str> {
    let letter = |letter: char| letter.is_ascii_alphanumeric() || letter == '.' || letter == '-';
    script
        .split(|one| !letter(one))
        .filter(|word| word.ends_with(".example.com"))
        .collect()
}

fn reaches_out(command: &Command, groups: &[&str]) -> bool {
    let path = command.arguments().last().unwrap_or("");
    let harmless = HARMLESS
        .iter()
        .any(|part| path == *part || (!part.starts_with('/') && path.contains(part)));
    let named = |text: &str| text.contains("{ns}") || groups.iter().any(|group| text.contains(group));
    let own = named(path) || named(&command.body);
    CLUSTER_WIDE_PARTS.iter().any(|part| path.contains(part)) || !(own || harmless)
}
