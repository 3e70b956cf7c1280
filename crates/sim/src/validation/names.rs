//! Validates names, keys and label values. All functions return the messages of the API server, or an empty
//! list if the text is valid.

/// Validates the name of a `StatefulSet`. It becomes part of host names, so it must not contain dots.
#[must_use]
pub fn stateful_set(name: &str, prefix: bool) -> Vec<String> {
    if name.contains('.') {
        return vec!["must not contain dots".into()];
    }
    subdomain(name, prefix)
}

/// Function that validates the names of a kind. If the second argument is true, the name is a prefix
/// (`generateName`).
pub type NameRule = fn(&str, bool) -> Vec<String>;

const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LABEL_1035: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
const KEY_PART: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const KEY: &str = "a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')";
const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
const CONFIG_KEY: &str = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";

/// Validates a DNS subdomain, or the prefix of one.
#[must_use]
pub fn subdomain(name: &str, prefix: bool) -> Vec<String> {
    let name = mask_trailing_dash(name, prefix);
    let mut wrong = check_length(&name, 253);
    if !is_subdomain(&name) {
        wrong.push(SUBDOMAIN.into());
    }
    wrong
}

/// Validates a DNS label, or the prefix of one.
#[must_use]
pub fn label(name: &str, prefix: bool) -> Vec<String> {
    let name = mask_trailing_dash(name, prefix);
    let mut wrong = check_length(&name, 63);
    if !is_label(&name) {
        wrong.push(if is_subdomain(&name) {
            "must not contain dots".into()
        } else {
            LABEL.into()
        });
    }
    wrong
}

/// Validates a DNS label that starts with a letter, or the prefix of one.
#[must_use]
pub fn label_1035(name: &str, prefix: bool) -> Vec<String> {
    let name = mask_trailing_dash(name, prefix);
    let mut wrong = check_length(&name, 63);
    if !is_label(&name) || !name.starts_with(|c: char| c.is_ascii_lowercase()) {
        wrong.push(LABEL_1035.into());
    }
    wrong
}

/// Validates a text that must be a single path segment, or the prefix of one.
#[must_use]
pub fn path_segment(name: &str, prefix: bool) -> Vec<String> {
    if !prefix && matches!(name, "." | "..") {
        return vec![format!("may not be '{name}'")];
    }
    ["/", "%"]
        .iter()
        .filter(|bad| name.contains(**bad))
        .map(|bad| format!("may not contain '{bad}'"))
        .collect()
}

/// Validates the key of a label or annotation, or a finalizer.
#[must_use]
pub fn qualified(key: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    let parts: Vec<&str> = key.split('/').collect();
    let name = match parts.as_slice() {
        [name] => name,
        [before, name] => {
            if before.is_empty() {
                wrong.push("prefix part must be non-empty".into());
            } else {
                wrong.extend(
                    subdomain(before, false)
                        .iter()
                        .map(|one| format!("prefix part {one}")),
                );
            }
            name
        }
        _ => return vec![KEY.into()],
    };
    if name.is_empty() {
        wrong.push("name part must be non-empty".into());
    } else if name.len() > 63 {
        wrong.push("name part must be no more than 63 characters".into());
    }
    if !is_key_part(name) {
        wrong.push(KEY_PART.into());
    }
    wrong
}

/// Validates the value of a label.
#[must_use]
pub fn label_value(value: &str) -> Vec<String> {
    let mut wrong = check_length(value, 63);
    if !value.is_empty() && !is_key_part(value) {
        wrong.push(LABEL_VALUE.into());
    }
    wrong
}

/// Validates a key of a `ConfigMap` or Secret.
#[must_use]
pub fn config_key(key: &str) -> Vec<String> {
    let mut wrong = check_length(key, 253);
    let is_allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    if key.is_empty() || !key.bytes().all(is_allowed) {
        wrong.push(CONFIG_KEY.into());
    }
    match key {
        "." => wrong.push("must not be '.'".into()),
        ".." => wrong.push("must not be '..'".into()),
        _ if key.starts_with("..") => wrong.push("must not start with '..'".into()),
        _ => {}
    }
    wrong
}

/// Validates the name of a port.
#[must_use]
pub fn port_name(name: &str) -> Vec<String> {
    let mut wrong = check_length(name, 15);
    let is_allowed = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    if name.is_empty() || !name.bytes().all(is_allowed) {
        wrong.push("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)".into());
    }
    if !name.bytes().any(|b| b.is_ascii_lowercase()) {
        wrong.push("must contain at least one letter (a-z)".into());
    }
    if name.contains("--") {
        wrong.push("must not contain consecutive hyphens".into());
    }
    if name.starts_with('-') || name.ends_with('-') {
        wrong.push("must not begin or end with a hyphen".into());
    }
    wrong
}

/// Validates the number of a port.
#[must_use]
pub fn port_number(port: i64) -> Vec<String> {
    if (1..=65_535).contains(&port) {
        Vec::new()
    } else {
        vec!["must be between 1 and 65535, inclusive".into()]
    }
}

fn check_length(text: &str, max: usize) -> Vec<String> {
    if text.len() > max {
        vec![format!("must be no more than {max} characters")]
    } else {
        Vec::new()
    }
}

/// Replaces the dash at the end of a prefix. A prefix may end with a dash because the generated suffix
/// follows it.
fn mask_trailing_dash(name: &str, prefix: bool) -> String {
    match name.strip_suffix('-') {
        Some(front) if prefix && !front.is_empty() => {
            let mut shorter = front.to_owned();
            shorter.pop();
            shorter + "a"
        }
        _ => name.to_owned(),
    }
}

fn is_label(text: &str) -> bool {
    let is_allowed = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    !text.is_empty() && text.bytes().all(is_allowed) && !text.starts_with('-') && !text.ends_with('-')
}

fn is_subdomain(text: &str) -> bool {
    text.split('.').all(is_label)
}

fn is_key_part(text: &str) -> bool {
    let inner = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    let edge = |c: char| c.is_ascii_alphanumeric();
    !text.is_empty() && text.bytes().all(inner) && text.starts_with(edge) && text.ends_with(edge)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(wrong: &[String], expected: &[&str]) {
        assert_eq!(wrong, expected);
    }

    #[test]
    fn name_errors_match_the_server() {
        check(&subdomain("a.b-c", false), &[]);
        check(&subdomain("A", false), &[SUBDOMAIN]);
        check(&subdomain("a-", false), &[SUBDOMAIN]);
        check(&subdomain("ab-", true), &[]);
        check(&label("a.b", false), &["must not contain dots"]);
        check(&label("a_b", false), &[LABEL]);
        check(&label_1035("1a", false), &[LABEL_1035]);
        check(&path_segment("system:admin", false), &[]);
        check(
            &path_segment("a/b%", false),
            &["may not contain '/'", "may not contain '%'"],
        );
        check(&qualified("example.com/a"), &[]);
        check(&qualified("a/b/c"), &[KEY]);
        check(&qualified(""), &["name part must be non-empty", KEY_PART]);
        check(&label_value("-"), &[LABEL_VALUE]);
        check(&config_key(".."), &["must not be '..'"]);
        check(
            &port_name("Http"),
            &["must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)"],
        );
    }
}
