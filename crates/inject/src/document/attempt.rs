//! One attempt at a document: earlier injections are removed, replaced containers are taken out, then the
//! plan is injected. After every step the new text is parsed and compared with the planned values, or nothing
//! is written.

use std::cell::RefCell;
use std::collections::BTreeSet;

use mainstay_yaml::{NodeId, Numbers, reads_as};

use super::{Parsed, State, Work, extent, internal, parse, syntax};
use crate::ask::Ask;
use crate::editor::{PodJob, PodSplices, check_keys, edit};
use crate::plan::{PodEdit, plan};
use crate::record::Replaced;
use crate::select::{Found, select};
use crate::splice::{self, Splice};
use crate::tree::View;
use crate::undo::{Job, clear_lists, undo};
use crate::{Code, Finding, Mode, Options, Place, lines, semantic};

/// The way back to the original, one list of splices per step.
type Trail = Vec<Vec<Splice>>;

/// What is written into one pod.
struct PodPlan<'f> {
    found: &'f Found,
    edits: Vec<PodEdit>,
    /// The value of the undo annotation.
    annotation: Option<String>,
}

/// The new text, if a step changed it.
type Step = Result<Option<Vec<u8>>, Finding>;

impl Work<'_, '_> {
    /// One attempt with every workload that is not frozen. Failures of a workload go into its state; an error
    /// concerns the whole document.
    pub(super) fn attempt(&mut self) -> Step {
        match self.undo_and_inject() {
            Err(_) if self.options.mode == Mode::Inject && self.freeze_settled() => self.attempt(),
            done => done,
        }
    }

