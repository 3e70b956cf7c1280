//! KRM function: processes the items of a `ResourceList` on standard input and adds results. Other bytes of
//! the list are kept, because orchestrators compare them.

mod config;
mod results;
mod shell;

use std::borrow::Cow;

use mainstay_inject::{Action, InjectError, Options, Outcome, Report, run};

use super::args::{Args, ReportFormat};
use super::inputs::{Input, Source};
use super::json_report;
use super::output::Plan;
use super::parallel;
use super::process::{Payload, Processed, with_excerpts};
use super::summary::Summary;
use super::text_report::{self, Wording};
use crate::commands;
use crate::error::{CliError, Kind};
use config::{ConfigError, Configured};
use results::KrmResult;
use shell::Shell;

/// Response to the orchestrator.
pub(super) struct Response {
    text: Vec<u8>,
    end: Result<(), CliError>,
}

impl Response {
    /// Prints the list even on failure: the orchestrator reads it before the exit code.
    pub(super) fn deliver(self) -> Result<(), CliError> {
        commands::print(&self.text)?;
        self.end
    }
}

/// Returns the response if the only input is a `ResourceList` that is written to standard output.
pub(super) fn respond(inputs: &[Input], args: &Args, options: &Options) -> Option<Response> {
    let piped = args.output.as_deref().is_none_or(|path| path == "-") && !args.diff;
    let [
        Input {
            source: Source::Pipe(head),
            ..
        },
    ] = inputs
    else {
        return None;
    };
    let shell = resource_list(&head.text).filter(|_| piped && head.ended)?;
    let function = Function {
        text: &head.text,
        shell: &shell,
        args,
    };
    Some(function.respond(inputs, options))
}

/// Parses `text` if it is a single `ResourceList`.
fn resource_list(text: &[u8]) -> Option<Shell<'_>> {
    contains(text, b"ResourceList").then(|| Shell::new(text))?
}

/// Whether `text` contains `word`.
pub(super) fn contains(text: &[u8], word: &[u8]) -> bool {
    memchr::memmem::find(text, word).is_some()
}

/// Error of a function call.
#[derive(Debug, thiserror::Error)]
enum FunctionError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Engine(#[from] InjectError),
}

/// A call of the function.
struct Function<'a> {
    text: &'a [u8],
    shell: &'a Shell<'a>,
    args: &'a Args,
}

impl Function<'_> {
    fn respond(&self, inputs: &[Input], options: &Options) -> Response {
        match self.process(inputs, options) {
            Ok((outcome, configured)) => self.conclude(outcome, &configured),
            Err(error) => {
                let result = KrmResult::failure(error.to_string()).to_json();
                let end = Err(CliError::new(Kind::Inject, error.to_string()));
                self.response(self.text, &[result], end)
            }
        }
    }

    /// Returns the response with these results in JSON, or the input and an error if they cannot be added.
    fn response(&self, text: &[u8], results: &[String], end: Result<(), CliError>) -> Response {
        match with_results(text, results) {
            Some(text) => Response { text, end },
            None => Response {
                text: self.text.to_vec(),
                end: end.and_then(|()| Err(unextendable())),
            },
        }
    }

    fn process(
        &self,
        inputs: &[Input],
        options: &Options,
    ) -> Result<(Outcome<'_>, Configured), FunctionError> {
        let mut configured = config::configured(&self.shell.text, options, self.args.keep_going)?;
        let options = &mut configured.options;
        options.coordinator_namespace = parallel::coordinator_namespace(inputs, options);
        let outcome = run(self.text, options)?;
        Ok((outcome, configured))
    }

    fn conclude(&self, outcome: Outcome<'_>, configured: &Configured) -> Response {
        let failed = outcome.failed() && !configured.keep_going;
        let changed = outcome.changed();
        let check = self.args.check;
        let reports = outcome.reports.iter();
        let results: Vec<_> = reports
            .flat_map(|report| results::for_report(report, &self.shell.items, check))
            .map(|result| result.to_json())
            .collect();
        let Outcome { text, reports } = outcome;
        let text = if check || failed {
            Cow::Borrowed(self.text)
        } else {
            text
        };
        let summary = self.report(reports, changed, &configured.options);
        let end = if failed {
            let message = format!("{}; items are unchanged", super::describe_failures(&summary));
            Err(CliError::new(Kind::Inject, message))
        } else if check && changed {
            Err(CliError::new(Kind::WouldChange, ""))
        } else {
            Ok(())
        };
        self.response(&text, &results, end)
    }

    /// Prints the report to standard error.
    fn report(&self, reports: Vec<Report>, changed: bool, options: &Options) -> Summary {
        let processed = [Processed {
            name: "-".to_owned(),
            changed,
            objects: with_excerpts(reports, self.text),
            error: None,
            unwritable: false,
            payload: Payload::None,
        }];
        let summary = Summary::new(&processed);
        match self.args.report {
            ReportFormat::Text => text_report::print(&processed, &summary, Wording::from_args(self.args)),
            // A closed stderr does not prevent the response.
            ReportFormat::Json => drop(json_report::print(&processed, &summary, options, &Plan::Stdout)),
        }
        summary
    }
}

/// Appends results to a list, which is parsed without its items.
fn with_results(text: &[u8], results: &[String]) -> Option<Vec<u8>> {
    let shell = Shell::new(text)?;
    shell.restored(&results::insert(&shell.text, results)?)
}

fn unextendable() -> CliError {
    let message = "results: not a list that can be extended; items are unchanged";
    CliError::new(Kind::Inject, message).hint("write `results` as a list, or remove it")
}

/// Returns the message of an action that has a result.
fn action_message(action: Action, check: bool) -> Option<&'static str> {
    match action {
        Action::Injected => Some(if check { "would be injected" } else { "injected" }),
        Action::Removed => Some(if check { "would be removed" } else { "removed" }),
        Action::Failed => Some("failed"),
        Action::Unchanged | Action::Skipped => None,
    }
}
