//! Validates values against a schema, with the messages of the real server. Like the real validator, it
//! counts matching checks to select the branch of `anyOf` that is reported. Unchanged violations are
//! ignored (ratcheting).

use serde_json::{Map, Number, Value};

use super::correlate::OldValue;
use super::format;
use super::schema::{Additional, Checks, Node};
use crate::field::{ErrorType, FieldErrors, Path};
use crate::show;

/// Validates a value. `location` is the prefix of all paths.
pub(crate) fn validate(
    value: &Value,
    schema: &Node,
    old: Option<OldValue<'_>>,
    location: &Path,
    errors: &mut FieldErrors,
) {
    let found = validate_value(value, schema, "", old);
    for failure in found.failures {
        failure.report(location, errors);
    }
}

/// Result of a check.
#[derive(Default)]
struct CheckResult {
    failures: Vec<Failure>,
    /// Number of matching checks.
    matches: usize,
}

/// A violation.
struct Failure {
    /// Path of the value. `None` for violations that are reported for the root, such as those of `anyOf`.
    name: Option<String>,
    kind: FailureKind,
    text: String,
}

enum FailureKind {
    Invalid(String),
    Type(String),
    Required,
    TooLong(u64),
    TooMany(usize, u64),
    NotSupported(String, Vec<String>),
}

impl Failure {
    fn new(name: &str, kind: FailureKind, text: String) -> Self {
        Self {
            name: Some(name.to_owned()),
            kind,
            text,
        }
    }

    fn without_path(text: String) -> Self {
        Self {
            name: None,
            kind: FailureKind::Invalid("\"\"".into()),
            text,
        }
    }

    fn report(self, location: &Path, errors: &mut FieldErrors) {
        let name = self.name.as_deref().unwrap_or("").trim_start_matches('.');
        let path = if name.is_empty() {
            location.clone()
        } else {
            location.child(name)
        };
        match self.kind {
            FailureKind::Invalid(shown) => {
                errors.push_shown(ErrorType::Invalid, &path, Some(shown), self.text);
            }
            FailureKind::Type(shown) => {
                errors.push_shown(ErrorType::TypeInvalid, &path, Some(shown), self.text);
            }
            FailureKind::Required => errors.required(&path, ""),
            FailureKind::TooLong(max) => errors.too_long(&path, max as usize),
            FailureKind::TooMany(count, max) => errors.too_many(&path, count, max as usize),
            FailureKind::NotSupported(shown, options) => {
                let listed: Vec<String> = options.iter().map(|one| show::quoted(one)).collect();
                let detail = format!("supported values: {}", listed.join(", "));
                errors.push_shown(ErrorType::NotSupported, &path, Some(shown), detail);
            }
        }
    }
}

impl CheckResult {
    fn matched() -> Self {
        Self {
            failures: Vec::new(),
            matches: 1,
        }
    }

    fn failed(failure: Failure) -> Self {
        Self {
            failures: vec![failure],
            matches: 0,
        }
    }

    fn add(&mut self, failure: Failure) {
        if !self.failures.iter().any(|existing| existing.text == failure.text) {
            self.failures.push(failure);
        }
    }

    fn merge(&mut self, other: Self) {
        for failure in other.failures {
            self.add(failure);
        }
        self.matches += other.matches;
    }

    fn is_valid(&self) -> bool {
        self.failures.is_empty()
    }
}

/// Validates a value. Violations are ignored if the value is unchanged.
fn validate_value(value: &Value, schema: &Node, path: &str, old: Option<OldValue<'_>>) -> CheckResult {
    let found = check_value(value, schema, path, old);
    match old {
        Some(old) if !found.is_valid() && old.equals(value) => CheckResult {
            failures: Vec::new(),
            matches: found.matches,
        },
        _ => found,
    }
}

/// Validates a value even if it is unchanged. Only violations of unchanged children are ignored.
fn check_value(value: &Value, schema: &Node, path: &str, old: Option<OldValue<'_>>) -> CheckResult {
    let checks = &schema.checks;
    let types = schema.types();
    let mut found = CheckResult::default();
    if value.is_null() {
        found.merge(check_null(&types, schema.nullable, path));
        found.merge(check_enum(value, checks, path));
        return found;
    }
    if !types.is_empty() || !checks.format.is_empty() {
        found.merge(check_type(value, &types, &checks.format, path));
        found.matches += 1;
    }
    found.merge(check_combinations(value, checks, path, old));
    found.matches += 1;
    match value {
        Value::String(text) => {
            found.merge(check_string(text, checks, path));
            found.matches += 1;
            if !checks.format.is_empty() && format::is_known(&checks.format) {
                if !format::is_valid(&checks.format, text) {
                    let text_shown = show::quoted(text);
                    let detail = format!("{path} in body must be of type {}: {text_shown}", checks.format);
                    found.add(Failure::new(path, FailureKind::Type(text_shown), detail));
                }
                found.matches += 1;
            }
        }
        Value::Number(number) => {
            found.merge(check_number(number, &types, checks, path));
            found.matches += 1;
        }
        Value::Array(items) => {
            found.merge(check_list(items, schema, path, old));
            found.matches += 1;
        }
        _ => {}
    }
    found.merge(check_enum(value, checks, path));
    found.matches += 1;
    if let Value::Object(map) = value {
        found.merge(check_object(map, schema, path, old));
        found.matches += 1;
    }
    found.matches += 1;
    found
}

