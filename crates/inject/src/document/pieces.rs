//! Processes a long `List` in pieces of a few items, with the result of [`treat_whole`](super::treat_whole)
//! and the memory of one piece. Each piece is processed as a separate `List`: the text before the first item,
//! some items, the text after the last. Any other layout is processed as a whole.

use std::ops::Range;

use mainstay_yaml::{Budget, outline};

use super::Treated;
use crate::{Action, Options, Place, lines};

/// Shorter documents fit into memory as they are.
pub(super) const LONG: usize = 1 << 20;
/// About how much text of items makes a piece.
pub(super) const PIECE: usize = 128 << 10;
/// Longest that may stand around the items: it is read again with each piece.
const FRAME: usize = 4 << 10;

/// Applies `treat` to `text` in pieces of about `size` bytes; `None` if the text is not such a list or an
/// item fails: then the whole document must be processed.
pub(super) fn treat_pieces(
    text: &[u8],
    size: usize,
    options: &Options,
    treat: impl Fn(&[u8], &Options) -> Treated,
) -> Option<Treated> {
    let pieces = cut(text, size)?;
    let (first, last) = (pieces.first()?, pieces.last()?);
    let (head, tail) = (text.get(..first.start)?, text.get(last.end..)?);
    if head.len() + tail.len() > FRAME {
        return None;
    }
    let base = Spot::default().behind(head);
    let mut here = base;
    let mut whole = Treated::default();
    let mut out: Vec<u8> = Vec::with_capacity(text.len() + text.len() / 8);
    let mut kept = 0;
    for piece in pieces {
        here = here.behind(text.get(here.offset..piece.start)?);
        let items = [head, text.get(piece.clone())?, tail].concat();
        let treated = treat(&items, options);
        for mut report in treated.reports {
            if report.action == Action::Failed {
                return None;
            }
            let places = report.findings.iter_mut().map(|finding| &mut finding.place);
            for place in places.chain([&mut report.place]) {
                *place = here.place(base, *place)?;
            }
            whole.reports.push(report);
        }
        if let Some(new) = treated.text {
            let inner = new.strip_prefix(head)?.strip_suffix(tail)?;
            out.extend_from_slice(text.get(kept..piece.start)?);
            out.extend_from_slice(inner);
            kept = piece.end;
        }
    }
    if kept > 0 {
        out.extend_from_slice(text.get(kept..)?);
        whole.text = Some(out);
    }
    Some(whole)
}

/// A place in a text, counted from 0.
#[derive(Clone, Copy, Default)]
struct Spot {
    offset: usize,
    line: usize,
    column: usize,
}

impl Spot {
    /// Where one is having passed `text`.
    fn behind(self, text: &[u8]) -> Self {
        let characters = |line: &[u8]| line.iter().filter(|byte| **byte & 0xC0 != 0x80).count();
        let column = match memchr::memrchr(b'\n', text) {
            Some(at) => characters(text.get(at + 1..).unwrap_or_default()),
            None => self.column + characters(text),
        };
        Self {
            offset: self.offset + text.len(),
            line: self.line + memchr::memchr_iter(b'\n', text).count(),
            column,
        }
    }

    /// A place behind `base`, where the head of a piece ends, as one behind this; `None` for one in the head.
    fn place(self, base: Self, place: Place) -> Option<Place> {
        let offset = place.offset.checked_sub(base.offset)? + self.offset;
        let line = place.line.checked_sub(base.line)? + self.line;
        let first_line = place.line == base.line + 1;
        let column = if first_line {
            place.column.checked_sub(base.column)? + self.column
        } else {
            place.column
        };
        Some(Place {
            line,
            column,
            offset,
            ..place
        })
    }
}

/// Ranges of whole items, in their order; between them is nothing but what separates items.
fn cut(text: &[u8], size: usize) -> Option<Vec<Range<usize>>> {
    let outline = outline(text, "items", &Budget::default()).ok()??;
    let mut pieces: Vec<Range<usize>> = Vec::new();
    let starts = outline.items.iter().skip(1).map(|(start, _)| *start);
    for ((start, end), next) in outline.items.iter().zip(starts.chain([outline.rest])) {
        let item = if outline.flow {
            *start..*end
        } else {
            let next = match next {
                end if end >= text.len() => text.len(),
                key if key == outline.rest => lines::start(text, key),
                item => dash_line(text, item)?,
            };
            dash_line(text, *start)?..next
        };
        match pieces.last_mut().filter(|piece| piece.len() + item.len() <= size) {
            Some(piece) => piece.end = item.end,
            None => pieces.push(item),
        }
    }
    (pieces.len() > 1).then_some(pieces)
}

/// Where the line of an item starts, if its dash is the first on it.
fn dash_line(text: &[u8], item: usize) -> Option<usize> {
    let line = lines::start(text, item);
    let before = text.get(line..item)?.trim_ascii_start();
    before.starts_with(b"-").then_some(line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::treat_whole;
    use crate::{LATER, Mode};

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

    fn check(text: &str, options: &Options) {
        let whole = treat_whole(text.as_bytes(), options);
        let pieces = treat_pieces(text.as_bytes(), 1, options, treat_whole);
        if whole.reports.iter().any(|report| report.action == Action::Failed) {
            return assert!(pieces.is_none());
        }
        let pieces = pieces.unwrap();
        let shown = |text: &Option<Vec<u8>>| text.clone().map(|text| String::from_utf8(text).unwrap());
        assert_eq!(shown(&pieces.text), shown(&whole.text), "from\n{text}");
        assert_eq!(format!("{:?}", pieces.reports), format!("{:?}", whole.reports));
        assert!(options.mode == Mode::Uninject || whole.text.is_some());
        if let Some(injected) = &whole.text {
            let away = Options {
                mode: Mode::Uninject,
                ..options.clone()
            };
            let back = treat_pieces(injected, 1, &away, treat_whole).unwrap();
            assert_eq!(shown(&back.text), shown(&treat_whole(injected, &away).text));
            let value = |text: &str| mainstay_yaml::parse(text, &Budget::default()).unwrap();
            assert_eq!(value(&shown(&back.text).unwrap()), value(text));
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
    fn what_is_not_plain_is_left_to_the_whole() {
        let none = |text: &str| {
            let treated = treat_pieces(text.as_bytes(), 1, &Options::default(), treat_whole);
            assert!(treated.is_none(), "{text}");
        };
        let two = list(&[ITEMS[0], ITEMS[0]], 0, false, false);
        none(&list(&ITEMS[..1], 0, false, false));
        none(&two.replace("name: app", "name: &x app"));
        none(&two.replacen("- apiVersion", "-\n  apiVersion", 2));
        none(&two.replace("# head", &format!("# {}", "x".repeat(FRAME))));
        none(&two.replacen("containers:\n", "containers: 7\n", 2));
        none(&two.replacen("name: app", "name: [", 1));
    }
}
