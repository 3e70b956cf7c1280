//! Round-trip properties: block YAML is restored byte for byte; pods with edited flow collections have
//! equal objects.

// No test binary uses all of these functions.
#![allow(dead_code)]

use mainstay_yaml::{Budget, parse_spanned_values, to_json};

/// Key of the annotation with the undo record of flow collections.
pub(crate) const UNDO_ANNOTATION: &str = "contrast.edgeless.systems/mainstay-injected";

/// Whether a text contains an undo record; the layout may then differ after a round trip.
pub(crate) fn has_record(text: &[u8]) -> bool {
    contains(text, UNDO_ANNOTATION)
}

/// Whether a text contains an undo record or a mark, which means that it was injected before.
pub(crate) fn has_marks(text: &[u8]) -> bool {
    contains(text, "mainstay:") || has_record(text)
}

pub(crate) fn contains(text: &[u8], part: &str) -> bool {
    text.windows(part.len()).any(|window| window == part.as_bytes())
}

/// Returns an error unless `given` equals `wanted`: byte for byte, or as objects if `injected` contains an
/// undo record. A text without brackets and braces is block YAML, which is always restored byte for byte.
pub(crate) fn check_restored(
    property: &str,
    injected: &[u8],
    given: &[u8],
    wanted: &[u8],
) -> Result<(), String> {
    let is_block = !wanted.contains(&b'{') && !wanted.contains(&b'[');
    if given == wanted || (!is_block && has_record(injected) && same_objects(given, wanted)) {
        return Ok(());
    }
    Err(format!(
        "violated: {property}\n--- given\n{}\n--- wanted\n{}\n--- injected\n{}",
        to_text(given),
        to_text(wanted),
        to_text(injected)
    ))
}

/// Returns an error unless a run over `earlier` with other options equals a run over the original: byte for
/// byte, or as objects if one of the texts contains an undo record.
pub(crate) fn check_converged(
    property: &str,
    earlier: &[u8],
    given: &[u8],
    wanted: &[u8],
) -> Result<(), String> {
    let is_flow = has_record(earlier) || has_record(wanted);
    if given == wanted || (is_flow && same_objects(given, wanted)) {
        return Ok(());
    }
    Err(format!(
        "violated: {property}\n--- given\n{}\n--- wanted\n{}\n--- earlier\n{}",
        to_text(given),
        to_text(wanted),
        to_text(earlier)
    ))
}

/// Whether two texts contain the same objects.
pub(crate) fn same_objects(one: &[u8], other: &[u8]) -> bool {
    objects(one).is_some_and(|objects| Some(objects) == self::objects(other))
}

fn objects(text: &[u8]) -> Option<Vec<String>> {
    let documents = parse_spanned_values(text, &Budget::default()).ok()?;
    let values = documents.into_iter().map(|document| document.value.ok());
    values.map(|value| to_json(&value?).ok()).collect()
}

fn to_text(text: &[u8]) -> String {
    String::from_utf8_lossy(text).into_owned()
}
