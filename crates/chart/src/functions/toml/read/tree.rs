//! Tables of a TOML document during parsing.

use std::collections::BTreeMap;

use mainstay_template::{List, ListType, NamedType, Str, Value};

use super::{Problem, problem};

/// Value of a key.
#[derive(Debug)]
pub(super) enum Node {
    Leaf(Value),
    Array(Vec<Node>),
    Table(Table),
    /// Tables of `[[…]]` headers. New keys are added to the last table.
    Tables(Vec<Table>),
}

#[derive(Debug, Default)]
pub(super) struct Table {
    entries: BTreeMap<String, Node>,
    /// Whether a header has defined the table. A second header is an error.
    defined: bool,
    /// Whether the table is inline, so that no more keys can be added.
    closed: bool,
}

impl Table {
    /// Returns the table at `path`. Creates missing tables.
    pub(super) fn at(&mut self, path: &[String]) -> Result<&mut Table, Problem> {
        let mut table = self;
        for part in path {
            table = table.child(part)?;
        }
        Ok(table)
    }

    fn child(&mut self, name: &str) -> Result<&mut Table, Problem> {
        let node = self
            .entries
            .entry(name.to_owned())
            .or_insert_with(|| Node::Table(Table::default()));
        let table = match node {
            Node::Table(table) => Some(table),
            Node::Tables(tables) => tables.last_mut(),
            _ => None,
        };
        table.ok_or_else(|| already_defined(name))
    }

    /// Opens the table of a header `[path]`.
    pub(super) fn open_table(&mut self, path: &[String]) -> Result<(), Problem> {
        let table = self.at(path).map_err(|_| already_defined(&path.join(".")))?;
        if table.defined || table.closed {
            return Err(already_defined(&path.join(".")));
        }
        table.defined = true;
        Ok(())
    }

    /// Appends a table for a header `[[path]]`.
    pub(super) fn open_table_list(&mut self, path: &[String]) -> Result<(), Problem> {
        let Some((name, parents)) = path.split_last() else {
            return Ok(());
        };
        let parent = self.at(parents)?;
        let node = parent
            .entries
            .entry(name.clone())
            .or_insert_with(|| Node::Tables(Vec::new()));
        let Node::Tables(tables) = node else {
            return problem(format!(
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

    /// Inserts `key = value`. The key may be dotted.
    pub(super) fn insert(&mut self, key: &[String], value: Node, whole: &str) -> Result<(), Problem> {
        let Some((name, parents)) = key.split_last() else {
            return Ok(());
        };
        let mut table = self;
        for part in parents {
            table = table.child(part).map_err(|_| already_defined(whole))?;
            if table.closed || table.defined {
                return Err(already_defined(whole));
            }
        }
        if table.closed || table.entries.contains_key(name) {
            return Err(already_defined(whole));
        }
        table.entries.insert(name.clone(), value);
        Ok(())
    }

    /// Marks the table as complete.
    pub(super) fn close(&mut self) {
        self.closed = true;
    }

    /// Converts the table to a template value.
    pub(super) fn into_value(self) -> Value {
        Value::map(
            self.entries
                .into_iter()
                .map(|(key, node)| (Str::from(key), node.into_value()))
                .collect(),
        )
    }
}

static LIST_OF_MAPS: NamedType = NamedType {
    name: "[]map[string]interface {}",
    methods: &[],
};

impl Node {
    fn into_value(self) -> Value {
        match self {
            Self::Leaf(value) => value,
            Self::Array(items) => Value::list(items.into_iter().map(Node::into_value).collect()),
            Self::Table(table) => table.into_value(),
            Self::Tables(tables) => {
                let tables = tables.into_iter().map(Table::into_value).collect();
                Value::List(List::new(ListType::Named(&LIST_OF_MAPS), tables))
            }
        }
    }
}

fn already_defined(key: &str) -> Problem {
    Problem(format!("Key '{key}' has already been defined."))
}
