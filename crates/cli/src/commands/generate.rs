//! `mainstay generate`: injects initializer and service mesh into manifests.

mod args;
mod chunk;
mod content;
mod diff;
mod fingerprint;
mod glob;
mod inputs;
mod interrupt;
mod json_report;
mod krm;
mod output;
mod parallel;
mod process;
mod replacement;
mod summary;
mod text_report;
mod transaction;

pub(crate) use args::Args;

use mainstay_inject::{Images, Mode, Options, PodTemplatePath, Profile};

use crate::error::{CliError, Kind};
use crate::ui::counted;
use args::ReportFormat;
use inputs::{Input, Source};
use output::Plan;
use process::Processed;
use summary::Summary;
use text_report::Wording;
use transaction::Transaction;

/// Runs the command. Failures exit with 2, because 1 means "would change".
pub(crate) fn run(args: &Args) -> Result<(), CliError> {
    let done = options(args).and_then(|options| generate(args, options));
    done.map_err(|error| error.unless_quiet_exit(2))
}

fn generate(args: &Args, mut options: Options) -> Result<(), CliError> {
    let inputs = inputs::find(&args.paths)?;
    if let Some(response) = krm::respond(&inputs, args, &options) {
        return response.deliver();
    }
    let plan = Plan::from_args(args, &inputs)?;
    options.coordinator_namespace = parallel::coordinator_namespace(&inputs, &options);
    let transaction = interrupt::guarded_transaction();
    if plan == Plan::InPlace {
        remove_stale_files(&inputs, &transaction);
    }
    options.threads = parallel::threads_per_input(inputs.len());
    let mut all = parallel::process_all(&inputs, &options, &plan, &transaction);
    let summary = Summary::new(&all);
    match args.report {
        ReportFormat::Text => text_report::print(&all, &summary, Wording::from_args(args)),
        ReportFormat::Json => json_report::print(&all, &summary, &options, &plan)?,
    }
    if summary.failed() && (!args.keep_going || summary.unwritable > 0) {
        return Err(failure(&summary, &plan));
    }
    plan.deliver(&mut all, &transaction)?;
    if args.check {
        check_changes(args, &all)
    } else {
        Ok(())
    }
}

/// Removes temporary files that killed processes left beside the inputs.
fn remove_stale_files(inputs: &[Input], transaction: &Transaction) {
    for input in inputs {
        if let Source::File { real, .. } = &input.source {
            real.parent()
                .into_iter()
                .for_each(|it| transaction.remove_stale_files(it));
        }
    }
}

/// Prints the names of inputs that would change, unless standard output has other content. Returns an error
/// if there are any.
fn check_changes(args: &Args, all: &[Processed]) -> Result<(), CliError> {
    let changed = all.iter().filter(|processed| processed.changed);
    let changed: String = changed
        .flat_map(|processed| {
            [
                &processed.name,
                "
",
            ]
        })
        .collect();
    if changed.is_empty() {
        return Ok(());
    }
    if args.report == ReportFormat::Text && !args.diff {
        super::print(changed.as_bytes())?;
    }
    Err(CliError::new(Kind::WouldChange, ""))
}

/// Returns the engine options of the flags.
fn options(args: &Args) -> Result<Options, CliError> {
    let profile = Profile::by_name(&args.profile).ok_or_else(|| unknown_profile(&args.profile))?;
    let images = Images::for_profile(profile);
    let images = match &args.image_replacements {
        None => images,
        Some(path) => images.with(content::images(path)?),
    };
    let paths = args
        .pod_template_paths
        .iter()
        .map(|given| PodTemplatePath::parse(given));
    let pod_template_paths = paths
        .collect::<Result<_, _>>()
        .map_err(|error| CliError::new(Kind::Usage, error.to_string()))?;
    Ok(Options {
        mode: if args.uninject {
            Mode::Uninject
        } else {
            Mode::Inject
        },
        profile,
        skip_initializer: args.skip_initializer,
        skip_service_mesh: args.skip_service_mesh,
        images,
        pod_template_paths,
        coordinator_namespace: args.coordinator_namespace.clone(),
        threads: 1,
    })
}

fn unknown_profile(name: &str) -> CliError {
    let known: Vec<_> = Profile::ALL.iter().map(|profile| profile.name).collect();
    CliError::new(Kind::Usage, format!("unknown profile {name:?}"))
        .hint(format!("use {}", known.join(" or ")))
}

fn failure(summary: &Summary, plan: &Plan) -> CliError {
    let untouched = if plan.writes() {
        "; nothing was written"
    } else {
        ""
    };
    CliError::new(Kind::Inject, format!("{}{untouched}", describe_failures(summary)))
        .hint("use --keep-going to leave such inputs unchanged and continue")
}

/// Describes failed inputs and objects.
fn describe_failures(summary: &Summary) -> String {
    let mut parts = Vec::new();
    if summary.unreadable > 0 {
        parts.push(counted(summary.unreadable, "input failed", "inputs failed"));
    }
    if summary.objects_failed > 0 {
        parts.push(counted(summary.objects_failed, "object failed", "objects failed"));
    }
    parts.join(", ")
}
