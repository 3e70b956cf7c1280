//! Compares the names and parameters of all functions with Sprig's list.

use std::collections::BTreeMap;

use mainstay_sprig::{environment, functions};
use mainstay_template::{Function, Type};

/// Names of functions with their Go signatures as printed by `reflect`.
const SIGNATURES: &str = include_str!("signatures.txt");

#[test]
fn every_function_has_gos_name_and_parameters() {
    let ours: BTreeMap<&str, String> = rows().map(|row| (row.name, parameters(row))).collect();
    let theirs: BTreeMap<&str, String> = SIGNATURES.lines().map(signature).collect();
    assert_eq!(theirs.len(), 211);
    for (name, parameters) in &theirs {
        assert_eq!(ours.get(name), Some(parameters), "{name}");
    }
    for name in ours.keys() {
        assert!(theirs.contains_key(name), "{name} is not a Sprig function");
    }
}

#[test]
fn no_function_is_declared_twice() {
    assert_eq!(rows().count(), 211);
}

#[test]
fn environment_functions_are_separate() {
    let names: Vec<&str> = environment().iter().map(|row| row.name).collect();
    assert_eq!(names, ["env", "expandenv"]);
}

fn rows() -> impl Iterator<Item = &'static Function> {
    functions().iter().chain(environment())
}

/// Splits `name(a, ...b) result` into the name and the parameters, `a, ...b`.
fn signature(line: &str) -> (&str, String) {
    let (name, rest) = line.split_once('(').unwrap_or((line, ""));
    let (parameters, _) = rest.split_once(')').unwrap_or((rest, ""));
    (name, parameters.into())
}

fn parameters(row: &Function) -> String {
    let last = row.params.len().wrapping_sub(1);
    let write = |(index, ty): (usize, &Type)| {
        let dots = if row.variadic && index == last { "..." } else { "" };
        format!("{dots}{}", go_name(*ty))
    };
    row.params
        .iter()
        .enumerate()
        .map(write)
        .collect::<Vec<_>>()
        .join(", ")
}

fn go_name(ty: Type) -> &'static str {
    match ty {
        Type::Any => "interface {}",
        Type::Bool => "bool",
        Type::Int => "int",
        Type::Int64 => "int64",
        Type::Float64 => "float64",
        Type::String => "string",
        Type::ListOfAny => "[]interface {}",
        Type::ListOfString => "[]string",
        Type::MapOfAny => "map[string]interface {}",
        Type::MapOfString => "map[string]string",
        Type::Object(name) | Type::Interface(name) => name,
        Type::Uint32 => "uint32",
    }
}
