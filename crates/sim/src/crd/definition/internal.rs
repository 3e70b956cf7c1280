//! Formats parts of definitions for messages: the server's internal types have no JSON names, so Go's field
//! names appear.

use serde_json::Value;

use crate::crd::show;

/// How a field of the internal type is printed.
#[derive(Clone, Copy)]
enum Form {
    Text,
    Flag,
    /// `null`, or the value.
    Maybe,
    Schema,
    Schemas,
    Map,
    Items,
    OrBool,
    Rules,
}

/// Go's name, the JSON name, the format.
const SCHEMA: &[(&str, &str, Form)] = &[
    ("ID", "id", Form::Text),
    ("Schema", "$schema", Form::Text),
    ("Ref", "$ref", Form::Maybe),
    ("Description", "description", Form::Text),
    ("Type", "type", Form::Text),
    ("Nullable", "nullable", Form::Flag),
    ("Format", "format", Form::Text),
    ("Title", "title", Form::Text),
    ("Default", "default", Form::Maybe),
    ("Maximum", "maximum", Form::Maybe),
    ("ExclusiveMaximum", "exclusiveMaximum", Form::Flag),
    ("Minimum", "minimum", Form::Maybe),
    ("ExclusiveMinimum", "exclusiveMinimum", Form::Flag),
    ("MaxLength", "maxLength", Form::Maybe),
    ("MinLength", "minLength", Form::Maybe),
    ("Pattern", "pattern", Form::Text),
    ("MaxItems", "maxItems", Form::Maybe),
    ("MinItems", "minItems", Form::Maybe),
    ("UniqueItems", "uniqueItems", Form::Flag),
    ("MultipleOf", "multipleOf", Form::Maybe),
    ("Enum", "enum", Form::Maybe),
    ("MaxProperties", "maxProperties", Form::Maybe),
    ("MinProperties", "minProperties", Form::Maybe),
    ("Required", "required", Form::Maybe),
    ("Items", "items", Form::Items),
    ("AllOf", "allOf", Form::Schemas),
    ("OneOf", "oneOf", Form::Schemas),
    ("AnyOf", "anyOf", Form::Schemas),
    ("Not", "not", Form::Schema),
    ("Properties", "properties", Form::Map),
    ("AdditionalProperties", "additionalProperties", Form::OrBool),
    ("PatternProperties", "patternProperties", Form::Map),
    ("Dependencies", "dependencies", Form::Maybe),
    ("AdditionalItems", "additionalItems", Form::OrBool),
    ("Definitions", "definitions", Form::Map),
    ("ExternalDocs", "externalDocs", Form::Maybe),
    ("Example", "example", Form::Maybe),
    (
        "XPreserveUnknownFields",
        "x-kubernetes-preserve-unknown-fields",
        Form::Maybe,
    ),
    ("XEmbeddedResource", "x-kubernetes-embedded-resource", Form::Flag),
    ("XIntOrString", "x-kubernetes-int-or-string", Form::Flag),
    ("XListMapKeys", "x-kubernetes-list-map-keys", Form::Maybe),
    ("XListType", "x-kubernetes-list-type", Form::Maybe),
    ("XMapType", "x-kubernetes-map-type", Form::Maybe),
    ("XValidations", "x-kubernetes-validations", Form::Rules),
];

const RULE: &[(&str, &str, Form)] = &[
    ("Rule", "rule", Form::Text),
    ("Message", "message", Form::Text),
    ("MessageExpression", "messageExpression", Form::Text),
    ("Reason", "reason", Form::Maybe),
    ("FieldPath", "fieldPath", Form::Text),
    ("OptionalOldSelf", "optionalOldSelf", Form::Maybe),
];

const VERSION: &[(&str, &str, Form)] = &[
    ("Name", "name", Form::Text),
    ("Served", "served", Form::Flag),
    ("Storage", "storage", Form::Flag),
    ("Deprecated", "deprecated", Form::Flag),
    ("DeprecationWarning", "deprecationWarning", Form::Maybe),
];

const COLUMN: &[(&str, &str, Form)] = &[
    ("Name", "name", Form::Text),
    ("Type", "type", Form::Text),
    ("Format", "format", Form::Text),
    ("Description", "description", Form::Text),
    ("Priority", "priority", Form::Maybe),
    ("JSONPath", "jsonPath", Form::Text),
];

