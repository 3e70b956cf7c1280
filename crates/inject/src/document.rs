//! One document: takes its text and options, gives the new text if it changed, and what to say. Every edit is checked: the
//! new text is parsed again and must mean what the plan meant.

use std::collections::HashSet;

use mainstay_yaml::{Budget, Document, Error, NodeId, Value, parse_spanned_values};

use crate::advice::advise;
use crate::ask::{Ask, ask};
use crate::editor::edit;
use crate::plan::{PodEdit, plan};
use crate::select::{Found, select};
use crate::semantic;
use crate::splice::{self, Splice};
use crate::tree::View;
use crate::undo::{Job, Undone, undo};
use crate::workload::{Workload, place};
use crate::{Action, Code, Finding, Mode, Options, Place, Reason, Report, Severity};

/// What became of a document.
#[derive(Debug, Default)]
pub(crate) struct Treated {
    /// The new text, if it differs.
    pub(crate) text: Option<Vec<u8>>,
    /// Places count from the start of the document.
    pub(crate) reports: Vec<Report>,
}

/// A text with what it means.
struct Parsed<'a> {
    text: &'a [u8],
    document: Document,
    value: Result<Value, Error>,
}

impl Parsed<'_> {
    fn view(&self) -> View<'_> {
        View {
            text: self.text,
            document: &self.document,
        }
    }
}

/// Treats one document.
pub(crate) fn treat(text: &[u8], options: &Options) -> Treated {
    let original = match parse(text) {
        Ok(Some(parsed)) => parsed,
        Ok(None) => return Treated::default(),
        Err(finding) => return unreadable(finding),
    };
    let found = select(&original.view(), &options.pod_template_paths);
    if found.is_empty() {
        return Treated::default();
    }
    let mut work = Work::new(&original, &found, options);
    let text = work.treat();
    Treated {
        text,
        reports: work.reports(),
    }
}

fn parse(text: &[u8]) -> Result<Option<Parsed<'_>>, Finding> {
    let mut documents = parse_spanned_values(text, &Budget::default()).map_err(|error| syntax(&error))?;
    let Some((document, value)) = documents.pop() else {
        return Ok(None);
    };
    if !documents.is_empty() {
        // Lines that end neither in LF nor in CRLF hide a document mark from a look at lines.
        let mut finding = syntax_at(
            "line breaks other than LF and CRLF separate documents",
            Place::default(),
        );
        finding.help = Some("save the file with LF or CRLF line breaks".into());
        return Err(finding);
    }
    Ok(Some(Parsed {
        text,
        document,
        value,
    }))
}

fn syntax(error: &Error) -> Finding {
    let place = Place {
        line: error.at.line,
        column: error.at.column,
        offset: error.at.offset,
        len: 0,
    };
    syntax_at(&error.problem.to_string(), place)
}

