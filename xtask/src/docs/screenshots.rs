//! Opens the pages of the book in Chromium, and fails if a page scrolls sideways, logs an error or lacks an
//! image.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use mainstay_testkit::browser::{Browser, View};
use serde_json::{Value, json};

/// Widths of a desktop window and of a phone.
const WIDTHS: [u32; 2] = [1100, 390];
/// Maximum height of a screenshot: references are much longer.
const MAX_HEIGHT: u32 = 3_000;
/// Files that are not pages: the page for printing repeats all others, and the table of contents is a frame.
const NOT_PAGES: [&str; 3] = ["print.html", "404.html", "toc.html"];

/// Difference between the page's width and that of its window, images that are not loaded, and whether the
/// background is dark.
const STATE: &str = "(() => { const root = document.documentElement; return [
    root.scrollWidth - root.clientWidth,
    [...document.images].filter(it => !it.complete || it.naturalWidth === 0).map(it => it.src),
    Math.max(...getComputedStyle(root).backgroundColor.match(/[0-9.]+/g).slice(0, 3).map(Number)) < 128,
]; })()";

/// Takes a screenshot of each page of `book`, wide and narrow, light and dark.
pub(super) fn take(book: &Path, directory: &Path) -> anyhow::Result<usize> {
    let mut pages = Vec::new();
    find_pages(book, &mut pages)?;
    ensure!(!pages.is_empty(), "{} has no pages", book.display());
    pages.sort();
    fs::create_dir_all(directory)?;
    let mut browser = Browser::start()?;
    let (mut images, mut defects) = (0, Vec::new());
    for page in &pages {
        for width in WIDTHS {
            for dark in [false, true] {
                let view = View {
                    width,
                    dark,
                    ..View::default()
                };
                let name = image_name(page.strip_prefix(book)?, view);
                browser.open(page, view)?;
                let found = defects_of(&mut browser, dark)?;
                defects.extend(found.into_iter().map(|defect| format!("{name}: {defect}")));
                let picture = browser.screenshot_of_top(MAX_HEIGHT)?;
                fs::write(directory.join(name), picture.png)?;
                images += 1;
            }
        }
    }
    for defect in &defects {
        println!("{defect}");
    }
    ensure!(defects.is_empty(), "{} defects", defects.len());
    Ok(images)
}

fn find_pages(directory: &Path, pages: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    let entries = fs::read_dir(directory).with_context(|| directory.display().to_string())?;
    for entry in entries {
        let path = entry?.path();
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        if path.is_dir() {
            find_pages(&path, pages)?;
        } else if path.extension().is_some_and(|ending| ending == "html")
            && !NOT_PAGES.contains(&name.as_str())
        {
            pages.push(path);
        }
    }
    Ok(())
}

/// Returns the name of a screenshot: `reference-cli-390-dark.png`.
fn image_name(page: &Path, view: View) -> String {
    let page = page.with_extension("").display().to_string().replace('/', "-");
    let scheme = if view.dark { "dark" } else { "light" };
    format!("{page}-{}-{scheme}.png", view.width)
}

/// Returns the defects of the open page.
fn defects_of(browser: &mut Browser, dark: bool) -> anyhow::Result<Vec<String>> {
    let state = browser.evaluate(STATE)?;
    let part = |index: usize| state.get(index).cloned().unwrap_or_default();
    let mut defects = Vec::new();
    if part(0) != json!(0) {
        defects.push(format!("scrolls sideways by {} pixels", part(0)));
    }
    if part(1) != json!([]) {
        defects.push(format!("images are missing: {}", part(1)));
    }
    if part(2) != json!(dark) {
        defects.push("ignores the color scheme".to_owned());
    }
    let errors: Vec<Value> = browser.console_errors();
    defects.extend(errors.iter().map(|error| format!("logs {error}")));
    Ok(defects)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Opens a page with `body` on a phone and returns its defects.
    fn check(body: &str) -> Vec<String> {
        let directory = tempfile::tempdir().unwrap();
        let page = directory.path().join("page.html");
        let text = format!("<!DOCTYPE html><html style='background: white'><body>{body}</body></html>");
        fs::write(&page, text).unwrap();
        let mut browser = Browser::start().unwrap();
        let view = View {
            width: 390,
            ..View::default()
        };
        browser.open(&page, view).unwrap();
        defects_of(&mut browser, false).unwrap()
    }

    #[test]
    fn defects_of_pages_are_found() {
        assert_eq!(check("<p>text</p>"), [""; 0]);
        let wide = check("<div style='width: 500px'>x</div>");
        assert!(
            wide.len() == 1 && wide[0].starts_with("scrolls sideways"),
            "{wide:?}"
        );
        let image = check("<img src='none.png'>");
        assert!(
            image.iter().any(|defect| defect.contains("none.png")),
            "{image:?}"
        );
        let error = check("<script>throw new Error('broken')</script>");
        assert!(error.len() == 1 && error[0].contains("broken"), "{error:?}");
        let dark = check("<style>html { background: #111 !important }</style>");
        assert_eq!(dark, ["ignores the color scheme"]);
    }

    #[test]
    fn names_contain_page_width_and_scheme() {
        let view = View {
            width: 390,
            dark: true,
            ..View::default()
        };
        let name = image_name(Path::new("reference/cli.html"), view);
        assert_eq!(name, "reference-cli-390-dark.png");
    }
}
