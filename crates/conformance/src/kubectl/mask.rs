//! Masks the parts of `kubectl` output that differ between clusters, and reduces the gap between columns to
//! two spaces.

/// Characters of generated names and hashes: no vowels, and no digits that resemble letters.
const GENERATED: &str = "bcdfghjklmnpqrstvwxz2456789";

/// Prefixes of lines that are masked after the prefix.
const MASKED_PREFIXES: [(&str, &str); 4] = [
    ("resourceVersion:", "<version>"),
    ("Resource Version:", "<version>"),
    ("Container ID:", "<container>"),
    ("Context", "<context>"),
];

/// Masks a line. `directory` is the directory of the session.
pub(super) fn mask_line(line: &str, directory: &str) -> String {
    let line = line.replace(directory, "<directory>");
    let line = mask_dates(&line);
    let indent = line.len() - line.trim_start().len();
    let (indent, rest) = line.split_at(indent);
    for (start, shown) in MASKED_PREFIXES {
        if rest.starts_with(start) {
            return format!("{indent}{start} {shown}");
        }
    }
    format!("{indent}{}", normalize_columns(&mask_words(rest)))
}

/// Reduces the gap between columns to two spaces, because its width depends on the masked text.
fn normalize_columns(text: &str) -> String {
    let parts: Vec<&str> = text
        .split("  ")
        .map(str::trim)
        .filter(|part| !part.is_empty())
        .collect();
    parts.join("  ")
}

/// Masks the words of a text.
fn mask_words(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(is_word_character) {
        let (before, from) = rest.split_at(start);
        out.push_str(before);
        let end = from
            .find(|letter| !is_word_character(letter))
            .unwrap_or(from.len());
        let (word, after) = from.split_at(end);
        out.push_str(&mask_word(word));
        rest = after;
    }
    out.push_str(rest);
    out
}

fn is_word_character(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || "-.:_".contains(letter)
}

fn mask_word(word: &str) -> String {
    // A full stop or colon may end a sentence.
    let core = word.trim_end_matches(['.', ':']);
    let tail = word.get(core.len()..).unwrap_or("");
    let shown = if is_uid(core) {
        "<uid>".to_owned()
    } else if core.starts_with("eyJ") && core.len() > 100 {
        "<token>".to_owned()
    } else if is_time(core) {
        "<time>".to_owned()
    } else if is_age(core) {
        "<age>".to_owned()
    } else if let Some(port) = masked_port(core) {
        format!("<ip>{port}")
    } else {
        mask_names(core)
    };
    format!("{shown}{tail}")
}

fn is_uid(word: &str) -> bool {
    let lengths: Vec<usize> = word.split('-').map(str::len).collect();
    lengths == [8, 4, 4, 4, 12]
        && word
            .chars()
            .all(|letter| letter == '-' || letter.is_ascii_hexdigit())
}

/// Whether a word is a date, a time or both: `2026-11-15T17:21:29Z`, `2026-11-15`, `17:21:29.580411702`.
fn is_time(word: &str) -> bool {
    let shape: String = word
        .chars()
        .map(|letter| if letter.is_ascii_digit() { '0' } else { letter })
        .collect();
    let shape = shape.trim_end_matches('Z');
    let (whole, fraction) = shape.split_once('.').unwrap_or((shape, ""));
    fraction.chars().all(|letter| letter == '0')
        && matches!(whole, "0000-00-00T00:00:00" | "0000-00-00" | "00:00:00")
}

/// Whether a word is a duration: `5s`, `2m3s`, `4d`.
fn is_age(word: &str) -> bool {
    let mut digits = 0;
    let mut parts = 0;
    for letter in word.chars() {
        match letter {
            '0'..='9' => digits += 1,
            's' | 'm' | 'h' | 'd' | 'y' if digits > 0 => {
                digits = 0;
                parts += 1;
            }
            _ => return false,
        }
    }
    digits == 0 && parts > 0
}

