//! Values from the command line: reads the files it names.

use std::io;

use mainstay_chart::{CallbackError, Dialect, Layers};
use mainstay_yaml::Map;

use super::args::Values;
use crate::error::CliError;
use crate::input::{read_all, read_file};

/// Merges the files and settings of the command line as Helm does.
pub(super) fn merge(args: &Values, dialect: Dialect) -> Result<Map, CliError> {
    let layers = Layers {
        files: args.files.iter().flat_map(|list| comma_list(list)).collect(),
        json: args.set_json.clone(),
        set: args.set.clone(),
        strings: args.set_string.clone(),
        set_files: args.set_file.clone(),
        literals: args.set_literal.clone(),
    };
    Ok(layers.merge(&mut |name| read(name).map_err(CallbackError), dialect)?)
}

/// Reads a file or stdin. URLs are not supported.
fn read(name: &str) -> Result<Vec<u8>, String> {
    if name.trim() == "-" {
        return read_all(io::stdin().lock()).map_err(|error| error.to_string());
    }
    if ["http://", "https://", "oci://"]
        .iter()
        .any(|scheme| name.starts_with(scheme))
    {
        return Err(format!("cannot fetch {name}: rendering works offline"));
    }
    read_file(name).map_err(|error| go_message(name, &error))
}

/// Returns Go's message for a read error.
fn go_message(name: &str, error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => format!("open {name}: no such file or directory"),
        io::ErrorKind::PermissionDenied => format!("open {name}: permission denied"),
        io::ErrorKind::IsADirectory => format!("read {name}: is a directory"),
        io::ErrorKind::NotADirectory => format!("open {name}: not a directory"),
        io::ErrorKind::FileTooLarge => format!("read {name}: {error}"),
        _ => format!("open {name}: {error}"),
    }
}

/// Splits a flag like Helm, as one line of CSV.
pub(super) fn comma_list(text: &str) -> Vec<String> {
    if text.is_empty() {
        return Vec::new();
    }
    let mut items = vec![String::new()];
    let mut quoted = false;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' if quoted && chars.next_if_eq(&'"').is_some() => push(&mut items, '"'),
            '"' => quoted = !quoted,
            ',' if !quoted => items.push(String::new()),
            other => push(&mut items, other),
        }
    }
    items
}

fn push(items: &mut [String], c: char) {
    if let Some(item) = items.last_mut() {
        item.push(c);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_csv() {
        let check = |text: &str, expected: &[&str]| assert_eq!(comma_list(text), expected, "{text}");
        check("", &[]);
        check("a", &["a"]);
        check("a,b", &["a", "b"]);
        check("\"a,b\",c", &["a,b", "c"]);
        check("\"a\"\"b\"", &["a\"b"]);
    }
}
