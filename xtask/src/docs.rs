//! `cargo xtask docs`: builds the documentation as a book into `target/docs/book`.
//!
//! Its pages are `docs/`, those at the top of the repository, and references that are generated from the
//! command tree and the CRDs.

mod crds;
mod screenshots;

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail, ensure};
use mainstay_testkit::repository_root;
use serde_json::Value;

use crate::build::{self, Profile};
use crate::tidy;
use crate::tool::Tool;

const MDBOOK: Tool = Tool {
    name: "mdbook",
    version: "0.5.4",
    options: &["--no-default-features", "--features", "search"],
};

/// Settings of the book. Its pages request nothing: a playground would list crates from its server.
const BOOK: &str = "[book]\ntitle = \"Mainstay\"\nlanguage = \"en\"\n\n[output.html]\nno-section-label = true\nadditional-css = [\"book.css\"]\n\n[output.html.playground]\nrunnable = false\n";

/// Style sheet: tables fit phones and are aligned with the text.
const STYLE: &str = include_str!("docs/book.css");

/// The table of contents, without the generated pages of kinds.
const SUMMARY: &str = include_str!("docs/summary.txt");

/// Pages at the top of the repository, with their names in the book.
const TOP_PAGES: &[(&str, &str)] = &[
    ("README.md", "index.md"),
    ("ARCHITECTURE.md", "ARCHITECTURE.md"),
    ("CHANGELOG.md", "CHANGELOG.md"),
    ("CODE_OF_CONDUCT.md", "CODE_OF_CONDUCT.md"),
    ("COMPATIBILITY.md", "COMPATIBILITY.md"),
    ("CONTRIBUTING.md", "CONTRIBUTING.md"),
    ("SECURITY.md", "SECURITY.md"),
];

/// Directories with the CRDs that are installed.
const DEFINITIONS: &[&str] = &["deploy/chart/crds", "deploy/delivery", "deploy/istio-operator"];

#[derive(clap::Args, Default)]
pub(crate) struct Arguments {
    /// Generate the reference of commands with this binary instead of building one
    #[arg(long)]
    binary: Option<PathBuf>,
    /// Open every page in Chromium, write screenshots to this directory, and fail if a page has a defect
    #[arg(long, value_name = "DIR")]
    screenshots: Option<PathBuf>,
}

/// Builds the book with the given binary, or with a new one.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let binary = match &arguments.binary {
        Some(binary) => binary.clone(),
        None => build::mainstay_binary(Profile::Dev)?,
    };
    build(&binary)?;
    if let Some(directory) = &arguments.screenshots {
        let images = take_screenshots(directory)?;
        println!("{images} screenshots in {}", directory.display());
    }
    Ok(())
}

/// Opens every page of the built book in Chromium and writes screenshots; returns their number.
pub(crate) fn take_screenshots(directory: &Path) -> anyhow::Result<usize> {
    screenshots::take(&repository_root().join("target/docs/book"), directory)
}

/// Assembles the sources, checks their links and builds the book; returns the number of pages. `binary`
/// prints the reference of commands.
pub(crate) fn build(binary: &Path) -> anyhow::Result<usize> {
    let root = repository_root();
    let directory = root.join("target/docs");
    let source = directory.join("src");
    if source.exists() {
        fs::remove_dir_all(&source)?;
    }
    fs::create_dir_all(source.join("reference"))?;
    fs::write(directory.join("book.toml"), BOOK)?;
    fs::write(directory.join("book.css"), STYLE)?;
    fs::write(source.join("SUMMARY.md"), SUMMARY)?;
    copy_pages(&root, &source)?;
    write_references(&root, &source, binary)?;
    check_links(&source)?;
    build_book(&directory)?;
    let summary = fs::read_to_string(source.join("SUMMARY.md"))?;
    Ok(summary.matches("](").count())
}

/// Copies all pages, with links that fit the flat directory.
fn copy_pages(root: &Path, source: &Path) -> anyhow::Result<()> {
    for (page, name) in TOP_PAGES {
        let text = fs::read_to_string(root.join(page)).with_context(|| (*page).to_owned())?;
        fs::write(source.join(name), relink(&text, ""))?;
    }
    for entry in fs::read_dir(root.join("docs"))? {
        let path = entry?.path();
        let name = path.file_name().context("a file without a name")?.to_owned();
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("md") => fs::write(source.join(&name), relink(&fs::read_to_string(&path)?, "docs/"))?,
            Some(_) => fs::write(source.join(&name), fs::read(&path)?)?,
            None => copy_directory(&path, &source.join(&name))?,
        }
    }
    Ok(())
}

