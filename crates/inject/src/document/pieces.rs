//! Processes a long `List` in pieces of a few items, with the result of
//! [`process_whole`](super::process_whole) and the memory that one piece requires. Each piece is processed
//! as a separate `List`, which consists of the text before the first item, some items, and the text after
//! the last item. Items with anchors that the piece refers to precede the piece, and an alias follows it
//! for each of its anchors that other items refer to. A document with any other layout is processed as a
//! whole.

mod list;
mod position;

use std::ops::Range;

use mainstay_yaml::Outline;

use super::{Failure, Processed};
use crate::{Action, Finding, Place, Report};
use list::{List, Piece};
use position::TextPosition;

/// Maximum length in bytes of a document that is not divided.
pub(super) const MAX_WHOLE_LEN: usize = 256 << 10;
/// Approximate length of the items of a piece in bytes.
pub(super) const PIECE_LEN: usize = 64 << 10;

/// Applies `process` to `text` in pieces of about `size` bytes; `None` if the text is not a list that can
/// be divided and must be processed as a whole.
pub(super) fn process_pieces(
    text: &[u8],
    outline: &Outline,
    size: usize,
    process: impl Fn(&[u8]) -> Processed,
) -> Option<Processed> {
    let list = List::new(text, outline)?;
    let pieces = list.pieces(size)?;
    let mut merged = MergedResult::new(text, list.head().len());
    for piece in &pieces {
        let composed = list.compose(piece)?;
        let processed = process(&composed.text);
        merged.add(&list, piece, &composed, processed)?;
    }
    merged.finish()
}

/// Merged results of the pieces so far.
struct MergedResult<'t> {
    text: &'t [u8],
    /// Position of the items of the last piece.
    position: TextPosition,
    processed: Processed,
    out: Vec<u8>,
    /// Length of the document prefix that `out` covers.
    covered: usize,
}

/// A piece as a separate `List`.
struct ComposedPiece {
    text: Vec<u8>,
    /// The items of the context, followed by the items of the piece.
    parts: Vec<Part>,
    /// Length of the text after the parts.
    tail: usize,
}

/// A part of a composed text.
struct Part {
    /// Position in the composed text.
    position: TextPosition,
    /// Start in the document.
    start: usize,
    len: usize,
}

impl Part {
    /// Creates the part that follows `text` in the composed text and is at `range` in the document.
    fn new(text: &[u8], range: &Range<usize>) -> Self {
        Self {
            position: TextPosition::default().after(text),
            start: range.start,
            len: range.len(),
        }
    }

    fn contains(&self, place: Place) -> bool {
        (self.position.offset..self.position.offset + self.len).contains(&place.offset)
    }
}

impl<'t> MergedResult<'t> {
    fn new(text: &'t [u8], head: usize) -> Self {
        Self {
            text,
            position: TextPosition::default().after(text.get(..head).unwrap_or_default()),
            processed: Processed::default(),
            out: Vec::new(),
            covered: 0,
        }
    }

    fn add(
        &mut self,
        list: &List<'_>,
        piece: &Piece,
        composed: &ComposedPiece,
        processed: Processed,
    ) -> Option<()> {
        let range = list.range(piece)?;
        self.position = self
            .position
            .after(self.text.get(self.position.offset..range.start)?);
        if processed.items.len() != processed.reports.len() {
            return None;
        }
        for (item, mut report) in processed.items.into_iter().zip(processed.reports) {
            if !List::owns(piece, item?) {
                continue;
            }
            let places = report.findings.iter_mut().map(|finding| &mut finding.place);
            for place in places.chain([&mut report.place]) {
                *place = self.original_place(composed, *place)?;
            }
            self.processed.reports.push(report);
        }
        if let Some(failure) = processed.failure {
            let failure = self.map_failure(composed, failure)?;
            self.processed.failure = Some(failure.merge(self.processed.failure.take()));
        }
        if let Some(new) = processed.text {
            let inner = list.items_of(piece, composed, &new)?;
            self.out
                .extend_from_slice(self.text.get(self.covered..range.start)?);
            self.out.extend_from_slice(inner);
            self.covered = range.end;
        }
        Some(())
    }

