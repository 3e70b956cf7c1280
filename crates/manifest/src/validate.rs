//! Validates a configuration by strict decoding and a table of rules. All errors and warnings are
//! collected.

mod deprecations;
mod ineffective;
mod mesh;
mod rules;
mod scalars;

use mainstay_yaml::{Map, Value};

use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::merge::{Merged, value_at};
use crate::path::Path;
use crate::schema::check_type;
use crate::translate::Translated;
use deprecations::with_replacement;
use rules::RULES;

pub(crate) use deprecations::is_reported_deprecation;

/// Input of the rules.
pub(crate) struct Subject<'a> {
    /// The merged `IstioOperator`, before translation.
    operator: &'a Map,
    /// The translated values.
    values: &'a Map,
}

impl Subject<'_> {
    fn spec(&self, keys: &[&str]) -> Option<&Value> {
        let mut path = vec!["spec"];
        path.extend(keys);
        value_at(self.operator, &path).filter(|value| !value.is_null())
    }

    fn value(&self, keys: &[&str]) -> Option<&Value> {
        value_at(self.values, keys).filter(|value| !value.is_null())
    }
}

/// Returns all errors and warnings of a configuration, with their locations.
pub(crate) fn validate(merged: &Merged, translated: &Translated) -> Diagnostics {
    let mut found = Diagnostics::default();
    // Feature blocks exist only in the user's layers, profiles only in the merged configuration.
    for operator in [&merged.user_operator, &merged.operator] {
        if !found.has_errors() {
            let operator = Value::Map(operator.clone());
            check_type(&operator, "IstioOperator", &Path::default(), &mut found);
        }
    }
    found.append(merged.features.clone());
    check_kind(&merged.operator, &mut found);
    let values = value_at(&translated.operator, &["spec", "values"]).and_then(Value::as_map);
    let empty = Map::new();
    let subject = Subject {
        operator: &merged.operator,
        values: values.unwrap_or(&empty),
    };
    for rule in RULES {
        (rule.check)(&subject, &mut found);
    }
    found.map(|one| merged.origins.add_location(with_replacement(one)))
}

fn check_kind(operator: &Map, found: &mut Diagnostics) {
    let expected = [
        ("apiVersion", "install.istio.io/v1alpha1"),
        ("kind", "IstioOperator"),
    ];
    for (key, wanted) in expected {
        let value = value_at(operator, &[key])
            .and_then(Value::as_str)
            .unwrap_or_default();
        if value != wanted {
            let message = format!("expected {wanted:?}");
            found.push(Diagnostic::error(Path::from_keys(&[key]), message).value(value));
        }
    }
}
