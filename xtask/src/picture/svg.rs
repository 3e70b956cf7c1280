//! Terminal lines with colors as an animated SVG.

use std::fmt::Write as _;
use std::time::Duration;

use super::Line;

/// Visible lines.
const ROWS: usize = 32;
const LINE_HEIGHT: usize = 18;
const CHARACTER_WIDTH: f64 = 7.83;
const MARGIN: usize = 16;
const TITLE_HEIGHT: usize = 28;

/// Duration of the last frame before the recording restarts.
const LAST_FRAME_DURATION: Duration = Duration::from_secs(5);

/// Returns the recording of `lines` on a terminal with `columns` columns.
pub(super) fn animate(lines: &[Line], columns: usize) -> String {
    let lines: Vec<Line> = lines.iter().flat_map(|line| wrap(line, columns)).collect();
    let width = (columns as f64 * CHARACTER_WIDTH) as usize + 2 * MARGIN;
    let height = TITLE_HEIGHT + ROWS * LINE_HEIGHT + 2 * MARGIN;
    let last = lines.last().map_or(Duration::ZERO, |line| line.time);
    let length = last + LAST_FRAME_DURATION;
    let mut out = format!(
        r##"<svg xmlns="http://www.w3.org/2000/svg" xml:space="preserve" viewBox="0 0 {width} {height}" role="img" aria-label="Recording of mainstay demo">
<style>
text {{ font: 13px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; fill: #d4d8de; white-space: pre; }}
.b {{ font-weight: bold; }} .d {{ fill: #8a929c; }}
.c1 {{ fill: #ff7b72; }} .c2 {{ fill: #7ee787; }} .c3 {{ fill: #e3b341; }} .c4 {{ fill: #79c0ff; }} .c5 {{ fill: #d2a8ff; }} .c6 {{ fill: #56d4dd; }}
#lines {{ animation: print {:.1}s steps(1, end) infinite; transform: translateY({}px); }}
@keyframes print {{
{}}}
@media (prefers-reduced-motion: reduce) {{ #lines {{ animation: none; }} }}
</style>
<rect width="{width}" height="{height}" rx="8" fill="#0d1117"/>
<circle cx="18" cy="15" r="5" fill="#ff5f57"/><circle cx="36" cy="15" r="5" fill="#febc2e"/><circle cx="54" cy="15" r="5" fill="#28c840"/>
<clipPath id="screen"><rect x="0" y="{TITLE_HEIGHT}" width="{width}" height="{}"/></clipPath>
<g clip-path="url(#screen)"><g id="lines">
"##,
        length.as_secs_f64(),
        offset(lines.len()),
        keyframes(&lines, length),
        ROWS * LINE_HEIGHT + MARGIN,
    );
    for (index, line) in lines.iter().enumerate() {
        let y = TITLE_HEIGHT + MARGIN + (index + 1) * LINE_HEIGHT - 5;
        let _ = writeln!(out, r#"<text x="{MARGIN}" y="{y}">{}</text>"#, spans(&line.text));
    }
    out.push_str("</g></g>\n</svg>\n");
    out
}

/// Splits a line at the width of the terminal. Colors continue on the next line.
fn wrap(line: &Line, columns: usize) -> Vec<Line> {
    let mut rows = vec![String::new()];
    let (mut style, mut width) = (String::new(), 0);
    let mut rest = line.text.as_str();
    while let Some(first) = rest.chars().next() {
        let sequence = color_sequence(rest);
        let (piece, tail) = rest.split_at(sequence.unwrap_or(first.len_utf8()));
        rest = tail;
        match sequence {
            Some(_) if piece == "\u{1b}[0m" => style.clear(),
            Some(_) => style.push_str(piece),
            None => {
                if width == columns {
                    rows.push(style.clone());
                    width = 0;
                }
                width += 1;
            }
        }
        if let Some(row) = rows.last_mut() {
            row.push_str(piece);
        }
    }
    let time = line.time;
    rows.into_iter().map(|text| Line { time, text }).collect()
}

/// Returns the length of the color sequence at the start of `text`, if there is one.
fn color_sequence(text: &str) -> Option<usize> {
    let (codes, _) = text.strip_prefix("\u{1b}[")?.split_once('m')?;
    Some(codes.len() + 3)
}

/// Returns the vertical position of all lines after `printed` of them: the newest is at the bottom.
fn offset(printed: usize) -> isize {
    (ROWS as isize - printed as isize) * LINE_HEIGHT as isize
}

/// Returns one keyframe per time at which lines were printed.
fn keyframes(lines: &[Line], length: Duration) -> String {
    let mut out = format!("0% {{ transform: translateY({}px); }}\n", offset(0));
    let mut previous = String::from("0.00");
    for (index, line) in lines.iter().enumerate() {
        let percent = format!("{:.2}", line.time.as_secs_f64() / length.as_secs_f64() * 100.0);
        // Lines of one write are one step, which the last of these lines determines.
        let next = lines.get(index + 1);
        let is_last = next.is_none_or(|next| {
            format!("{:.2}", next.time.as_secs_f64() / length.as_secs_f64() * 100.0) != percent
        });
        if is_last && percent != previous {
            let _ = writeln!(
                out,
                "{percent}% {{ transform: translateY({}px); }}",
                offset(index + 1)
            );
            previous = percent;
        }
    }
    let _ = writeln!(
        out,
        "100% {{ transform: translateY({}px); }}",
        offset(lines.len())
    );
    out
}

/// Converts a line with escape sequences for colors into SVG spans.
fn spans(line: &str) -> String {
    let mut out = String::new();
    let mut classes: Vec<String> = Vec::new();
    let mut rest = line;
    while !rest.is_empty() {
        let end = rest.find('\u{1b}').unwrap_or(rest.len());
        let (text, tail) = rest.split_at(end);
        push_text(&mut out, text, &classes);
        rest = match tail.strip_prefix("\u{1b}[").and_then(|tail| tail.split_once('m')) {
            Some((codes, tail)) => {
                codes.split(';').for_each(|code| apply(code, &mut classes));
                tail
            }
            None => tail.get(1..).unwrap_or_default(),
        };
    }
    out
}

/// Applies one code of a "select graphic rendition" sequence.
fn apply(code: &str, classes: &mut Vec<String>) {
    match code {
        "" | "0" => classes.clear(),
        "1" => classes.push("b".into()),
        "2" => classes.push("d".into()),
        code => {
            let color = code.strip_prefix('3').or_else(|| code.strip_prefix('9'));
            if let Some(color @ ("1" | "2" | "3" | "4" | "5" | "6")) = color {
                classes.push(format!("c{color}"));
            }
        }
    }
}

fn push_text(out: &mut String, text: &str, classes: &[String]) {
    if text.is_empty() {
        return;
    }
    let escaped = text
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;");
    if classes.is_empty() {
        out.push_str(&escaped);
    } else {
        let _ = write!(out, r#"<tspan class="{}">{escaped}</tspan>"#, classes.join(" "));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colors_become_spans() {
        let line = "\u{1b}[1m\u{1b}[34m[00:05]\u{1b}[0m a < b";
        assert_eq!(spans(line), r#"<tspan class="b c4">[00:05]</tspan> a &lt; b"#);
    }

    #[test]
    fn long_lines_continue_on_the_next_one_with_their_color() {
        let line = Line {
            time: Duration::ZERO,
            text: "ab\u{1b}[1m\u{1b}[34mcdefg\u{1b}[0mhi".into(),
        };
        let rows: Vec<String> = wrap(&line, 4).into_iter().map(|line| line.text).collect();
        let expected = ["ab\u{1b}[1m\u{1b}[34mcd", "\u{1b}[1m\u{1b}[34mefg\u{1b}[0mh", "i"];
        assert_eq!(rows, expected);
        let image = animate(&[line], 4);
        assert_eq!(image.matches("<text ").count(), 3, "{image}");
        let empty = Line {
            time: Duration::ZERO,
            text: String::new(),
        };
        assert_eq!(wrap(&empty, 4).len(), 1, "empty lines are kept");
    }

    #[test]
    fn lines_printed_together_move_once() {
        let line = |milliseconds| Line {
            time: Duration::from_millis(milliseconds),
            text: "x".into(),
        };
        let frames = keyframes(&[line(1000), line(1000), line(2000)], Duration::from_secs(4));
        assert_eq!(frames.lines().count(), 4, "{frames}");
        assert!(frames.contains(&format!("25.00% {{ transform: translateY({}px); }}", offset(2))));
    }
}