    /// Maps a place in a piece to a place in the document; `None` if it is not in a part.
    fn original_place(&self, composed: &ComposedPiece, place: Place) -> Option<Place> {
        let part = composed.parts.iter().find(|part| part.contains(place))?;
        let position = if part.start == self.position.offset {
            self.position
        } else {
            TextPosition::default().after(self.text.get(..part.start)?)
        };
        position.move_place(part.position, place)
    }

    fn map_failure(&self, composed: &ComposedPiece, failure: Failure) -> Option<Failure> {
        Some(match failure {
            Failure::Edit(finding) => Failure::Edit(finding),
            Failure::Value(finding) => Failure::Value(Finding {
                place: self.original_place(composed, finding.place)?,
                ..finding
            }),
        })
    }

    fn finish(mut self) -> Option<Processed> {
        if self.processed.failure.is_none() && self.covered > 0 {
            self.out.extend_from_slice(self.text.get(self.covered..)?);
            self.processed.text = Some(self.out);
        }
        if let Some(Failure::Value(finding)) = &self.processed.failure {
            fail_edited_reports(&mut self.processed.reports, finding);
        }
        Some(self.processed)
    }
}

/// Fails all reports about edits: a document without a value cannot be edited.
fn fail_edited_reports(reports: &mut [Report], finding: &Finding) {
    let edited = |report: &&mut Report| matches!(report.action, Action::Injected | Action::Removed);
    reports
        .iter_mut()
        .filter(edited)
        .for_each(|report| super::fail(report, finding));
}

#[cfg(test)]
mod tests {
    use mainstay_yaml::{Budget, outline};

    use super::*;
    use crate::document::process_whole;
    use crate::{LATER, Mode, Options};

    const ITEMS: [&str; 7] = [
        "apiVersion: v1\nkind: Pod\nmetadata:\n  name: a\nspec:\n  runtimeClassName: contrast-cc\n  containers:\n  - name: app\n    args:\n    - |\n      - x\n\n",
        "# a comment\nkind: ConfigMap\napiVersion: v1\ndata: {a: \"b\n\n  - c\"}\n",
        "kind: Deployment\napiVersion: apps/v1\nmetadata: {name: b, annotations: {contrast.edgeless.systems/servicemesh-ingress: \"\"}}\nspec:\n  template:\n    metadata: {annotations: {contrast.edgeless.systems/servicemesh-ingres: \"\"}}\n    spec: {runtimeClassName: contrast-cc, containers: [{name: app}], initContainers: [{name: contrast-initializer}, {name: x}]}\n",
        "apiVersion: v1\nkind: Pod\nmetadata: {name: c}\nspec:\n  runtimeClassName: contrast-cc\n  initContainers:\n  - name: contrast-initializer\n    image: old\n  containers: []\n  volumes:\n  # the end\n",
        "kind: Pod\napiVersion: v1\nmetadata: {name: d}\nspec: {runtimeClassName: other}\n",
        "apiVersion: v1\nkind: Pod\nmetadata:\n  name: e\nspec:\n  containers:\n  - {name: app}\n  runtimeClassName: contrast-cc\n",
        "apiVersion: v1\nkind: Pod\nmetadata:\n  name: f\nspec:\n  containers:\n  - name: app\n    command:\n    - |+\n      x\n\n\n  runtimeClassName: contrast-cc\n",
    ];

