//! Processes a long `List` in pieces of a few items, with the result of [`treat_whole`](super::treat_whole)
//! and the memory of one piece. Each piece is processed as a separate `List`: the text before the first item,
//! some items, the text after the last. Items that contain the anchors of a piece's aliases precede it, and
//! an alias follows for each of its anchors that other items use. Any other layout is processed as a whole.

mod list;
mod spot;

use std::ops::Range;

use mainstay_yaml::Outline;

use super::{Failure, Treated};
use crate::{Action, Finding, Place, Report};
use list::{List, Piece};
use spot::Spot;

/// Shorter documents fit into memory as they are.
pub(super) const LONG: usize = 256 << 10;
/// About how much text of items makes a piece.
pub(super) const PIECE: usize = 64 << 10;

/// Applies `treat` to `text` in pieces of about `size` bytes; `None` if the text is not such a list: then the
/// whole document must be processed.
pub(super) fn treat_pieces(
    text: &[u8],
    outline: &Outline,
    size: usize,
    treat: impl Fn(&[u8]) -> Treated,
) -> Option<Treated> {
    let list = List::new(text, outline)?;
    let pieces = list.pieces(size)?;
    let mut whole = Whole::new(text, list.head().len());
    for piece in &pieces {
        let composed = list.compose(piece)?;
        let treated = treat(&composed.text);
        whole.add(&list, piece, &composed, treated)?;
    }
    whole.finish()
}

/// The result of the pieces so far.
struct Whole<'t> {
    text: &'t [u8],
    /// Where the items of the last piece start.
    here: Spot,
    treated: Treated,
    out: Vec<u8>,
    /// How much of the text is dealt with in `out`.
    kept: usize,
}

/// A piece as a separate `List`.
struct Composed {
    text: Vec<u8>,
    /// The items of the context, then those of the piece.
    parts: Vec<Part>,
    /// Length of what follows them.
    tail: usize,
}

/// Where a part of a composed text is, there and in the document.
struct Part {
    there: Spot,
    start: usize,
    len: usize,
}

impl Part {
    /// The part that follows `text`, and is at `range` in the document.
    fn new(text: &[u8], range: &Range<usize>) -> Self {
        Self {
            there: Spot::default().behind(text),
            start: range.start,
            len: range.len(),
        }
    }

    fn contains(&self, place: Place) -> bool {
        (self.there.offset..self.there.offset + self.len).contains(&place.offset)
    }
}

impl<'t> Whole<'t> {
    fn new(text: &'t [u8], head: usize) -> Self {
        Self {
            text,
            here: Spot::default().behind(text.get(..head).unwrap_or_default()),
            treated: Treated::default(),
            out: Vec::new(),
            kept: 0,
        }
    }

    fn add(&mut self, list: &List<'_>, piece: &Piece, composed: &Composed, treated: Treated) -> Option<()> {
        let range = list.range(piece)?;
        self.here = self.here.behind(self.text.get(self.here.offset..range.start)?);
        if treated.items.len() != treated.reports.len() {
            return None;
        }
        for (item, mut report) in treated.items.into_iter().zip(treated.reports) {
            if !List::owns(piece, item?) {
                continue;
            }
            let places = report.findings.iter_mut().map(|finding| &mut finding.place);
            for place in places.chain([&mut report.place]) {
                *place = self.moved(composed, *place)?;
            }
            self.treated.reports.push(report);
        }
        if let Some(failure) = treated.failure {
            let failure = self.moved_failure(composed, failure)?;
            self.treated.failure = Some(failure.or(self.treated.failure.take()));
        }
        if let Some(new) = treated.text {
            let inner = list.items_of(piece, composed, &new)?;
            self.out.extend_from_slice(self.text.get(self.kept..range.start)?);
            self.out.extend_from_slice(inner);
            self.kept = range.end;
        }
        Some(())
    }

    /// A place in a piece as one in the document; `None` for one outside of the items.
    fn moved(&self, composed: &Composed, place: Place) -> Option<Place> {
        let part = composed.parts.iter().find(|part| part.contains(place))?;
        let here = if part.start == self.here.offset {
            self.here
        } else {
            Spot::default().behind(self.text.get(..part.start)?)
        };
        here.place(part.there, place)
    }

    fn moved_failure(&self, composed: &Composed, failure: Failure) -> Option<Failure> {
        Some(match failure {
            Failure::Edit(finding) => Failure::Edit(finding),
            Failure::Value(finding) => Failure::Value(Finding {
                place: self.moved(composed, finding.place)?,
                ..finding
            }),
        })
    }