/// Copies pictures and examples.
fn copy_directory(from: &Path, to: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_directory(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

/// Rewrites the relative links of a page in `directory`: links to pages of the book become names, links to
/// other files become URLs in the repository.
fn relink(text: &str, directory: &str) -> String {
    rewrite_links(text, |target| link(target, directory))
}

/// Replaces the target of each link of a page.
pub(crate) fn rewrite_links(text: &str, link: impl Fn(&str) -> String) -> String {
    let mut parts = text.split("](");
    let mut linked = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        linked += "](";
        match part.split_once(')') {
            Some((target, rest)) => linked.extend([&link(target), ")", rest]),
            None => linked += part,
        }
    }
    linked
}

/// Returns the URL of a file in the repository.
pub(crate) fn repository_url(path: &str) -> String {
    format!("{}/blob/main/{path}", env!("CARGO_PKG_REPOSITORY"))
}

fn link(target: &str, directory: &str) -> String {
    if target.contains("://") || target.starts_with('#') {
        return target.to_owned();
    }
    let path = match target.strip_prefix("../") {
        Some(path) => path.to_owned(),
        None => format!("{directory}{target}"),
    };
    let (file, _) = path.split_once('#').unwrap_or((&path, ""));
    if let Some((page, name)) = TOP_PAGES.iter().find(|(page, _)| *page == file) {
        return path.replacen(page, name, 1);
    }
    match path.strip_prefix("docs/") {
        Some(page) => page.to_owned(),
        None => repository_url(&path),
    }
}

/// Writes the references of commands and custom resources.
fn write_references(root: &Path, source: &Path, binary: &Path) -> anyhow::Result<()> {
    let directory = source.join("reference");
    let status = Command::new(binary)
        .args(["man", "--format", "markdown"])
        .arg(&directory)
        .status()
        .context("starting mainstay")?;
    ensure!(status.success(), "`mainstay man` failed");
    let mut index = String::from("# Custom resources\n\n");
    for page in definitions(root)?.iter().filter_map(crds::page) {
        let _ = writeln!(index, "- [{0}]({0}.md)", page.kind);
        fs::write(directory.join(format!("{}.md", page.kind)), page.text)?;
        add_to_summary(source, &page.kind)?;
    }
    fs::write(directory.join("kinds.md"), index)?;
    Ok(())
}

/// Lists a generated page below the last entry of the summary.
fn add_to_summary(source: &Path, kind: &str) -> anyhow::Result<()> {
    let path = source.join("SUMMARY.md");
    let summary = fs::read_to_string(&path)?;
    fs::write(&path, format!("{summary}  - [{kind}](reference/{kind}.md)\n"))?;
    Ok(())
}

fn definitions(root: &Path) -> anyhow::Result<Vec<Value>> {
    let mut definitions = Vec::new();
    for directory in DEFINITIONS {
        let mut paths: Vec<_> = fs::read_dir(root.join(directory))?
            .map(|entry| Ok(entry?.path()))
            .collect::<anyhow::Result<_>>()?;
        paths.sort();
        for path in paths {
            let text = fs::read_to_string(&path)?;
            let value = mainstay_yaml::parse(&text, &mainstay_yaml::Budget::default())?;
            definitions.push(serde_json::from_slice(mainstay_yaml::to_json(&value)?.as_ref())?);
        }
    }
    Ok(definitions)
}

fn check_links(source: &Path) -> anyhow::Result<()> {
    let findings = tidy::check_links(source)?;
    for finding in &findings {
        println!("{finding}");
    }
    ensure!(findings.is_empty(), "{} dead links", findings.len());
    Ok(())
}

fn build_book(directory: &Path) -> anyhow::Result<()> {
    let status = Command::new(MDBOOK.path()?)
        .arg("build")
        .arg(directory)
        .status()
        .context("starting mdbook")?;
    if !status.success() {
        bail!("mdbook failed");
    }
    println!("docs: {}", directory.join("book/index.html").display());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_lists_every_page() {
        let entries = fs::read_dir(repository_root().join("docs")).unwrap();
        let paths = entries.map(|entry| entry.unwrap().path());
        let pages = paths.filter(|path| path.extension().is_some_and(|extension| extension == "md"));
        let names = pages.map(|page| page.file_name().unwrap().display().to_string());
        let missing: Vec<String> = names
            .filter(|name| !SUMMARY.contains(&format!("]({name})")))
            .collect();
        assert_eq!(missing, Vec::<String>::new());
    }

    #[test]
    fn links_fit_the_book() {
        assert_eq!(relink("a [b](../README.md#x) c", "docs/"), "a [b](index.md#x) c");
        assert_eq!(relink("[b](docs/demo.md)", ""), "[b](demo.md)");
        assert_eq!(
            relink("[b](demo.md) and [c](images/d.svg)", "docs/"),
            "[b](demo.md) and [c](images/d.svg)"
        );
        assert_eq!(relink("[b](https://a.example/c)", ""), "[b](https://a.example/c)");
        let file = format!("[b]({}/blob/main/deploy/chart)", env!("CARGO_PKG_REPOSITORY"));
        assert_eq!(relink("[b](../deploy/chart)", "docs/"), file);
    }
}
