//! Processes one document: returns the new text, if it differs, and the reports.

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
use crate::conflict::Requirements;
use crate::profile::RUNTIME_CLASS_PREFIX;
use crate::record::Lookup;
use crate::request::{InjectionRequest, is_contrast_pod, resolve_request};
use crate::select::{PodTemplate, may_have_pods, select};
use crate::split::{has_hiding_escape, has_reserved_name};
use crate::tree::View;
use crate::workload::{Workload, place_from_span};
use crate::{Action, Code, Finding, Mode, Options, Place, Reason, Report, Severity};

/// Result of processing a document.
#[derive(Debug, Default)]
pub(crate) struct Processed {
    /// New text, if it differs.
    pub(crate) text: Option<Vec<u8>>,
    /// Reports, with places relative to the start of the document.
    pub(crate) reports: Vec<Report>,
    /// Index of the list item that each report is about; `None` if the document is not a list.
    items: Vec<Option<usize>>,
    /// Failure that prevents all edits.
    failure: Option<Failure>,
}

/// A failure that concerns the whole document.
#[derive(Debug)]
enum Failure {
    /// An edit is not possible, or the edited text does not have the planned meaning: every workload fails.
    Edit(Finding),
    /// The document has no value: every workload that requires an edit fails.
    Value(Finding),
}

impl Failure {
    /// Returns the failure that affects more workloads; `earlier` if there is no difference.
    fn merge(self, earlier: Option<Self>) -> Self {
        match (self, earlier) {
            (Self::Edit(finding), None | Some(Self::Value(_))) => Self::Edit(finding),
            (_, Some(earlier)) => earlier,
            (own, None) => own,
        }
    }
}

impl Processed {
    /// Whether the text is unchanged and there are no reports.
    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_none() && self.reports.is_empty()
    }

    /// Fails every workload if the failure concerns all of them.
    fn apply_failure(mut self) -> Self {
        if let Some(Failure::Edit(finding)) = &self.failure {
            let reports = self.reports.iter_mut();
            reports
                .filter(|report| report.action != Action::Failed)
                .for_each(|report| fail(report, finding));
        }
        self
    }
}

/// A text with its nodes and its value.
struct Parsed<'a> {
    text: &'a [u8],
    document: Document<'a>,
    /// Value of the text; `take_value` moves it out, then it is parsed again on demand.
    value: RefCell<Option<Result<Value, Error>>>,
}

impl Parsed<'_> {
    /// Calls `f` with the value of the text, or with the error of parsing it.
    fn with_value<R>(&self, f: impl FnOnce(Result<&Value, &Error>) -> R) -> R {
        let value = self.take_value();
        let result = f(value.as_ref());
        *self.value.borrow_mut() = Some(value);
        result
    }

    /// Moves the value out: to clone the value of a large document costs as much as parsing it.
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

/// Processes one document.
pub(crate) fn process(text: &[u8], options: &Options) -> Processed {
    if !has_reserved_name(text) {
        // Text of simple form contains no escapes, so it cannot contain a hidden name.
        if is_simple(text) {
            return Processed::default();
        }
        if !has_hiding_escape(text) {
            let read = check_syntax(text, &Budget::default());
            return read.map_or_else(
                |error| syntax_failure(syntax_finding(&error, text)),
                |()| Processed::default(),
            );
        }
    }
    let process = |text: &[u8]| process_by_length(text, options);
    let elided = elision::process_elided(text, &options.pod_template_paths, elision::MIN_ELISION, process);
    elided.unwrap_or_else(|| process(text)).apply_failure()
}

fn process_by_length(text: &[u8], options: &Options) -> Processed {
    if text.len() <= pieces::MAX_WHOLE_LEN {
        return process_whole(text, options);
    }
    match is_without_pods(text, options) {
        Ok(true) => Processed::default(),
        Ok(false) => process_long(text, options),
        Err(error) => syntax_failure(syntax_finding(&error, text)),
    }
}

/// Whether a long document has a kind without pods and contains no Contrast pod. The memory required does
/// not depend on the length of the document.
fn is_without_pods(text: &[u8], options: &Options) -> Result<bool, Error> {
    let may_have_contrast_pod = memmem::find(text, b"runtimeClassName").is_some()
        && memmem::find(text, RUNTIME_CLASS_PREFIX.as_bytes()).is_some();
    if may_have_contrast_pod || has_hiding_escape(text) {
        return Ok(false);
    }
    let kind = root_scalar(text, "kind", &Budget::default())?;
    Ok(kind.is_some_and(|kind| !kind.is_empty() && !may_have_pods(&kind, &options.pod_template_paths)))
}

