//! Hostile templates: each must fail with the limit that it exceeds, quickly and with little memory.

// These are test helpers, which are not covered by clippy's exemption for test functions.
#![allow(clippy::panic)]

use mainstay_sprig::functions;
use mainstay_template::{Error, LimitExceeded, Limits, Meter, NoHost, TemplateSet, Value, execute};

fn run(template: &str) -> Result<Vec<u8>, Error> {
    let mut set = TemplateSet::named("t");
    set.add_functions(functions());
    set.parse("t", template)?;
    execute(
        &set,
        "t",
        Value::Nil,
        &mut Meter::new(Limits::default()),
        &mut NoHost,
    )
}

fn check(template: &str, expected: LimitExceeded) {
    match run(template) {
        Err(error) => assert_eq!(error.limit_exceeded, Some(expected), "{template}: {error}"),
        Ok(output) => panic!("{template} printed {} bytes", output.len()),
    }
}

/// Returns a template that defines `$d`, a map that contains the same innermost map 2^`levels` times.
fn shared(levels: usize, rest: &str) -> String {
    format!(
        "{{{{ $d := dict \"a\" 1 }}}}{{{{ range until {levels} }}}}{{{{ $d = dict \"l\" $d \"r\" $d }}}}{{{{ end }}}}{rest}"
    )
}

#[test]
fn long_strings_exceed_the_string_limit() {
    check(r#"{{ repeat 1000000000 "x" }}"#, LimitExceeded::String);
    check(r#"{{ indent 1000000000 "x" }}"#, LimitExceeded::String);
    check(
        r#"{{ nindent 1000000 (repeat 100 "\n") }}"#,
        LimitExceeded::String,
    );
    check(
        r#"{{ repeat 10000 "ab" | wrapWith 1 (repeat 10000 "-") }}"#,
        LimitExceeded::String,
    );
    check(
        r#"{{ repeat 100000 "a" | replace "a" (repeat 1000 "b") }}"#,
        LimitExceeded::String,
    );
    check(
        r#"{{ repeat 100000 "a" | replace "" (repeat 1000 "b") }}"#,
        LimitExceeded::String,
    );
    check(
        r#"{{ until 100000 | join (repeat 1000 ",") }}"#,
        LimitExceeded::String,
    );
    check(
        r#"{{ $s := repeat 20000000 "x" }}{{ cat $s $s }}"#,
        LimitExceeded::String,
    );
    check(r#"{{ repeat 30000000 "x" | b64enc }}"#, LimitExceeded::String);
}

#[test]
fn long_lists_exceed_a_limit() {
    check("{{ until 1000000000 }}", LimitExceeded::Memory);
    check("{{ untilStep 0 -9223372036854775808 -1 }}", LimitExceeded::Memory);
    check("{{ seq 1 9223372036854775806 }}", LimitExceeded::Memory);
    check(
        r#"{{ repeat 30000000 "," | splitList "," }}"#,
        LimitExceeded::Memory,
    );
    check(r#"{{ repeat 30000000 "," | split "," }}"#, LimitExceeded::Memory);
    check(
        "{{ $l := until 1000000 }}{{ concat $l $l $l $l $l $l $l $l $l }}",
        LimitExceeded::Memory,
    );
    // Only the last list is live, so the fuel limit is exceeded instead of the memory limit.
    check(
        "{{ $l := list }}{{ range until 100000 }}{{ $l = append $l . }}{{ end }}",
        LimitExceeded::Fuel,
    );
    check(
        "{{ $l := list }}{{ $all := list }}{{ range until 100000 }}{{ $l = append $l . }}{{ $all = append $all $l }}{{ end }}",
        LimitExceeded::Memory,
    );
}

#[test]
fn expanding_shared_values_exceeds_a_limit() {
    check(&shared(40, "{{ deepCopy $d }}"), LimitExceeded::Memory);
    check(&shared(40, "{{ toJson $d }}"), LimitExceeded::String);
    check(&shared(40, "{{ toString $d }}"), LimitExceeded::String);
    let other = shared(40, "").replace("$d", "$e");
    check(
        &shared(40, &format!("{other}{{{{ merge $d $e }}}}")),
        LimitExceeded::Fuel,
    );
}

#[test]
fn self_referencing_maps_exceed_the_depth_limit() {
    let endless = r#"{{ $d := dict }}{{ $_ := set $d "d" $d }}"#;
    check(&format!("{endless}{{{{ deepCopy $d }}}}"), LimitExceeded::Depth);
    check(&format!("{endless}{{{{ toString $d }}}}"), LimitExceeded::Depth);
    check(
        &format!("{endless}{{{{ $e := dict }}}}{{{{ $_ := set $e \"d\" $e }}}}{{{{ merge $d $e }}}}"),
        LimitExceeded::Depth,
    );
}

#[test]
fn comparison_stops_at_gos_depth() {
    let other = shared(40, "").replace("$d", "$e");
    let template = shared(40, &format!("{other}{{{{ deepEqual $d $e }}}}"));
    assert_eq!(run(&template).expect("both are finite"), b"true");
    let endless = r#"{{ $d := dict }}{{ $_ := set $d "d" $d }}{{ $e := dict }}{{ $_ := set $e "d" $e }}"#;
    let template = format!("{endless}{{{{ deepEqual $d $e }}}}");
    assert_eq!(run(&template).expect("Go finds them equal"), b"true");
}