fn check_null(types: &[&str], nullable: bool, path: &str) -> CheckResult {
    if types.is_empty() || nullable {
        return CheckResult::matched();
    }
    let detail = format!("{path} in body must be of type {}: \"null\"", types.join(","));
    CheckResult::failed(Failure::new(path, FailureKind::Type("\"null\"".into()), detail))
}

/// Returns the type of a value and the corresponding format.
fn type_of(value: &Value) -> (&'static str, &'static str) {
    match value {
        Value::Null => ("null", ""),
        Value::Bool(_) => ("boolean", ""),
        Value::String(_) => ("string", ""),
        Value::Array(_) => ("array", ""),
        Value::Object(_) => ("object", ""),
        Value::Number(number) if number.is_i64() => ("integer", "int64"),
        Value::Number(_) => ("number", "float64"),
    }
}

/// Largest integer for which it and all smaller integers are exact as floats.
const MAX_EXACT_INTEGER: f64 = 9_007_199_254_740_991.0;

fn check_type(value: &Value, types: &[&str], format: &str, path: &str) -> CheckResult {
    let (actual, implied) = type_of(value);
    let float = value.as_f64().unwrap_or(0.5);
    let is_whole_number = actual == "number"
        && float.fract() == 0.0
        && float.abs() <= MAX_EXACT_INTEGER
        && types.contains(&"integer");
    let is_widened = actual == "integer" && types.contains(&"number");
    let fits = types.contains(&actual) || is_whole_number || is_widened;
    let is_string_or_list = matches!(value, Value::String(_) | Value::Array(_));
    let type_error = |wanted: &str, actual: &str| {
        let detail = format!("{path} in body must be of type {wanted}: \"{actual}\"");
        CheckResult::failed(Failure::new(
            path,
            FailureKind::Type(format!("\"{actual}\"")),
            detail,
        ))
    };
    if !is_string_or_list && !format.is_empty() && !fits && implied != format {
        return type_error(format, implied);
    }
    let numeric = types.contains(&"number") || types.contains(&"integer");
    if is_string_or_list && !format.is_empty() && !numeric || fits {
        return CheckResult::matched();
    }
    type_error(&types.join(","), actual)
}

fn check_string(text: &str, checks: &Checks, path: &str) -> CheckResult {
    let length = text.chars().count() as u64;
    if let Some(max) = checks.max_length.filter(|max| length > *max) {
        let detail = format!("{path} in body should be at most {max} chars long");
        return CheckResult::failed(Failure::new(path, FailureKind::TooLong(max), detail));
    }
    let invalid = |detail: String| {
        CheckResult::failed(Failure::new(
            path,
            FailureKind::Invalid(show::quoted(text)),
            detail,
        ))
    };
    if let Some(min) = checks.min_length.filter(|min| length < *min) {
        return invalid(format!("{path} in body should be at least {min} chars long"));
    }
    match &checks.pattern {
        Some(pattern) if !pattern.is_match(text) => {
            invalid(format!("{path} in body should match '{}'", pattern.source))
        }
        _ => CheckResult::default(),
    }
}