fn process_long(text: &[u8], options: &Options) -> Processed {
    let whole = |text: &[u8]| process_whole(text, options);
    match outline(text, "items", &Budget::default()) {
        Err(error) => syntax_failure(syntax_finding(&error, text)),
        Ok(None) => whole(text),
        Ok(Some(outline)) => {
            let pieces = pieces::process_pieces(text, &outline, pieces::PIECE_LEN, whole);
            pieces.unwrap_or_else(|| whole(text))
        }
    }
}

fn process_whole(text: &[u8], options: &Options) -> Processed {
    let original = match parse(text) {
        Ok(Some(parsed)) => parsed,
        Ok(None) => return Processed::default(),
        Err(finding) => return syntax_failure(finding),
    };
    let invalid = original.with_value(|value| value.err().map(|error| syntax_finding(error, text)));
    let invalid = invalid.map(Failure::Value);
    let pods = select(&original.view(), &options.pod_template_paths);
    if pods.is_empty() {
        return Processed {
            failure: invalid,
            ..Processed::default()
        };
    }
    let mut processor = Processor::new(&original, &pods, options);
    let (text, failure) = match processor.process() {
        Ok(text) => (text, invalid),
        Err(finding) => (None, Some(Failure::Edit(finding))),
    };
    Processed {
        text,
        items: pods.iter().map(PodTemplate::item).collect(),
        reports: processor.reports(),
        failure,
    }
}

/// Sets a report to failed.
fn fail(report: &mut Report, finding: &Finding) {
    report.action = Action::Failed;
    report.reason = Reason::Rejected;
    report.findings.push(finding.clone());
}

/// Maximum number of nodes of a document. It bounds memory, and is several times the number that an object
/// in etcd can have.
const MAX_NODES: usize = 500_000;

