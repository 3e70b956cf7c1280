//! Generates a list of the scenarios in `scenarios/`: an array expression that the library includes.

use std::path::Path;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=scenarios");
    let directory = Path::new(&env::var("CARGO_MANIFEST_DIR").map_err(io::Error::other)?).join("scenarios");
    let mut names: Vec<String> = fs::read_dir(&directory)?
        .filter_map(|entry| {
            entry
                .ok()?
                .file_name()
                .to_str()?
                .strip_suffix(".txt")
                .map(str::to_owned)
        })
        .collect();
    names.sort();
    let rows = names.iter().map(|name| {
        let path = directory.join(format!("{name}.txt")).display().to_string();
        format!("Scenario {{ name: {name:?}, text: include_str!({path:?}) }},\n")
    });
    let list = format!("[\n{}]", rows.collect::<String>());
    fs::write(
        Path::new(&env::var("OUT_DIR").map_err(io::Error::other)?).join("scenarios.rs"),
        list,
    )
}
