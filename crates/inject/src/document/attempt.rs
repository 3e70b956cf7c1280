//! One attempt at a document: removes earlier injections, then containers of flow lists that will be
//! replaced, then applies the plan. After every step the new text is parsed and compared with the planned
//! values; if they differ, the text is not changed.

use std::cell::RefCell;
use std::collections::BTreeSet;

use mainstay_yaml::{NodeId, Numbers, reads_as};

use super::{InjectionState, Parsed, Processor, internal_error, parse, syntax_finding, template_range};
use crate::editor::{PodEdits, PodSplices, check_keys, edit};
use crate::plan::{PodEdit, plan};
use crate::record::Replaced;
use crate::request::InjectionRequest;
use crate::select::{PodTemplate, select};
use crate::splice::{self, Splice};
use crate::tree::View;
use crate::undo::{ContainerReplacement, clear_lists, undo};
use crate::{Code, Finding, Mode, Options, Place, lines, semantic};

/// Splices of each step so far, which map offsets back to the original.
type History = Vec<Vec<Splice>>;

/// Planned edits of one pod.
struct PodPlan<'f> {
    pod: &'f PodTemplate,
    edits: Vec<PodEdit>,
    /// Value of the undo annotation.
    annotation: Option<String>,
}

/// New text, if the step changed it.
type StepResult = Result<Option<Vec<u8>>, Finding>;

impl Processor<'_, '_> {
    /// Runs one attempt with every workload that is not frozen. Failures of a workload are added to its
    /// state; an error concerns the whole document.
    pub(super) fn attempt(&mut self) -> StepResult {
        match self.undo_and_inject() {
            Err(_) if self.options.mode == Mode::Inject && self.freeze_up_to_date() => self.attempt(),
            done => done,
        }
    }

    fn undo_and_inject(&mut self) -> StepResult {
        let frozen: Vec<(usize, usize)> = (0..self.pods.len())
            .filter(|index| self.states.get(*index).is_none_or(InjectionState::is_frozen))
            .map(|index| template_range(self.pods, self.original, index))
            .collect();
        let active = self.pods.iter().zip(&self.states);
        let active: Vec<&PodTemplate> = active
            .filter(|(_, state)| !state.is_frozen())
            .map(|(pod, _)| pod)
            .collect();
        let splices = undo(&self.original.view(), &active, &frozen);
        let original = self.original;
        let Some(text) = apply_splices(original.text, &splices).map_err(|_| removal_failed())? else {
            return self.clear_lists(original, Vec::new());
        };
        let clean = reparse(&text)?;
        self.check_removal(&clean)?;
        let injected = self.clear_lists(&clean, vec![splices])?;
        let text = injected.unwrap_or(text);
        if self.options.mode == Mode::Inject && text != original.text && self.freeze_unchanged(&text) {
            return self.attempt();
        }
        Ok(Some(text))
    }

    /// Freezes the workloads that already have the requested content although a formatter moved their
    /// marks. Returns whether there are any.
    fn freeze_up_to_date(&mut self) -> bool {
        let (original, options) = (self.original, self.options);
        let mut any = false;
        for (pod, state) in self.pods.iter().zip(&mut self.states) {
            if !state.is_frozen()
                && !state.request.is_empty()
                && is_up_to_date(original, pod, &state.request, options)
            {
                state.unchanged = true;
                any = true;
            }
        }
        any
    }

