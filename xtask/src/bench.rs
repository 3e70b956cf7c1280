//! `cargo xtask bench`: measures Mainstay and its peers alternately in one run, stores the figures and writes
//! the page about them.

mod charts;
mod figure;
mod machine;
mod render;
mod report;

pub(crate) use figure::Figure;
pub(crate) use report::Report;

use machine::Machine;

/// Least number of runs of each program.
const LEAST_RUNS: usize = 20;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Runs of each program, at least 20
    #[arg(long, default_value_t = LEAST_RUNS)]
    runs: usize,
    /// Measure only inputs whose name contains this; the page is not written
    #[arg(long, default_value = "")]
    only: String,
}

/// The measurements of one area.
struct Suite {
    name: &'static str,
    measure: fn(&mut Bench) -> anyhow::Result<()>,
}

const SUITES: &[Suite] = &[Suite {
    name: "rendering",
    measure: render::measure,
}];

/// A bench in progress.
pub(crate) struct Bench {
    runs: usize,
    only: String,
    figures: Vec<Figure>,
    identical: Vec<String>,
    different: Vec<String>,
}

impl Bench {
    /// Whether an input is to be measured.
    fn wants(&self, subject: &str) -> bool {
        subject.contains(&self.only)
    }

    /// Records whether both programs print the same.
    fn compared(&mut self, subject: &str, is_same: bool) {
        let list = if is_same {
            &mut self.identical
        } else {
            &mut self.different
        };
        list.push(subject.to_owned());
    }
}

/// Measures, prints and stores all figures; writes the page.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let report = measure(arguments.runs, &arguments.only)?;
    println!("\n{}\n", crate::table::layout(report::HEADINGS, &report.rows()));
    for subject in &report.different {
        println!("different output: {subject}");
    }
    println!("{}", report.machine.text());
    println!("{}", report.store()?.display());
    if arguments.only.is_empty() {
        println!("{}", report.store_page()?.display());
    }
    Ok(())
}

/// Measures every suite.
pub(crate) fn measure(runs: usize, only: &str) -> anyhow::Result<Report> {
    let mut bench = Bench {
        runs: runs.max(LEAST_RUNS),
        only: only.to_owned(),
        figures: Vec::new(),
        identical: Vec::new(),
        different: Vec::new(),
    };
    let mut machine = Machine::observe();
    for suite in SUITES {
        println!("measuring {}", suite.name);
        (suite.measure)(&mut bench)?;
    }
    machine.finish();
    Ok(Report {
        machine,
        runs: bench.runs,
        figures: bench.figures,
        identical: bench.identical,
        different: bench.different,
    })
}
