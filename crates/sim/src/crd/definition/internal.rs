//! Formats parts of definitions for messages. The internal types of the real server have no JSON names, so
//! the messages contain the names of Go fields.

use serde_json::Value;

use crate::show;

/// Format of a field of an internal type.
#[derive(Clone, Copy)]
enum Format {
    Text,
    Flag,
    /// The value, or `null` if it is missing.
    Optional,
    Schema,
    Schemas,
    Map,
    Items,
    OrBool,
    Rules,
}

/// Go name, JSON name and format of the fields of a schema.
const SCHEMA: &[(&str, &str, Format)] = &[
    ("ID", "id", Format::Text),
    ("Schema", "$schema", Format::Text),
    ("Ref", "$ref", Format::Optional),
    ("Description", "description", Format::Text),
    ("Type", "type", Format::Text),
    ("Nullable", "nullable", Format::Flag),
    ("Format", "format", Format::Text),
    ("Title", "title", Format::Text),
    ("Default", "default", Format::Optional),
    ("Maximum", "maximum", Format::Optional),
    ("ExclusiveMaximum", "exclusiveMaximum", Format::Flag),
    ("Minimum", "minimum", Format::Optional),
    ("ExclusiveMinimum", "exclusiveMinimum", Format::Flag),
    ("MaxLength", "maxLength", Format::Optional),
    ("MinLength", "minLength", Format::Optional),
    ("Pattern", "pattern", Format::Text),
    ("MaxItems", "maxItems", Format::Optional),
    ("MinItems", "minItems", Format::Optional),
    ("UniqueItems", "uniqueItems", Format::Flag),
    ("MultipleOf", "multipleOf", Format::Optional),
    ("Enum", "enum", Format::Optional),
    ("MaxProperties", "maxProperties", Format::Optional),
    ("MinProperties", "minProperties", Format::Optional),
    ("Required", "required", Format::Optional),
    ("Items", "items", Format::Items),
    ("AllOf", "allOf", Format::Schemas),
    ("OneOf", "oneOf", Format::Schemas),
    ("AnyOf", "anyOf", Format::Schemas),
    ("Not", "not", Format::Schema),
    ("Properties", "properties", Format::Map),
    ("AdditionalProperties", "additionalProperties", Format::OrBool),
    ("PatternProperties", "patternProperties", Format::Map),
    ("Dependencies", "dependencies", Format::Optional),
    ("AdditionalItems", "additionalItems", Format::OrBool),
    ("Definitions", "definitions", Format::Map),
    ("ExternalDocs", "externalDocs", Format::Optional),
    ("Example", "example", Format::Optional),
    (
        "XPreserveUnknownFields",
        "x-kubernetes-preserve-unknown-fields",
        Format::Optional,
    ),
    (
        "XEmbeddedResource",
        "x-kubernetes-embedded-resource",
        Format::Flag,
    ),
    ("XIntOrString", "x-kubernetes-int-or-string", Format::Flag),
    ("XListMapKeys", "x-kubernetes-list-map-keys", Format::Optional),
    ("XListType", "x-kubernetes-list-type", Format::Optional),
    ("XMapType", "x-kubernetes-map-type", Format::Optional),
    ("XValidations", "x-kubernetes-validations", Format::Rules),
];

const RULE: &[(&str, &str, Format)] = &[
    ("Rule", "rule", Format::Text),
    ("Message", "message", Format::Text),
    ("MessageExpression", "messageExpression", Format::Text),
    ("Reason", "reason", Format::Optional),
    ("FieldPath", "fieldPath", Format::Text),
    ("OptionalOldSelf", "optionalOldSelf", Format::Optional),
];

const VERSION: &[(&str, &str, Format)] = &[
    ("Name", "name", Format::Text),
    ("Served", "served", Format::Flag),
    ("Storage", "storage", Format::Flag),
    ("Deprecated", "deprecated", Format::Flag),
    ("DeprecationWarning", "deprecationWarning", Format::Optional),
];

const COLUMN: &[(&str, &str, Format)] = &[
    ("Name", "name", Format::Text),
    ("Type", "type", Format::Text),
    ("Format", "format", Format::Text),
    ("Description", "description", Format::Text),
    ("Priority", "priority", Format::Optional),
    ("JSONPath", "jsonPath", Format::Text),
];

pub(super) fn format_schema(value: &Value) -> String {
    format!("{{{}}}", format_fields(value, SCHEMA))
}

