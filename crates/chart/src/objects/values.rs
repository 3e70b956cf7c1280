//! Type of `.Values`, of the root object and of `.Template`: a named map with methods.

use mainstay_gostd::quote::quote;
use mainstay_template::{Failure, Map, MapType, Method, NamedType, Signature, Type, Value};

use crate::functions::marshal_yaml;

/// Type of `.Values` in Helm 3.
pub(crate) static HELM3_VALUES: NamedType = NamedType {
    name: "chartutil.Values",
    methods: METHODS,
};

/// Type of `.Values` in Helm 4.
pub(crate) static HELM4_VALUES: NamedType = NamedType {
    name: "common.Values",
    methods: METHODS,
};

const NOTHING: Signature = signature(&[]);
const NAME: Signature = signature(&[Type::String]);
const WRITER: Signature = signature(&[Type::Interface("io.Writer")]);

const fn signature(params: &'static [Type]) -> Signature {
    Signature {
        params,
        variadic: false,
    }
}

const METHODS: &[Method] = &[
    Method {
        name: "AsMap",
        signature: NOTHING,
        run: |receiver, _| Ok(Value::Map(receiver_map(receiver).retyped(MapType::Any))),
    },
    Method {
        name: "Encode",
        signature: WRITER,
        run: |_, _| {
            // No value of a template implements `io.Writer`, so the argument is nil.
            Err(Failure::message(
                "runtime error: invalid memory address or nil pointer dereference",
            ))
        },
    },
    Method {
        name: "PathValue",
        signature: NAME,
        run: |receiver, call| path_value(&receiver_map(receiver), &call.str(0)),
    },
    Method {
        name: "Table",
        signature: NAME,
        run: |receiver, call| table(&receiver_map(receiver), &call.str(0)).map(Value::Map),
    },
    Method {
        name: "YAML",
        signature: NOTHING,
        run: |receiver, call| marshal_yaml(receiver, call).map(Value::string),
    },
];

fn receiver_map(receiver: &Value) -> Map {
    match receiver {
        Value::Map(map) => map.clone(),
        _ => Map::nil(MapType::Any),
    }
}

/// Returns the table at a dotted path. It has the type of `values`.
fn table(values: &Map, path: &[u8]) -> Result<Map, Failure> {
    let mut table = values.clone();
    for name in path.split(|byte| *byte == b'.') {
        table = match table.get(name) {
            Some(Value::Map(inner)) if inner.ty() == MapType::Any || inner.ty() == values.ty() => inner,
            _ => return Err(Failure::message(format!("{} is not a table", quote(name)))),
        };
    }
    Ok(table.retyped(values.ty()))
}

/// Returns the value at a dotted path. Fails if it is a table.
fn path_value(values: &Map, path: &[u8]) -> Result<Value, Failure> {
    if path.is_empty() {
        return Err(Failure::message("YAML path cannot be empty"));
    }
    let (parent, key) = match path.iter().rposition(|byte| *byte == b'.') {
        Some(dot) => {
            let (parent, key) = path.split_at(dot);
            let key = key.get(1..).unwrap_or_default();
            (table(values, parent).map_err(|_| not_a_value(key))?, key)
        }
        None => (values.clone(), path),
    };
    match parent.get(key) {
        None => Err(not_a_value(key)),
        Some(Value::Map(inner)) if inner.ty() == MapType::Any => Err(not_a_value(key)),
        Some(value) => Ok(value),
    }
}

fn not_a_value(key: &[u8]) -> Failure {
    Failure::message(format!("{} is not a value", quote(key)))
}
