//! As a KRM function: takes a `ResourceList` on standard input, gives it back with its items treated and results added.
//! The list keeps its bytes as any other input does; orchestrators compare, and comments are the user's.

mod config;
mod results;

use mainstay_inject::{Action, Options, Outcome, run};
use mainstay_yaml::{Budget, Document, parse_spanned};

use super::args::{Args, ReportFormat};
use super::inputs::{Input, Source};
use super::output::Plan;
use super::printed;
use super::report;
use super::summary::Summary;
use super::treat::{Payload, Treated, told_all};
use super::work;
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
    let items = results::items(&list);
    let function = Function {
        text: &head.text,
        items: &items,
        args,
    };
    Some(function.answer(inputs, options))
}

/// The document, if `text` is one `ResourceList` and nothing else.
fn resource_list(text: &[u8]) -> Option<Document<'_>> {
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
    memchr::memmem::find(text, word).is_some()
}

/// One call of the function.
struct Function<'a> {
    text: &'a [u8],
    items: &'a [Item],
    args: &'a Args,
}

impl Function<'_> {
    fn answer(&self, inputs: &[Input], options: &Options) -> Answer {
        match self.treated(inputs, options) {
            Ok((outcome, options, keep_going)) => self.concluded(outcome, &options, keep_going),
            Err(message) => Answer {
                text: results::insert(self.text, &[KrmResult::failure(message.clone())]),
                end: Err(CliError::new(Kind::Inject, message)),
            },
        }
    }

    fn treated(&self, inputs: &[Input], options: &Options) -> Result<(Outcome<'_>, Options, bool), String> {
        let (mut options, keep_going) = config::configured(self.text, options, self.args.keep_going)?;
        options.coordinator_namespace = work::coordinator_namespace(inputs, &options);
        let outcome = run(self.text, &options).map_err(|error| error.to_string())?;
        Ok((outcome, options, keep_going))
    }

    fn concluded(&self, outcome: Outcome<'_>, options: &Options, keep_going: bool) -> Answer {
        let (changed, given_up) = (outcome.changed(), outcome.failed() && !keep_going);
        let check = self.args.check;
        let reports = outcome.reports.iter();
        let results: Vec<_> = reports
            .flat_map(|report| results::of(report, self.items, check))
            .collect();
        let kept = if check || given_up {
            self.text
        } else {
            &outcome.text
        };
        let text = results::insert(kept, &results);
        let summary = self.tell(outcome, options);
        let end = if given_up {
            let message = format!("{}; the items stay as they are", super::untreated(&summary));
            Err(CliError::new(Kind::Inject, message))
        } else if check && changed {
            Err(CliError::new(Kind::WouldChange, ""))
        } else {
            Ok(())
        };
        Answer { text, end }
    }

    /// The report beside the results; standard output is taken.
    fn tell(&self, outcome: Outcome<'_>, options: &Options) -> Summary {
        let treated = [Treated {
            name: "-".to_owned(),
            changed: outcome.changed(),
            objects: told_all(outcome.reports, self.text),
            error: None,
            unwritable: false,
            payload: Payload::None,
        }];
        let summary = Summary::of(&treated);
        match self.args.report {
            ReportFormat::Text => printed::print(&treated, &summary, self.args.quiet),
            // Nobody left to tell is no reason not to answer.
            ReportFormat::Json => drop(report::print(&treated, &summary, options, &Plan::Stdout)),
        }
        summary
    }
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
