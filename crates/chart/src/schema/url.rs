//! Resolution of references relative to a base URL, as defined by RFC 3986.

use mainstay_gostd::url::{Component, path_escape, unescape};
use mainstay_gostd::utf8::to_string_lossy;

use super::error::SchemaError;

/// Splits a reference at `#`. Returns the part before it, and the decoded part after it.
pub(super) fn split(reference: &str) -> Result<(&str, String), SchemaError> {
    let (url, fragment) = reference.split_once('#').unwrap_or((reference, ""));
    let decoded = unescape(fragment.as_bytes(), Component::Fragment).map_err(|reason| {
        SchemaError::InvalidReference {
            reference: reference.into(),
            reason,
        }
    })?;
    Ok((url, to_string_lossy(&decoded).into_owned()))
}

/// Resolves `reference` relative to `base`. The reference must not have a fragment.
pub(super) fn join(base: &str, reference: &str) -> String {
    if reference.is_empty() || scheme(reference).is_some() {
        return if reference.is_empty() {
            base.into()
        } else {
            reference.into()
        };
    }
    let Some(scheme) = scheme(base) else {
        return reference.into();
    };
    let rest = base.get(scheme.len() + 1..).unwrap_or_default();
    if let Some(network) = reference.strip_prefix("//") {
        return format!("{scheme}://{network}");
    }
    let Some(rest) = rest.strip_prefix("//") else {
        return base.into();
    };
    let (authority, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
    let merged = if reference.starts_with('/') {
        reference.to_owned()
    } else {
        let directory = path.rfind('/').map_or("/", |at| path.get(..=at).unwrap_or("/"));
        format!("{directory}{reference}")
    };
    format!("{scheme}://{authority}{}", remove_dots(&merged))
}

/// Returns the scheme of a URL, if it has one.
pub(super) fn scheme(url: &str) -> Option<&str> {
    let (scheme, _) = url.split_once(':')?;
    let valid = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
    valid.then_some(scheme)
}

fn remove_dots(path: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    let mut parts = path.split('/').skip(1).peekable();
    while let Some(part) = parts.next() {
        let last = parts.peek().is_none();
        match part {
            "." | ".." => {
                if part == ".." {
                    kept.pop();
                }
                if last {
                    kept.push("");
                }
            }
            part => kept.push(part),
        }
    }
    format!("/{}", kept.join("/"))
}

/// Escapes a fragment for messages, separately for each segment.
pub(super) fn encode(fragment: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-_.~$".contains(&byte);
    if fragment.bytes().all(is_plain) {
        return fragment.to_owned();
    }
    let segments: Vec<String> = fragment.split('/').map(path_escape).collect();
    segments.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_resolve() {
        let check = |base: &str, reference: &str, expected: &str| assert_eq!(join(base, reference), expected);
        check("file:///values.schema.json", "x.json", "file:///x.json");
        check("file:///values.schema.json", "", "file:///values.schema.json");
        check("http://a/b/c", "../d", "http://a/d");
        check("http://a/b/c", "/d", "http://a/d");
        check("http://a/b/c", "//e/f", "http://e/f");
        check("http://a/b/c", "urn:x:y", "urn:x:y");
        assert_eq!(split("a#b%20c").unwrap(), ("a", "b c".into()));
        assert!(split("a#%zz").is_err());
    }

    #[test]
    fn fragments_are_escaped_by_segment() {
        let check = |fragment: &str, expected: &str| assert_eq!(encode(fragment), expected);
        check("/$defs/a_b-c.d~1", "/$defs/a_b-c.d~1");
        check("/a b/%", "/a%20b/%25");
        check("/é", "/%C3%A9");
    }
}
