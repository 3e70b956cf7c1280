//! Text that the README's picture of a rehearsal's report shows, without a browser.

/// Sections that the picture leaves out.
pub const LEFT_OUT: [&str; 3] = ["services", "changes", "details"];

/// Elements whose text continues the line.
const INLINE: &[&str] = &["a", "b", "code", "em", "i", "small", "span", "strong", "time"];

/// Elements whose content is not text.
const HIDDEN: &[&str] = &["head", "style", "title", "desc"];

/// Returns the text of a report page, one line per block, without the sections of [`LEFT_OUT`] and the date.
#[must_use]
pub fn shown(page: &str) -> String {
    let mut page = page.to_owned();
    for id in LEFT_OUT {
        cut(&mut page, &format!("<section id=\"{id}\">"), "</section>");
    }
    for name in HIDDEN {
        while cut(&mut page, &format!("<{name}>"), &format!("</{name}>")) {}
    }
    let lines = text(&page);
    let lines = lines.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.map(|line| without_date(line) + "\n").collect()
}

/// Removes the first part of `text` from `start` to `end`. Returns whether there was one.
fn cut(text: &mut String, start: &str, end: &str) -> bool {
    let Some(from) = text.find(start) else {
        return false;
    };
    let length = text[from..]
        .find(end)
        .map_or(text.len() - from, |at| at + end.len());
    text.replace_range(from..from + length, "");
    true
}

/// Removes tags. Elements that are not inline end the line.
fn text(page: &str) -> String {
    let mut out = String::new();
    let mut rest = page;
    while let Some((before, tail)) = rest.split_once('<') {
        push(&mut out, before);
        let (tag, tail) = tail.split_once('>').unwrap_or((tail, ""));
        let name = tag.trim_start_matches('/');
        let name = name.split([' ', '\n', '/']).next().unwrap_or_default();
        if !INLINE.contains(&name) {
            out.push('\n');
        }
        rest = tail;
    }
    push(&mut out, rest);
    out
}

/// Appends text with its entities replaced; a line break in the source is a space.
fn push(out: &mut String, text: &str) {
    let text = text.replace('\n', " ");
    let text = text.replace("&lt;", "<").replace("&gt;", ">");
    let text = text.replace("&quot;", "\"").replace("&#39;", "'");
    out.push_str(&text.replace("&amp;", "&"));
}

/// Replaces the date of the footer.
fn without_date(line: &str) -> String {
    let rest = line.strip_prefix("Rehearsed on ");
    match rest.and_then(|rest| rest.split_once(" by ")) {
        Some((_, rest)) => format!("Rehearsed on DATE by {rest}"),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_has_a_line_per_block() {
        let page = "<html><head><title>T</title></head><body>\n<h1>a <span class=\"x\">b</span></h1>\n\
             <section id=\"findings\">\n<p>1 &lt; 2 &amp;amp;</p>\n</section>\n\
             <section id=\"changes\">\n<p>c</p>\n</section>\n\
             <footer>\n<p>Rehearsed on 2026-01-02 by Mainstay 1.</p></footer></body></html>";
        let expected = "a b\n1 < 2 &amp;\nRehearsed on DATE by Mainstay 1.\n";
        assert_eq!(shown(page), expected);
    }
}
