//! Metaschemas of all drafts, generated from tables of keywords. The vocabularies of the newer drafts are
//! separate schemas, because messages show them as one level.

use mainstay_yaml::{Map, Value};

use super::draft::Draft;

/// Type of the value of a keyword.
#[derive(Clone, Copy)]
enum KeywordType {
    Anything,
    Schema,
    SchemaList,
    SchemaMap,
    /// A map of schemas whose keys are regular expressions.
    PatternMap,
    SchemaOrList,
    SchemaOrBool,
    /// Map of schemas or lists of names.
    Dependencies,
    Text,
    Uri,
    UriReference,
    /// Reference without a fragment.
    Id,
    Anchor,
    Regex,
    Bool,
    Number,
    PositiveNumber,
    Count,
    /// Count with the default zero, which older drafts define with `allOf`.
    CountOrZero,
    Names,
    NamesByName,
    Type,
    Enum,
    List,
    Vocabulary,
}

use KeywordType::{
    Anchor, Anything, Bool, Count, CountOrZero, Dependencies, Enum, Id, List, Names, NamesByName, Number,
    PatternMap, PositiveNumber, Regex, Schema, SchemaList, SchemaMap, SchemaOrBool, SchemaOrList, Text, Type,
    Uri, UriReference, Vocabulary,
};

type Rows = &'static [(&'static str, KeywordType)];

const DRAFTS_4_TO_7: Rows = &[
    ("title", Text),
    ("description", Text),
    ("default", Anything),
    ("multipleOf", PositiveNumber),
    ("maximum", Number),
    ("minimum", Number),
    ("maxLength", Count),
    ("minLength", CountOrZero),
    ("pattern", Regex),
    ("items", SchemaOrList),
    ("maxItems", Count),
    ("minItems", CountOrZero),
    ("uniqueItems", Bool),
    ("maxProperties", Count),
    ("minProperties", CountOrZero),
    ("required", Names),
    ("definitions", SchemaMap),
    ("properties", SchemaMap),
    ("dependencies", Dependencies),
    ("enum", Enum),
    ("type", Type),
    ("allOf", SchemaList),
    ("anyOf", SchemaList),
    ("oneOf", SchemaList),
    ("not", Schema),
    ("format", Text),
];

const DRAFT_4: Rows = &[
    ("id", Text),
    ("$schema", Uri),
    ("$ref", Text),
    ("exclusiveMaximum", Bool),
    ("exclusiveMinimum", Bool),
    ("additionalItems", SchemaOrBool),
    ("additionalProperties", SchemaOrBool),
    ("patternProperties", SchemaMap),
];

const SINCE_6: Rows = &[
    ("$id", UriReference),
    ("$schema", Uri),
    ("$ref", UriReference),
    ("exclusiveMaximum", Number),
    ("exclusiveMinimum", Number),
    ("additionalItems", Schema),
    ("additionalProperties", Schema),
    ("patternProperties", SchemaMap),
    ("contains", Schema),
    ("propertyNames", Schema),
    ("const", Anything),
];

const SINCE_7: Rows = &[
    ("patternProperties", PatternMap),
    ("$comment", Text),
    ("readOnly", Bool),
    ("writeOnly", Bool),
    ("examples", List),
    ("contentMediaType", Text),
    ("contentEncoding", Text),
    ("if", Schema),
    ("then", Schema),
    ("else", Schema),
];

const CORE_2019: Rows = &[
    ("$id", Id),
    ("$schema", Uri),
    ("$anchor", Anchor),
    ("$ref", UriReference),
    ("$recursiveRef", UriReference),
    ("$recursiveAnchor", Bool),
    ("$vocabulary", Vocabulary),
    ("$comment", Text),
    ("$defs", SchemaMap),
];

const CORE_2020: Rows = &[
    ("$id", Id),
    ("$schema", Uri),
    ("$anchor", Anchor),
    ("$ref", UriReference),
    ("$dynamicRef", UriReference),
    ("$dynamicAnchor", Anchor),
    ("$vocabulary", Vocabulary),
    ("$comment", Text),
    ("$defs", SchemaMap),
];

const APPLICATOR: Rows = &[
    ("contains", Schema),
    ("additionalProperties", Schema),
    ("properties", SchemaMap),
    ("patternProperties", PatternMap),
    ("dependentSchemas", SchemaMap),
    ("propertyNames", Schema),
    ("if", Schema),
    ("then", Schema),
    ("else", Schema),
    ("allOf", SchemaList),
    ("anyOf", SchemaList),
    ("oneOf", SchemaList),
    ("not", Schema),
];

