//! Injects into any bytes: the injector may return an error, must not panic, and its output can be uninjected
//! to the original bytes. The first byte selects the options, the rest is the text.
#![no_main]

use libfuzzer_sys::fuzz_target;
use mainstay_fuzz::replay_if_requested;
use mainstay_inject::{Images, LATER, Mode, Options, PodTemplatePath, RFC, run};

fuzz_target!(init: replay_if_requested(check), |input: &[u8]| check(input));

fn check(data: &[u8]) {
    let Some((choice, text)) = data.split_first() else {
        return;
    };
    let options = options(*choice);
    let uninject = Options {
        mode: Mode::Uninject,
        ..options.clone()
    };
    let Ok(outcome) = run(text, &options) else {
        return;
    };
    let back = run(&outcome.text, &uninject).expect("the output is not UTF-16");
    // Text with marks already contains an injection, or looks like it.
    if has_marks(text) {
        return;
    }
    assert_eq!(back.text, text, "uninject did not restore the original");
    assert_eq!(run(text, &uninject).expect("the text was accepted before").text, text, "uninject changed text without an injection");
    let twice = run(&outcome.text, &options).expect("the output is not UTF-16");
    assert_eq!(twice.text, outcome.text, "a second injection changed the output");
}

fn options(choice: u8) -> Options {
    let profile = if choice & 1 == 0 { &RFC } else { &LATER };
    Options {
        profile,
        images: Images::for_profile(profile),
        skip_initializer: choice & 2 != 0,
        skip_service_mesh: choice & 4 != 0,
        pod_template_paths: PodTemplatePath::parse("Rollout=spec.tasks[].template").into_iter().collect(),
        threads: 1 + usize::from(choice >> 7),
        ..Options::default()
    }
}

fn has_marks(text: &[u8]) -> bool {
    let contains = |mark: &[u8]| text.windows(mark.len()).any(|part| part == mark);
    contains(b"mainstay:") || contains(b" \t ")
}
