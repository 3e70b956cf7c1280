//! Functions for slash-separated paths. The `os…` variants behave as on Linux, where they are identical.

use mainstay_template::Type::String;
use mainstay_template::{Call, Failure, Function, Str, Value};

use crate::table::fixed;

pub(crate) const TABLE: &[Function] = &[
    fixed("base", &[String], base),
    fixed("dir", &[String], dir),
    fixed("clean", &[String], clean),
    fixed("ext", &[String], ext),
    fixed("isAbs", &[String], is_abs),
    fixed("osBase", &[String], base),
    fixed("osDir", &[String], dir),
    fixed("osClean", &[String], clean),
    fixed("osExt", &[String], ext),
    fixed("osIsAbs", &[String], is_abs),
];

/// Returns argument 0 and consumes fuel for its length.
fn path_arg(call: &mut Call<'_>) -> Result<Str, Failure> {
    let path = call.str(0);
    call.meter.reserve_string(path.len())?;
    Ok(path)
}

fn base(call: &mut Call<'_>) -> Result<Value, Failure> {
    let path = path_arg(call)?;
    if path.is_empty() {
        return Ok(Value::from("."));
    }
    let end = path
        .iter()
        .rposition(|&byte| byte != b'/')
        .map_or(0, |last| last + 1);
    let trimmed = path.get(..end).unwrap_or_default();
    let name = trimmed.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
    Ok(Value::string(if name.is_empty() { b"/" } else { name }))
}

fn dir(call: &mut Call<'_>) -> Result<Value, Failure> {
    let path = path_arg(call)?;
    let end = path
        .iter()
        .rposition(|&byte| byte == b'/')
        .map_or(0, |slash| slash + 1);
    Ok(Value::string(clean_path(path.get(..end).unwrap_or_default())))
}

fn clean(call: &mut Call<'_>) -> Result<Value, Failure> {
    Ok(Value::string(clean_path(&path_arg(call)?)))
}

fn ext(call: &mut Call<'_>) -> Result<Value, Failure> {
    let path = path_arg(call)?;
    let name = path.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
    let dot = name.iter().rposition(|&byte| byte == b'.');
    Ok(Value::string(
        dot.and_then(|dot| name.get(dot..)).unwrap_or_default(),
    ))
}

fn is_abs(call: &mut Call<'_>) -> Result<Value, Failure> {
    Ok(Value::from(call.str(0).first() == Some(&b'/')))
}

/// Returns the shortest equivalent path without accessing files (`path.Clean`).
fn clean_path(path: &[u8]) -> Vec<u8> {
    let rooted = path.first() == Some(&b'/');
    let mut kept: Vec<&[u8]> = Vec::new();
    for part in path.split(|&byte| byte == b'/') {
        match part {
            b"" | b"." => {}
            b".." if kept.last().is_some_and(|last| *last != b"..") => {
                kept.pop();
            }
            b".." if rooted => {}
            part => kept.push(part),
        }
    }
    let mut out = if rooted { b"/".to_vec() } else { Vec::new() };
    out.extend(kept.join(&b'/'));
    if out.is_empty() { b".".to_vec() } else { out }
}
