//! Parses arbitrary bytes as a template. The result must be an error with a position, or the same set on
//! every parse.

use mainstay_template::TemplateSet;

pub(super) fn check(text: &[u8]) {
    let mut set = TemplateSet::new();
    set.add_functions(mainstay_sprig::functions());
    let first = set.parse("t", text);
    let mut again = TemplateSet::new();
    again.add_functions(mainstay_sprig::functions());
    match (first, again.parse("t", text)) {
        (Ok(()), Ok(())) => assert_eq!(set.names(), again.names()),
        (Err(one), Err(two)) => {
            assert_eq!(one.text, two.text);
            assert!(!one.at.is_empty(), "no position: {}", one.text);
        }
        _ => panic!("two parses of the same input ended differently"),
    }
}