fn syntax_at(message: &str, place: Place) -> Finding {
    Finding {
        severity: Severity::Error,
        code: Code::Syntax,
        message: message.to_owned(),
        place,
        help: None,
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
        text: None,
        reports: vec![report],
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
}

impl State {
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
    fn treat(&mut self) -> Option<Vec<u8>> {
        loop {
            let before = self.failures();
            match self.attempt() {
                Ok(text) if self.failures() == before => {
                    let text = text.filter(|text| text != self.original.text)?;
                    self.note_changes(&text);
                    return Some(text);
                }
                Ok(_) => {}
                Err(finding) => {
                    self.fail_all(&finding);
                    return None;
                }
            }
        }
    }

    fn failures(&self) -> usize {
        self.states.iter().filter(|state| state.failed()).count()
    }

    fn fail_all(&mut self, finding: &Finding) {
        for state in self.states.iter_mut().filter(|state| !state.failed()) {
            state.findings.push(finding.clone());
        }
    }

    /// One try with every workload that has not failed yet. Failures go into the states; an error is everybody's.
    fn attempt(&mut self) -> Result<Option<Vec<u8>>, Finding> {
        let undone = self.undo();
        let clean = splice::apply(self.original.text, &undone.splices)
            .ok_or_else(|| internal("overlapping removals"))?;
        if undone.splices.is_empty() {
            return self.inject(self.original, &undone.splices);
        }
        let parsed = parse(&clean)
            .ok()
            .flatten()
            .ok_or_else(|| internal("what was injected cannot be taken away cleanly"))?;
        self.check_undone(&parsed)?;
        if self.options.mode == Mode::Uninject {
            return Ok(Some(clean));
        }
        for finding in undone.lost {
            self.say_once(finding);
        }
        let injected = self.inject(&parsed, &undone.splices)?;
        Ok(Some(injected.unwrap_or(clean)))
    }

    fn undo(&self) -> Undone {
        let view = self.original.view();
        let frozen: Vec<(usize, usize)> = (0..self.found.len())
            .filter(|index| self.states.get(*index).is_none_or(State::failed))
            .map(|index| self.extent(self.found, self.original, index))
            .collect();
        let jobs: Vec<Job<'_>> = self
            .found
            .iter()
            .zip(&self.states)
            .filter(|(_, state)| !state.failed())
            .map(|(found, state)| Job {
                found,
                replaced: state.ask.replaced(),
            })
            .collect();
        undo(&view, &jobs, &frozen)
    }

    /// The new text of `clean`, if anything is asked for. `undone` leads back to the original.
    fn inject(&mut self, clean: &Parsed<'_>, undone: &[Splice]) -> Result<Option<Vec<u8>>, Finding> {
        if self.options.mode == Mode::Uninject {
            return Ok(None);
        }
        let view = clean.view();
        let again;
        let found = if undone.is_empty() {
            self.found
        } else {
            again = select(&view, &self.options.pod_template_paths);
            &again
        };
        let aliased = view.shared();
        let mut splices = Vec::new();
        let mut plans: Vec<(&Found, Vec<PodEdit>)> = Vec::new();
        for (found, state) in found.iter().zip(&mut self.states) {
            let edits = if state.failed() {
                Vec::new()
            } else {
                plan(&state.ask, self.options)
            };
            match edit_checked(&view, found, &aliased, &edits, clean) {
                Ok(new) => {
                    splices.extend(new);
                    plans.push((found, edits));
                }
                Err(mut finding) => {
                    finding.place = self.original.place_back(undone, finding.place);
                    state.findings.push(finding);
                }
            }
        }
        if splices.is_empty() {
            return Ok(None);
        }
        splice::sort(&mut splices);
        let text = splice::apply(clean.text, &splices).ok_or_else(|| internal("overlapping insertions"))?;
        self.check_injected(clean, &text, &plans)?;
        Ok(Some(text))
    }

    /// Apart from what is ours by name, the text without it means what the original does.
    fn check_undone(&self, clean: &Parsed<'_>) -> Result<(), Finding> {
        let bare = |parsed: &Parsed<'_>| {
            let mut value = parsed.value.clone().ok()?;
            for found in self.found {
                semantic::bare(&mut value, &found.steps);
            }
            Some(value)
        };
        let same = bare(self.original)
            .zip(bare(clean))
            .is_some_and(|(before, after)| before == after);
        same.then_some(())
            .ok_or_else(|| internal("taking away what was injected would change more than that"))
    }

    fn check_injected(
        &self,
        clean: &Parsed<'_>,
        text: &[u8],
        plans: &[(&Found, Vec<PodEdit>)],
    ) -> Result<(), Finding> {
        let differs = || internal("the edited text would not mean what was planned");
        let mut expected = clean.value.clone().map_err(|error| syntax(&error))?;
        for (found, edits) in plans.iter().filter(|(_, edits)| !edits.is_empty()) {
            if !semantic::apply(&mut expected, &found.steps, edits) {
                return Err(differs());
            }
        }
        let same = if text == self.original.text {
            self.original.value.as_ref().ok() == Some(&expected)
        } else {
            let parsed = parse(text).ok().flatten().ok_or_else(differs)?;
            parsed.value.as_ref().ok() == Some(&expected)
        };
        same.then_some(()).ok_or_else(differs)
    }

    /// Sets which workloads look different in `text`.
    fn note_changes(&mut self, text: &[u8]) {
        let Ok(Some(parsed)) = parse(text) else { return };
        let found = select(&parsed.view(), &self.options.pod_template_paths);
        for index in 0..self.found.len() {
            let before = self.extent(self.found, self.original, index);
            let after = self.extent(&found, &parsed, index);
            let changed = self.original.text.get(before.0..before.1) != text.get(after.0..after.1);
            if let Some(state) = self.states.get_mut(index) {
                state.changed = changed;
            }
        }
    }

    /// From the start of an object to the start of the next one, or to the end.
    fn extent(&self, found: &[Found], parsed: &Parsed<'_>, index: usize) -> (usize, usize) {
        let start = |found: &Found| {
            parsed
                .document
                .node(found.object)
                .map_or(0, |node| node.span.start.offset)
        };
        let Some(own) = found.get(index) else {
            return (0, 0);
        };
        let mut later = found
            .iter()
            .skip(index + 1)
            .filter(|other| other.object != own.object);
        let end = later.next().map_or(parsed.text.len(), start);
        (start(own), end)
    }

    /// A finding about the workload around it; attempts repeat, findings do not.
    fn say_once(&mut self, finding: Finding) {
        let at = finding.place.offset;
        let index = (0..self.found.len())
            .rev()
            .find(|index| self.extent(self.found, self.original, *index).0 <= at);
        let state = index.and_then(|index| self.states.get_mut(index));
        if let Some(state) = state.filter(|state| !state.findings.contains(&finding)) {
            state.findings.push(finding);
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

fn edit_checked(
    view: &View<'_>,
    found: &Found,
    aliased: &HashSet<NodeId>,
    edits: &[PodEdit],
    clean: &Parsed<'_>,
) -> Result<Vec<Splice>, Finding> {
    if !edits.is_empty()
        && let Err(error) = &clean.value
    {
        return Err(syntax(error));
    }
    edit(view, found, aliased, edits)
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
            findings.extend(crate::conflict::volume(view, spec, &ask, options));
        }
    }
    State {
        ask,
        findings,
        changed: false,
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
    crate::refusal::refuse(view, pod, Code::UnknownKind, message, &help)
}

fn internal(message: &str) -> Finding {
    Finding {
        severity: Severity::Error,
        code: Code::Internal,
        message: message.to_owned(),
        place: Place {
            line: 1,
            column: 1,
            ..Place::default()
        },
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
                Reason::Refused
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

impl Parsed<'_> {
    /// A place in the text without what was injected, as one in this text.
    fn place_back(&self, undone: &[Splice], place: Place) -> Place {
        if undone.is_empty() {
            return place;
        }
        let offset = splice::back(undone, place.offset);
        let before = self.text.get(..offset).unwrap_or_default();
        let line_start = crate::lines::start(self.text, offset);
        let line = before.get(line_start..).unwrap_or_default();
        Place {
            line: memchr::memchr_iter(b'\n', before).count() + 1,
            column: String::from_utf8_lossy(line).chars().count() + 1,
            offset,
            len: place.len,
        }
    }
}
