//! Implementation of `--show-only`: selects printed documents by the path of their template.

use mainstay_gostd::path::match_path;

use crate::error::ChartError;

/// Returns the documents that match each pattern, in the order of the patterns.
pub(super) fn select(documents: &[&[u8]], patterns: &[String]) -> Result<Vec<u8>, ChartError> {
    let documents: Vec<(&[u8], Option<&str>)> = documents
        .iter()
        .map(|document| (*document, source(document)))
        .collect();
    let mut out = Vec::new();
    for wanted in patterns {
        let before = out.len();
        for (document, source) in &documents {
            if source.is_some_and(|source| match_path(wanted, source).unwrap_or(false)) {
                out.extend_from_slice(b"---\n");
                out.extend_from_slice(document);
                out.push(b'\n');
            }
        }
        if out.len() == before {
            return Err(ChartError::NoSuchTemplate(wanted.clone()));
        }
    }
    Ok(out)
}

/// Returns the path in the first `# Source: chart/path` of a document, relative to the chart's directory.
fn source(document: &[u8]) -> Option<&str> {
    const MARKER: &[u8] = b"# Source: ";
    let mut rest = document;
    while let Some(found) = memchr::memmem::find(rest, MARKER) {
        rest = rest.get(found + MARKER.len()..)?;
        let slash = memchr::memchr(b'/', rest);
        let path = slash
            .filter(|slash| *slash > 0)
            .and_then(|slash| rest.get(slash + 1..));
        let line = path.map(|path| path.split(|byte| *byte == b'\n').next().unwrap_or_default());
        if let Some(line) = line.filter(|line| !line.is_empty()) {
            return std::str::from_utf8(line).ok();
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::Dialect;

    const TEXT: &str = "---\n# Source: c/templates/a.yaml\na: 1\n---\n# Source: c/charts/d/templates/a.yaml\na: 2\n---\n# Source: c/templates/b.yaml\nb: 1\n---\n# none\n";

    fn check(patterns: &[&str], expected: Result<&str, &str>) {
        let patterns: Vec<String> = patterns.iter().map(ToString::to_string).collect();
        let documents = Dialect::Helm3.split_documents(TEXT.as_bytes());
        let found = select(&documents, &patterns);
        let found = found
            .map(|text| String::from_utf8(text).unwrap())
            .map_err(|error| error.to_string());
        assert_eq!(found.as_deref().map_err(String::as_str), expected);
    }

    #[test]
    fn documents_are_selected_in_the_order_of_patterns() {
        check(
            &["templates/a.yaml"],
            Ok("---\n# Source: c/templates/a.yaml\na: 1\n"),
        );
        check(
            &["templates/b.yaml", "charts/*/templates/*"],
            Ok("---\n# Source: c/templates/b.yaml\nb: 1\n---\n# Source: c/charts/d/templates/a.yaml\na: 2\n"),
        );
    }

    #[test]
    fn a_pattern_without_a_match_is_an_error() {
        check(
            &["templates/a.yaml", "templates/c.yaml"],
            Err("could not find template templates/c.yaml in chart"),
        );
        check(
            &["c/templates/a.yaml"],
            Err("could not find template c/templates/a.yaml in chart"),
        );
        check(
            &["templates/[a"],
            Err("could not find template templates/[a in chart"),
        );
    }
}
