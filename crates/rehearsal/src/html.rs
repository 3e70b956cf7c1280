//! Renders a report as a single self-contained HTML page without scripts, fonts, images or network access.
//!
//! Names come from clusters and files and may contain any characters, so every string is escaped by
//! [`text`]. The size of the page is bounded: rows beyond a limit are counted instead of drawn, and
//! failures are drawn first.

mod changes;
mod gantt;
mod headline;
mod scale;
mod services;
mod tables;
#[cfg(test)]
mod tests;
mod text;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};

use crate::report::Report;
use text::text;

/// Style sheet for light and dark screens and for print.
const STYLE: &str = include_str!("html/style.css");

/// Fill patterns, so that failures are not shown by color alone.
const PATTERNS: &str = r#"<svg class="patterns" aria-hidden="true" width="0" height="0"><defs>
<pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect class="hatch-ground" width="6" height="6"/><rect class="hatch-line" width="2.5" height="6"/></pattern>
<pattern id="dots" width="6" height="6" patternUnits="userSpaceOnUse"><rect class="dots-ground" width="6" height="6"/><circle class="dots-dot" cx="3" cy="3" r="1.3"/></pattern>
</defs></svg>
"#;

/// Footer of a page: the origin of the report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Footer {
    /// Date of the rehearsal.
    pub date: String,
    /// Version of Mainstay.
    pub version: String,
    /// Command that wrote the page.
    pub command: String,
}

/// Renders the page. Without a footer, equal reports produce equal pages.
#[must_use]
pub fn page(report: &Report, footer: Option<&Footer>) -> String {
    let mut out = render_head(report);
    out.push_str(PATTERNS);
    out.push_str("<main>\n");
    for section in [
        headline::section,
        tables::findings,
        gantt::section,
        services::section,
        changes::section,
        tables::details,
    ] {
        out.push_str(&section(report));
    }
    out.extend(footer.map(|footer| render_footer(report, footer)));
    out.push_str("</main>\n</body>\n</html>\n");
    out
}

fn render_footer(report: &Report, footer: &Footer) -> String {
    format!(
        "<footer>\n<p>Rehearsed on {} by Mainstay {}: Istio {} to {}.</p>\n<pre><span>{}</span></pre>\n</footer>\n",
        text(&footer.date),
        text(&footer.version),
        text(&report.upgrade.from),
        text(&report.upgrade.to),
        text(&footer.command)
    )
}

fn render_head(report: &Report) -> String {
    let upgrade = &report.upgrade;
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'sha256-{}'; base-uri 'none'; form-action 'none'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta name=\"referrer\" content=\"no-referrer\">\n\
         <title>Rehearsal: {} {} to {}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n",
        STANDARD.encode(Sha256::digest(STYLE)),
        text(&upgrade.istio),
        text(&upgrade.from),
        text(&upgrade.to),
    )
}

fn section(id: &str, title: &str, lead: &str, body: &str) -> String {
    let lead = if lead.is_empty() {
        String::new()
    } else {
        format!("<p class=\"lead\">{}</p>\n", text(lead))
    };
    format!(
        "<section id=\"{id}\">\n<h2>{}</h2>\n{lead}{body}</section>\n",
        text(title)
    )
}

/// Formats a count with a regular plural: `1 batch`, `2 batches`.
fn pluralize(count: usize, one: &str) -> String {
    let end = match (count, one) {
        (1, _) => "",
        (_, one) if one.ends_with("ch") => "es",
        _ => "s",
    };
    format!("{count} {one}{end}")
}
