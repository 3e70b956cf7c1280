//! Output of values as TOML. Tables are indented, simple keys precede tables, and lists of tables are
//! written as `[[…]]`.

use std::fmt::Write;

use mainstay_template::{Failure, LimitExceeded, List, Map, Meter, Str, Value};

/// Returns `value` as TOML, or the error of Go's encoder.
pub(in crate::functions) fn write(value: &Value, meter: &mut Meter) -> Result<String, Failure> {
    let mut writer = Writer {
        out: String::new(),
        key: Vec::new(),
        meter,
    };
    writer.write_root(value)?;
    Ok(writer.out)
}

/// State of the writer.
struct Writer<'a> {
    out: String,
    key: Vec<Str>,
    meter: &'a mut Meter,
}

/// Kind of a value. Determines its position in the output.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Nil,
    Simple,
    Table,
    TableList,
}

impl Writer<'_> {
    fn write_root(&mut self, value: &Value) -> Result<(), Failure> {
        match value {
            Value::Nil if self.key.is_empty() => Err(Failure::message(
                "reflect: call of reflect.Value.Type on zero Value",
            )),
            Value::Nil => Ok(()),
            Value::Object(object) => {
                self.meter.allocate(object.plain_bytes())?;
                self.write_nested(|writer| writer.write_root(&object.plain()))
            }
            Value::Map(map) => self.write_table(map),
            Value::List(list) if value_kind(value, self.meter)? == Kind::TableList => self.write_tables(list),
            Value::Complex(..) => Err(Failure::message(format!(
                "unsupported type for key '{}': complex128",
                self.key_path()
            ))),
            _ => self.write_key_value(value),
        }
    }

    /// Runs `run` one level deeper. Fails if the depth limit is exceeded.
    fn write_nested(&mut self, run: impl FnOnce(&mut Self) -> Result<(), Failure>) -> Result<(), Failure> {
        self.meter.consume_fuel(1)?;
        self.meter.enter()?;
        let result = run(self);
        self.meter.leave();
        result
    }

    fn write_newline(&mut self) -> Result<(), Failure> {
        if self.out.is_empty() {
            return Ok(());
        }
        self.write_text("\n")
    }

    fn write_indent(&mut self) -> Result<(), Failure> {
        (1..self.key.len()).try_for_each(|_| self.write_text("  "))
    }

    fn key_path(&self) -> String {
        let parts: Vec<String> = self.key.iter().map(quote_key).collect();
        parts.join(".")
    }

    fn write_table(&mut self, map: &Map) -> Result<(), Failure> {
        if self.key.len() == 1 {
            self.write_newline()?;
        }
        if !self.key.is_empty() {
            self.write_indent()?;
            let path = self.key_path();
            self.push(format_args!("[{path}]"))?;
            self.write_newline()?;
        }
        self.write_entries(map)
    }

    fn write_tables(&mut self, list: &List) -> Result<(), Failure> {
        if self.key.is_empty() {
            return Err(Failure::message(
                "toml: top-level values must be Go maps or structs",
            ));
        }
        for item in list.items() {
            self.write_newline()?;
            self.write_indent()?;
            let path = self.key_path();
            self.push(format_args!("[[{path}]]"))?;
            self.write_newline()?;
            self.write_item_entries(item)?;
        }
        Ok(())
    }

    fn write_item_entries(&mut self, item: &Value) -> Result<(), Failure> {
        match item {
            Value::Map(map) => self.write_entries(map),
            Value::Object(object) => self.write_nested(|writer| writer.write_item_entries(&object.plain())),
            _ => Ok(()),
        }
    }

    fn write_entries(&mut self, map: &Map) -> Result<(), Failure> {
        let (simple, tables) = partition(map, self.meter)?;
        for (key, value) in simple.iter().chain(&tables) {
            self.key.push(key.clone());
            let result = self.write_nested(|writer| writer.write_root(value));
            self.key.pop();
            result?;
        }
        Ok(())
    }

    fn write_key_value(&mut self, value: &Value) -> Result<(), Failure> {
        let Some(key) = self.key.last().cloned() else {
            return self.write_element(value);
        };
        self.write_indent()?;
        self.push(format_args!("{} = ", quote_key(&key)))?;
        self.write_element(value)?;
        self.write_newline()
    }

    fn write_element(&mut self, value: &Value) -> Result<(), Failure> {
        match value {
            Value::String(text) => self.write_text(&quote_text(text)),
            Value::Bool(value) => self.push(format_args!("{value}")),
            Value::Int(value, _) => self.push(format_args!("{value}")),
            Value::Uint(value, _) => self.push(format_args!("{value}")),
            Value::Float(value) => self.write_text(&format_float_value(*value)),
            Value::List(list) => self.write_inline_list(list),
            Value::Map(map) => self.write_inline_table(map),
            Value::Object(object) => self.write_nested(|writer| writer.write_element(&object.plain())),
            Value::Nil | Value::Complex(..) => Ok(()),
        }
    }

    fn write_inline_list(&mut self, list: &List) -> Result<(), Failure> {
        self.write_text("[")?;
        for (index, item) in list.items().iter().enumerate() {
            if index > 0 {
                self.write_text(", ")?;
            }
            self.write_nested(|writer| writer.write_element(item))?;
        }
        self.write_text("]")
    }

    /// Writes an inline table. Like the Go library, omits a nil entry but not the comma before it.
    fn write_inline_table(&mut self, map: &Map) -> Result<(), Failure> {
        let (simple, tables) = partition(map, self.meter)?;
        self.write_text("{")?;
        let total = simple.len() + tables.len();
        for (index, (key, value)) in simple.iter().chain(&tables).enumerate() {
            if matches!(value, Value::Nil) {
                continue;
            }
            self.push(format_args!("{} = ", quote_key(key)))?;
            self.write_nested(|writer| writer.write_element(value))?;
            if index + 1 < total {
                self.write_text(", ")?;
            }
        }
        self.write_text("}")
    }

    fn push(&mut self, text: std::fmt::Arguments<'_>) -> Result<(), Failure> {
        let start = self.out.len();
        // Writing to a string cannot fail.
        let _ = self.out.write_fmt(text);
        self.charge(self.out.len() - start)
    }

    fn write_text(&mut self, text: &str) -> Result<(), Failure> {
        self.charge(text.len())?;
        self.out.push_str(text);
        Ok(())
    }

    /// Checks the string limit during writing: the text of a tree with shared parts is larger than the
    /// tree.
    fn charge(&mut self, bytes: usize) -> Result<(), Failure> {
        if self.out.len().saturating_add(bytes) > self.meter.limits().string {
            return Err(LimitExceeded::String.into());
        }
        self.meter.consume_fuel(1 + bytes as u64 / 64)?;
        Ok(())
    }
}