const APPLICATOR_2019: Rows = &[
    ("additionalItems", Schema),
    ("unevaluatedItems", Schema),
    ("items", SchemaOrList),
    ("unevaluatedProperties", Schema),
];

const APPLICATOR_2020: Rows = &[("prefixItems", SchemaList), ("items", Schema)];

const UNEVALUATED: Rows = &[("unevaluatedItems", Schema), ("unevaluatedProperties", Schema)];

const VALIDATION: Rows = &[
    ("multipleOf", PositiveNumber),
    ("maximum", Number),
    ("exclusiveMaximum", Number),
    ("minimum", Number),
    ("exclusiveMinimum", Number),
    ("maxLength", Count),
    ("minLength", CountOrZero),
    ("pattern", Regex),
    ("maxItems", Count),
    ("minItems", CountOrZero),
    ("uniqueItems", Bool),
    ("maxContains", Count),
    ("minContains", Count),
    ("maxProperties", Count),
    ("minProperties", CountOrZero),
    ("required", Names),
    ("dependentRequired", NamesByName),
    ("const", Anything),
    ("enum", List),
    ("type", Type),
];

const META_DATA: Rows = &[
    ("title", Text),
    ("description", Text),
    ("default", Anything),
    ("deprecated", Bool),
    ("readOnly", Bool),
    ("writeOnly", Bool),
    ("examples", List),
];

const FORMAT: Rows = &[("format", Text)];

const CONTENT: Rows = &[
    ("contentMediaType", Text),
    ("contentEncoding", Text),
    ("contentSchema", Schema),
];

/// Former keywords that the metaschemas since 2019 still contain.
const LEGACY: Rows = &[("definitions", SchemaMap), ("dependencies", Dependencies)];

const LEGACY_2020: Rows = &[("$recursiveAnchor", Anchor), ("$recursiveRef", UriReference)];

const SCHEMA_LIST: &str = "#/lists/schemaList";
const NAMES: &str = "#/lists/names";

const TYPES: [&str; 7] = [
    "array", "boolean", "integer", "null", "number", "object", "string",
];

/// Returns the metaschema of `draft`.
pub(super) fn metaschema(draft: Draft) -> Value {
    let Value::Map(mut root) = keywords(draft) else {
        return Value::Null;
    };
    let lists = [
        ("schemaList", array_schema(reference("#"), true, false)),
        ("names", names(draft)),
    ];
    root.insert("lists".into(), map(lists));
    Value::Map(root)
}

fn keywords(draft: Draft) -> Value {
    match draft {
        Draft::D4 => with_dependencies(object(&[DRAFTS_4_TO_7, DRAFT_4], draft)),
        Draft::D6 => object(&[DRAFTS_4_TO_7, SINCE_6], draft),
        Draft::D7 => object(&[DRAFTS_4_TO_7, SINCE_6, SINCE_7], draft),
        Draft::D2019 => vocabularies(
            &[
                &[CORE_2019],
                &[APPLICATOR, APPLICATOR_2019],
                &[VALIDATION],
                &[META_DATA],
                &[FORMAT],
                &[CONTENT],
            ],
            object(&[LEGACY], draft),
            draft,
        ),
        Draft::D2020 => vocabularies(
            &[
                &[CORE_2020],
                &[APPLICATOR, APPLICATOR_2020],
                &[UNEVALUATED],
                &[VALIDATION],
                &[META_DATA],
                &[FORMAT],
                &[CONTENT],
            ],
            object(&[LEGACY, LEGACY_2020], draft),
            draft,
        ),
    }
}

fn vocabularies(groups: &[&[Rows]], root: Value, draft: Draft) -> Value {
    let Value::Map(mut root) = root else { return root };
    // There is one `$ref` for each, so that violations of a vocabulary are printed below `allOf` without a
    // separate level.
    let parts: Vec<Value> = groups.iter().map(|rows| object(rows, draft)).collect();
    let refs = (0..parts.len())
        .map(|at| reference(&format!("#/$defs/v{at}")))
        .collect();
    let named = parts
        .into_iter()
        .enumerate()
        .map(|(at, part)| (format!("v{at}"), part));
    root.insert("$defs".into(), Value::Map(named.collect()));
    root.insert("allOf".into(), Value::List(refs));
    Value::Map(root)
}

fn object(rows: &[Rows], draft: Draft) -> Value {
    let rows = rows.iter().copied().flatten();
    let properties: Map = rows
        .map(|(name, keyword_type)| ((*name).to_owned(), keyword_schema(*keyword_type, draft)))
        .collect();
    let types = if draft == Draft::D4 {
        Value::from("object")
    } else {
        text_list(&["object", "boolean"])
    };
    map([("type", types), ("properties", Value::Map(properties))])
}

