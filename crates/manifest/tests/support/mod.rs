//! Shared by the tests of this crate: test cases as files with headers, and comparison of objects.

#![allow(
    dead_code,
    unreachable_pub,
    reason = "each test program uses only some of the helpers"
)]
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "tests read files and fail by panicking"
)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use mainstay_catalog::{Catalog, Version};
use mainstay_manifest::{CatalogPackage, Diagnostics, InputFile, Rendered, Request, generate};
use mainstay_yaml::{Budget, Numbers, Options, Value, parse_with};

/// Version of the istioctl that results are compared with.
pub const VERSION: &str = "1.29.1";

/// A test case: an `IstioOperator` with leading comments that contain the flags (`# set: a=b`, `# revision:
/// x`, `# file: other`).
pub struct Case {
    pub name: String,
    pub path: PathBuf,
    pub text: String,
    pub headers: Vec<(String, String)>,
}

impl Case {
    pub fn read(path: &Path) -> Self {
        let text = std::fs::read_to_string(path).unwrap();
        let headers = text.lines().map_while(|line| line.strip_prefix("# "));
        let headers = headers.filter_map(|line| line.split_once(": "));
        Self {
            name: path.file_stem().unwrap().to_string_lossy().into_owned(),
            path: path.to_owned(),
            headers: headers
                .map(|(key, value)| (key.to_owned(), value.to_owned()))
                .collect(),
            text,
        }
    }

    /// Reads all cases of a directory of `tests`, sorted by name.
    pub fn read_all(directory: &str) -> Vec<Self> {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests")
            .join(directory);
        let entries = std::fs::read_dir(&directory).unwrap();
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
        paths.retain(|path| path.extension().is_some_and(|extension| extension == "yaml"));
        paths.sort();
        paths.iter().map(|path| Self::read(path)).collect()
    }

    pub fn all(&self, key: &str) -> Vec<String> {
        let found = self.headers.iter().filter(|(name, _)| name == key);
        found.map(|(_, value)| value.clone()).collect()
    }

    /// Replaces the headers with the key `key` in the file.
    pub fn write_headers(&self, key: &str, values: &[String]) {
        let others = self.headers.iter().filter(|(name, _)| name != key);
        let others = others.map(|(name, value)| format!("# {name}: {value}\n"));
        let new = values.iter().map(|value| format!("# {key}: {value}\n"));
        let body: Vec<&str> = self
            .text
            .lines()
            .skip_while(|line| line.starts_with("# "))
            .collect();
        let text: String = others.chain(new).chain([body.join("\n"), "\n".into()]).collect();
        std::fs::write(&self.path, text).unwrap();
    }

    pub fn one(&self, key: &str) -> Option<String> {
        self.all(key).pop()
    }

    /// Returns the files named by headers, followed by the file of this case.
    pub fn files(&self) -> Vec<PathBuf> {
        let directory = self.path.parent().unwrap().join("files");
        let others = self.all("file").into_iter().map(|name| directory.join(name));
        others.chain([self.path.clone()]).collect()
    }

    pub fn request<'a>(&self, package: &'a CatalogPackage<'a>) -> Request<'a> {
        let read = |path: &PathBuf| InputFile {
            name: path.file_name().unwrap().to_string_lossy().into_owned(),
            text: std::fs::read(path).unwrap(),
        };
        let mut request = Request::new(package);
        request.files = self.files().iter().map(read).collect();
        request.sets = self.all("set");
        request.revision = self.one("revision");
        request.force = self.one("force").is_some();
        request
    }

    pub fn generate(&self) -> Result<Rendered, Diagnostics> {
        with_package(|package| generate(&self.request(package)))
    }
}

