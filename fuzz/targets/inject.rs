//! Any bytes as manifests: the injector may refuse, must not panic, and whatever it writes must lead back to every byte it
//! was given. The first byte chooses the options, the rest is the text.
#![no_main]

use libfuzzer_sys::fuzz_target;
use mainstay_inject::{Images, LATER, Mode, Options, PodTemplatePath, RFC, run};

fuzz_target!(|data: &[u8]| {
    let Some((choice, text)) = data.split_first() else {
        return;
    };
    let options = options(*choice);
    let away = Options {
        mode: Mode::Uninject,
        ..options.clone()
    };
    let Ok(outcome) = run(text, &options) else {
        return;
    };
    let back = run(&outcome.text, &away).expect("what was written is no UTF-16");
    // Marks in the input are an injection already, or look like one.
    if has_marks(text) {
        return;
    }
    assert_eq!(back.text, text, "not the original");
    assert_eq!(run(text, &away).expect("read before").text, text, "nothing to take away");
    let twice = run(&outcome.text, &options).expect("what was written is no UTF-16");
    assert_eq!(twice.text, outcome.text, "twice is not once");
});

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
    let holds = |mark: &[u8]| text.windows(mark.len()).any(|part| part == mark);
    holds(b"mainstay:") || holds(b" \t ")
}
