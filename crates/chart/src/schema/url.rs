//! References: takes a base URL and a reference, gives the URL meant, as RFC 3986 has it.

use std::fmt::Write;

/// The part before `#` and the decoded part after it.
pub(super) fn split(reference: &str) -> Result<(&str, String), String> {
    let (url, fragment) = reference.split_once('#').unwrap_or((reference, ""));
    let decoded = percent_decode(fragment).ok_or_else(|| {
        let escape: String = invalid_escape(fragment);
        format!(
            "error in parsing {}: invalid URL escape {}",
            crate::go::quote(reference),
            crate::go::quote(&escape)
        )
    })?;
    Ok((url, decoded))
}

fn invalid_escape(text: &str) -> String {
    let bytes = text.as_bytes();
    let bad = |at: usize| !matches!(bytes.get(at + 1..at + 3), Some(pair) if pair.iter().all(u8::is_ascii_hexdigit));
    let at = (0..bytes.len())
        .find(|at| bytes.get(*at) == Some(&b'%') && bad(*at))
        .unwrap_or(0);
    text.get(at..).unwrap_or_default().chars().take(3).collect()
}

fn percent_decode(text: &str) -> Option<String> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte == b'%' {
            let high = char::from(bytes.next()?).to_digit(16)?;
            let low = char::from(bytes.next()?).to_digit(16)?;
            out.push((high * 16 + low) as u8);
        } else {
            out.push(byte);
        }
    }
    String::from_utf8(out).ok()
}

/// `reference` (without its fragment) as seen from `base`.
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
        let folder = path.rfind('/').map_or("/", |at| path.get(..=at).unwrap_or("/"));
        format!("{folder}{reference}")
    };
    format!("{scheme}://{authority}{}", without_dots(&merged))
}

/// The part before the first colon, if it is a scheme.
pub(super) fn scheme(url: &str) -> Option<&str> {
    let (scheme, _) = url.split_once(':')?;
    let valid = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
    valid.then_some(scheme)
}

fn without_dots(path: &str) -> String {
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

/// A fragment as it is written in messages.
pub(super) fn encode(fragment: &str) -> String {
    let mut out = String::with_capacity(fragment.len());
    for byte in fragment.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~$&+=:@/".contains(&byte) {
            out.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
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
        assert_eq!(split("a#b%20c"), Ok(("a", "b c".into())));
        assert!(split("a#%zz").is_err());
    }
}