    /// Returns a list of items with dashes in `column`; with `tail`, other keys follow the items.
    fn list(items: &[&str], column: usize, tail: bool, crlf: bool) -> String {
        let mut text = String::from("# head\napiVersion: v1\n");
        if !tail {
            text.push_str("kind: List\n");
        }
        text.push_str("items:\n");
        for item in items {
            let item = item.strip_prefix("# a comment\n").unwrap_or(item);
            for (number, line) in item.lines().enumerate() {
                let lead = if number == 0 { "- " } else { "  " };
                let line = format!("{:column$}{lead}{line}", "");
                text.push_str(line.trim_end());
                text.push('\n');
            }
            text.push_str("# between\n");
        }
        if tail {
            text.push_str("kind: List\nmetadata: {}\n");
        }
        if crlf { text.replace('\n', "\r\n") } else { text }
    }

    /// Processes `text` in pieces of one item.
    fn process_in_pieces(text: &[u8], options: &Options) -> Option<Processed> {
        let outline = outline(text, "items", &Budget::default()).unwrap()?;
        let processed = process_pieces(text, &outline, 1, |text| process_whole(text, options));
        processed.map(Processed::apply_failure)
    }

    fn process_as_whole(text: &[u8], options: &Options) -> Processed {
        process_whole(text, options).apply_failure()
    }

    fn to_utf8(text: Option<&Vec<u8>>) -> Option<String> {
        text.map(|text| String::from_utf8(text.clone()).unwrap())
    }

    fn check_equal(text: &str, options: &Options) -> Processed {
        let whole = process_as_whole(text.as_bytes(), options);
        let pieces = process_in_pieces(text.as_bytes(), options).expect(text);
        assert_eq!(
            to_utf8(pieces.text.as_ref()),
            to_utf8(whole.text.as_ref()),
            "from\n{text}"
        );
        assert_eq!(
            format!("{:#?}", pieces.reports),
            format!("{:#?}", whole.reports),
            "from\n{text}"
        );
        whole
    }

    fn check(text: &str, options: &Options) {
        let whole = check_equal(text, options);
        if whole.reports.iter().any(|report| report.action == Action::Failed) {
            return;
        }
        assert!(options.mode == Mode::Uninject || whole.text.is_some());
        if let Some(injected) = &whole.text {
            let uninject = Options {
                mode: Mode::Uninject,
                ..options.clone()
            };
            let back = process_in_pieces(injected, &uninject).unwrap();
            let whole = process_as_whole(injected, &uninject);
            assert_eq!(to_utf8(back.text.as_ref()), to_utf8(whole.text.as_ref()));
            let value = |text: &str| mainstay_yaml::parse(text, &Budget::default()).unwrap();
            assert_eq!(value(&to_utf8(back.text.as_ref()).unwrap()), value(text));
        }
    }

    #[test]
    fn pieces_have_the_result_of_the_whole_document() {
        let later = Options {
            profile: &LATER,
            ..Options::default()
        };
        for from in 0..ITEMS.len() {
            let mut items = ITEMS.to_vec();
            items.rotate_left(from);
            for (column, tail, crlf) in [
                (0, false, false),
                (0, true, false),
                (2, true, true),
                (3, false, true),
            ] {
                check(&list(&items, column, tail, crlf), &Options::default());
                check(&list(&items, column, tail, crlf), &later);
                let open = list(&items, column, tail, crlf).replace("# between", "");
                check(open.trim_end(), &Options::default());
            }
        }
    }

    #[test]
    fn json_is_divided() {
        let pod = r#"{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"runtimeClassName": "contrast-cc", "containers": [{"name": "app"}]}}"#;
        for (open, between, close) in [("[", ", ", "]"), ("[\n  ", ",\n  ", "\n]"), ("[", ",", "\n,]")] {
            let items = [pod, "{\"kind\": \"ConfigMap\"}", pod, pod].join(between);
            let text =
                format!("{{\"kind\": \"List\", \"items\": {open}{items}{close}, \"apiVersion\": \"v1\"}}\n");
            check(&text, &Options::default());
        }
    }

