//! Formats error reports with the source line and a caret.

/// Formats a report about the position `at`, in characters.
pub(super) fn report(source: &str, at: usize, message: &str) -> String {
    let (mut line, mut start) = (1, 0);
    for (index, c) in source.chars().enumerate() {
        if index >= at {
            break;
        }
        if c == '\n' {
            line += 1;
            start = index + 1;
        }
    }
    let column = at - start.min(at);
    let text = source.split('\n').nth(line - 1).unwrap_or("");
    let shown = text.replace('\t', " ");
    let mut marker = String::new();
    for c in text.chars().take(column) {
        marker.push(if c.len_utf8() > 1 { '．' } else { '.' });
    }
    let wide = text.chars().nth(column).is_some_and(|c| c.len_utf8() > 1);
    marker.push(if wide { '＾' } else { '^' });
    format!(
        "ERROR: <input>:{line}:{}: {message}\n | {shown}\n | {marker}",
        column + 1
    )
}
