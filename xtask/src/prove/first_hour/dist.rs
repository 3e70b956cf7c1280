//! Rows about the files of a release, each verified with the tool that reads the file.
//!
//! | module | content |
//! |---|---|
//! | `release` | the files: of a development build, or as they are published |
//! | `formats` | packages, chart, bundle and image |
//! | `binary` | static, reproducible, small, fast to start |
//! | `use_of_it` | a cluster that runs the image, a new user with the archive |

mod binary;
mod formats;
mod release;
mod use_of_it;

use anyhow::Context;

use self::release::Release;
use super::super::row::{Row, RowKind};

/// A claim about the files.
struct Claim {
    text: &'static str,
    goal: &'static str,
    /// Returns the figure and whether it meets the goal.
    check: fn(&Release) -> anyhow::Result<(String, bool)>,
    kind: RowKind,
}

const fn correct(
    text: &'static str,
    goal: &'static str,
    check: fn(&Release) -> anyhow::Result<(String, bool)>,
) -> Claim {
    Claim {
        text,
        goal,
        check,
        kind: RowKind::Correctness,
    }
}

/// Claims of both shares.
const QUICK: &[Claim] = &[
    correct("dist: packaging twice", "all files equal", formats::equal_files),
    correct(
        "dist: chart archive and `helm package` 3 and 4",
        "equal entries",
        formats::chart,
    ),
    correct(
        "dist: dpkg installs and removes the package",
        "all files, then none",
        formats::debian,
    ),
    correct(
        "dist: links of the archive's pages",
        "0 dead links",
        formats::links,
    ),
    correct(
        "dist: packages of the operator's image",
        "no simulator; equal to the bill of materials",
        formats::packages,
    ),
];

/// Claims of the full proof: their peers or builds take minutes.
const FULL: &[Claim] = &[
    correct(
        "dist: image archive, read by containerd and go-containerregistry",
        "imported, all blobs valid; user, labels, CA certificates",
        formats::image,
    ),
    correct(
        "dist: OLM bundle, operator-framework's validators",
        "0 errors",
        formats::bundle,
    ),
    correct(
        "dist: the binary according to `file`",
        "static",
        binary::is_static,
    ),
    correct(
        "dist: two builds in different directories",
        "equal bytes",
        binary::is_reproducible,
    ),
    Claim {
        text: "dist: start-up and size",
        goal: "below 50 ms and 60 MiB",
        check: binary::start_up,
        kind: RowKind::Performance,
    },
    correct(
        "dist: `helm install` with the image's binary on a real API server",
        "ready, healthy, migrated, uninstalled",
        use_of_it::cluster,
    ),
    correct(
        "dist: a new user with only the archive",
        "every step exits with 0",
        use_of_it::new_user,
    ),
    correct(
        "dist: pages of the archive, executed with its binary",
        "every block exits as printed",
        use_of_it::pages,
    ),
];

/// Returns the rows.
pub(super) fn rows(quick: bool) -> Vec<Row> {
    let release = if quick {
        Release::of_development()
    } else {
        Release::published()
    };
    let release = release.context("packaging");
    let full = if quick { &[] } else { FULL };
    let claims = QUICK.iter().chain(full);
    claims.map(|claim| claim.row(&release)).collect()
}

impl Claim {
    fn row(&self, release: &anyhow::Result<Release>) -> Row {
        let outcome = match release {
            Ok(release) => (self.check)(release),
            Err(error) => Err(anyhow::anyhow!("{error:#}")),
        };
        match (outcome, self.kind) {
            (Ok((figure, holds)), RowKind::Correctness) => Row::correct(self.text, figure, self.goal, holds),
            (Ok((figure, holds)), RowKind::Performance) => Row::fast(self.text, figure, self.goal, holds),
            (Err(error), kind) => Row::not_measured(self.text, self.goal, kind, &error),
        }
    }
}
