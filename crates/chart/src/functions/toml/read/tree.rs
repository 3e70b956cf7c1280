//! The tables of a TOML document while it is read: which of them may still be opened or added to.

use std::collections::BTreeMap;

use mainstay_template::{List, ListType, Str, Value};

/// Anything under a key.
#[derive(Debug)]
pub(super) enum Node {
    Leaf(Value),
    Array(Vec<Node>),
    Table(Table),
    /// `[[…]]`: the last one is open.
    Tables(Vec<Table>),
}

/// A table.
#[derive(Debug, Default)]
pub(super) struct Table {
    entries: BTreeMap<String, Node>,
    /// A header named it, so that another header may not.
    defined: bool,
    /// It was written inline or with dotted keys, so that nothing outside may add to it.
    closed: bool,
}

impl Table {
    /// The table at `path`, made where it is missing.
    pub(super) fn at(&mut self, path: &[String]) -> Result<&mut Table, String> {
        let mut table = self;
        for part in path {
            table = table.child(part)?;
        }
        Ok(table)
    }

    fn child(&mut self, name: &str) -> Result<&mut Table, String> {
        let node = self
            .entries
            .entry(name.to_owned())
            .or_insert_with(|| Node::Table(Table::default()));
        let table = match node {
            Node::Table(table) => Some(table),
            Node::Tables(tables) => tables.last_mut(),
            _ => None,
        };
        table.ok_or_else(|| format!("Key '{name}' has already been defined."))
    }

    /// `[path]`.
    pub(super) fn open(&mut self, path: &[String]) -> Result<(), String> {
        let table = self.at(path).map_err(|_| already(&path.join(".")))?;
        if table.defined || table.closed {
            return Err(already(&path.join(".")));
        }
        table.defined = true;
        Ok(())
    }

    /// `[[path]]`.
    pub(super) fn open_list(&mut self, path: &[String]) -> Result<(), String> {
        let Some((name, parents)) = path.split_last() else {
            return Ok(());
        };
        let parent = self.at(parents)?;
        let node = parent
            .entries
            .entry(name.clone())
            .or_insert_with(|| Node::Tables(Vec::new()));
        let Node::Tables(tables) = node else {
            return Err(format!(
                "Key '{}' was already created and cannot be used as an array.",
                path.join(".")
            ));
        };
        tables.push(Table {
            defined: true,
            ..Table::default()
        });
        Ok(())
    }

    /// `key = value`, where the key may have dots.
    pub(super) fn insert(&mut self, key: &[String], value: Node, whole: &str) -> Result<(), String> {
        let Some((name, parents)) = key.split_last() else {
            return Ok(());
        };
        let mut table = self;
        for part in parents {
            table = table.child(part).map_err(|_| already(whole))?;
            if table.closed || table.defined {
                return Err(already(whole));
            }
        }
        if table.closed || table.entries.contains_key(name) {
            return Err(already(whole));
        }
        table.entries.insert(name.clone(), value);
        Ok(())
    }

    /// Nothing may be added any more.
    pub(super) fn close(&mut self) {
        self.closed = true;
    }

    /// What a template sees.
    pub(super) fn into_value(self) -> Value {
        Value::map(
            self.entries
                .into_iter()
                .map(|(key, node)| (Str::from(key), node.into_value()))
                .collect(),
        )
    }
}

impl Node {
    fn into_value(self) -> Value {
        match self {
            Self::Leaf(value) => value,
            Self::Array(items) => Value::list(items.into_iter().map(Node::into_value).collect()),
            Self::Table(table) => table.into_value(),
            Self::Tables(tables) => {
                let tables = tables.into_iter().map(Table::into_value).collect();
                Value::List(List::new(ListType::Named("[]map[string]interface {}"), tables))
            }
        }
    }
}

fn already(key: &str) -> String {
    format!("Key '{key}' has already been defined.")
}
