//! Processes one document: returns the new text, if it changed, and the reports.

mod attempt;
mod elision;
mod pieces;

use std::cell::RefCell;

use mainstay_yaml::{
    Budget, Document, Error, NodeId, Problem, SpannedValue, Value, check_syntax, is_simple, outline,
    parse_spanned_values, root_scalar,
};

use memchr::memmem;

use crate::advice::advise;
use crate::ask::{Ask, ask};
use crate::conflict::Needed;
use crate::profile::RUNTIME_CLASS_PREFIX;
use crate::record::Lookup;
use crate::select::{Found, may_have_pods, select};
use crate::split::{has_hiding_escape, has_reserved_name};
use crate::tree::View;
use crate::workload::{Workload, place};
use crate::{Action, Code, Finding, Mode, Options, Place, Reason, Report, Severity};

/// Result of processing a document.
#[derive(Debug, Default)]
pub(crate) struct Treated {
    /// The new text, if it differs.
    pub(crate) text: Option<Vec<u8>>,
    /// Places count from the start of the document.
    pub(crate) reports: Vec<Report>,
    /// The item of the document's list that each report is about.
    items: Vec<Option<usize>>,
    /// Why nothing in the document can be edited.
    failure: Option<Failure>,
}

/// A failure that concerns a whole document.
#[derive(Debug)]
enum Failure {
    /// The edited text is not what was planned, or cannot be read: every workload fails.
    Edit(Finding),
    /// The document has no value: every workload that needs an edit fails.
    Value(Finding),
}

impl Failure {
    /// The failure with more consequences; of two equal ones, `earlier`.
    fn or(self, earlier: Option<Self>) -> Self {
        match (self, earlier) {
            (Self::Edit(finding), None | Some(Self::Value(_))) => Self::Edit(finding),
            (_, Some(earlier)) => earlier,
            (own, None) => own,
        }
    }
}

impl Treated {
    /// Whether nothing changed and nothing is said.
    pub(crate) fn is_nothing(&self) -> bool {
        self.text.is_none() && self.reports.is_empty()
    }

    /// Fails every workload if the document failed.
    fn concluded(mut self) -> Self {
        if let Some(Failure::Edit(finding)) = &self.failure {
            let others = self.reports.iter_mut();
            others
                .filter(|report| report.action != Action::Failed)
                .for_each(|report| fail(report, finding));
        }
        self
    }
}

/// A text with what it means.
struct Parsed<'a> {
    text: &'a [u8],
    document: Document<'a>,
    /// Taken by `take_value`, and parsed again on demand.
    value: RefCell<Option<Result<Value, Error>>>,
}

impl Parsed<'_> {
    /// What the text means, or why it means nothing.
    fn with_value<R>(&self, look: impl FnOnce(Result<&Value, &Error>) -> R) -> R {
        let value = self.take_value();
        let seen = look(value.as_ref());
        *self.value.borrow_mut() = Some(value);
        seen
    }

    /// The same, to keep: a copy of a large document costs as much as reading it.
    fn take_value(&self) -> Result<Value, Error> {
        let known = self.value.borrow_mut().take();
        known.unwrap_or_else(|| {
            let mut documents = parse_spanned_values(self.text, &Budget::default())?;
            documents.pop().map_or(Ok(Value::Null), |spanned| spanned.value)
        })
    }

    fn view(&self) -> View<'_> {
        View {
            text: self.text,
            document: &self.document,
        }
    }
}

/// Treats one document.
pub(crate) fn treat(text: &[u8], options: &Options) -> Treated {
    if !has_reserved_name(text) {
        // An escape in quotes is not of simple form.
        if is_simple(text) {
            return Treated::default();
        }
        if !has_hiding_escape(text) {
            let read = check_syntax(text, &Budget::default());
            return read.map_or_else(|error| unreadable(syntax(&error, text)), |()| Treated::default());
        }
    }
    let treat = |text: &[u8]| treat_parsed(text, options);
    let elided = elision::treat_elided(text, &options.pod_template_paths, elision::MIN_ELISION, treat);
    elided.unwrap_or_else(|| treat(text)).concluded()
}

fn treat_parsed(text: &[u8], options: &Options) -> Treated {
    if text.len() <= pieces::LONG {
        return treat_whole(text, options);
    }
    match is_without_pods(text, options) {
        Ok(true) => Treated::default(),
        Ok(false) => treat_long(text, options),
        Err(error) => unreadable(syntax(&error, text)),
    }
}

/// Whether a long document of a kind without pods contains none, in memory that does not depend on its
/// length.
fn is_without_pods(text: &[u8], options: &Options) -> Result<bool, Error> {
    let has_pod_of_ours = memmem::find(text, b"runtimeClassName").is_some()
        && memmem::find(text, RUNTIME_CLASS_PREFIX.as_bytes()).is_some();
    if has_pod_of_ours || has_hiding_escape(text) {
        return Ok(false);
    }
    let kind = root_scalar(text, "kind", &Budget::default())?;
    Ok(kind.is_some_and(|kind| !kind.is_empty() && !may_have_pods(&kind, &options.pod_template_paths)))
}