/// Returns the masked port with its colon if the word is an IPv4 address; the text is empty if the address
/// has no port. Returns `None` if the word is not an IPv4 address.
fn masked_port(word: &str) -> Option<String> {
    let (address, port) = word.split_once(':').unwrap_or((word, ""));
    address.parse::<std::net::Ipv4Addr>().ok()?;
    // The port of the API server is random; the port of a Service is not.
    match port.parse::<u16>() {
        Ok(port) if port > 10_000 || port == 6443 => Some(":<port>".into()),
        Ok(port) => Some(format!(":{port}")),
        Err(_) => Some(String::new()),
    }
}

/// Masks generated suffixes of names and numbers in the names of temporary directories.
fn mask_names(word: &str) -> String {
    // The node of a pod depends on the order in which the scheduler considers the nodes.
    if let Some(number) = word.strip_prefix("node-")
        && number.parse::<u8>().is_ok()
    {
        return "node-<n>".into();
    }
    let mut parts: Vec<String> = word.split('-').map(str::to_owned).collect();
    let count = parts.len();
    if let [alone] = parts.as_mut_slice()
        && (8..=10).contains(&alone.len())
        && alone.chars().any(|letter| letter.is_ascii_digit())
        && alone.chars().all(|letter| GENERATED.contains(letter))
    {
        return "<hash>".into();
    }
    // A hash may consist of digits only, but `LIVE-464047952` and `MERGED-…` are names of temporary
    // directories.
    let temporary = word.starts_with(|letter: char| letter.is_ascii_uppercase());
    for (at, part) in parts.iter_mut().enumerate().skip(1) {
        let generated = part.chars().all(|letter| GENERATED.contains(letter));
        let digits = part.chars().all(|letter| letter.is_ascii_digit());
        if digits && part.len() > 6 && temporary {
            "<number>".clone_into(part);
        } else if generated && part.len() == 5 && at + 1 == count {
            "<id>".clone_into(part);
        } else if generated && (7..=10).contains(&part.len()) {
            "<hash>".clone_into(part);
        }
    }
    parts.join("-")
}

/// Masks dates such as `Sun, 15 Nov 2026 17:21:29 +0000`.
fn mask_dates(line: &str) -> String {
    let days = ["Mon, ", "Tue, ", "Wed, ", "Thu, ", "Fri, ", "Sat, ", "Sun, "];
    let length = "Sun, 15 Nov 2026 17:21:29 +0000".len();
    let mut line = line.to_owned();
    for day in days {
        while let Some(at) = line.find(day) {
            let end = at + length;
            if !line.is_char_boundary(end.min(line.len())) || end > line.len() {
                break;
            }
            line.replace_range(at..end, "<time>");
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, expected: &str) {
        assert_eq!(mask_line(line, "/some/directory"), expected, "{line}");
    }

    #[test]
    fn differing_parts_are_masked() {
        check(
            "web-69c95f8dcd-4mbht   1/1     Running   0          1s",
            "web-<hash>-<id>  1/1  Running  0  <age>",
        );
        check("pod/web-69c95f8dcd-4mbht created", "pod/web-<hash>-<id> created");
        check("replicaset.apps/web-5847967478", "replicaset.apps/web-<hash>");
        check(
            "CreationTimestamp:      Sun, 15 Nov 2026 17:21:29 +0000",
            "CreationTimestamp:  <time>",
        );
        check("  resourceVersion: \"12\"", "  resourceVersion: <version>");
        check(
            "--- /tmp/LIVE-464047952/a\t2026-11-15 17:21:29.58 +0000",
            "--- /tmp/LIVE-<number>/a\t<time> <time> +0000",
        );
        check(
            "running at https://127.0.0.1:42703",
            "running at https://<ip>:<port>",
        );
        check("  uid: 11111111-2222-3333-4444-555555555555", "  uid: <uid>");
        check("wrote /some/directory/x", "wrote <directory>/x");
    }

    #[test]
    fn other_parts_are_unchanged() {
        check("kube-node-lease   Active", "kube-node-lease  Active");
        check("deployment.apps/web configured", "deployment.apps/web configured");
        check(
            "Error from server (NotFound): pods \"x\" not found",
            "Error from server (NotFound): pods \"x\" not found",
        );
        check("  10.0 of 3", "  10.0 of 3");
    }
}
