//! Tasks around the product.

mod charts;

use std::process::ExitCode;

#[expect(clippy::print_stderr, reason = "errors of a developer's command")]
fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let result = match args.split_first() {
        Some((task, rest)) if task == "charts" => charts::run(rest),
        _ => Err(anyhow::anyhow!("usage: cargo xtask charts")),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
