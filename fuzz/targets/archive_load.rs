//! Any bytes as a chart archive: an error or a chart whose names stay inside it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use mainstay_chart::{Generation, load_archive};

fuzz_target!(|bytes: &[u8]| {
    let Ok(loaded) = load_archive(bytes, Generation::Helm4) else { return };
    let chart = loaded.chart;
    for file in chart.templates.iter().chain(&chart.files) {
        let climbs = file.name.split('/').any(|part| part == "..");
        assert!(!climbs && !file.name.starts_with('/'), "{:?} leaves the chart", file.name);
    }
});
