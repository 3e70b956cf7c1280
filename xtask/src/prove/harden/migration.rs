//! Rows about workload migration and rehearsal.

use super::Item;

pub(super) const ITEMS: &[Item] = &[
    Item {
        key: "not-injectable",
        claim: "migration: workloads that cannot be injected are skipped with a reason",
        goal: "no restart, no failure",
        tests: &[],
    },
    Item {
        key: "injector-url",
        claim: "rehearsal: injectors configured by URL are recognised by label and owner",
        goal: "the prediction equals the migration",
        tests: &[],
    },
    Item {
        key: "totals",
        claim: "migration: batch totals in events and status match the plan",
        goal: "equal in every case",
        tests: &[],
    },
    Item {
        key: "messages",
        claim: "migration: failure messages name what is missing",
        goal: "every case has its reason",
        tests: &[],
    },
    Item {
        key: "maximum",
        claim: "migration: maxVersion, hints, watch and status",
        goal: "fields named; exit 0 during a healthy migration",
        tests: &[],
    },
    Item {
        key: "versions",
        claim: "command line: versions with and without v are equivalent",
        goal: "an unknown version lists the five nearest",
        tests: &[],
    },
];