fn check_number(number: &Number, types: &[&str], checks: &Checks, path: &str) -> CheckResult {
    let mut found = CheckResult::matched();
    let single = if types.len() == 1 {
        types.first().copied()
    } else {
        None
    };
    let single = single.unwrap_or("");
    let shown = show::number(number);
    let range_error =
        |value: f64, is_whole: bool, prefix: &str| range_error(value, is_whole, single, checks, prefix, path);
    let value = number.as_f64().unwrap_or_default();
    if let Some(detail) = range_error(value, number.is_i64() || number.is_u64(), "Checked") {
        found.add(Failure::without_path(detail));
    }
    let mut check_bound = |limit: Option<f64>,
                           prefix: &str,
                           is_violated: &dyn Fn(f64) -> bool,
                           detail: &dyn Fn(&str) -> String| {
        let Some(limit) = limit else { return };
        let limit_error = range_error(limit, false, prefix);
        let is_integer_limit = limit_error.is_none() && number.is_i64();
        if let Some(detail) = limit_error {
            found.add(Failure::without_path(detail));
        }
        let (limit, text) = if is_integer_limit {
            (limit.trunc(), (limit as i64).to_string())
        } else {
            (limit, show::float(limit))
        };
        if is_violated(limit) {
            let detail = format!("{path} in body should be {}", detail(&text));
            found.add(Failure::new(path, FailureKind::Invalid(shown.clone()), detail));
        }
    };
    let is_not_multiple = |factor: f64| factor > 0.0 && !is_multiple(value, factor);
    check_bound(checks.multiple_of, "MultipleOf", &is_not_multiple, &|text| {
        format!("a multiple of {text}")
    });
    let exclusive = checks.exclusive_minimum;
    check_bound(
        checks.minimum,
        "Minimum boundary",
        &|min| value < min || exclusive && value <= min,
        &|text| {
            format!(
                "greater than {}{text}",
                if exclusive { "" } else { "or equal to " }
            )
        },
    );
    let exclusive = checks.exclusive_maximum;
    check_bound(
        checks.maximum,
        "Maximum boundary",
        &|max| value > max || exclusive && value >= max,
        &|text| format!("less than {}{text}", if exclusive { "" } else { "or equal to " }),
    );
    found
}

fn is_multiple(value: f64, factor: f64) -> bool {
    let quotient = if factor < 1.0 {
        1.0 / factor * value
    } else {
        value / factor
    };
    (quotient - quotient.round()).abs() < 1e-9 * quotient.abs().max(1.0)
}

/// Returns the error if a number is out of the range of its type.
fn range_error(
    value: f64,
    is_whole: bool,
    kind: &str,
    checks: &Checks,
    prefix: &str,
    path: &str,
) -> Option<String> {
    let is_integral = is_whole || value.fract() == 0.0;
    let fits = match (kind, checks.format.as_str()) {
        ("integer", "int32") => is_integral && value >= f64::from(i32::MIN) && value <= f64::from(i32::MAX),
        ("integer", _) => is_integral && value.abs() <= 9_223_372_036_854_775_807.0,
        (_, "float") => value.abs() <= f64::from(f32::MAX),
        _ => true,
    };
    if fits {
        return None;
    }
    Some(if checks.format.is_empty() {
        format!("{prefix} value must be of type {kind} (default format) in {path}")
    } else {
        format!(
            "{prefix} value must be of type {kind} with format {} in {path}",
            checks.format
        )
    })
}

fn check_enum(value: &Value, checks: &Checks, path: &str) -> CheckResult {
    let is_equal = |option: &Value| match (option, value) {
        (Value::Null, _) => false,
        (Value::Number(a), Value::Number(b)) => a.as_f64() == b.as_f64(),
        (option, value) => option == value,
    };
    if checks.enum_values.is_empty() || checks.enum_values.iter().any(is_equal) {
        return CheckResult::default();
    }
    let listed: Vec<String> = checks
        .enum_values
        .iter()
        .map(|one| one.as_str().map_or_else(|| one.to_string(), str::to_owned))
        .collect();
    let detail = format!("{path} in body should be one of [{}]", listed.join(" "));
    CheckResult::failed(Failure::new(
        path,
        FailureKind::NotSupported(show::value(value), listed),
        detail,
    ))
}

fn check_list(items: &[Value], schema: &Node, path: &str, old: Option<OldValue<'_>>) -> CheckResult {
    let mut found = CheckResult::matched();
    let checks = &schema.checks;
    if let Some(item_schema) = &schema.items {
        for (index, item) in items.iter().enumerate() {
            let before = old.and_then(|old| old.item(item));
            found.merge(validate_value(
                item,
                item_schema,
                &format!("{path}[{index}]"),
                before,
            ));
        }
    }
    let size = items.len();
    if let Some(min) = checks.min_items.filter(|min| (size as u64) < *min) {
        let detail = format!("{path} in body should have at least {min} items");
        found.add(Failure::new(path, FailureKind::Invalid(size.to_string()), detail));
    }
    if let Some(max) = checks.max_items.filter(|max| size as u64 > *max) {
        let detail = format!("{path} in body should have at most {max} items");
        found.add(Failure::new(path, FailureKind::TooMany(size, max), detail));
    }
    if checks.unique_items && super::lists::first_duplicate(items).is_some() {
        let detail = format!("{path} in body shouldn't contain duplicates");
        found.add(Failure::new(path, FailureKind::Invalid("\"\"".into()), detail));
    }
    found
}

