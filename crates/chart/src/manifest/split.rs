//! Splitting of a stream of YAML documents with Helm's regular expressions, which differ from YAML's rules.

/// Splits `text` as Helm 4 does; see [`Dialect::split_documents`](crate::Dialect).
pub(crate) fn split_lines(text: &[u8]) -> Vec<&[u8]> {
    let mut rest = trim_start(text);
    let mut documents = Vec::new();
    if let Some(after) = rest.strip_prefix(b"---") {
        rest = without_blanks(after);
    }
    while let Some(newline) = find(rest, b"\n---") {
        push_untrimmed(rest.get(..=newline).unwrap_or_default(), &mut documents);
        rest = without_blanks(rest.get(newline + 4..).unwrap_or_default());
    }
    push_untrimmed(rest, &mut documents);
    documents
}

fn push_untrimmed<'a>(document: &'a [u8], documents: &mut Vec<&'a [u8]>) {
    let document = trim_start(document);
    if !document.is_empty() {
        documents.push(document);
    }
}

fn without_blanks(text: &[u8]) -> &[u8] {
    let blanks = text
        .iter()
        .take_while(|byte| matches!(byte, b' ' | b'\t'))
        .count();
    text.get(blanks..).unwrap_or_default()
}

/// Splits `text` as Helm 3 does; see [`Dialect::split_documents`](crate::Dialect).
pub(crate) fn split_trimmed(text: &[u8]) -> Vec<&[u8]> {
    let mut rest = trim(text);
    let mut documents = Vec::new();
    if let Some(after) = rest.strip_prefix(b"---") {
        rest = trim_ascii_start(after);
    }
    while let Some(newline) = find(rest, b"\n---") {
        push_trimmed(
            trim_ascii_end(rest.get(..newline).unwrap_or_default()),
            &mut documents,
        );
        rest = trim_ascii_start(rest.get(newline + 4..).unwrap_or_default());
    }
    push_trimmed(rest, &mut documents);
    documents
}

fn push_trimmed<'a>(document: &'a [u8], documents: &mut Vec<&'a [u8]>) {
    if !document.is_empty() {
        documents.push(trim(document));
    }
}

/// Whether `byte` matches RE2's `\s`.
fn is_ascii_space(byte: u8) -> bool {
    matches!(byte, b'\t' | b'\n' | b'\x0c' | b'\r' | b' ')
}

fn trim_ascii_start(text: &[u8]) -> &[u8] {
    let blanks = text.iter().take_while(|byte| is_ascii_space(**byte)).count();
    text.get(blanks..).unwrap_or_default()
}

fn trim_ascii_end(text: &[u8]) -> &[u8] {
    let blanks = text
        .iter()
        .rev()
        .take_while(|byte| is_ascii_space(**byte))
        .count();
    text.get(..text.len() - blanks).unwrap_or_default()
}

fn find(text: &[u8], wanted: &[u8]) -> Option<usize> {
    memchr::memmem::find(text, wanted)
}

/// Removes white space at both ends, as Go's `strings.TrimSpace` does.
pub(crate) fn trim(text: &[u8]) -> &[u8] {
    trim_end(trim_start(text))
}

/// Removes trailing white space, as Go's `strings.TrimRightFunc` with `unicode.IsSpace` does.
pub(crate) fn trim_end(mut text: &[u8]) -> &[u8] {
    while let Some(shorter) = without_last_space(text) {
        text = shorter;
    }
    text
}

/// Removes leading white space, as Go's `strings.TrimLeftFunc` with `unicode.IsSpace` does.
pub(crate) fn trim_start(mut text: &[u8]) -> &[u8] {
    while let Some(shorter) = without_first_space(text) {
        text = shorter;
    }
    text
}

fn without_first_space(text: &[u8]) -> Option<&[u8]> {
    let first = *text.first()?;
    if first.is_ascii() {
        return text.get(1..).filter(|_| char::from(first).is_whitespace());
    }
    // No white space character is longer than three bytes.
    (2..=3).find_map(|length| is_space(text.get(..length)?).then(|| text.get(length..))?)
}

fn without_last_space(text: &[u8]) -> Option<&[u8]> {
    let last = *text.last()?;
    if last.is_ascii() {
        return text
            .get(..text.len() - 1)
            .filter(|_| char::from(last).is_whitespace());
    }
    (2..=3).find_map(|length| {
        let cut = text.len().checked_sub(length)?;
        is_space(text.get(cut..)?).then(|| text.get(..cut))?
    })
}

fn is_space(bytes: &[u8]) -> bool {
    let mut chars = std::str::from_utf8(bytes).unwrap_or_default().chars();
    matches!((chars.next(), chars.next()), (Some(c), None) if c.is_whitespace())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::Dialect;

    fn check(text: &str, helm4: &[&str], helm3: &[&str]) {
        let found = |dialect: Dialect| -> Vec<String> {
            dialect
                .split_documents(text.as_bytes())
                .iter()
                .map(|bytes| String::from_utf8_lossy(bytes).into_owned())
                .collect()
        };
        assert_eq!(found(Dialect::Helm4), helm4, "{text:?} as Helm 4");
        assert_eq!(found(Dialect::Helm3), helm3, "{text:?} as Helm 3");
    }

    #[test]
    fn separators_differ_between_dialects() {
        check("", &[], &[]);
        check(" \n\t", &[], &[]);
        check("a\n", &["a\n"], &["a"]);
        check("\n---\na\n---\nb\n\n", &["a\n", "b\n\n"], &["a", "b"]);
        check("a\n---\n---\nb", &["a\n", "b"], &["a", "---\nb"]);
        check("---\n---\nb", &["b"], &["---\nb"]);
        check(
            "a\n---b: c\n----\n",
            &["a\n", "b: c\n", "-\n"],
            &["a", "b: c", "-"],
        );
        check("a\n --- \nb", &["a\n --- \nb"], &["a\n --- \nb"]);
        check("a---\nb", &["a---\nb"], &["a---\nb"]);
        check("\u{a0}\u{2003}a\u{3000}", &["a\u{3000}"], &["a"]);
        check("a\r\n---\r\nb", &["a\r\n", "b"], &["a", "b"]);
        check("--- ---\n------\n", &["---\n", "---\n"], &["---", "---"]);
        check("--- # c\na", &["# c\na"], &["# c\na"]);
    }

    #[test]
    fn invalid_utf8_is_not_trimmed() {
        assert_eq!(trim(b" \xffa\xc2 "), b"\xffa\xc2");
    }
}