    /// Freezes the workloads whose text would change although its meaning would not, because a formatter
    /// changed their layout. Returns whether there are any.
    fn freeze_unchanged(&mut self, text: &[u8]) -> bool {
        let Ok(Some(parsed)) = parse(text) else {
            return false;
        };
        let pods = select(&parsed.view(), &self.options.pod_template_paths);
        if pods.len() != self.pods.len() {
            return false;
        }
        let mut any = false;
        for (index, (before, after)) in self.pods.iter().zip(&pods).enumerate() {
            let Some(state) = self.states.get_mut(index).filter(|state| !state.is_frozen()) else {
                continue;
            };
            let (old, new) = (
                template_range(self.pods, self.original, index),
                template_range(&pods, &parsed, index),
            );
            let same_text = self.original.text.get(old.0..old.1) == text.get(new.0..new.1);
            let template_value = |parsed: &Parsed<'_>, pod: &PodTemplate| {
                let steps = pod.spec.and_then(|_| pod.steps.split_last());
                let template = parsed.with_value(|value| {
                    let template = steps.and_then(|(_, steps)| semantic::get(value.ok()?, steps));
                    template.cloned()
                });
                let mut template = template?;
                semantic::remove_record(&mut template, pod.steps.get(pod.steps.len() - 1..)?);
                Some(template)
            };
            if !same_text
                && template_value(self.original, before)
                    .is_some_and(|old| Some(old) == template_value(&parsed, after))
            {
                state.unchanged = true;
                any = true;
            }
        }
        any
    }

    fn clear_lists(&mut self, clean: &Parsed<'_>, mut history: History) -> StepResult {
        if self
            .states
            .iter()
            .all(|state| state.is_frozen() || state.request.is_empty())
        {
            return Ok(None);
        }
        let pods = self.select_again(clean, &history)?;
        let pods = pods.as_deref().unwrap_or(self.pods);
        let replacements: Vec<ContainerReplacement<'_>> = pods
            .iter()
            .zip(&self.states)
            .map(|(pod, state)| ContainerReplacement {
                pod,
                names: if state.is_frozen() {
                    Vec::new()
                } else {
                    replaced_names(&pending_edits(clean, pod, &state.request, self.options))
                },
            })
            .collect();
        let cleared = clean.with_value(|value| clear_lists(&clean.view(), value.ok(), &replacements));
        for finding in cleared.rejected {
            self.add_finding_once(&history, finding);
        }
        let Some(text) = apply_splices(clean.text, &cleared.splices)? else {
            return self.inject(clean, &history, &cleared.replaced);
        };
        let cleared_text = reparse(&text)?;
        self.check_removal(&cleared_text)?;
        history.push(cleared.splices);
        let injected = self.inject(&cleared_text, &history, &cleared.replaced)?;
        Ok(Some(injected.unwrap_or(text)))
    }

    fn inject(&mut self, clean: &Parsed<'_>, history: &History, replaced: &[Vec<Replaced>]) -> StepResult {
        let pods = self.select_again(clean, history)?;
        let pods = pods.as_deref().unwrap_or(self.pods);
        let context = EditContext {
            clean,
            view: clean.view(),
            aliased: clean.view().aliased_nodes(),
            checked_object: RefCell::new(None),
        };
        let mut splices = Vec::new();
        let mut plans: Vec<PodPlan<'_>> = Vec::new();
        let states = self.states.iter_mut().enumerate();
        for (pod, (index, state)) in pods
            .iter()
            .zip(states)
            .filter(|(_, (_, state))| !state.is_frozen())
        {
            let edits = pending_edits(clean, pod, &state.request, self.options);
            let replaced = replaced.get(index).map(Vec::as_slice).unwrap_or_default();
            let pod_edits = PodEdits {
                pod,
                edits: &edits,
                replaced,
            };
            match context.edit(pod_edits) {
                Ok(new) => {
                    splices.extend(new.splices);
                    let annotation = new.annotation;
                    plans.push(PodPlan {
                        pod,
                        edits,
                        annotation,
                    });
                }
                Err(mut finding) => {
                    finding.place = self.original.original_place(history, finding.place);
                    state.findings.push(finding);
                }
            }
        }
        splice::sort(&mut splices);
        let text = apply_splices(clean.text, &splices)?;
        if let Some(text) = &text {
            self.check_injection(clean, text, &plans)?;
        }
        Ok(text)
    }

    /// Selects the pod templates of a text that differs from the original; `None` if no step changed the
    /// text.
    fn select_again(
        &self,
        clean: &Parsed<'_>,
        history: &History,
    ) -> Result<Option<Vec<PodTemplate>>, Finding> {
        if history.is_empty() {
            return Ok(None);
        }
        let pods = select(&clean.view(), &self.options.pod_template_paths);
        let same = pods.len() == self.pods.len();
        same.then_some(Some(pods))
            .ok_or_else(|| internal_error("the edited text lacks a pod"))
    }

    /// Checks that the removal of earlier injections did not change the meaning of the original, apart from
    /// content with reserved names.
    fn check_removal(&self, clean: &Parsed<'_>) -> Result<(), Finding> {
        let without_reserved_names = |parsed: &Parsed<'_>| {
            let mut value = parsed.with_value(|value| value.ok().cloned())?;
            for pod in self.pods {
                semantic::remove_reserved_names(&mut value, &pod.steps);
            }
            Some(value)
        };
        let values = without_reserved_names(self.original).zip(without_reserved_names(clean));
        let same = values.is_some_and(|(before, after)| before == after);
        same.then_some(()).ok_or_else(removal_failed)
    }

    fn check_injection(&self, clean: &Parsed<'_>, text: &[u8], plans: &[PodPlan<'_>]) -> Result<(), Finding> {
        let differs = || internal_error("the edited text would not have the planned meaning");
        let mut expected = clean.take_value().map_err(|error| syntax_finding(&error, text))?;
        for plan in plans.iter().filter(|plan| !plan.edits.is_empty()) {
            let steps = &plan.pod.steps;
            let annotate = |expected: &mut _, record: &String| semantic::annotate(expected, steps, record);
            let applied = semantic::apply(&mut expected, steps, &plan.edits);
            if !applied
                || !plan
                    .annotation
                    .iter()
                    .all(|record| annotate(&mut expected, record))
            {
                return Err(differs());
            }
        }
        let same = if text == self.original.text {
            self.original.with_value(|value| value.ok() == Some(&expected))
        } else {
            let options = mainstay_yaml::Options {
                numbers: Numbers::Exact,
                ..mainstay_yaml::Options::default()
            };
            reads_as(text, &expected, &options)
        };
        same.then_some(()).ok_or_else(differs)
    }

    /// Adds a finding to the workload that contains its place. Attempts are repeated, so a known finding is
    /// not added again.
    fn add_finding_once(&mut self, history: &History, mut finding: Finding) {
        finding.place = self.original.original_place(history, finding.place);
        let at = finding.place.offset;
        let starts_before = |index: &usize| template_range(self.pods, self.original, *index).0 <= at;
        let index = (0..self.pods.len()).rev().find(starts_before);
        let state = index.and_then(|index| self.states.get_mut(index));
        if let Some(state) = state.filter(|state| !state.findings.contains(&finding)) {
            state.findings.push(finding);
        }
    }
}