pub(super) fn format_rule(value: &Value) -> String {
    format!("{{{}}}", format_fields(value, RULE))
}

/// Formats versions without the parts that all versions share.
pub(super) fn format_versions(all: &[Value], is_shared: &dyn Fn(&str) -> bool) -> String {
    let format_version = |version: &Value| {
        let part = |key: &str| version.get(key).filter(|part| !part.is_null() && !is_shared(key));
        let parts = [
            (
                "Schema",
                part("schema").map(|part| {
                    let inner = part.get("openAPIV3Schema").map_or("null".into(), format_schema);
                    format!("{{\"OpenAPIV3Schema\":{inner}}}")
                }),
            ),
            ("Subresources", part("subresources").map(format_subresources)),
            (
                "AdditionalPrinterColumns",
                part("additionalPrinterColumns").map(|part| format_list(part, &format_column)),
            ),
            (
                "SelectableFields",
                part("selectableFields").map(|part| {
                    format_list(part, &|field| {
                        format!("{{\"JSONPath\":{}}}", format_or(field.get("jsonPath"), "\"\""))
                    })
                }),
            ),
        ];
        let parts: Vec<String> = parts
            .into_iter()
            .map(|(name, part)| format!("\"{name}\":{}", part.unwrap_or_else(|| "null".into())))
            .collect();
        format!("{{{},{}}}", format_fields(version, VERSION), parts.join(","))
    };
    let all: Vec<String> = all.iter().map(format_version).collect();
    format!("[{}]", all.join(","))
}

fn format_column(value: &Value) -> String {
    let text = format!("{{{}}}", format_fields(value, COLUMN));
    text.replace("\"Priority\":null", "\"Priority\":0")
}

fn format_subresources(value: &Value) -> String {
    let status = value.get("status").map_or("null", |_| "{}");
    let scale = value.get("scale").map_or("null".into(), |scale| {
        format!(
            "{{\"SpecReplicasPath\":{},\"StatusReplicasPath\":{},\"LabelSelectorPath\":{}}}",
            format_or(scale.get("specReplicasPath"), "\"\""),
            format_or(scale.get("statusReplicasPath"), "\"\""),
            format_or(scale.get("labelSelectorPath"), "null")
        )
    });
    format!("{{\"Status\":{status},\"Scale\":{scale}}}")
}

/// Formats a value, or returns `absent` if it is missing.
fn format_or(value: Option<&Value>, absent: &str) -> String {
    value
        .filter(|value| !value.is_null())
        .map_or(absent.into(), show::json)
}

fn format_list(value: &Value, format_item: &dyn Fn(&Value) -> String) -> String {
    let items: Vec<String> = value.as_array().into_iter().flatten().map(format_item).collect();
    format!("[{}]", items.join(","))
}

fn format_fields(value: &Value, table: &[(&str, &str, Format)]) -> String {
    let all: Vec<String> = table
        .iter()
        .map(|(name, key, format)| format!("\"{name}\":{}", format_field(value.get(key), *format)))
        .collect();
    all.join(",")
}

fn format_field(value: Option<&Value>, format: Format) -> String {
    let value = value.filter(|value| !value.is_null());
    let Some(value) = value else {
        return match format {
            Format::Text => "\"\"".into(),
            Format::Flag => "false".into(),
            _ => "null".into(),
        };
    };
    match format {
        Format::Text | Format::Flag | Format::Optional => show::json(value),
        Format::Schema => format_schema(value),
        Format::Schemas => format_list(value, &format_schema),
        Format::Map => {
            let all: Vec<String> = value
                .as_object()
                .into_iter()
                .flatten()
                .map(|(name, property)| {
                    format!(
                        "{}:{}",
                        show::json(&Value::from(name.as_str())),
                        format_schema(property)
                    )
                })
                .collect();
            format!("{{{}}}", all.join(","))
        }
        Format::Items if value.is_array() => {
            format!(
                "{{\"Schema\":null,\"JSONSchemas\":{}}}",
                format_list(value, &format_schema)
            )
        }
        Format::Items => format!("{{\"Schema\":{},\"JSONSchemas\":null}}", format_schema(value)),
        Format::OrBool => match value {
            Value::Bool(flag) => format!("{{\"Allows\":{flag},\"Schema\":null}}"),
            schema => format!("{{\"Allows\":true,\"Schema\":{}}}", format_schema(schema)),
        },
        Format::Rules => format_list(value, &format_rule),
    }
}
