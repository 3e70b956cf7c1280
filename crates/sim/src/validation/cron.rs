//! Validates cron jobs. Errors of schedules equal those of the library with which the API server parses them.

use serde_json::Value;

use crate::field::{FieldErrors, Path};
use crate::tree;

/// Maximum length of the name, which leaves space for the suffix of job names.
const MAX_NAME_LEN: usize = 52;

/// Range of a field of a schedule: minimum, maximum, and names of the values, starting at the minimum.
struct Bounds(u64, u64, &'static [&'static str]);

const FIELDS: [Bounds; 5] = [
    Bounds(0, 59, &[]),
    Bounds(0, 23, &[]),
    Bounds(1, 31, &[]),
    Bounds(
        1,
        12,
        &[
            "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
        ],
    ),
    Bounds(0, 6, &["sun", "mon", "tue", "wed", "thu", "fri", "sat"]),
];

const DESCRIPTORS: [&str; 7] = [
    "@yearly",
    "@annually",
    "@monthly",
    "@weekly",
    "@daily",
    "@midnight",
    "@hourly",
];

/// Validates a cron job.
pub(super) fn cron_job(new: &Value, old: Option<&Value>, errors: &mut FieldErrors) {
    let spec = Path::new("spec");
    let schedule = tree::text(new, &["spec", "schedule"]);
    let path = spec.child("schedule");
    if schedule.is_empty() {
        errors.required(&path, "");
    } else {
        validate_schedule(schedule, new, old, &path, errors);
    }
    let policies = ["Allow", "Forbid", "Replace"];
    let policy = tree::text(new, &["spec", "concurrencyPolicy"]);
    if !policies.contains(&policy) {
        errors.not_supported(&spec.child("concurrencyPolicy"), policy, &policies);
    }
    for field in [
        "startingDeadlineSeconds",
        "successfulJobsHistoryLimit",
        "failedJobsHistoryLimit",
    ] {
        if let Some(number) = tree::int(new, &["spec", field]).filter(|number| *number < 0) {
            errors.invalid(&spec.child(field), number, "must be greater than or equal to 0");
        }
    }
    let name = tree::text(new, &["metadata", "name"]);
    if old.is_none() && name.len() > MAX_NAME_LEN {
        let path = Path::new("metadata").child("name");
        errors.invalid(&path, name, "must be no more than 52 characters");
    }
    let restart = ["spec", "jobTemplate", "spec", "template", "spec", "restartPolicy"];
    if !matches!(tree::text(new, &restart), "OnFailure" | "Never") {
        let path = Path::new("spec.jobTemplate.spec.template.spec.restartPolicy");
        errors.required(&path, "valid values: \"OnFailure\", \"Never\"");
    }
}

fn validate_schedule(
    schedule: &str,
    new: &Value,
    old: Option<&Value>,
    path: &Path,
    errors: &mut FieldErrors,
) {
    let has_time_zone = schedule.contains("TZ");
    if !has_time_zone && let Err(wrong) = parse_schedule(schedule) {
        errors.invalid(path, schedule, wrong);
    }
    let allowed = old.is_some_and(|old| tree::text(old, &["spec", "schedule"]).contains("TZ"));
    let has_time_zone_field = !tree::text(new, &["spec", "timeZone"]).is_empty();
    if has_time_zone && !allowed {
        let text = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead";
        errors.invalid(path, schedule, text);
    } else if has_time_zone && has_time_zone_field {
        let text = "cannot use both timeZone field and TZ or CRON_TZ in schedule";
        errors.invalid(path, schedule, text);
    }
}