/// Returns the edits that a pod still requires.
fn pending_edits(
    clean: &Parsed<'_>,
    pod: &PodTemplate,
    request: &InjectionRequest,
    options: &Options,
) -> Vec<PodEdit> {
    let edits = plan(request, options);
    clean.with_value(|value| match value {
        Ok(value) => semantic::drop_applied_edits(value, &pod.steps, edits),
        Err(_) => edits,
    })
}

/// Whether the edits that a pod still requires would not change its value.
fn is_up_to_date(
    original: &Parsed<'_>,
    pod: &PodTemplate,
    request: &InjectionRequest,
    options: &Options,
) -> bool {
    let edits = pending_edits(original, pod, request, options);
    original.with_value(|value| {
        let spec = value.ok().and_then(|value| semantic::get(value, &pod.steps));
        spec.is_some_and(|spec| {
            let mut new = spec.clone();
            semantic::apply(&mut new, &[], &edits) && new == *spec
        })
    })
}

/// Returns the names of the init containers that will be replaced.
fn replaced_names(edits: &[PodEdit]) -> Vec<&'static str> {
    let names = edits.iter().filter_map(|edit| match edit {
        PodEdit::Remove { name, .. } => Some(*name),
        _ => None,
    });
    names.collect()
}

fn apply_splices(text: &[u8], splices: &[Splice]) -> StepResult {
    if splices.is_empty() {
        return Ok(None);
    }
    let text = splice::apply(text, splices).ok_or_else(|| internal_error("two edits overlap"))?;
    Ok(Some(text))
}

/// Returns the error about injected text that was edited later, so that its removal would remove too much
/// or too little.
fn removal_failed() -> Finding {
    Finding {
        code: Code::Layout,
        message: "the injected content was edited after the injection and cannot be removed safely".into(),
        help: Some("remove the lines marked `# mainstay:` by hand, or start from the original".into()),
        ..internal_error("")
    }
}

fn reparse(text: &[u8]) -> Result<Parsed<'_>, Finding> {
    parse(text).ok().flatten().ok_or_else(removal_failed)
}

/// Data shared by all edits of one text.
struct EditContext<'c> {
    clean: &'c Parsed<'c>,
    view: View<'c>,
    aliased: BTreeSet<NodeId>,
    /// Object that was checked last, with the result.
    checked_object: RefCell<Option<(NodeId, Result<(), Finding>)>>,
}

impl EditContext<'_> {
    /// Checks an object once, regardless of the number of its pod templates.
    fn check_keys(&self, object: NodeId) -> Result<(), Finding> {
        let mut last = self.checked_object.borrow_mut();
        match &*last {
            Some((known, checked)) if *known == object => checked.clone(),
            _ => {
                let checked = check_keys(&self.view, object);
                *last = Some((object, checked.clone()));
                checked
            }
        }
    }

    fn edit(&self, pod_edits: PodEdits<'_>) -> Result<PodSplices, Finding> {
        if pod_edits.edits.is_empty() {
            return Ok(PodSplices::default());
        }
        self.clean.with_value(|value| {
            value
                .map(drop)
                .map_err(|error| syntax_finding(error, self.clean.text))
        })?;
        self.check_keys(pod_edits.pod.object)?;
        edit(&self.view, &self.aliased, pod_edits)
    }
}

impl Parsed<'_> {
    /// Maps a place in the text that results from `history` to a place in this text.
    fn original_place(&self, history: &History, place: Place) -> Place {
        if history.is_empty() {
            return place;
        }
        let offset = history.iter().rev().fold(place.offset, |offset, splices| {
            splice::original_offset(splices, offset)
        });
        let before = self.text.get(..offset).unwrap_or_default();
        let line = before.get(lines::start(self.text, offset)..).unwrap_or_default();
        Place {
            line: memchr::memchr_iter(b'\n', before).count() + 1,
            column: String::from_utf8_lossy(line).chars().count() + 1,
            offset,
            len: place.len,
        }
    }
}