/// Formats a schema.
pub(super) fn schema(value: &Value) -> String {
    format!("{{{}}}", fields(value, SCHEMA))
}

/// Formats a rule.
pub(super) fn rule(value: &Value) -> String {
    format!("{{{}}}", fields(value, RULE))
}

/// Formats versions; parts that all of them share (`shared`) are moved elsewhere.
pub(super) fn versions(all: &[Value], shared: &dyn Fn(&str) -> bool) -> String {
    let one = |version: &Value| {
        let own = |key: &str| version.get(key).filter(|part| !part.is_null() && !shared(key));
        let parts = [
            (
                "Schema",
                own("schema").map(|part| {
                    let inner = part.get("openAPIV3Schema").map_or("null".into(), schema);
                    format!("{{\"OpenAPIV3Schema\":{inner}}}")
                }),
            ),
            ("Subresources", own("subresources").map(subresources)),
            (
                "AdditionalPrinterColumns",
                own("additionalPrinterColumns").map(|part| listed(part, &column)),
            ),
            (
                "SelectableFields",
                own("selectableFields").map(|part| {
                    listed(part, &|field| {
                        format!("{{\"JSONPath\":{}}}", shown(field.get("jsonPath"), "\"\""))
                    })
                }),
            ),
        ];
        let parts: Vec<String> = parts
            .into_iter()
            .map(|(name, part)| format!("\"{name}\":{}", part.unwrap_or_else(|| "null".into())))
            .collect();
        format!("{{{},{}}}", fields(version, VERSION), parts.join(","))
    };
    let all: Vec<String> = all.iter().map(one).collect();
    format!("[{}]", all.join(","))
}

fn column(value: &Value) -> String {
    let text = format!("{{{}}}", fields(value, COLUMN));
    text.replace("\"Priority\":null", "\"Priority\":0")
}

fn subresources(value: &Value) -> String {
    let status = value.get("status").map_or("null", |_| "{}");
    let scale = value.get("scale").map_or("null".into(), |scale| {
        format!(
            "{{\"SpecReplicasPath\":{},\"StatusReplicasPath\":{},\"LabelSelectorPath\":{}}}",
            shown(scale.get("specReplicasPath"), "\"\""),
            shown(scale.get("statusReplicasPath"), "\"\""),
            shown(scale.get("labelSelectorPath"), "null")
        )
    });
    format!("{{\"Status\":{status},\"Scale\":{scale}}}")
}

fn shown(value: Option<&Value>, absent: &str) -> String {
    value
        .filter(|value| !value.is_null())
        .map_or(absent.into(), show::json)
}

fn listed(value: &Value, one: &dyn Fn(&Value) -> String) -> String {
    let items: Vec<String> = value.as_array().into_iter().flatten().map(one).collect();
    format!("[{}]", items.join(","))
}

fn fields(value: &Value, table: &[(&str, &str, Form)]) -> String {
    let all: Vec<String> = table
        .iter()
        .map(|(name, key, form)| format!("\"{name}\":{}", field(value.get(key), *form)))
        .collect();
    all.join(",")
}

fn field(value: Option<&Value>, form: Form) -> String {
    let value = value.filter(|value| !value.is_null());
    let Some(value) = value else {
        return match form {
            Form::Text => "\"\"".into(),
            Form::Flag => "false".into(),
            _ => "null".into(),
        };
    };
    match form {
        Form::Text | Form::Flag | Form::Maybe => show::json(value),
        Form::Schema => schema(value),
        Form::Schemas => listed(value, &schema),
        Form::Map => {
            let all: Vec<String> = value
                .as_object()
                .into_iter()
                .flatten()
                .map(|(name, below)| format!("{}:{}", show::json(&Value::from(name.as_str())), schema(below)))
                .collect();
            format!("{{{}}}", all.join(","))
        }
        Form::Items if value.is_array() => {
            format!("{{\"Schema\":null,\"JSONSchemas\":{}}}", listed(value, &schema))
        }
        Form::Items => format!("{{\"Schema\":{},\"JSONSchemas\":null}}", schema(value)),
        Form::OrBool => match value {
            Value::Bool(flag) => format!("{{\"Allows\":{flag},\"Schema\":null}}"),
            below => format!("{{\"Allows\":true,\"Schema\":{}}}", schema(below)),
        },
        Form::Rules => listed(value, &rule),
    }
}
