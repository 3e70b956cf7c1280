//! Drafts of JSON Schema and their keywords that contain schemas.

use mainstay_yaml::{Map, Value};

/// A draft of JSON Schema. Older drafts are lower.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Draft {
    D4,
    D6,
    D7,
    D2019,
    D2020,
}

/// Structure of the value of a keyword that contains schemas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SchemaContainer {
    One,
    List,
    Map,
    /// One schema or a list, as in `items` before 2020.
    Either,
}

const KEYWORDS: [(&str, SchemaContainer, Draft); 22] = [
    ("definitions", SchemaContainer::Map, Draft::D4),
    ("not", SchemaContainer::One, Draft::D4),
    ("allOf", SchemaContainer::List, Draft::D4),
    ("anyOf", SchemaContainer::List, Draft::D4),
    ("oneOf", SchemaContainer::List, Draft::D4),
    ("properties", SchemaContainer::Map, Draft::D4),
    ("additionalProperties", SchemaContainer::One, Draft::D4),
    ("patternProperties", SchemaContainer::Map, Draft::D4),
    ("items", SchemaContainer::Either, Draft::D4),
    ("additionalItems", SchemaContainer::One, Draft::D4),
    ("dependencies", SchemaContainer::Map, Draft::D4),
    ("propertyNames", SchemaContainer::One, Draft::D6),
    ("contains", SchemaContainer::One, Draft::D6),
    ("if", SchemaContainer::One, Draft::D7),
    ("then", SchemaContainer::One, Draft::D7),
    ("else", SchemaContainer::One, Draft::D7),
    ("$defs", SchemaContainer::Map, Draft::D2019),
    ("dependentSchemas", SchemaContainer::Map, Draft::D2019),
    ("unevaluatedProperties", SchemaContainer::One, Draft::D2019),
    ("unevaluatedItems", SchemaContainer::One, Draft::D2019),
    ("contentSchema", SchemaContainer::One, Draft::D2019),
    ("prefixItems", SchemaContainer::List, Draft::D2020),
];

impl Draft {
    /// Returns the draft of a `$schema` URL.
    pub(super) fn from_url(url: &str) -> Option<Self> {
        let url = url.strip_suffix('#').unwrap_or(url);
        let rest = url
            .strip_prefix("http://")
            .or_else(|| url.strip_prefix("https://"))
            .unwrap_or(url);
        match rest {
            "json-schema.org/schema" | "json-schema.org/draft/2020-12/schema" => Some(Self::D2020),
            "json-schema.org/draft/2019-09/schema" => Some(Self::D2019),
            "json-schema.org/draft-07/schema" => Some(Self::D7),
            "json-schema.org/draft-06/schema" => Some(Self::D6),
            "json-schema.org/draft-04/schema" => Some(Self::D4),
            _ => None,
        }
    }

    /// Returns the URL of the metaschema.
    pub(super) fn url(self) -> &'static str {
        match self {
            Self::D4 => "http://json-schema.org/draft-04/schema",
            Self::D6 => "http://json-schema.org/draft-06/schema",
            Self::D7 => "http://json-schema.org/draft-07/schema",
            Self::D2019 => "https://json-schema.org/draft/2019-09/schema",
            Self::D2020 => "https://json-schema.org/draft/2020-12/schema",
        }
    }

    /// Returns the keyword that names a schema.
    pub(super) fn id_keyword(self) -> &'static str {
        if self == Self::D4 { "id" } else { "$id" }
    }

    /// Returns the name of a schema without its fragment. Before 2019, a name next to `$ref` is ignored.
    pub(super) fn id(self, schema: &Map) -> Option<&str> {
        if self < Self::D2019 && schema.contains_key("$ref") {
            return None;
        }
        let id = schema.get(self.id_keyword())?.as_str()?;
        Some(id.split('#').next().unwrap_or_default()).filter(|id| !id.is_empty())
    }

    /// Returns the direct subschemas of `schema` with their paths.
    pub(super) fn subschemas(self, schema: &Map) -> Vec<(Vec<String>, &Value)> {
        let mut found = Vec::new();
        for (keyword, container, since) in KEYWORDS {
            if let Some(value) = schema.get(keyword).filter(|_| self >= since) {
                collect_subschemas(keyword, container, value, &mut found);
            }
        }
        found
    }
}

fn collect_subschemas<'a>(
    keyword: &str,
    container: SchemaContainer,
    value: &'a Value,
    found: &mut Vec<(Vec<String>, &'a Value)>,
) {
    let path = |token: &str| vec![keyword.to_owned(), token.to_owned()];
    match (container, value) {
        (SchemaContainer::List | SchemaContainer::Either, Value::List(items)) => {
            found.extend(
                items
                    .iter()
                    .enumerate()
                    .map(|(at, item)| (path(&at.to_string()), item)),
            );
        }
        (SchemaContainer::Map, Value::Map(map)) => {
            found.extend(map.iter().map(|(key, value)| (path(key), value)));
        }
        (SchemaContainer::One | SchemaContainer::Either, value) => {
            found.push((vec![keyword.to_owned()], value));
        }
        _ => {}
    }
}
