//! Renders every chart with every value set. A chart that rejects a value set produces no documents.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use mainstay_chart::{
    Dialect, Loaded, Release, RenderEnvironment, RenderOptions, Request, load_path, load_values,
    template_files,
};
use mainstay_template::NoHost;
use mainstay_yaml::{Budget, Map, Value, parse};

/// Charts that the operator installs.
const INSTALLED: &[&str] = &["base", "cni", "istiod", "revisiontags", "ztunnel"];

/// One chart of one version.
pub(super) struct Rendered {
    /// The chart directory.
    pub(super) directory: PathBuf,
    /// Documents of all value sets.
    pub(super) documents: Vec<Value>,
    /// Documents of all value sets as text.
    pub(super) text: String,
}

/// Renders all charts of all versions.
pub(super) fn all(root: &Path) -> Result<Vec<Rendered>> {
    let versions = directories(&root.join("resources"))?;
    ensure!(
        !versions.is_empty(),
        "no charts in resources/: run `cargo xtask charts` first"
    );
    let mut shared = value_sets(&root.join("parity/values"), &[])?;
    shared.extend(value_sets(&root.join("xtask/src/codegen/values"), &[])?);
    let mut out = Vec::new();
    for version in versions {
        let operator = version.join("operator");
        let profiles = value_sets(&operator.join("profiles"), &["spec", "values"])?;
        for chart in INSTALLED.iter().map(|name| operator.join("charts").join(name)) {
            out.push(render_chart(&chart, shared.iter().chain(&profiles))?);
        }
    }
    Ok(out)
}

fn render_chart<'a>(directory: &Path, sets: impl Iterator<Item = &'a Map>) -> Result<Rendered> {
    let loaded = load_path(directory, Dialect::Helm4).with_context(|| directory.display().to_string())?;
    let mut rendered = Rendered {
        directory: directory.to_owned(),
        documents: Vec::new(),
        text: String::new(),
    };
    for values in sets {
        let Some(text) = render(&loaded, values) else {
            continue;
        };
        rendered.documents.extend(documents(&text)?);
        rendered.text.push_str(&text);
    }
    Ok(rendered)
}

fn render(loaded: &Loaded, values: &Map) -> Option<String> {
    let mut request = Request::new(Dialect::Helm4);
    request.values = values.clone();
    request.render = RenderOptions {
        release: Release {
            name: loaded.chart.metadata.name.clone(),
            namespace: "istio-system".into(),
            revision: 1,
            is_upgrade: false,
        },
        ..RenderOptions::new(Dialect::Helm4)
    };
    let environment = RenderEnvironment {
        host: &mut NoHost,
        warn: &mut |_| {},
        post_renderer: None,
    };
    let pieces = template_files(loaded, &request, environment).ok()?;
    let mut text = String::new();
    for piece in &pieces {
        text.extend(["---\n", &String::from_utf8_lossy(&piece.text), "\n"]);
    }
    Some(text)
}

fn documents(text: &str) -> Result<Vec<Value>> {
    let parsed = text
        .split("\n---")
        .map(|text| text.trim_start_matches("---"))
        .map(|text| parse(text.as_bytes(), &Budget::default()));
    let mut out = Vec::new();
    for document in parsed {
        let document = document.context("a rendered document is not YAML")?;
        if document.get("kind").is_some() {
            out.push(document);
        }
    }
    Ok(out)
}

/// Returns the maps at `path` in the files of a directory.
fn value_sets(directory: &Path, path: &[&str]) -> Result<Vec<Map>> {
    let mut sets = Vec::new();
    for file in sorted(directory)? {
        let text = std::fs::read(&file).with_context(|| file.display().to_string())?;
        let values = load_values(&text, Dialect::Helm4).with_context(|| file.display().to_string())?;
        let inner = Value::Map(values).at(path).and_then(Value::as_map).cloned();
        sets.push(inner.unwrap_or_default());
    }
    Ok(sets)
}

fn directories(directory: &Path) -> Result<Vec<PathBuf>> {
    Ok(sorted(directory)?
        .into_iter()
        .filter(|path| path.is_dir())
        .collect())
}

pub(super) fn sorted(directory: &Path) -> Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(directory).with_context(|| directory.display().to_string())?;
    let mut paths = entries
        .map(|entry| Ok(entry?.path()))
        .collect::<std::io::Result<Vec<_>>>()?;
    paths.sort();
    Ok(paths)
}
