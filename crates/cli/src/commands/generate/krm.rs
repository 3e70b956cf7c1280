//! As a KRM function: takes a `ResourceList` on standard input, gives it back with its items treated and results added.
//! The list keeps its bytes as any other input does; orchestrators compare, and comments are the user's.

mod config;
mod results;

use mainstay_inject::{Action, Options, Outcome, run};
use mainstay_yaml::{Budget, Document, parse_spanned};

use super::args::{Args, ReportFormat};
use super::inputs::{Input, Source};
use super::printed;
use super::summary::Summary;
use super::treat::{Payload, Treated, told_all};
use crate::commands;
use crate::error::{CliError, Kind};
use results::{Item, KrmResult};

/// What goes back to the orchestrator.
pub(super) struct Answer {
    text: Vec<u8>,
    end: Result<(), CliError>,
}

impl Answer {
    /// Prints the list, whatever the end: the orchestrator reads it before it looks at the exit code.
    pub(super) fn deliver(self) -> Result<(), CliError> {
        commands::print(&self.text)?;
        self.end
    }
}

/// The answer, if the only input is a `ResourceList` and its place is the pipe.
pub(super) fn answer(inputs: &[Input], args: &Args, options: &Options) -> Option<Answer> {
    let piped = args.output.as_deref().is_none_or(|path| path == "-") && !args.diff;
    let [
        Input {
            source: Source::Stdin(head),
            ..
        },
    ] = inputs
    else {
        return None;
    };
    let list = resource_list(&head.text).filter(|_| piped && head.ended)?;
    Some(answer_list(&head.text, &list, args, options))
}

/// The document, if `text` is one `ResourceList` and nothing else.
fn resource_list(text: &[u8]) -> Option<Document> {
    if !holds(text, b"ResourceList") {
        return None;
    }
    let mut documents = parse_spanned(text, &Budget::default()).ok()?;
    let document = documents.pop().filter(|_| documents.is_empty())?;
    let is =
        |key, wanted: fn(&str) -> bool| results::scalar(&document, document.find(&[key])).is_some_and(wanted);
    let ours = is("kind", |kind| kind == "ResourceList")
        && is("apiVersion", |it| it.starts_with("config.kubernetes.io/"));
    ours.then_some(document)
}

/// Whether `text` holds `word` anywhere.
pub(super) fn holds(text: &[u8], word: &[u8]) -> bool {
    text.windows(word.len()).any(|part| part == word)
}

fn answer_list(text: &[u8], list: &Document, args: &Args, options: &Options) -> Answer {
    let items = results::items(list);
    let treated = config::configured(text, options, args.keep_going).and_then(|(options, keep_going)| {
        Ok((
            run(text, &options).map_err(|error| error.to_string())?,
            keep_going,
        ))
    });
    match treated {
        Ok((outcome, keep_going)) => concluded(text, &items, outcome, keep_going, args),
        Err(message) => Answer {
            text: results::insert(text, &[KrmResult::failure(message.clone())]),
            end: Err(CliError::new(Kind::Inject, message)),
        },
    }
}

fn concluded(text: &[u8], items: &[Item], outcome: Outcome<'_>, keep_going: bool, args: &Args) -> Answer {
    let (changed, failed) = (outcome.changed(), outcome.failed());
    let results: Vec<_> = outcome
        .reports
        .iter()
        .flat_map(|report| results::of(report, items, args.check))
        .collect();
    let keeps = args.check || (failed && !keep_going);
    let answer = results::insert(if keeps { text } else { &outcome.text }, &results);
    let treated = Treated {
        name: "-".to_owned(),
        changed,
        objects: told_all(outcome.reports, text),
        error: None,
        payload: Payload::None,
    };
    let summary = Summary::of(std::slice::from_ref(&treated));
    if args.report == ReportFormat::Text {
        printed::print(&[treated], &summary, args.quiet);
    }
    let end = if failed && !keep_going {
        Err(CliError::new(
            Kind::Inject,
            format!("{}; the items stay as they are", super::untreated(&summary)),
        ))
    } else if args.check && changed {
        Err(CliError::new(Kind::WouldChange, ""))
    } else {
        Ok(())
    };
    Answer { text: answer, end }
}

/// What an action is called in a result, where it is worth one.
fn spoken(action: Action, check: bool) -> Option<&'static str> {
    match action {
        Action::Injected => Some(if check { "would be injected" } else { "injected" }),
        Action::Removed => Some(if check { "would be removed" } else { "removed" }),
        Action::Failed => Some("failed"),
        Action::Unchanged | Action::Skipped => None,
    }
}