pub fn with_package<T>(run: impl FnOnce(&CatalogPackage<'_>) -> T) -> T {
    with_version(VERSION, run)
}

pub fn with_version<T>(version: &str, run: impl FnOnce(&CatalogPackage<'_>) -> T) -> T {
    let catalog = Catalog::embedded().unwrap();
    let version: Version = version.parse().unwrap();
    run(&CatalogPackage::new(&catalog, version))
}

/// Objects by `kind namespace/name`, with normalized numbers.
pub type Objects = BTreeMap<String, Vec<Value>>;

pub fn identified(objects: impl IntoIterator<Item = Value>) -> Objects {
    let mut all = Objects::new();
    for object in objects {
        let text = |keys: &[&str]| {
            object
                .at(keys)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        let id = format!(
            "{} {} {}/{}",
            text(&["apiVersion"]),
            text(&["kind"]),
            text(&["metadata", "namespace"]),
            text(&["metadata", "name"])
        );
        all.entry(id).or_default().push(numbers(object));
    }
    all
}

/// Converts whole floats to integers, because JSON does not distinguish them.
fn numbers(value: Value) -> Value {
    match value {
        Value::Float(number) => Value::Float(number)
            .as_i64()
            .map_or(Value::Float(number), Value::Int),
        Value::List(items) => Value::List(items.into_iter().map(numbers).collect()),
        Value::Map(map) => Value::Map(
            map.into_iter()
                .map(|(key, value)| (key, numbers(value)))
                .collect(),
        ),
        other => other,
    }
}

pub fn parse_objects(text: &str) -> Vec<Value> {
    let options = Options {
        numbers: Numbers::Exact,
        strict: false,
        budget: Budget::default(),
    };
    let parts = text.split("\n---\n").filter(|part| !part.trim().is_empty());
    parts.map(|part| parse_with(part, &options).unwrap()).collect()
}

/// Returns every difference between `ours` and `theirs`, with object and path.
pub fn differences(ours: &Objects, theirs: &Objects) -> Vec<String> {
    let mut out = Vec::new();
    for (id, objects) in ours {
        match theirs.get(id) {
            None => out.push(format!("{id}: only here")),
            Some(others) if others.len() != objects.len() => {
                out.push(format!(
                    "{id}: {} times, istioctl {}",
                    objects.len(),
                    others.len()
                ));
            }
            Some(others) => {
                for (a, b) in objects.iter().zip(others) {
                    compare(a, b, id, &mut out);
                }
            }
        }
    }
    out.extend(
        theirs
            .keys()
            .filter(|id| !ours.contains_key(*id))
            .map(|id| format!("{id}: only in istioctl")),
    );
    out
}

fn compare(ours: &Value, theirs: &Value, path: &str, out: &mut Vec<String>) {
    match (ours, theirs) {
        _ if ours == theirs => {}
        (Value::Map(a), Value::Map(b)) => {
            let mut keys: Vec<&String> = a.keys().chain(b.keys()).collect();
            keys.sort();
            keys.dedup();
            for key in keys {
                let below = format!("{path} .{key}");
                match (a.get(key), b.get(key)) {
                    (Some(a), Some(b)) => compare(a, b, &below, out),
                    (Some(a), None) => out.push(format!("{below}: only here: {}", short(a))),
                    (None, Some(b)) => out.push(format!("{below}: only in istioctl: {}", short(b))),
                    (None, None) => {}
                }
            }
        }
        (Value::List(a), Value::List(b)) if a.len() == b.len() => {
            for (index, (a, b)) in a.iter().zip(b).enumerate() {
                compare(a, b, &format!("{path} [{index}]"), out);
            }
        }
        _ => {
            let (a, b) = pair(ours, theirs);
            out.push(format!("{path}: {a} here, {b} in istioctl"));
        }
    }
}

/// Formats two values. Long texts are shown from their first difference.
fn pair(ours: &Value, theirs: &Value) -> (String, String) {
    let (Value::String(a), Value::String(b)) = (ours, theirs) else {
        return (short(ours), short(theirs));
    };
    let same = a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count();
    let start = same.saturating_sub(30);
    let from = |text: &str| {
        let start = (start..text.len())
            .find(|at| text.is_char_boundary(*at))
            .unwrap_or(0);
        let mark = if start > 0 { "…" } else { "" };
        format!("{mark}{}", short(&Value::from(&text[start..])))
    };
    (from(a), from(b))
}

fn short(value: &Value) -> String {
    let text = mainstay_yaml::to_json(value).unwrap_or_default();
    let mut out: String = text.chars().take(120).collect();
    if out.len() < text.len() {
        out.push('…');
    }
    out
}