fn treat_long(text: &[u8], options: &Options) -> Treated {
    let whole = |text: &[u8]| treat_whole(text, options);
    match outline(text, "items", &Budget::default()) {
        Err(error) => unreadable(syntax(&error, text)),
        Ok(None) => whole(text),
        Ok(Some(outline)) => {
            let pieces = pieces::treat_pieces(text, &outline, pieces::PIECE, whole);
            pieces.unwrap_or_else(|| whole(text))
        }
    }
}

fn treat_whole(text: &[u8], options: &Options) -> Treated {
    let original = match parse(text) {
        Ok(Some(parsed)) => parsed,
        Ok(None) => return Treated::default(),
        Err(finding) => return unreadable(finding),
    };
    let invalid = original.with_value(|value| value.err().map(|error| syntax(error, text)));
    let invalid = invalid.map(Failure::Value);
    let found = select(&original.view(), &options.pod_template_paths);
    if found.is_empty() {
        return Treated {
            failure: invalid,
            ..Treated::default()
        };
    }
    let mut work = Work::new(&original, &found, options);
    let (text, failure) = match work.treat() {
        Ok(text) => (text, invalid),
        Err(finding) => (None, Some(Failure::Edit(finding))),
    };
    Treated {
        text,
        items: found.iter().map(Found::item).collect(),
        reports: work.reports(),
        failure,
    }
}

/// Sets a report to failed.
fn fail(report: &mut Report, finding: &Finding) {
    report.action = Action::Failed;
    report.reason = Reason::Rejected;
    report.findings.push(finding.clone());
}

/// Most nodes of an object: several times as many as etcd could store, and memory for them is bounded.
const MAX_NODES: usize = 500_000;

fn parse(text: &[u8]) -> Result<Option<Parsed<'_>>, Finding> {
    let budget = Budget {
        nodes: MAX_NODES,
        ..Budget::default()
    };
    let mut documents = parse_spanned_values(text, &budget).map_err(|error| syntax(&error, text))?;
    let Some(SpannedValue { document, value }) = documents.pop() else {
        return Ok(None);
    };
    if !documents.is_empty() {
        // Lines that end neither in LF nor in CRLF hide a document mark from a look at lines.
        let mut finding = syntax_at(
            "line breaks other than LF and CRLF separate documents".into(),
            first_place(),
        );
        finding.help = Some("save the file with LF or CRLF line breaks".into());
        return Err(finding);
    }
    Ok(Some(Parsed {
        text,
        document,
        value: RefCell::new(Some(value)),
    }))
}

fn syntax(error: &Error, text: &[u8]) -> Finding {
    let place = Place {
        line: error.at.line,
        column: error.at.column,
        offset: error.at.offset,
        len: 0,
    };
    // Go counts lines from the document's start, and not always rightly; the place says it better.
    let message = match &error.problem {
        Problem::Syntax { problem, .. } => format!("yaml: {problem}"),
        problem => problem.to_string(),
    };
    let template = memmem::find(text, b"{{").is_some();
    Finding {
        help: template.then(|| "if this is the text of a template, render it first".into()),
        ..syntax_at(message, place)
    }
}

fn syntax_at(message: String, place: Place) -> Finding {
    Finding {
        severity: Severity::Error,
        code: Code::Syntax,
        message,
        place,
        help: None,
    }
}

fn first_place() -> Place {
    Place {
        line: 1,
        column: 1,
        ..Place::default()
    }
}

fn unreadable(finding: Finding) -> Treated {
    let report = Report {
        api_version: String::new(),
        kind: String::new(),
        name: String::new(),
        namespace: None,
        path: String::new(),
        place: finding.place,
        action: Action::Failed,
        reason: Reason::Syntax,
        findings: vec![finding],
    };
    Treated {
        reports: vec![report],
        ..Treated::default()
    }
}

struct Work<'w, 'a> {
    original: &'w Parsed<'a>,
    found: &'w [Found],
    options: &'w Options,
    states: Vec<State>,
}

/// How far one workload is.
struct State {
    ask: Ask,
    findings: Vec<Finding>,
    changed: bool,
    /// Set when the text differs from a fresh injection in layout only.
    unchanged: bool,
}

impl State {
    /// Whether the workload stays as it is.
    fn is_frozen(&self) -> bool {
        self.unchanged || self.failed()
    }

    fn failed(&self) -> bool {
        self.findings
            .iter()
            .any(|finding| finding.severity == Severity::Error)
    }
}

impl<'w, 'a> Work<'w, 'a> {
    fn new(original: &'w Parsed<'a>, found: &'w [Found], options: &'w Options) -> Self {
        let view = original.view();
        let states = found.iter().map(|found| state(&view, found, options)).collect();
        Self {
            original,
            found,
            options,
            states,
        }
    }