    fn finish(mut self) -> Option<Treated> {
        if self.treated.failure.is_none() && self.kept > 0 {
            self.out.extend_from_slice(self.text.get(self.kept..)?);
            self.treated.text = Some(self.out);
        }
        if let Some(Failure::Value(finding)) = &self.treated.failure {
            fail_edited(&mut self.treated.reports, finding);
        }
        Some(self.treated)
    }
}

/// Without a value of the document no pod of it can be edited.
fn fail_edited(reports: &mut [Report], finding: &Finding) {
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
    use crate::document::treat_whole;
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

    /// A list of items, dashes in `column`, with keys behind it or not.
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

    /// The result of `text` in pieces of one item.
    fn in_pieces(text: &[u8], options: &Options) -> Option<Treated> {
        let outline = outline(text, "items", &Budget::default()).unwrap()?;
        let treated = treat_pieces(text, &outline, 1, |text| treat_whole(text, options));
        treated.map(Treated::concluded)
    }

    fn as_whole(text: &[u8], options: &Options) -> Treated {
        treat_whole(text, options).concluded()
    }

    fn shown(text: Option<&Vec<u8>>) -> Option<String> {
        text.map(|text| String::from_utf8(text.clone()).unwrap())
    }

    fn check_equal(text: &str, options: &Options) -> Treated {
        let whole = as_whole(text.as_bytes(), options);
        let pieces = in_pieces(text.as_bytes(), options).expect(text);
        assert_eq!(
            shown(pieces.text.as_ref()),
            shown(whole.text.as_ref()),
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
            let away = Options {
                mode: Mode::Uninject,
                ..options.clone()
            };
            let back = in_pieces(injected, &away).unwrap();
            let whole = as_whole(injected, &away);
            assert_eq!(shown(back.text.as_ref()), shown(whole.text.as_ref()));
            let value = |text: &str| mainstay_yaml::parse(text, &Budget::default()).unwrap();
            assert_eq!(value(&shown(back.text.as_ref()).unwrap()), value(text));
        }
    }

    #[test]
    fn pieces_make_the_whole() {
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
    fn json_is_cut_too() {
        let pod = r#"{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"runtimeClassName": "contrast-cc", "containers": [{"name": "app"}]}}"#;
        for (open, between, close) in [("[", ", ", "]"), ("[\n  ", ",\n  ", "\n]"), ("[", ",", "\n,]")] {
            let items = [pod, "{\"kind\": \"ConfigMap\"}", pod, pod].join(between);
            let text =
                format!("{{\"kind\": \"List\", \"items\": {open}{items}{close}, \"apiVersion\": \"v1\"}}\n");
            check(&text, &Options::default());
        }
    }

    #[test]
    fn anchors_of_other_items_are_known() {
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
            // A scalar, a map that is merged, a pod spec that two pods share, a replaced container.
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
    fn anchors_in_json_like_lists_are_known() {
        let pod = "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {runtimeClassName: contrast-cc, containers: [{name: app}]}}";
        let shared = pod.replace("spec: {", "spec: &s {");
        let user = "{apiVersion: v1, kind: Pod, metadata: {name: q}, spec: *s}";
        for items in [vec![pod, &shared, user, pod], vec![&shared, pod, pod, user, user]] {
            let text = format!("{{kind: List, apiVersion: v1, items: [{}]}}\n", items.join(", "));
            check_equal(&text, &Options::default());
        }
    }

    #[test]
    fn failures_are_those_of_the_whole() {
        let options = Options::default();
        let two = list(&[ITEMS[0], ITEMS[5], ITEMS[0], ITEMS[4]], 0, false, false);
        // One object fails; one has no value; earlier lines were edited.
        check_equal(
            &two.replacen("containers:\n", "containers: 7\n    x:\n", 1),
            &options,
        );
        check_equal(&two.replace("runtimeClassName: other", "<<: 1"), &options);
        let injected = shown(as_whole(two.as_bytes(), &options).text.as_ref()).unwrap();
        let edited = injected.replacen("  - name: contrast-initializer", "  - name: x", 1);
        assert_ne!(injected, edited);
        check_equal(&edited, &options);
        let away = Options {
            mode: Mode::Uninject,
            ..options
        };
        check_equal(&edited, &away);
    }

    #[test]
    fn what_is_not_plain_is_left_to_the_whole() {
        let none = |text: &str| {
            assert!(
                in_pieces(text.as_bytes(), &Options::default()).is_none(),
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
