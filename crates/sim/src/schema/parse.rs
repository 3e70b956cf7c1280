//! Parses the table of Go types.

use std::collections::HashMap;

use super::{Field, ListKind, Schema, Struct, Type, TypeId};

/// Parses the table. Invalid lines are skipped; a test checks that there are none.
pub(super) fn parse_schema(text: &str) -> Schema {
    let mut schema = Schema {
        structs: Vec::new(),
        names: parse_struct_names(text),
        kinds: HashMap::new(),
    };
    for line in text.lines() {
        if let Some(kind) = line.strip_prefix("= ") {
            add_kind(&mut schema, kind);
        } else if let Some(field) = line.strip_prefix('\t') {
            let field = parse_field(field, &schema.names);
            if let (Some(last), Some(field)) = (schema.structs.last_mut(), field) {
                last.fields.push(field);
            }
        } else {
            let (name, flags) = line.split_once(' ').unwrap_or((line, ""));
            let atomic = flags.contains("map=atomic");
            schema.structs.push(Struct {
                name: name.into(),
                atomic,
                ..Struct::default()
            });
        }
    }
    schema.structs.iter_mut().for_each(Struct::index);
    schema
}

fn parse_struct_names(text: &str) -> HashMap<Box<str>, TypeId> {
    let structs = text.lines().filter(|line| !line.starts_with(['\t', '=']));
    let names = structs.filter_map(|line| line.split(' ').next());
    names
        .zip(0..)
        .map(|(name, at)| (name.into(), TypeId(at)))
        .collect()
}

fn add_kind(schema: &mut Schema, line: &str) {
    let mut parts = line.split(' ');
    if let (Some(api_version), Some(kind), Some(name)) = (parts.next(), parts.next(), parts.next())
        && let Some(id) = schema.names.get(name)
    {
        schema.kinds.insert((api_version.into(), kind.into()), *id);
    }
}

fn parse_field(line: &str, names: &HashMap<Box<str>, TypeId>) -> Option<Field> {
    let mut parts = line.split(' ');
    let name = parts.next()?;
    let type_text = parts.next()?;
    let kind = parse_type(type_text, names)?;
    let leaf = type_text.trim_start_matches(['*', '[', ']', '{', '}']);
    let is_free_form = matches!(parse_scalar(leaf), Some(Type::Any));
    let mut field = Field {
        name: name.into(),
        kind,
        wire: Box::default(),
        free_form: if is_free_form { leaf.into() } else { "".into() },
        omit_empty: false,
        omit_zero: false,
        required: false,
        patch_merge: false,
        patch_retain_keys: false,
        merge_key: None,
        list: ListKind::Atomic,
        atomic_map: false,
        choices: Vec::new(),
        default: None,
    };
    for flag in parts {
        set_flag(&mut field, flag);
    }
    Some(field)
}

fn set_flag(field: &mut Field, flag: &str) {
    if let Some(wire) = flag.strip_prefix('#') {
        field.wire = wire.split('.').filter_map(|number| number.parse().ok()).collect();
        return;
    }
    match flag.split_once('=').unwrap_or((flag, "")) {
        ("?", _) => field.omit_empty = true,
        ("z", _) => field.omit_zero = true,
        ("!", _) => field.required = true,
        ("patch", how) => {
            field.patch_merge = how.contains("merge");
            field.patch_retain_keys = how.contains("retainKeys");
        }
        ("key", key) => field.merge_key = Some(key.into()),
        ("list", "set") => field.list = ListKind::Set,
        ("keys", keys) => field.list = ListKind::Map(keys.split(',').map(Into::into).collect()),
        ("map", "atomic") => field.atomic_map = true,
        ("enum", choices) => field.choices = choices.split(',').map(Into::into).collect(),
        ("default", value) => field.default = serde_json::from_str(value).ok(),
        _ => {}
    }
}

fn parse_type(text: &str, names: &HashMap<Box<str>, TypeId>) -> Option<Type> {
    if let Some(inner) = text.strip_prefix('*') {
        return Some(Type::Pointer(Box::new(parse_type(inner, names)?)));
    }
    if let Some(inner) = text.strip_prefix("[]") {
        return Some(Type::List(Box::new(parse_type(inner, names)?)));
    }
    if let Some(inner) = text.strip_prefix("{}") {
        return Some(Type::Map(Box::new(parse_type(inner, names)?)));
    }
    if let Some(name) = text.strip_prefix('@') {
        return names.get(name).copied().map(Type::Struct);
    }
    parse_scalar(text)
}

fn parse_scalar(text: &str) -> Option<Type> {
    let (base, named) = match text.split_once('=') {
        Some((base, named)) => (base, Some(named)),
        None => (text, None),
    };
    Some(match base {
        "string" => Type::Text(named.map(Into::into)),
        "int" | "int32" | "int64" | "uint8" | "uint16" | "uint32" => Type::Int(named.unwrap_or(base).into()),
        "float64" => Type::Float,
        "bool" => Type::Bool,
        "bytes" => Type::Bytes,
        "quantity" => Type::Quantity,
        "intstr" => Type::IntOrString,
        "time" => Type::Time,
        "microtime" => Type::MicroTime,
        "duration" => Type::Duration,
        "any" | "raw" | "schemaorarray" | "schemaorbool" | "schemaorstrings" => Type::Any,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_table_is_parsed() {
        let text = include_str!("builtin.txt");
        let schema = parse_schema(text);
        let fields: usize = schema.structs.iter().map(|one| one.fields.len()).sum();
        assert_eq!(fields, text.lines().filter(|line| line.starts_with('\t')).count());
        assert_eq!(
            schema.kinds.len(),
            text.lines().filter(|line| line.starts_with('=')).count()
        );
        let pod_spec = schema.find_struct("core/v1.PodSpec").unwrap();
        let containers = schema.field(pod_spec, "containers").unwrap();
        assert_eq!(containers.merge_key.as_deref(), Some("name"));
        assert_eq!(containers.list, ListKind::Map(vec!["name".into()]));
    }
}
