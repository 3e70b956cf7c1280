//! Parses the table of builtin resources. The first lines of the table explain its columns.

use std::sync::Arc;

use super::{Resource, Shape, Subresource, Traits, Verbs, split_api_version};
use crate::schema::Schema;

const TABLE: &str = include_str!("builtin.txt");

/// Resources that are stored in the table of another group or version: `apiVersion`, plural, table, stored
/// `apiVersion`.
const SHARED: [(&str, &str, &str, &str); 2] = [
    ("events.k8s.io/v1", "events", "events", "v1"),
    (
        "autoscaling/v1",
        "horizontalpodautoscalers",
        "horizontalpodautoscalers.autoscaling",
        "autoscaling/v2",
    ),
];

/// Returns all builtin resources, in the order of the table.
pub(super) fn builtin(schema: &Schema) -> Vec<Resource> {
    TABLE
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| parse_resource(line, schema))
        .collect()
}

fn parse_resource(line: &str, schema: &Schema) -> Option<Resource> {
    let mut columns = line.split(' ');
    let api_version = columns.next()?;
    let (group, version) = split_api_version(api_version);
    let plural = columns.next()?;
    let kind = columns.next()?;
    let singular = columns.next()?;
    let namespaced = columns.next()? == "N";
    let short_names = parse_names(columns.next()?);
    let categories = parse_names(columns.next()?);
    let verbs = Verbs::parse(columns.next()?);
    let traits = parse_traits(columns.next()?);
    let (table, stored_as) = storage_location(api_version, group, plural);
    Some(Resource {
        group: group.into(),
        version: version.into(),
        plural: plural.into(),
        kind: kind.into(),
        singular: singular.into(),
        namespaced,
        short_names,
        categories,
        verbs,
        traits,
        subresources: columns.filter_map(parse_subresource).collect(),
        table,
        stored_as,
        shape: Shape::Builtin(schema.kind(api_version, kind)),
    })
}

fn storage_location(api_version: &str, group: &str, plural: &str) -> (Arc<str>, Box<str>) {
    let shared = SHARED
        .iter()
        .find(|(version, name, ..)| *version == api_version && *name == plural);
    match shared {
        Some((_, _, table, stored_as)) => ((*table).into(), (*stored_as).into()),
        None => (table_name(group, plural).into(), api_version.into()),
    }
}

/// Returns the name of the table of a resource, such as `deployments.apps` or `pods`.
pub(super) fn table_name(group: &str, plural: &str) -> String {
    if group.is_empty() {
        plural.to_owned()
    } else {
        format!("{plural}.{group}")
    }
}

fn parse_names(column: &str) -> Vec<Box<str>> {
    column
        .split(',')
        .filter(|name| *name != "-")
        .map(Into::into)
        .collect()
}

fn parse_traits(column: &str) -> Traits {
    Traits {
        returns_deleted: column.contains('r'),
        upsert: column.contains('u'),
        versioned_updates: column.contains('v'),
        generation: column.contains('g'),
        orphans: column.contains('o'),
        uncollected: column.contains('n'),
    }
}

fn parse_subresource(column: &str) -> Option<Subresource> {
    let mut parts = column.split(':');
    let name = parts.next()?;
    let kind = parts.next()?;
    let verbs = Verbs::parse(parts.next()?);
    let (api_version, kind) = kind.rsplit_once('/').unwrap_or(("", kind));
    let (group, version) = split_api_version(api_version);
    Some(Subresource {
        name: name.into(),
        group: group.into(),
        version: version.into(),
        kind: kind.into(),
        verbs,
    })
}