    fn undo_and_inject(&mut self) -> Step {
        let frozen: Vec<(usize, usize)> = (0..self.found.len())
            .filter(|index| self.states.get(*index).is_none_or(State::is_frozen))
            .map(|index| extent(self.found, self.original, index))
            .collect();
        let live = self.found.iter().zip(&self.states);
        let live: Vec<&Found> = live
            .filter(|(_, state)| !state.is_frozen())
            .map(|(found, _)| found)
            .collect();
        let splices = undo(&self.original.view(), &live, &frozen);
        let original = self.original;
        let Some(text) = changed(original.text, &splices).map_err(|_| unclean())? else {
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

    /// Freezes the workloads that already are what was asked for, although a formatter moved their marks.
    fn freeze_settled(&mut self) -> bool {
        let (original, options) = (self.original, self.options);
        let mut any = false;
        for (found, state) in self.found.iter().zip(&mut self.states) {
            if !state.is_frozen()
                && !state.ask.is_nothing()
                && is_settled(original, found, &state.ask, options)
            {
                state.unchanged = true;
                any = true;
            }
        }
        any
    }

    /// Freezes the workloads whose text would change although its meaning does not: a formatter laid them out
    /// differently.
    fn freeze_unchanged(&mut self, text: &[u8]) -> bool {
        let Ok(Some(parsed)) = parse(text) else {
            return false;
        };
        let found = select(&parsed.view(), &self.options.pod_template_paths);
        if found.len() != self.found.len() {
            return false;
        }
        let mut any = false;
        for (index, (before, after)) in self.found.iter().zip(&found).enumerate() {
            let Some(state) = self.states.get_mut(index).filter(|state| !state.is_frozen()) else {
                continue;
            };
            let (old, new) = (
                extent(self.found, self.original, index),
                extent(&found, &parsed, index),
            );
            let same_text = self.original.text.get(old.0..old.1) == text.get(new.0..new.1);
            let meaning = |parsed: &Parsed<'_>, found: &Found| {
                let steps = found.spec.and_then(|_| found.steps.split_last());
                let template = parsed.with_value(|value| {
                    let template = steps.and_then(|(_, steps)| semantic::get(value.ok()?, steps));
                    template.cloned()
                });
                let mut template = template?;
                semantic::remove_record(&mut template, found.steps.get(found.steps.len() - 1..)?);
                Some(template)
            };
            if !same_text
                && meaning(self.original, before).is_some_and(|old| Some(old) == meaning(&parsed, after))
            {
                state.unchanged = true;
                any = true;
            }
        }
        any
    }

    fn clear_lists(&mut self, clean: &Parsed<'_>, mut trail: Trail) -> Step {
        if self
            .states
            .iter()
            .all(|state| state.is_frozen() || state.ask.is_nothing())
        {
            return Ok(None);
        }
        let found = self.find_again(clean, &trail)?;
        let found = found.as_deref().unwrap_or(self.found);
        let jobs: Vec<Job<'_>> = found
            .iter()
            .zip(&self.states)
            .map(|(found, state)| Job {
                found,
                replaced: if state.is_frozen() {
                    Vec::new()
                } else {
                    replaced_names(&settled(clean, found, &state.ask, self.options))
                },
            })
            .collect();
        let cleared = clean.with_value(|value| clear_lists(&clean.view(), value.ok(), &jobs));
        for finding in cleared.rejected {
            self.say_once(&trail, finding);
        }
        let Some(text) = changed(clean.text, &cleared.splices)? else {
            return self.inject(clean, &trail, &cleared.replaced);
        };
        let cleared_text = reparse(&text)?;
        self.check_removal(&cleared_text)?;
        trail.push(cleared.splices);
        let injected = self.inject(&cleared_text, &trail, &cleared.replaced)?;
        Ok(Some(injected.unwrap_or(text)))
    }

    fn inject(&mut self, clean: &Parsed<'_>, trail: &Trail, replaced: &[Vec<Replaced>]) -> Step {
        let found = self.find_again(clean, trail)?;
        let found = found.as_deref().unwrap_or(self.found);
        let editor = Editor {
            clean,
            view: clean.view(),
            aliased: clean.view().shared(),
            keys: RefCell::new(None),
        };
        let mut splices = Vec::new();
        let mut plans: Vec<PodPlan<'_>> = Vec::new();
        let states = self.states.iter_mut().enumerate();
        for (found, (index, state)) in found
            .iter()
            .zip(states)
            .filter(|(_, (_, state))| !state.is_frozen())
        {
            let edits = settled(clean, found, &state.ask, self.options);
            let replaced = replaced.get(index).map(Vec::as_slice).unwrap_or_default();
            let job = PodJob {
                found,
                edits: &edits,
                replaced,
            };
            match editor.edit(job) {
                Ok(new) => {
                    splices.extend(new.splices);
                    let annotation = new.annotation;
                    plans.push(PodPlan {
                        found,
                        edits,
                        annotation,
                    });
                }
                Err(mut finding) => {
                    finding.place = self.original.place_back(trail, finding.place);
                    state.findings.push(finding);
                }
            }
        }
        splice::sort(&mut splices);
        let text = changed(clean.text, &splices)?;
        if let Some(text) = &text {
            self.check_injection(clean, text, &plans)?;
        }
        Ok(text)
    }

    /// The pods of a text that is not the original any more; `None` if it still is.
    fn find_again(&self, clean: &Parsed<'_>, trail: &Trail) -> Result<Option<Vec<Found>>, Finding> {
        if trail.is_empty() {
            return Ok(None);
        }
        let found = select(&clean.view(), &self.options.pod_template_paths);
        let same = found.len() == self.found.len();
        same.then_some(Some(found))
            .ok_or_else(|| internal("a pod was lost while editing"))
    }

    /// Apart from what is ours by name, the text without it means what the original does.
    fn check_removal(&self, clean: &Parsed<'_>) -> Result<(), Finding> {
        let bare = |parsed: &Parsed<'_>| {
            let mut value = parsed.with_value(|value| value.ok().cloned())?;
            for found in self.found {
                semantic::bare(&mut value, &found.steps);
            }
            Some(value)
        };
        let values = bare(self.original).zip(bare(clean));
        let same = values.is_some_and(|(before, after)| before == after);
        same.then_some(()).ok_or_else(unclean)
    }