fn check_object(
    map: &Map<String, Value>,
    schema: &Node,
    path: &str,
    old: Option<OldValue<'_>>,
) -> CheckResult {
    let mut found = CheckResult::default();
    let checks = &schema.checks;
    let size = map.len();
    if let Some(min) = checks.min_properties.filter(|min| (size as u64) < *min) {
        let detail = format!("{path} in body should have at least {min} properties");
        found.add(Failure::new(path, FailureKind::Invalid(size.to_string()), detail));
    }
    if let Some(max) = checks.max_properties.filter(|max| size as u64 > *max) {
        let detail = format!("{path} in body should have at most {max} properties");
        found.add(Failure::new(path, FailureKind::TooMany(size, max), detail));
    }
    let additional = map
        .iter()
        .filter(|(key, _)| !schema.properties.contains_key(*key));
    for (key, value) in additional {
        match &schema.additional {
            Some(Additional::Any(false)) => {
                let detail = format!("{path}.{key} in body is a forbidden property");
                found.add(Failure::new(
                    path,
                    FailureKind::Invalid(show::quoted(key)),
                    detail,
                ));
            }
            Some(Additional::Schema(values)) => {
                let before = old.and_then(|old| old.field(key));
                found.merge(validate_value(value, values, &format!("{path}.{key}"), before));
            }
            _ => {}
        }
    }
    for (key, property) in &schema.properties {
        let Some(value) = map.get(key) else { continue };
        // Violations of the type of an object are never ignored.
        let is_type = path.is_empty() && matches!(key.as_str(), "apiVersion" | "kind");
        let before = old.filter(|_| !is_type).and_then(|old| old.field(key));
        let location = if path.is_empty() {
            key.clone()
        } else {
            format!("{path}.{key}")
        };
        found.merge(validate_value(value, property, &location, before));
    }
    for key in checks.required.iter().filter(|key| !map.contains_key(*key)) {
        let detail = format!("{path}.{key} in body is required");
        found.add(Failure::new(
            &format!("{path}.{key}"),
            FailureKind::Required,
            detail,
        ));
    }
    found
}

/// Checks `anyOf`, `oneOf`, `allOf` and `not`.
fn check_combinations(value: &Value, checks: &Checks, path: &str, old: Option<OldValue<'_>>) -> CheckResult {
    let mut found = CheckResult::default();
    let quoted = show::quoted(path);
    if !checks.any_of.is_empty() {
        check_any_of(value, checks, path, old, &mut found);
    }
    if !checks.one_of.is_empty() {
        check_one_of(value, checks, path, old, &mut found);
    }
    let mut valid = 0;
    for branch in &checks.all_of {
        let result = check_value(value, branch, path, old);
        valid += usize::from(result.is_valid());
        found.merge(result);
    }
    if valid != checks.all_of.len() {
        let none = if valid == 0 { ". None validated" } else { "" };
        found.add(Failure::without_path(format!(
            "{quoted} must validate all the schemas (allOf){none}"
        )));
    }
    if let Some(not) = &checks.not
        && check_value(value, not, path, old).is_valid()
    {
        found.add(Failure::without_path(format!(
            "{quoted} must not validate the schema (not)"
        )));
    }
    found.matches += 1;
    found
}

fn check_any_of(
    value: &Value,
    checks: &Checks,
    path: &str,
    old: Option<OldValue<'_>>,
    found: &mut CheckResult,
) {
    let mut best: Option<CheckResult> = None;
    for branch in &checks.any_of {
        let result = check_value(value, branch, path, old);
        if result.is_valid() {
            found.merge(result);
            return;
        }
        if best.as_ref().is_none_or(|best| result.matches > best.matches) {
            best = Some(result);
        }
    }
    let quoted = show::quoted(path);
    found.add(Failure::without_path(format!(
        "{quoted} must validate at least one schema (anyOf)"
    )));
    if let Some(best) = best {
        found.merge(best);
    }
}

fn check_one_of(
    value: &Value,
    checks: &Checks,
    path: &str,
    old: Option<OldValue<'_>>,
    found: &mut CheckResult,
) {
    let (mut best, mut first): (Option<CheckResult>, Option<CheckResult>) = (None, None);
    let mut valid = 0;
    for branch in &checks.one_of {
        let result = check_value(value, branch, path, old);
        if result.is_valid() {
            valid += 1;
            best = None;
            first.get_or_insert(result);
        } else if valid == 0 && best.as_ref().is_none_or(|best| result.matches > best.matches) {
            best = Some(result);
        }
    }
    if valid == 1 {
        found.merge(first.unwrap_or_default());
        return;
    }
    let count_text = if valid == 0 {
        "Found none valid".to_owned()
    } else {
        format!("Found {valid} valid alternatives")
    };
    let quoted = show::quoted(path);
    found.add(Failure::without_path(format!(
        "{quoted} must validate one and only one schema (oneOf). {count_text}"
    )));
    if let Some(best) = best {
        found.merge(best);
    }
}
