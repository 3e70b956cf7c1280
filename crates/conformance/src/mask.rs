//! Masks the parts of responses that differ between servers.

use serde_json::Value;

/// Keys of timestamps.
const TIMES: [&str; 8] = [
    "creationTimestamp",
    "deletionTimestamp",
    "lastTransitionTime",
    "lastUpdateTime",
    "lastProbeTime",
    "startTime",
    "expirationTimestamp",
    "lastHeartbeatTime",
];

/// Labels whose values are hashes of pod templates.
const HASHES: [&str; 2] = ["pod-template-hash", "controller-revision-hash"];
/// Fields that contain names of revisions.
const REVISIONS: [&str; 2] = ["currentRevision", "updateRevision"];

/// State of masking in a scenario.
#[derive(Clone, Debug, Default)]
pub struct Mask {
    /// Namespace of the scenario, shown as `{ns}`.
    pub namespace: String,
    /// Texts to mask, such as uids, with their replacements.
    pub known: Vec<(String, String)>,
    /// Prefixes of the paths to show. If empty, all paths are shown.
    pub shown: Vec<String>,
}

impl Mask {
    /// Records the uids and generated names in an object, so that they are also masked in messages.
    pub fn record_object(&mut self, value: &Value) {
        match value {
            Value::Object(map) => {
                if let Some(Value::String(uid)) = map
                    .get("uid")
                    .filter(|uid| uid.as_str().is_some_and(|uid| uid.len() == 36))
                {
                    self.record(uid, "<uid>");
                }
                if let (Some(Value::String(prefix)), Some(Value::String(name))) =
                    (map.get("generateName"), map.get("name"))
                    && name.starts_with(prefix)
                {
                    self.record(name, &format!("{prefix}<generated>"));
                }
                for label in HASHES {
                    self.record_hash(map.get(label).and_then(Value::as_str).unwrap_or(""));
                }
                for revision in REVISIONS.iter().filter_map(|key| map.get(*key)?.as_str()) {
                    self.record_hash(revision);
                }
                let message = map.get("message").and_then(Value::as_str).unwrap_or("");
                if message.contains("ReplicaSet \"") || message.contains("replica set \"") {
                    for name in message.split('"').skip(1).step_by(2) {
                        self.record_hash(name);
                    }
                }
                if let Some(Value::String(version)) = map.get("resourceVersion") {
                    self.record(&format!("({version})"), "(<version>)");
                }
                for below in map.values() {
                    self.record_object(below);
                }
            }
            Value::Array(items) => items.iter().for_each(|item| self.record_object(item)),
            _ => {}
        }
    }

    /// Records generated names in an error message. A generated name consists of the requested prefix and
    /// five characters.
    pub fn record_generated_names(&mut self, sent: &Value, response: &str) {
        let Some(prefix) = sent
            .pointer("/metadata/generateName")
            .and_then(Value::as_str)
            .filter(|prefix| !prefix.is_empty())
        else {
            return;
        };
        let names: Vec<String> = response
            .match_indices(prefix)
            .filter_map(|(at, _)| response.get(at + prefix.len()..at + prefix.len() + 5))
            .filter(|suffix| {
                suffix
                    .bytes()
                    .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
            })
            .map(|suffix| format!("{prefix}{suffix}"))
            .collect();
        for name in names {
            self.record(&name, &format!("{prefix}<generated>"));
        }
    }

    /// Records the hash at the end of a name.
    fn record_hash(&mut self, name: &str) {
        if let Some(hash) = name.rsplit('-').next().filter(|hash| hash.len() > 4) {
            self.record(hash, "<hash>");
        }
    }

    fn record(&mut self, text: &str, shown: &str) {
        if !self.known.iter().any(|(have, _)| have == text) {
            self.known.push((text.to_owned(), shown.to_owned()));
        }
    }

    /// Returns `text` with all recorded texts masked.
    #[must_use]
    pub fn mask_text(&self, text: &str) -> String {
        let masked = self
            .known
            .iter()
            .fold(text.to_owned(), |text, (known, shown)| text.replace(known, shown));
        masked.replace(&self.namespace, "{ns}")
    }

    /// Formats an object as one line per leaf.
    #[must_use]
    pub fn format_object(&self, value: &Value) -> Vec<String> {
        let mut lines = Vec::new();
        self.collect_lines(value, "", "", &mut lines);
        lines
    }

    fn collect_lines(&self, value: &Value, path: &str, key: &str, lines: &mut Vec<String>) {
        // Managed fields have a special format, one line per manager.
        if key == "managedFields" {
            let is_listed = self.shown.iter().any(|prefix| path.starts_with(prefix.as_str()));
            if is_listed || self.shown.is_empty() {
                self.collect_managers(value, path, lines);
            }
            return;
        }
        match value {
            Value::Object(map) if !map.is_empty() => {
                for (name, below) in map {
                    let dotted = if name.contains('.') {
                        format!("[{name}]")
                    } else {
                        name.clone()
                    };
                    let path = if path.is_empty() {
                        dotted
                    } else {
                        format!("{path}.{dotted}")
                    };
                    self.collect_lines(below, &path, name, lines);
                }
            }
            Value::Array(items) if !items.is_empty() => {
                for (at, below) in items.iter().enumerate() {
                    self.collect_lines(below, &format!("{path}[{at}]"), key, lines);
                }
            }
            leaf => {
                let status = ["kind", "code", "message", "reason", "status"].contains(&path)
                    || path.starts_with("details");
                if self.shown.is_empty()
                    || status
                    || self.shown.iter().any(|prefix| path.starts_with(prefix.as_str()))
                {
                    lines.push(format!(
                        "{}: {}",
                        self.mask_text(path),
                        self.format_leaf(leaf, path, key)
                    ));
                }
            }
        }
    }

    /// Formats managed fields as one line per manager. The order does not depend on the time of the writes.
    fn collect_managers(&self, value: &Value, path: &str, lines: &mut Vec<String>) {
        let mut entries: Vec<Value> = value.as_array().cloned().unwrap_or_default();
        for time in entries.iter_mut().filter_map(|entry| entry.get_mut("time")) {
            *time = "<time>".into();
        }
        let mut shown: Vec<(String, String)> = entries
            .iter()
            .map(|entry| {
                let text = |key| entry.get(key).and_then(Value::as_str).unwrap_or("");
                let order = ["operation", "manager", "apiVersion", "subresource"]
                    .map(text)
                    .join(" ");
                (order, self.mask_text(&entry.to_string()))
            })
            .collect();
        shown.sort();
        lines.extend(shown.into_iter().map(|(_, entry)| format!("{path}: {entry}")));
    }

    fn format_leaf(&self, value: &Value, path: &str, key: &str) -> String {
        let Value::String(text) = value else {
            return value.to_string();
        };
        let masked = match key {
            "uid" => "<uid>".into(),
            "resourceVersion" => "<version>".into(),
            "continue" => "<token>".into(),
            "token" => "<secret>".into(),
            _ if text.starts_with("JTI=") => "JTI=<uid>".into(),
            _ if TIMES.contains(&key) => "<time>".into(),
            "clusterIP" if text != "None" && !text.is_empty() => "<ip>".into(),
            "name" if text.starts_with("kube-api-access-") => "kube-api-access-<generated>".into(),
            _ if path.contains("clusterIPs[") && text != "None" => "<ip>".into(),
            _ => self.mask_text(text),
        };
        Value::String(masked).to_string()
    }
}
