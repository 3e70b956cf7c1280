//! Loads arbitrary bytes as a chart archive and as the tar stream inside one. The result must be an error, or
//! a chart whose file names do not leave the chart.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use mainstay_chart::{Dialect, load_archive};

pub(super) fn check(bytes: &[u8]) {
    check_archive(bytes);
    // A mutated gzip stream rarely passes its checksum, so the input is also loaded as the tar in a valid
    // stream.
    let mut encoder = GzEncoder::new(Vec::new(), Compression::none());
    if encoder.write_all(bytes).is_ok()
        && let Ok(archive) = encoder.finish()
    {
        check_archive(&archive);
    }
}

fn check_archive(archive: &[u8]) {
    let Ok(loaded) = load_archive(archive, Dialect::Helm4) else {
        return;
    };
    let chart = loaded.chart;
    for file in chart.templates.iter().chain(chart.files.iter()) {
        let leaves_chart = file.name.split('/').any(|part| part == "..");
        assert!(
            !leaves_chart && !file.name.starts_with('/'),
            "{:?} leaves the chart",
            file.name
        );
    }
}