type Entries = Vec<(Str, Value)>;

/// Returns the simple entries and the tables of a map, each sorted by key.
fn partition(map: &Map, meter: &mut Meter) -> Result<(Entries, Entries), Failure> {
    let (mut simple, mut tables) = (Entries::new(), Entries::new());
    for (key, value) in map.entries().iter() {
        let group = match value_kind(value, meter)? {
            Kind::Table | Kind::TableList => &mut tables,
            Kind::Nil | Kind::Simple => &mut simple,
        };
        group.push((key.clone(), value.clone()));
    }
    Ok((simple, tables))
}

fn value_kind(value: &Value, meter: &mut Meter) -> Result<Kind, Failure> {
    match value {
        Value::Nil => Ok(Kind::Nil),
        Value::List(list) if list.is_nil() => Ok(Kind::Nil),
        Value::Map(_) => Ok(Kind::Table),
        Value::Object(object) => {
            meter.allocate(object.plain_bytes())?;
            meter.enter()?;
            let kind = value_kind(&object.plain(), meter);
            meter.leave();
            kind
        }
        Value::List(list) => {
            meter.enter()?;
            let kind = list_kind(list, meter);
            meter.leave();
            kind
        }
        Value::Complex(..) => Err(Failure::message("unsupported type: complex128")),
        _ => Ok(Kind::Simple),
    }
}

fn list_kind(list: &List, meter: &mut Meter) -> Result<Kind, Failure> {
    let mut all_tables = !list.items().is_empty();
    for item in list.items() {
        meter.consume_fuel(1)?;
        match value_kind(item, meter)? {
            Kind::Nil => return Err(Failure::message("toml: cannot encode array with nil element")),
            Kind::Table => {}
            Kind::Simple | Kind::TableList => all_tables = false,
        }
    }
    Ok(if all_tables { Kind::TableList } else { Kind::Simple })
}

fn format_float_value(value: f64) -> String {
    if value.is_nan() {
        return if value.is_sign_negative() { "-nan" } else { "nan" }.into();
    }
    if value.is_infinite() {
        return if value < 0.0 { "-inf" } else { "inf" }.into();
    }
    let text = mainstay_gostd::float::format_float(value, 'g', None);
    if text.contains(['e', '.']) {
        text
    } else {
        text + ".0"
    }
}

fn quote_key(key: &Str) -> String {
    let bare = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    if !key.is_empty() && key.iter().all(bare) {
        key.to_string()
    } else {
        quote_text(key)
    }
}

fn quote_text(text: &Str) -> String {
    let mut out = String::from("\"");
    for c in text.to_str_lossy().chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\x08' => out.push_str("\\b"),
            '\t' => out.push_str("\\t"),
            '\n' => out.push_str("\\n"),
            '\x0c' => out.push_str("\\f"),
            '\r' => out.push_str("\\r"),
            '\0'..='\x1f' | '\x7f' => {
                // Writing to a string cannot fail.
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            other => out.push(other),
        }
    }
    out.push('"');
    out
}