/// Parses a schedule. Fails with the message of the library.
fn parse_schedule(schedule: &str) -> Result<(), String> {
    if schedule.starts_with('@') {
        let known = DESCRIPTORS.contains(&schedule) || schedule.starts_with("@every ");
        return known
            .then_some(())
            .ok_or_else(|| format!("unrecognized descriptor: {schedule}"));
    }
    let fields: Vec<&str> = schedule.split_whitespace().collect();
    if fields.len() != FIELDS.len() {
        let (count, shown) = (fields.len(), fields.join(" "));
        return Err(format!("expected exactly 5 fields, found {count}: [{shown}]"));
    }
    for (field, bounds) in fields.iter().zip(&FIELDS) {
        for part in field.split(',').filter(|part| !part.is_empty()) {
            parse_range(part, bounds)?;
        }
    }
    Ok(())
}

fn parse_range(part: &str, bounds: &Bounds) -> Result<(), String> {
    let Bounds(min, max, _) = *bounds;
    let slashes: Vec<&str> = part.split('/').collect();
    let hyphens: Vec<&str> = slashes.first().unwrap_or(&"").split('-').collect();
    let (start, mut end) = match hyphens.as_slice() {
        ["*" | "?", ..] | [] => (min, max),
        [one] => {
            let start = parse_number_or_name(one, bounds)?;
            (start, start)
        }
        [one, other] => (
            parse_number_or_name(one, bounds)?,
            parse_number_or_name(other, bounds)?,
        ),
        [one, ..] => {
            parse_number_or_name(one, bounds)?;
            return Err(format!("too many hyphens: {part}"));
        }
    };
    let step = match slashes.as_slice() {
        [_] => 1,
        [_, step] => {
            if hyphens.len() == 1 {
                end = max;
            }
            parse_number(step)?
        }
        _ => return Err(format!("too many slashes: {part}")),
    };
    if start < min {
        return Err(format!(
            "beginning of range ({start}) below minimum ({min}): {part}"
        ));
    }
    if end > max {
        return Err(format!("end of range ({end}) above maximum ({max}): {part}"));
    }
    if start > end {
        return Err(format!(
            "beginning of range ({start}) beyond end of range ({end}): {part}"
        ));
    }
    if step == 0 {
        return Err(format!("step of range should be a positive number: {part}"));
    }
    Ok(())
}

fn parse_number_or_name(text: &str, bounds: &Bounds) -> Result<u64, String> {
    let Bounds(min, _, names) = bounds;
    let lower = text.to_lowercase();
    match names.iter().position(|name| *name == lower) {
        Some(at) => Ok(min + at as u64),
        None => parse_number(text),
    }
}

fn parse_number(text: &str) -> Result<u64, String> {
    match text.parse::<i64>() {
        Ok(number) => {
            u64::try_from(number).map_err(|_| format!("negative number ({number}) not allowed: {text}"))
        }
        Err(error) => {
            let why = match error.kind() {
                std::num::IntErrorKind::PosOverflow | std::num::IntErrorKind::NegOverflow => {
                    "value out of range"
                }
                _ => "invalid syntax",
            };
            Err(format!(
                "failed to parse int from {text}: strconv.Atoi: parsing {text:?}: {why}"
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(schedule: &str, expected: &str) {
        let found = parse_schedule(schedule).err().unwrap_or_default();
        assert_eq!(found, expected, "{schedule}");
    }

    #[test]
    fn schedules_parse_like_the_library() {
        for good in [
            "*/5 * * * *",
            "0 0 1 JAN sun-fri",
            "@hourly",
            "@every 5m",
            "1,2,3-9/2 ? * * *",
        ] {
            check(good, "");
        }
        check("never", "expected exactly 5 fields, found 1: [never]");
        check("@often", "unrecognized descriptor: @often");
        check("60 * * * *", "end of range (60) above maximum (59): 60");
        check("* * 0 * *", "beginning of range (0) below minimum (1): 0");
        check(
            "5-1 * * * *",
            "beginning of range (5) beyond end of range (1): 5-1",
        );
        check("*/0 * * * *", "step of range should be a positive number: */0");
        check("1-2-3 * * * *", "too many hyphens: 1-2-3");
        check("1/2/3 * * * *", "too many slashes: 1/2/3");
        check(
            "x * * * *",
            "failed to parse int from x: strconv.Atoi: parsing \"x\": invalid syntax",
        );
    }
}
