//! Parses one context of a kubeconfig that may contain others.

use mainstay_yaml::{Map, Value};

use super::read::{
    Result, expect_text, mapping, read_cluster, read_context, read_document, read_user, required_text,
    wrong_type,
};
use super::{Kubeconfig, KubeconfigError, MAX_BYTES};
use crate::remote::address::AddressPolicy;

/// Context of a kubeconfig to read, and values that replace those of the kubeconfig.
#[derive(Clone, Copy, Debug, Default)]
pub struct ContextSelection<'a> {
    /// Name of the context; `None` selects `current-context`.
    pub context: Option<&'a str>,
    /// URL of the API server that replaces the one in the kubeconfig.
    pub server: Option<&'a str>,
}

pub(super) fn parse_context(
    text: &[u8],
    selection: &ContextSelection<'_>,
    policy: AddressPolicy,
) -> Result<Kubeconfig> {
    if text.len() > MAX_BYTES {
        return Err(KubeconfigError::TooLong(text.len()));
    }
    let root = read_document(text)?;
    expect_text(&root, "apiVersion", "v1")?;
    expect_text(&root, "kind", "Config")?;
    let current = match selection.context {
        Some(context) => context.to_owned(),
        None => required_text(&root, "current-context", "kubeconfig")?,
    };
    let (map, path) = find_entry(
        &root,
        &Reference::new("contexts", "context", "current-context"),
        &current,
    )?;
    let context = read_context(&map, &path)?;
    let cluster = Reference::new("clusters", "cluster", "context.cluster");
    let (mut map, path) = find_entry(&root, &cluster, &context.cluster)?;
    if let Some(server) = selection.server {
        map.insert("server".to_owned(), Value::from(server));
    }
    let (server, authorities) = read_cluster(&map, &path, policy)?;
    let (map, path) = find_entry(
        &root,
        &Reference::new("users", "user", "context.user"),
        &context.user,
    )?;
    Ok(Kubeconfig {
        server,
        authorities,
        credential: read_user(&map, &path)?,
    })
}

/// A reference to an entry of a list.
struct Reference {
    list: &'static str,
    content: &'static str,
    path: &'static str,
}

impl Reference {
    fn new(list: &'static str, content: &'static str, path: &'static str) -> Self {
        Self { list, content, path }
    }
}

/// Returns the content of the entry with this name, without `extensions`, and its path. Fails if several
/// entries have the name.
fn find_entry(root: &Map, reference: &Reference, name: &str) -> Result<(Map, String)> {
    let Reference { list, content, path } = reference;
    let items = root.get(*list).filter(|value| !value.is_null());
    let items = items.ok_or_else(|| KubeconfigError::Missing(format!("kubeconfig.{list}")))?;
    let items = items.as_list().ok_or_else(|| wrong_type(*list, "a list"))?;
    let is_named = |item: &&Value| item.get("name").and_then(Value::as_str) == Some(name);
    if items.iter().filter(is_named).count() > 1 {
        return Err(KubeconfigError::Duplicate(list));
    }
    let index = items.iter().position(|item| is_named(&item));
    let entry = index.and_then(|index| Some((index, items.get(index)?.get(content)?)));
    let Some((index, entry)) = entry else {
        return Err(KubeconfigError::Unresolved { path, list });
    };
    let path = format!("{list}[{index}].{content}");
    let mut map = mapping(entry, &path)?.clone();
    map.remove("extensions");
    Ok((map, path))
}
