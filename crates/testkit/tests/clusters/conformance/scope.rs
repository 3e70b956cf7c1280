//! Determines from the script of a scenario whether the scenario can run concurrently with others.

use std::collections::BTreeSet;

use mainstay_conformance::{Command, Scenario, Script};

/// Objects that a scenario can affect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// Objects in its own namespace, objects named after the scenario, and custom kinds in a group that no
    /// other scenario uses.
    Namespace,
    /// Objects of the whole cluster, which other scenarios may use.
    Cluster,
}

/// Parts of paths. Objects at these paths affect requests of other scenarios, independent of their names.
const CLUSTER_WIDE_PARTS: [&str; 4] = ["webhookconfigurations", "admissionpolic", "/nodes", "apiservices"];

/// Paths whose requests affect no object.
const READ_ONLY: [&str; 6] = [
    "selfsubject",
    "subjectaccessreviews",
    "tokenreviews",
    "/version",
    "/apis",
    "/api",
];

const REQUESTS: [&str; 7] = ["GET", "POST", "PUT", "PATCH", "DELETE", "WATCH", "UNTIL"];

impl Scope {
    /// Returns the scope of `script`. `all` includes the scenario itself.
    pub(crate) fn for_script(script: &str, all: &[Scenario]) -> Self {
        let commands = Script::parse(script).0;
        let groups: Vec<&str> = groups(script)
            .into_iter()
            .filter(|group| all.iter().filter(|one| one.text.contains(group)).count() == 1)
            .collect();
        let wide = commands
            .iter()
            .filter(|command| REQUESTS.contains(&command.word()))
            .any(|command| is_cluster_wide(command, &groups));
        if wide { Self::Cluster } else { Self::Namespace }
    }
}

/// Returns the API groups of custom kinds in a script.
fn groups(script: &str) -> BTreeSet<&str> {
    let letter = |letter: char| letter.is_ascii_alphanumeric() || letter == '.' || letter == '-';
    script
        .split(|one| !letter(one))
        .filter(|word| word.ends_with(".example.com"))
        .collect()
}

fn is_cluster_wide(command: &Command, groups: &[&str]) -> bool {
    let path = command.arguments().last().unwrap_or("");
    let read_only = READ_ONLY
        .iter()
        .any(|part| path == *part || (!part.starts_with('/') && path.contains(part)));
    let named = |text: &str| text.contains("{ns}") || groups.iter().any(|group| text.contains(group));
    let own = named(path) || named(&command.body);
    CLUSTER_WIDE_PARTS.iter().any(|part| path.contains(part)) || !(own || read_only)
}
