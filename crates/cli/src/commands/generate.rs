//! `mainstay generate`: takes manifests, gives them back with initializer and service mesh injected. Decides nothing itself.

mod args;
mod chunk;
mod content;
mod diff;
mod glob;
mod inputs;
mod interrupt;
mod krm;
mod output;
mod printed;
mod report;
mod stage;
mod summary;
mod treat;
mod work;

pub(crate) use args::Args;

use mainstay_inject::{Images, Mode, Options, PodTemplatePath, Profile};

use crate::error::{CliError, Kind};
use args::ReportFormat;
use output::Plan;
use summary::Summary;
use treat::Treated;

/// Runs it. Every failure ends with 2, so that 1 can mean "would change".
pub(crate) fn run(args: &Args) -> Result<(), CliError> {
    let done = options(args).and_then(|options| generate(args, options));
    done.map_err(|error| error.unless_quiet_exit(2))
}

fn generate(args: &Args, mut options: Options) -> Result<(), CliError> {
    let inputs = inputs::find(&args.paths)?;
    if let Some(answer) = krm::answer(&inputs, args, &options) {
        return answer.deliver();
    }
    let plan = Plan::of(args, &inputs)?;
    options.coordinator_namespace = work::coordinator_namespace(&inputs, &options);
    let stage = interrupt::guarded_stage();
    options.threads = work::threads_per_input(inputs.len());
    let mut all = work::treat_all(&inputs, &options, &plan, &stage);
    let summary = Summary::of(&all);
    match args.report {
        ReportFormat::Text => printed::print(&all, &summary, args.quiet),
        ReportFormat::Json => report::print(&all, &summary, &options, &plan)?,
    }
    if summary.failed() && (!args.keep_going || summary.unwritable > 0) {
        return Err(failure(&summary, &plan));
    }
    plan.deliver(&mut all, &stage)?;
    if args.check { checked(args, &all) } else { Ok(()) }
}

/// The names of inputs that would change go to standard output, unless something else does.
fn checked(args: &Args, all: &[Treated]) -> Result<(), CliError> {
    let changed = all.iter().filter(|treated| treated.changed);
    let changed: String = changed
        .flat_map(|treated| {
            [
                &treated.name,
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

/// What the flags ask of the engine.
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
    CliError::new(Kind::Usage, format!("no profile is called {name:?}"))
        .hint(format!("there are {}", known.join(" and ")))
}

fn failure(summary: &Summary, plan: &Plan) -> CliError {
    let untouched = if plan.writes() {
        "; nothing was written"
    } else {
        ""
    };
    CliError::new(Kind::Inject, format!("{}{untouched}", untreated(summary)))
        .hint("--keep-going leaves what cannot be treated as it is and goes on")
}

/// What was not done, in words.
fn untreated(summary: &Summary) -> String {
    let mut parts = Vec::new();
    if summary.unreadable > 0 {
        parts.push(counted(
            summary.unreadable,
            "input could not be treated",
            "inputs could not be treated",
        ));
    }
    if summary.objects_failed > 0 {
        parts.push(counted(
            summary.objects_failed,
            "object was not treated",
            "objects were not treated",
        ));
    }
    parts.join(", ")
}

fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}