    #[test]
    fn anchors_of_other_items_are_resolved() {
        let two = list(&[ITEMS[0], ITEMS[5], ITEMS[4], ITEMS[1]], 2, true, false);
        let later = list(
            &[
                ITEMS[0], ITEMS[5], ITEMS[0], ITEMS[1], ITEMS[5], ITEMS[4], ITEMS[0],
            ],
            0,
            false,
            false,
        );
        for (text, indent) in [(&two, "  "), (&later, "")] {
            // Aliases of a scalar, a kind, a pod spec, a merged map, a container and a whole item.
            let scalar = text
                .replacen("name: e", "name: &x e", 1)
                .replace("runtimeClassName: other", "runtimeClassName: *x");
            check(&scalar, &Options::default());
            let named = text
                .replacen("kind: Pod", "kind: &k Pod", 1)
                .replace("kind: ConfigMap", "kind: *k");
            check(&named, &Options::default());
            let spec = text
                .replacen("spec:\n", "spec: &s\n", 1)
                .replace("spec: {runtimeClassName: other}", "spec: *s");
            check_equal(&spec, &Options::default());
            let merged = text
                .replacen("spec:\n", "spec: &s\n", 1)
                .replace("{runtimeClassName: other}", "{<<: *s}");
            check_equal(&merged, &Options::default());
            let containers = text
                .replacen("- name: app", "- &c name: app", 1)
                .replace("{name: app}", "*c");
            check_equal(&containers, &Options::default());
            let whole = text
                .replacen("- apiVersion", &format!("- &i\n{indent}  apiVersion"), 1)
                .replacen("- kind: Pod", &format!("- *i\n{indent}- kind: Pod"), 1);
            check_equal(&whole, &Options::default());
        }
    }

    #[test]
    fn anchors_in_flow_lists_are_resolved() {
        let pod = "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {runtimeClassName: contrast-cc, containers: [{name: app}]}}";
        let shared = pod.replace("spec: {", "spec: &s {");
        let user = "{apiVersion: v1, kind: Pod, metadata: {name: q}, spec: *s}";
        for items in [vec![pod, &shared, user, pod], vec![&shared, pod, pod, user, user]] {
            let text = format!("{{kind: List, apiVersion: v1, items: [{}]}}\n", items.join(", "));
            check_equal(&text, &Options::default());
        }
    }

    #[test]
    fn failures_equal_those_of_the_whole_document() {
        let options = Options::default();
        let two = list(&[ITEMS[0], ITEMS[5], ITEMS[0], ITEMS[4]], 0, false, false);
        // An object fails, an object has no value, injected lines were edited.
        check_equal(
            &two.replacen("containers:\n", "containers: 7\n    x:\n", 1),
            &options,
        );
        check_equal(&two.replace("runtimeClassName: other", "<<: 1"), &options);
        let injected = to_utf8(process_as_whole(two.as_bytes(), &options).text.as_ref()).unwrap();
        let edited = injected.replacen("  - name: contrast-initializer", "  - name: x", 1);
        assert_ne!(injected, edited);
        check_equal(&edited, &options);
        let uninject = Options {
            mode: Mode::Uninject,
            ..options
        };
        check_equal(&edited, &uninject);
    }

    #[test]
    fn unsupported_layouts_are_processed_as_a_whole() {
        let none = |text: &str| {
            assert!(
                process_in_pieces(text.as_bytes(), &Options::default()).is_none(),
                "{text}"
            );
        };
        let two = list(&[ITEMS[0], ITEMS[0]], 0, false, false);
        none(&list(&ITEMS[..1], 0, false, false));
        none("kind: List\n? items\n: - a: 1\n  - b: 2\n");
        let last = two.replacen("name: app", "name: &x app", 1);
        none(&format!("{last}metadata: {{name: *x}}\n"));
        none(&two.replace("# head", &format!("# {}", "x".repeat(two.len()))));
        check_equal(
            &two.replacen("- apiVersion", "-\n  apiVersion", 2),
            &Options::default(),
        );
        check_equal(&two.replace("name: app", "name: &x app"), &Options::default());
        check_equal(&two.replace("name: app", "name: !!str app"), &Options::default());
    }
}
