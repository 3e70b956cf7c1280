//! Any bytes as a template: an error with a place, or a set that can be parsed again to the same effect.
#![no_main]

use libfuzzer_sys::fuzz_target;
use mainstay_template::Set;

fuzz_target!(|text: &[u8]| {
    let mut set = TemplateSet::new();
    set.functions(mainstay_sprig::functions());
    let first = set.parse("t", text);
    let mut again = TemplateSet::new();
    again.functions(mainstay_sprig::functions());
    match (first, again.parse("t", text)) {
        (Ok(()), Ok(())) => assert_eq!(set.names(), again.names()),
        (Err(one), Err(two)) => {
            assert_eq!(one.text, two.text);
            assert!(!one.at.is_empty(), "no place: {}", one.text);
        }
        _ => panic!("parsed once, refused once"),
    }
});
