//! The fuzz targets. Each accepts arbitrary bytes and panics if the code under test violates its contract.

mod archive_load;
mod inject;
mod set_values;
mod template_parse;
mod template_render;
mod yaml_decode;
mod yaml_encode;

/// A fuzz target.
#[derive(Clone, Copy)]
pub struct Target {
    /// Name of the target, of its libFuzzer program and of its directory in `fuzz/cases`.
    pub name: &'static str,
    /// Executes one input.
    pub check: fn(&[u8]),
}

/// All targets.
pub const TARGETS: &[Target] = &[
    Target {
        name: "archive_load",
        check: archive_load,
    },
    Target {
        name: "inject",
        check: inject,
    },
    Target {
        name: "set_values",
        check: set_values,
    },
    Target {
        name: "template_parse",
        check: template_parse,
    },
    Target {
        name: "template_render",
        check: template_render,
    },
    Target {
        name: "yaml_decode",
        check: yaml_decode,
    },
    Target {
        name: "yaml_encode",
        check: yaml_encode,
    },
];

/// Loads the input as a chart archive and as the tar inside one.
pub fn archive_load(input: &[u8]) {
    archive_load::check(input);
}

/// Injects into the input; the first byte selects the options.
pub fn inject(input: &[u8]) {
    inject::check(input);
}

/// Parses the input as a `--set` argument in every mode.
pub fn set_values(input: &[u8]) {
    set_values::check(input);
}

/// Parses the input as a template.
pub fn template_parse(input: &[u8]) {
    template_parse::check(input);
}

/// Renders the input as a template within small limits.
pub fn template_render(input: &[u8]) {
    template_render::check(input);
}

/// Parses the input as YAML and as JSON.
pub fn yaml_decode(input: &[u8]) {
    yaml_decode::check(input);
}

/// Writes the input as a YAML string and parses the output.
pub fn yaml_encode(input: &[u8]) {
    yaml_encode::check(input);
}

/// Returns the longest prefix of `bytes` that is UTF-8, for targets whose input is text.
fn utf8_prefix(bytes: &[u8]) -> &str {
    match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default(),
    }
}