    /// The new text, if it differs. A workload that fails late leaves no trace: all starts again without it.
    /// An error concerns all workloads.
    fn treat(&mut self) -> Result<Option<Vec<u8>>, Finding> {
        loop {
            let before = self.failures();
            let text = self.attempt()?;
            if self.failures() == before {
                let text = text.filter(|text| text != self.original.text);
                if let Some(text) = &text {
                    self.note_changes(text);
                }
                return Ok(text);
            }
        }
    }

    fn failures(&self) -> usize {
        self.states.iter().filter(|state| state.failed()).count()
    }

    /// Sets which workloads look different in `text`.
    fn note_changes(&mut self, text: &[u8]) {
        if let [state] = self.states.as_mut_slice() {
            state.changed = true;
            return;
        }
        let Ok(Some(parsed)) = parse(text) else { return };
        let found = select(&parsed.view(), &self.options.pod_template_paths);
        for index in 0..self.found.len() {
            let before = extent(self.found, self.original, index);
            let after = extent(&found, &parsed, index);
            let changed = self.original.text.get(before.0..before.1) != text.get(after.0..after.1);
            if let Some(state) = self.states.get_mut(index) {
                state.changed = changed;
            }
        }
    }

    fn reports(self) -> Vec<Report> {
        let mode = self.options.mode;
        let original = self.original;
        let pairs = self.found.iter().zip(self.states);
        pairs
            .map(|(found, state)| report(original, found, state, mode))
            .collect()
    }
}

fn state(view: &View<'_>, found: &Found, options: &Options) -> State {
    let ask = ask(view, found, options);
    let mut findings = Vec::new();
    if options.mode == Mode::Inject {
        if let Some(pod) = found.stranger {
            findings.push(stranger(view, found, pod));
        }
        if let Some(spec) = found.spec.filter(|spec| crate::ask::is_ours(view, *spec)) {
            let workload = Workload {
                text: view.text,
                document: view.document,
                object: found.object,
                template: found.template,
                spec,
            };
            findings.extend(advise(&workload, options));
            let needed = Needed {
                ask: &ask,
                profile: options.profile,
            };
            findings.extend(crate::conflict::taken(view, found, spec, &needed));
        }
    }
    if let Some(spec) = found.spec.filter(|_| options.mode == Mode::Uninject) {
        findings.extend(crate::conflict::unmarked(view, found, spec));
    }
    if let Lookup::Invalid(annotation) = crate::record::find(view, found.template) {
        findings.push(crate::undo::flow::invalid_record(view, annotation));
    }
    State {
        ask,
        findings,
        changed: false,
        unchanged: false,
    }
}

fn stranger(view: &View<'_>, found: &Found, pod: NodeId) -> Finding {
    let kind = if found.kind.is_empty() {
        "an object without kind"
    } else {
        &found.kind
    };
    let message = format!("a pod of a Contrast runtime class in {kind}, whose pod template is not known");
    let help = format!("name it: --pod-template-path {}=path.to.template", found.kind);
    crate::rejection::reject(view, pod, Code::UnknownKind, message, &help)
}

fn internal(message: &str) -> Finding {
    Finding {
        severity: Severity::Error,
        code: Code::Internal,
        message: message.to_owned(),
        place: first_place(),
        help: Some("nothing was written; please report this with the file".into()),
    }
}

fn report(original: &Parsed<'_>, found: &Found, state: State, mode: Mode) -> Report {
    let failed = state.failed();
    let (action, reason) = match (mode, state.changed) {
        _ if failed => (
            Action::Failed,
            if found.stranger.is_some() {
                Reason::UnknownKind
            } else {
                Reason::Rejected
            },
        ),
        (Mode::Uninject, true) => (Action::Removed, Reason::Uninject),
        (Mode::Uninject, false) => (Action::Skipped, Reason::Uninject),
        (Mode::Inject, changed) => match (state.ask.is_nothing(), changed) {
            (true, true) => (Action::Removed, state.ask.reason),
            (true, false) => (Action::Skipped, state.ask.reason),
            (false, true) => (Action::Injected, state.ask.reason),
            (false, false) => (Action::Unchanged, state.ask.reason),
        },
    };
    let object = original.document.node(found.object);
    Report {
        api_version: found.api_version.clone(),
        kind: found.kind.clone(),
        name: found.name.clone(),
        namespace: found.namespace.clone(),
        path: found.path.clone(),
        place: object.map(|node| place(node.span)).unwrap_or_default(),
        action,
        reason,
        findings: state.findings,
    }
}

/// From the start of a pod template to the start of the next one, or to the end.
fn extent(found: &[Found], parsed: &Parsed<'_>, index: usize) -> (usize, usize) {
    let start = |found: &Found| {
        let template = parsed.document.node(found.template);
        template.map_or(0, |node| node.span.start.offset)
    };
    let Some(own) = found.get(index) else {
        return (0, 0);
    };
    // An alias of an object stands behind it and has its template.
    let mut later = found.iter().skip(index + 1).map(start);
    let end = later.find(|later| *later > start(own));
    let end = end.unwrap_or(parsed.text.len());
    (start(own), end)
}
