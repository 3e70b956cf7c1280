//! Injects into arbitrary bytes. The injector may return an error, but must not panic. Uninjecting its output
//! restores the original bytes if there is no undo record, and the same objects otherwise. The first byte
//! selects the options, the rest is the text.

use mainstay_inject::{Images, LATER, Mode, Options, PodTemplatePath, RFC, run};
use mainstay_yaml::{Budget, parse_spanned_values, to_json};

/// Part of the key of the annotation with the undo record of flow collections.
const UNDO_ANNOTATION: &[u8] = b"mainstay-injected";

pub(super) fn check(data: &[u8]) {
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
    // Text with marks already contains an injection, or text that looks like one.
    if has_marks(text) {
        return;
    }
    if !contains(&outcome.text, UNDO_ANNOTATION) {
        assert_eq!(back.text, text, "uninject did not restore the original");
    } else if back.text != text {
        assert_eq!(
            objects(&back.text),
            objects(text),
            "uninject did not restore the original objects"
        );
    }
    assert_eq!(
        run(text, &uninject).expect("the text was accepted before").text,
        text,
        "uninject changed text without an injection"
    );
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
        pod_template_paths: PodTemplatePath::parse("Rollout=spec.tasks[].template")
            .into_iter()
            .collect(),
        threads: 1 + usize::from(choice >> 7),
        ..Options::default()
    }
}

/// Returns the objects as JSON; `None` if the text cannot be parsed.
fn objects(text: &[u8]) -> Option<Vec<String>> {
    let documents = parse_spanned_values(text, &Budget::default()).ok()?;
    let values = documents.into_iter().map(|document| document.value.ok());
    values.map(|value| to_json(&value?).ok()).collect()
}

fn has_marks(text: &[u8]) -> bool {
    contains(text, b"mainstay:") || contains(text, UNDO_ANNOTATION)
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}
