//! Rows about `mainstay generate`.

use super::Item;

pub(super) const ITEMS: &[Item] = &[
    Item {
        key: "round-trip",
        claim: "generate: --uninject restores every input",
        goal: "every stored case, byte for byte",
        tests: &[],
    },
    Item {
        key: "krm",
        claim: "generate: KRM function with existing results",
        goal: "valid YAML, nothing dropped",
        tests: &[],
    },
    Item {
        key: "formatters",
        claim: "generate: reformatted output counts as unchanged",
        goal: "prettier, kyaml, Helm 4 and yq",
        tests: &[],
    },
    Item {
        key: "parsers",
        claim: "generate: output is readable by other parsers",
        goal: "every parser, same meaning",
        tests: &[],
    },
    Item {
        key: "files",
        claim: "generate: a file modified meanwhile is not overwritten",
        goal: "exit 2, nothing lost",
        tests: &[],
    },
    Item {
        key: "inputs",
        claim: "generate: paths in use, pipes, memory",
        goal: "named errors; ≤ 8 × the input",
        tests: &[],
    },
];
