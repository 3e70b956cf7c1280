//! Translates API fields to chart values. The rules are tables per minor version.

use mainstay_chart::merge_maps;
use mainstay_yaml::{Map, Value, float_to_json};

use crate::component::{COMPONENTS, ComponentName, is_enabled};
use crate::merge::{Merged, map_at, put, text_at, value_at};
use crate::package::Minor;

/// Rules for one or several minor versions.
#[derive(Debug)]
pub(crate) struct Translator {
    /// First minor version of Istio 1 with these rules.
    since: u64,
    /// Fields of `spec`, and the values that they set.
    pub(crate) fields: &'static [Field],
    /// Oldest supported Kubernetes minor version. Templates use it if there is no cluster.
    pub(crate) kube_minor: u64,
    /// `k8s` settings of components that are also values of their charts.
    pub(crate) settings: &'static [SettingValue],
}

/// A field of `spec` and the value that it sets.
#[allow(clippy::struct_field_names, reason = "field names match the table")]
#[derive(Debug)]
pub(crate) struct Field {
    pub(crate) field: &'static str,
    pub(crate) value: &'static [&'static str],
    pub(crate) form: Form,
}

/// A `k8s` setting that the chart also reads as a value.
#[derive(Debug)]
pub(crate) struct SettingValue {
    pub(crate) setting: &'static [&'static str],
    pub(crate) value: &'static [&'static str],
}

/// Form in which a field is written to the values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Converted to a string.
    Text,
    /// Merged into an existing map.
    Merged,
}

const fn text(field: &'static str, value: &'static [&'static str]) -> Field {
    Field {
        field,
        value,
        form: Form::Text,
    }
}

const FIELDS: &[Field] = &[
    text("hub", &["global", "hub"]),
    text("tag", &["global", "tag"]),
    text("revision", &["revision"]),
    text("compatibilityVersion", &["compatibilityVersion"]),
    Field {
        field: "meshConfig",
        value: &["meshConfig"],
        form: Form::Merged,
    },
];

const fn setting(setting: &'static [&'static str], value: &'static [&'static str]) -> SettingValue {
    SettingValue { setting, value }
}

/// Since 1.31, templates use these settings, because other objects depend on them.
const SETTINGS_1_31: &[SettingValue] = &[
    setting(&["hpaSpec", "minReplicas"], &["autoscaleMin"]),
    setting(&["hpaSpec", "maxReplicas"], &["autoscaleMax"]),
    setting(&["replicaCount"], &["replicaCount"]),
    setting(&["resources", "limits", "cpu"], &["resources", "limits", "cpu"]),
    setting(
        &["resources", "requests", "cpu"],
        &["resources", "requests", "cpu"],
    ),
];

/// Rules by version, newest first.
const TRANSLATORS: &[Translator] = &[
    Translator {
        since: 31,
        fields: FIELDS,
        kube_minor: 32,
        settings: SETTINGS_1_31,
    },
    Translator {
        since: 30,
        fields: FIELDS,
        kube_minor: 32,
        settings: &[],
    },
    Translator {
        since: 28,
        fields: FIELDS,
        kube_minor: 30,
        settings: &[],
    },
    Translator {
        since: 25,
        fields: FIELDS,
        kube_minor: 29,
        settings: &[],
    },
];

/// Rules for all older versions.
const OLDEST: &Translator = &Translator {
    since: 0,
    fields: FIELDS,
    kube_minor: 28,
    settings: &[],
};

impl Translator {
    /// Returns the rules for a minor version.
    pub(crate) fn for_minor(minor: Minor) -> &'static Self {
        let mut rows = TRANSLATORS.iter();
        let found = rows.find(|row| minor.major > 1 || row.since <= minor.minor);
        found.unwrap_or(OLDEST)
    }
}

/// Configuration after translation. `spec.values` contains all values that charts read.
#[derive(Clone, Debug)]
pub(crate) struct Translated {
    /// The complete `IstioOperator`.
    pub(crate) operator: Map,
}

/// Translates the fields of `spec` to values. The user's values take precedence over translated fields,
/// except merged ones.
pub(crate) fn translate(merged: &Merged, translator: &Translator) -> Translated {
    let mut operator = merged.operator.clone();
    translate_fields(&mut operator, translator, Form::Text);
    for component in COMPONENTS {
        let enabled = Value::Bool(is_enabled(component, &operator));
        match component.name {
            ComponentName::Pilot => put(&mut operator, &["spec", "values", "pilot", "enabled"], enabled),
            ComponentName::Cni => put(
                &mut operator,
                &["spec", "values", "pilot", "cni", "enabled"],
                enabled,
            ),
            _ => {}
        }
    }
    if !merged.user_values.is_empty() {
        let mut values = map_at(&operator, &["spec", "values"]);
        merge_maps(&mut values, merged.user_values.clone());
        put(&mut operator, &["spec", "values"], Value::Map(values));
    }
    translate_fields(&mut operator, translator, Form::Merged);
    let namespace = text_at(&operator, &["spec", "values", "global", "istioNamespace"]);
    if !namespace.is_empty() {
        put(&mut operator, &["metadata", "namespace"], namespace.into());
    }
    Translated { operator }
}

fn translate_fields(operator: &mut Map, translator: &Translator, form: Form) {
    for field in translator.fields.iter().filter(|field| field.form == form) {
        if let Some(value) = value_at(operator, &["spec", field.field]).cloned() {
            translate_field(operator, field, value);
        }
    }
}

fn translate_field(operator: &mut Map, field: &Field, value: Value) {
    let mut keys = vec!["spec", "values"];
    keys.extend(field.value);
    match (field.form, value) {
        (_, Value::Null) => {}
        (Form::Merged, Value::Map(over)) => {
            let mut base = map_at(operator, &keys);
            merge_maps(&mut base, over);
            put(operator, &keys, Value::Map(base));
        }
        (Form::Merged, value) => put(operator, &keys, value),
        (Form::Text, value) => put(operator, &keys, text_value(value)),
    }
}

/// Converts a scalar to a string, like Go's `%v`.
pub(crate) fn text_value(value: Value) -> Value {
    match value {
        Value::Float(number) => Value::String(float_to_json(number)),
        Value::Int(number) => Value::String(number.to_string()),
        Value::Uint(number) => Value::String(number.to_string()),
        Value::Bool(flag) => Value::String(flag.to_string()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Minor version, first minor version with the same rules, oldest Kubernetes version of the release,
    /// number of settings that are also values.
    const MINORS: &[(u64, u64, u64, usize)] = &[
        (23, 0, 28, 0),
        (24, 0, 28, 0),
        (25, 25, 29, 0),
        (26, 25, 29, 0),
        (27, 25, 29, 0),
        (28, 28, 30, 0),
        (29, 28, 30, 0),
        (30, 30, 32, 0),
        (31, 31, 32, 5),
        (32, 31, 32, 5),
    ];

    #[test]
    fn rules_are_selected_by_minor_version() {
        for (minor, since, kube_minor, settings) in MINORS {
            let found = Translator::for_minor(Minor {
                major: 1,
                minor: *minor,
            });
            let found = (found.since, found.kube_minor, found.settings.len());
            assert_eq!(found, (*since, *kube_minor, *settings), "1.{minor}");
        }
        let next = Translator::for_minor(Minor { major: 2, minor: 0 });
        assert_eq!(next.since, 31);
    }
}
