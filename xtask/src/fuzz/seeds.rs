//! Seed inputs for fuzzing, from fixtures of the repository.

use std::fs;
use std::path::Path;

use anyhow::Context;

use crate::hostile::archive::{file, tar};

/// Returns the seeds of `target`.
pub(super) fn seeds(target: &str, root: &Path) -> anyhow::Result<Vec<Vec<u8>>> {
    match target {
        "archive_load" => Ok(vec![chart()?]),
        "inject" => manifests(&root.join("crates/inject/tests/tables")),
        "set_values" => Ok(SETS.iter().map(|text| text.as_bytes().to_vec()).collect()),
        "template_parse" | "template_render" => templates(root),
        "yaml_decode" => documents(&root.join("parity/values")),
        name if name.starts_with("inject") => documents(&root.join("crates/inject/tests/corpus")),
        _ => Ok(Vec::new()),
    }
}

const SETS: &[&str] = &[
    "a.b=1,c={x,y}",
    "a[0].b=null",
    r"a\.b=c\,d",
    r#"a={"b":[1,2.5]}"#,
    "a.b[1][2]=x",
];

fn chart() -> anyhow::Result<Vec<u8>> {
    tar(&[
        file("c/Chart.yaml", b"apiVersion: v2\nname: c\nversion: 0.1.0\n"),
        file("c/values.yaml", b"a: 1\n"),
        file("c/templates/t.yaml", b"a: {{ .Values.a }}\n"),
        file(
            "c/charts/d/Chart.yaml",
            b"apiVersion: v2\nname: d\nversion: 0.1.0\n",
        ),
    ])
}

/// Returns the cases of the function library, which cover every construct and function.
fn templates(root: &Path) -> anyhow::Result<Vec<Vec<u8>>> {
    let path = root.join("crates/sprig/tests/cases.txt");
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let lines = text
        .lines()
        .filter(|line| line.contains("{{"))
        .filter_map(|line| line.split(" ⇒").next());
    Ok(lines.map(|line| line.as_bytes().to_vec()).collect())
}

/// Returns every input of the injector's tables, prefixed with a byte that selects the options.
fn manifests(directory: &Path) -> anyhow::Result<Vec<Vec<u8>>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).with_context(|| directory.display().to_string())? {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(manifests(&path)?);
        } else if path
            .file_name()
            .is_some_and(|name| name.to_string_lossy().contains(".in."))
        {
            found.push([vec![0], fs::read(&path)?].concat());
        }
    }
    Ok(found)
}

fn documents(directory: &Path) -> anyhow::Result<Vec<Vec<u8>>> {
    let entries = fs::read_dir(directory).with_context(|| directory.display().to_string())?;
    entries.map(|entry| Ok(fs::read(entry?.path())?)).collect()
}
