//! Parses overrides: the differences between the operator's API and the upstream definitions.

use anyhow::{Context, Result, bail};

use super::Definitions;

/// One change.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// The field is not part of the API.
    Absent,
    /// The field has this type instead.
    Type(String),
    /// The field or type has these attributes.
    Attributes(String),
    /// A field that the pinned definitions do not have yet.
    Add(String),
}

/// All changes, in order.
#[derive(Debug, Default)]
pub(crate) struct Overrides(Vec<(String, Option<String>, Change)>);

impl Overrides {
    /// Parses lines `Type.field absent`, `Type.field is TYPE`, `Type.field with ATTRIBUTES`, `Type with
    /// ATTRIBUTES` and `Type.field add TYPE`.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let lines = text
            .lines()
            .filter(|line| !line.starts_with('#') && !line.trim().is_empty());
        lines.map(line).collect::<Result<_>>().map(Self)
    }

    /// Applies the changes; a change without a target is an error, because it means that upstream has
    /// changed.
    pub(crate) fn apply(&self, definitions: &mut Definitions) -> Result<()> {
        self.0
            .iter()
            .try_for_each(|(owner, field, change)| definitions.change(owner, field.as_deref(), change))
    }
}

fn line(line: &str) -> Result<(String, Option<String>, Change)> {
    let mut words = line.split_whitespace();
    let path = words.next().context("an empty line")?;
    let word = words.next().unwrap_or_default();
    let rest = words.collect::<Vec<_>>().join(" ");
    let change = match word {
        "absent" => Change::Absent,
        "is" => Change::Type(rest),
        "with" => Change::Attributes(rest),
        "add" => Change::Add(rest),
        _ => bail!("what is {line:?}?"),
    };
    let last = path.rsplit('.').next().unwrap_or_default();
    // Types are written with a capital letter, fields are not.
    if last.starts_with(char::is_uppercase) {
        return Ok((path.to_owned(), None, change));
    }
    let (owner, field) = path.rsplit_once('.').context("a field without a type")?;
    Ok((owner.to_owned(), Some(field.to_owned()), change))
}
