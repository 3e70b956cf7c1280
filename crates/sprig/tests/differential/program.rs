//! Generates random programs that change maps with shared parts and print them.

use std::fmt::Write as _;

use mainstay_testkit::Random;

const VARIABLES: &[&str] = &["$a", "$b", "$c"];
const KEYS: &[&str] = &["k", "a", "b", "x"];
const LEAVES: &[&str] = &[
    "1",
    "\"\"",
    "\"s\"",
    "nil",
    "false",
    "0",
    "true",
    "(list)",
    "(list 1 2)",
    "(dict)",
    "(dict \"k\" 1)",
    "1.5",
    "(until 2)",
];

/// Generates a program. Sources of a merge follow destinations in the alphabet, so that no map contains
/// itself: Go would recurse forever.
pub(crate) fn program(random: &mut Random) -> String {
    let mut text = String::new();
    for name in VARIABLES {
        write!(text, "{{{{ {name} := {} }}}}", map(random, 3)).expect("a string grows");
    }
    for _ in 0..2 + random.below(6) {
        text.push_str(&statement(random));
    }
    text + "{{ toJson (list $a $b $c) }}{{ $a }}"
}

fn map(random: &mut Random, depth: usize) -> String {
    let mut text = String::from("(dict");
    for key in KEYS.iter().take(random.below(5)) {
        let value = if depth > 0 && random.chance(1, 2) {
            map(random, depth - 1)
        } else {
            leaf(random)
        };
        write!(text, " \"{key}\" {value}").expect("a string grows");
    }
    text + ")"
}

fn leaf(random: &mut Random) -> String {
    (*random.pick(LEAVES)).into()
}

fn statement(random: &mut Random) -> String {
    let into = random.below(2);
    let (into, from) = (VARIABLES[into], VARIABLES[into + 1 + random.below(2 - into)]);
    let key = *random.pick(KEYS);
    match random.below(9) {
        0 => format!("{{{{ $_ := merge {into} {from} }}}}"),
        1 => format!("{{{{ $_ := mergeOverwrite {into} {from} }}}}"),
        2 => format!("{{{{ $_ := mustMerge {into} {from} $c }}}}"),
        3 => format!("{{{{ $_ := mustMergeOverwrite {into} (deepCopy {from}) }}}}"),
        4 => format!("{{{{ $_ := set {into} \"{key}\" {} }}}}", leaf(random)),
        5 => format!("{{{{ $_ := unset {from} \"{key}\" }}}}"),
        6 => format!(
            "{{{{ if kindIs \"map\" {into}.{key} }}}}{{{{ $_ := set {into}.{key} \"z\" {} }}}}{{{{ end }}}}",
            leaf(random)
        ),
        7 => format!(
            "{{{{ if kindIs \"map\" {from}.{key} }}}}{{{{ $_ := unset {from}.{key} \"k\" }}}}{{{{ end }}}}"
        ),
        _ => format!(
            "{{{{ range $k, $v := {into} }}}}{{{{ if kindIs \"map\" $v }}}}{{{{ $_ := set $v \"r\" $k }}}}{{{{ end }}}}{{{{ end }}}}"
        ),
    }
}