/// Adds the rule of draft 4 that the flags `exclusiveMaximum` and `exclusiveMinimum` require `maximum` and
/// `minimum`.
fn with_dependencies(root: Value) -> Value {
    let Value::Map(mut root) = root else { return root };
    let needs = [
        ("exclusiveMaximum", text_list(&["maximum"])),
        ("exclusiveMinimum", text_list(&["minimum"])),
    ];
    root.insert("dependencies".into(), map(needs));
    Value::Map(root)
}

fn keyword_schema(keyword_type: KeywordType, draft: Draft) -> Value {
    let schema = || reference("#");
    // A reference, as in the original metaschemas, so that violations of a list are reported at the list.
    let list = reference;
    let typed = |name: &str| map([("type", Value::from(name))]);
    let formatted = |format: &str| map([("type", Value::from("string")), ("format", Value::from(format))]);
    let any_of = |options: Vec<Value>| map([("anyOf", Value::List(options))]);
    let map_of = |value: Value| map([("type", Value::from("object")), ("additionalProperties", value)]);
    let count = || map([("type", Value::from("integer")), ("minimum", Value::Int(0))]);
    match keyword_type {
        Anything => Value::Bool(true),
        Schema => schema(),
        SchemaList => list(SCHEMA_LIST),
        SchemaMap => map_of(schema()),
        PatternMap => with_entry(
            map_of(schema()),
            "propertyNames",
            map([("format", Value::from("regex"))]),
        ),
        SchemaOrList => any_of(vec![schema(), list(SCHEMA_LIST)]),
        SchemaOrBool => any_of(vec![typed("boolean"), schema()]),
        Dependencies => map_of(any_of(vec![schema(), list(NAMES)])),
        Text => typed("string"),
        Uri => formatted("uri"),
        UriReference => formatted("uri-reference"),
        Id => with_entry(formatted("uri-reference"), "pattern", Value::from("^[^#]*#?$")),
        Anchor => with_entry(typed("string"), "pattern", Value::from(anchor_pattern(draft))),
        Regex => formatted("regex"),
        Bool => typed("boolean"),
        Number => typed("number"),
        PositiveNumber if draft == Draft::D4 => {
            let minimum = with_entry(typed("number"), "minimum", Value::Int(0));
            with_entry(minimum, "exclusiveMinimum", Value::Bool(true))
        }
        PositiveNumber => with_entry(typed("number"), "exclusiveMinimum", Value::Int(0)),
        CountOrZero if draft < Draft::D2019 => map([("allOf", Value::List(vec![count()]))]),
        Count | CountOrZero => count(),
        Names => list(NAMES),
        NamesByName => map_of(list(NAMES)),
        Type => any_of(vec![type_name(), array_schema(type_name(), true, true)]),
        Enum => with_entry(
            with_entry(typed("array"), "minItems", Value::Int(1)),
            "uniqueItems",
            Value::Bool(true),
        ),
        List => typed("array"),
        Vocabulary => with_entry(map_of(typed("boolean")), "propertyNames", formatted("uri")),
    }
}

fn anchor_pattern(draft: Draft) -> &'static str {
    if draft == Draft::D2019 {
        "^[A-Za-z][-A-Za-z0-9.:_]*$"
    } else {
        "^[A-Za-z_][-A-Za-z0-9._]*$"
    }
}

fn names(draft: Draft) -> Value {
    array_schema(map([("type", Value::from("string"))]), draft == Draft::D4, true)
}

fn type_name() -> Value {
    map([("enum", text_list(&TYPES))])
}

fn array_schema(item: Value, non_empty: bool, unique: bool) -> Value {
    let mut list = map([("type", Value::from("array")), ("items", item)]);
    if non_empty {
        list = with_entry(list, "minItems", Value::Int(1));
    }
    if unique {
        list = with_entry(list, "uniqueItems", Value::Bool(true));
    }
    list
}

fn reference(to: &str) -> Value {
    map([("$ref", Value::from(to))])
}

fn text_list(items: &[&str]) -> Value {
    Value::List(items.iter().map(|item| Value::from(*item)).collect())
}

fn map<const N: usize>(entries: [(&str, Value); N]) -> Value {
    Value::Map(
        entries
            .into_iter()
            .map(|(key, value)| (key.to_owned(), value))
            .collect(),
    )
}

fn with_entry(value: Value, key: &str, entry: Value) -> Value {
    let Value::Map(mut map) = value else { return value };
    map.insert(key.to_owned(), entry);
    Value::Map(map)
}