fn parse(text: &[u8]) -> Result<Option<Parsed<'_>>, Finding> {
    let budget = Budget {
        nodes: MAX_NODES,
        ..Budget::default()
    };
    let mut documents = parse_spanned_values(text, &budget).map_err(|error| syntax_finding(&error, text))?;
    let Some(SpannedValue { document, value }) = documents.pop() else {
        return Ok(None);
    };
    if !documents.is_empty() {
        // Splitting by lines does not find a document marker after a line break other than LF and CRLF.
        let mut finding = syntax_finding_at(
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

fn syntax_finding(error: &Error, text: &[u8]) -> Finding {
    let place = Place {
        line: error.at.line,
        column: error.at.column,
        offset: error.at.offset,
        len: 0,
    };
    // Go counts lines relative to the document, and not always correctly; the place is more precise.
    let message = match &error.problem {
        Problem::Syntax { problem, .. } => format!("yaml: {problem}"),
        problem => problem.to_string(),
    };
    let template = memmem::find(text, b"{{").is_some();
    Finding {
        help: template.then(|| "if this is the text of a template, render it first".into()),
        ..syntax_finding_at(message, place)
    }
}

fn syntax_finding_at(message: String, place: Place) -> Finding {
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

fn syntax_failure(finding: Finding) -> Processed {
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
    Processed {
        reports: vec![report],
        ..Processed::default()
    }
}

struct Processor<'w, 'a> {
    original: &'w Parsed<'a>,
    pods: &'w [PodTemplate],
    options: &'w Options,
    states: Vec<InjectionState>,
}

/// Processing state of one workload.
struct InjectionState {
    request: InjectionRequest,
    findings: Vec<Finding>,
    changed: bool,
    /// Whether the workload already has the requested content, although its layout differs from that of a
    /// fresh injection.
    unchanged: bool,
}

impl InjectionState {
    /// Whether the text of the workload must not change.
    fn is_frozen(&self) -> bool {
        self.unchanged || self.failed()
    }

    fn failed(&self) -> bool {
        self.findings
            .iter()
            .any(|finding| finding.severity == Severity::Error)
    }
}

impl<'w, 'a> Processor<'w, 'a> {
    fn new(original: &'w Parsed<'a>, pods: &'w [PodTemplate], options: &'w Options) -> Self {
        let view = original.view();
        let states = pods
            .iter()
            .map(|pod| initial_state(&view, pod, options))
            .collect();
        Self {
            original,
            pods,
            options,
            states,
        }
    }

    /// Returns the new text, if it differs. If a workload fails late, processing restarts without it, so
    /// that none of its edits remain. An error concerns all workloads.
    fn process(&mut self) -> Result<Option<Vec<u8>>, Finding> {
        loop {
            let before = self.failure_count();
            let text = self.attempt()?;
            if self.failure_count() == before {
                let text = text.filter(|text| text != self.original.text);
                if let Some(text) = &text {
                    self.mark_changes(text);
                }
                return Ok(text);
            }
        }
    }

    fn failure_count(&self) -> usize {
        self.states.iter().filter(|state| state.failed()).count()
    }

    /// Marks the workloads that `text` changes.
    fn mark_changes(&mut self, text: &[u8]) {
        if let [state] = self.states.as_mut_slice() {
            state.changed = true;
            return;
        }
        let Ok(Some(parsed)) = parse(text) else { return };
        let pods = select(&parsed.view(), &self.options.pod_template_paths);
        for index in 0..self.pods.len() {
            let before = template_range(self.pods, self.original, index);
            let after = template_range(&pods, &parsed, index);
            let changed = self.original.text.get(before.0..before.1) != text.get(after.0..after.1);
            if let Some(state) = self.states.get_mut(index) {
                state.changed = changed;
            }
        }
    }

    fn reports(self) -> Vec<Report> {
        let mode = self.options.mode;
        let original = self.original;
        let pairs = self.pods.iter().zip(self.states);
        pairs
            .map(|(pod, state)| workload_report(original, pod, state, mode))
            .collect()
    }
}

fn initial_state(view: &View<'_>, pod: &PodTemplate, options: &Options) -> InjectionState {
    let request = resolve_request(view, pod, options);
    let mut findings = Vec::new();
    if options.mode == Mode::Inject {
        if let Some(spec) = pod.unknown_kind_spec {
            findings.push(unknown_kind(view, pod, spec));
        }
        if let Some(spec) = pod.spec.filter(|spec| is_contrast_pod(view, *spec)) {
            let workload = Workload {
                text: view.text,
                document: view.document,
                object: pod.object,
                template: pod.template,
                spec,
            };
            findings.extend(advise(&workload, options));
            let requirements = Requirements {
                request: &request,
                profile: options.profile,
            };
            findings.extend(crate::conflict::name_conflicts(view, pod, spec, &requirements));
        }
    }
    if let Some(spec) = pod.spec.filter(|_| options.mode == Mode::Uninject) {
        findings.extend(crate::conflict::unmarked_containers(view, pod, spec));
    }
    if let Lookup::Invalid(annotation) = crate::record::find(view, pod.template) {
        findings.push(crate::undo::flow::invalid_record(view, annotation));
    }
    InjectionState {
        request,
        findings,
        changed: false,
        unchanged: false,
    }
}

fn unknown_kind(view: &View<'_>, pod: &PodTemplate, spec: NodeId) -> Finding {
    let kind = if pod.kind.is_empty() {
        "an object without kind"
    } else {
        &pod.kind
    };
    let message =
        format!("{kind} contains a pod with a Contrast runtime class, but its pod template path is unknown");
    let help = format!("set --pod-template-path {}=path.to.template", pod.kind);
    crate::rejection::reject(view, spec, Code::UnknownKind, message, &help)
}

fn internal_error(message: &str) -> Finding {
    Finding {
        severity: Severity::Error,
        code: Code::Internal,
        message: message.to_owned(),
        place: first_place(),
        help: Some("nothing was written; please report this with the file".into()),
    }
}

fn workload_report(original: &Parsed<'_>, pod: &PodTemplate, state: InjectionState, mode: Mode) -> Report {
    let failed = state.failed();
    let (action, reason) = match (mode, state.changed) {
        _ if failed => (
            Action::Failed,
            if pod.unknown_kind_spec.is_some() {
                Reason::UnknownKind
            } else {
                Reason::Rejected
            },
        ),
        (Mode::Uninject, true) => (Action::Removed, Reason::Uninject),
        (Mode::Uninject, false) => (Action::Skipped, Reason::Uninject),
        (Mode::Inject, changed) => match (state.request.is_empty(), changed) {
            (true, true) => (Action::Removed, state.request.reason),
            (true, false) => (Action::Skipped, state.request.reason),
            (false, true) => (Action::Injected, state.request.reason),
            (false, false) => (Action::Unchanged, state.request.reason),
        },
    };
    let object = original.document.node(pod.object);
    Report {
        api_version: pod.api_version.clone(),
        kind: pod.kind.clone(),
        name: pod.name.clone(),
        namespace: pod.namespace.clone(),
        path: pod.path.clone(),
        place: object.map(|node| place_from_span(node.span)).unwrap_or_default(),
        action,
        reason,
        findings: state.findings,
    }
}

/// Returns the range from the start of a pod template to the start of the next one, or to the end of the
/// text.
fn template_range(pods: &[PodTemplate], parsed: &Parsed<'_>, index: usize) -> (usize, usize) {
    let start = |pod: &PodTemplate| {
        let template = parsed.document.node(pod.template);
        template.map_or(0, |node| node.span.start.offset)
    };
    let Some(own) = pods.get(index) else {
        return (0, 0);
    };
    // An alias of an object follows the object and has the same pod template.
    let mut later = pods.iter().skip(index + 1).map(start);
    let end = later.find(|later| *later > start(own));
    let end = end.unwrap_or(parsed.text.len());
    (start(own), end)
}
