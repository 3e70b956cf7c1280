//! Parsing of selected root entries of a long document. The entries of the root map are located line by
//! line, and only the wanted entries are decoded.
//!
//! *Invariant:* the line scan accepts only texts that the decoder also accepts. It supports the common
//! layout (block maps and lists, scalars of all styles); every other text is decoded as a whole.

mod lines;
mod scalar;
mod scan;

use std::borrow::Cow;
use std::ops::Range;

use crate::read::Source;
use crate::{Error, Options, Value, parse_with};

/// Parses the first document of `text` like [`parse_with`], with the same errors. If the document is a map,
/// entries for which `wanted` returns `false` may be missing from the result. `wanted` receives the key as
/// written in the text.
pub fn parse_entries(
    text: impl AsRef<[u8]>,
    wanted: impl Fn(&str) -> bool,
    options: &Options,
) -> Result<Value, Error> {
    let text = text.as_ref();
    let part = select_entries(text, &wanted, options);
    let value = part.and_then(|part| parse_with(part.as_bytes(), options).ok());
    match value {
        Some(value @ Value::Map(_)) => Ok(value),
        _ => parse_with(text, options),
    }
}

/// Returns the text of the wanted entries. Returns `None` if the layout is not supported, if there is no
/// wanted entry, or if the text could exceed a limit or contain repeated keys that are errors.
fn select_entries<'a>(
    text: &'a [u8],
    wanted: &dyn Fn(&str) -> bool,
    options: &Options,
) -> Option<Cow<'a, str>> {
    let budget = &options.budget;
    // One level of the scan corresponds to at most two levels of nesting.
    if options.strict || 2 * scan::MAX_DEPTH + 2 > budget.depth {
        return None;
    }
    let source = Source::new(text, budget).ok()?;
    if source.skipped > 0 || source.failure.is_some() {
        return None;
    }
    let Cow::Borrowed(text) = source.text else {
        return None;
    };
    let found = scan::find_entries(text, wanted)?;
    (found.max_nodes <= budget.nodes).then_some(())?;
    join_ranges(text, &found.ranges)
}

fn join_ranges<'a>(text: &'a str, ranges: &[Range<usize>]) -> Option<Cow<'a, str>> {
    match ranges {
        [] => None,
        [range] => text.get(range.clone()).map(Cow::Borrowed),
        ranges => {
            let parts: Option<Vec<&str>> = ranges.iter().map(|range| text.get(range.clone())).collect();
            Some(Cow::Owned(parts?.concat()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks whether the scan accepts `text`, and that it selects the text of the entries `kind` and
    /// `metadata`.
    fn check(text: &str, expected: Option<&str>) {
        let wanted = |key: &str| matches!(key, "kind" | "metadata");
        let found = select_entries(text.as_bytes(), &wanted, &Options::default());
        assert_eq!(found.as_deref(), expected, "{text:?}");
        if found.is_some() {
            assert!(parse_with(text, &Options::default()).is_ok(), "{text:?}");
        }
    }

    #[test]
    fn wanted_entries_are_found() {
        check("kind: A\nspec:\n  a: 1\n", Some("kind: A\n"));
        check(
            "a: 1\nkind: A\nb: 2\nmetadata:\n  name: x\n",
            Some("kind: A\nmetadata:\n  name: x\n"),
        );
        check(
            "# c\nkind: A # d\npath: .status[?(@.a == 'b')].c\nlist:\n- a: |\n    text\n  b: []\n- - c\n",
            Some("kind: A # d\n"),
        );
        check("kind: A\ntext: one\n  two: three\n", None);
        check("kind: A\ntext: one\n  two three\n\n  four\n", Some("kind: A\n"));
        check("kind: A\ntext: 'one\n  two'': three\n'\n", Some("kind: A\n"));
        check("kind: A\ntext: \"one\n--- two\"\n", None);
        check("kind: A\ndata:\n  a: |-\n     \n    one\n", None);
        check("kind: A\ndata:\n  a: >\n    one\n\n   two\n", None);
    }

    #[test]
    fn other_layouts_are_not_supported() {
        for text in [
            "",
            "# c\n",
            "a: 1\n",
            "- kind: A\n",
            "text\n",
            " kind: A\n",
            "{kind: A}\n",
            "%YAML 1.1\n---\nkind: A\n",
            "kind: A\na: &x 1\n",
            "kind: A\na: *x\n",
            "kind: A\na: !!int 1\n",
            "kind: A\n<<: {}\n",
            "kind: A\n? a\n",
            "kind: A\nnull: 1\n",
            "kind: A\na: .nan\n",
            "kind: A\na: -.inf\n",
            "kind: A\na: - b\n",
            "kind: A\n---\nb: 1\n",
            "kind: A\na: b: c\n",
            "kind: A\na: b\n- c\n",
            "kind: A\na:\tb\n",
            "kind: A\r\n",
            "kind: A\na: \u{85}b\n",
            "kind: A\na: [b: c]\n",
            "kind: A\na: {b: c}\n",
            "kind: A\na: \"b\" c\n",
            "kind: A\na: 'b\n",
            "kind: A\n  b\n c: 1\n",
        ] {
            check(text, None);
        }
    }

    #[test]
    fn strict_mode_and_low_limits_are_not_supported() {
        let text = "kind: A\nb: 1\n";
        let wanted = |key: &str| key == "kind";
        let accepts = |options: &Options| select_entries(text.as_bytes(), &wanted, options).is_some();
        let mut options = Options::default();
        assert!(accepts(&options));
        options.strict = true;
        assert!(!accepts(&options));
        options.strict = false;
        options.budget.nodes = 8;
        assert!(!accepts(&options));
        options = Options::default();
        options.budget.depth = 100;
        assert!(!accepts(&options));
    }
}