    fn check_injection(&self, clean: &Parsed<'_>, text: &[u8], plans: &[PodPlan<'_>]) -> Result<(), Finding> {
        let differs = || internal("the edited text would not mean what was planned");
        let mut expected = clean.take_value().map_err(|error| syntax(&error, text))?;
        for plan in plans.iter().filter(|plan| !plan.edits.is_empty()) {
            let steps = &plan.found.steps;
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

    /// A finding about the workload around it; attempts repeat, findings do not.
    fn say_once(&mut self, trail: &Trail, mut finding: Finding) {
        finding.place = self.original.place_back(trail, finding.place);
        let at = finding.place.offset;
        let around = |index: &usize| extent(self.found, self.original, *index).0 <= at;
        let index = (0..self.found.len()).rev().find(around);
        let state = index.and_then(|index| self.states.get_mut(index));
        if let Some(state) = state.filter(|state| !state.findings.contains(&finding)) {
            state.findings.push(finding);
        }
    }
}

/// What is left to do for a pod.
fn settled(clean: &Parsed<'_>, found: &Found, ask: &Ask, options: &Options) -> Vec<PodEdit> {
    let edits = plan(ask, options);
    clean.with_value(|value| match value {
        Ok(value) => semantic::settle(value, &found.steps, edits),
        Err(_) => edits,
    })
}

/// Whether nothing is left to do for a pod.
fn is_settled(original: &Parsed<'_>, found: &Found, ask: &Ask, options: &Options) -> bool {
    let edits = settled(original, found, ask, options);
    original.with_value(|value| {
        let spec = value.ok().and_then(|value| semantic::get(value, &found.steps));
        spec.is_some_and(|spec| {
            let mut new = spec.clone();
            semantic::apply(&mut new, &[], &edits) && new == *spec
        })
    })
}

/// The names of the init containers that will be replaced.
fn replaced_names(edits: &[PodEdit]) -> Vec<&'static str> {
    let names = edits.iter().filter_map(|edit| match edit {
        PodEdit::Drop { name, .. } => Some(*name),
        _ => None,
    });
    names.collect()
}

fn changed(text: &[u8], splices: &[Splice]) -> Step {
    if splices.is_empty() {
        return Ok(None);
    }
    let text = splice::apply(text, splices).ok_or_else(|| internal("two edits overlap"))?;
    Ok(Some(text))
}

/// The marked text was edited, so that removing it would remove too much or too little.
fn unclean() -> Finding {
    Finding {
        code: Code::Layout,
        message: "what was injected earlier was edited since and cannot be taken away cleanly".into(),
        help: Some("remove the lines marked `# mainstay:` by hand, or start from the original".into()),
        ..internal("")
    }
}

fn reparse(text: &[u8]) -> Result<Parsed<'_>, Finding> {
    parse(text).ok().flatten().ok_or_else(unclean)
}

/// What every edit of one text needs.
struct Editor<'c> {
    clean: &'c Parsed<'c>,
    view: View<'c>,
    aliased: BTreeSet<NodeId>,
    /// The object whose keys were looked at last, and what came out.
    keys: RefCell<Option<(NodeId, Result<(), Finding>)>>,
}

impl Editor<'_> {
    /// Looks through an object once, however many pod templates it has.
    fn check_keys(&self, object: NodeId) -> Result<(), Finding> {
        let mut last = self.keys.borrow_mut();
        match &*last {
            Some((known, checked)) if *known == object => checked.clone(),
            _ => {
                let checked = check_keys(&self.view, object);
                *last = Some((object, checked.clone()));
                checked
            }
        }
    }

    fn edit(&self, job: PodJob<'_>) -> Result<PodSplices, Finding> {
        if job.edits.is_empty() {
            return Ok(PodSplices::default());
        }
        self.clean
            .with_value(|value| value.map(drop).map_err(|error| syntax(error, self.clean.text)))?;
        self.check_keys(job.found.object)?;
        edit(&self.view, &self.aliased, job)
    }
}

impl Parsed<'_> {
    /// A place behind the `trail`, as one in this text.
    fn place_back(&self, trail: &Trail, place: Place) -> Place {
        if trail.is_empty() {
            return place;
        }
        let offset = trail
            .iter()
            .rev()
            .fold(place.offset, |offset, splices| splice::back(splices, offset));
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
