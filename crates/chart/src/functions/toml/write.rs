//! Writes values as TOML: tables are indented, simple keys precede tables, lists of tables are written as
//! `[[…]]`.

use std::fmt::Write;

use mainstay_template::{Failure, LimitExceeded, List, Map, Meter, Str, Value};

/// Returns the text of `value`, or the error of Go's encoder.
pub(in crate::functions) fn write(value: &Value, meter: &mut Meter) -> Result<String, Failure> {
    let mut writer = Writer {
        out: String::new(),
        key: Vec::new(),
        meter,
    };
    writer.encode(value)?;
    Ok(writer.out)
}

/// The state of the writer.
struct Writer<'a> {
    out: String,
    key: Vec<Str>,
    meter: &'a mut Meter,
}

/// Kind of a value, which decides its position.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Nil,
    Simple,
    Table,
    TableList,
}

impl Writer<'_> {
    fn encode(&mut self, value: &Value) -> Result<(), Failure> {
        match value {
            Value::Nil if self.key.is_empty() => Err(Failure::message(
                "reflect: call of reflect.Value.Type on zero Value",
            )),
            Value::Nil => Ok(()),
            Value::Object(object) => {
                self.meter.allocate(object.plain_bytes())?;
                self.deeper(|writer| writer.encode(&object.plain()))
            }
            Value::Map(map) => self.table(map),
            Value::List(list) if kind(value, self.meter)? == Kind::TableList => self.tables(list),
            Value::Complex(..) => Err(Failure::message(format!(
                "unsupported type for key '{}': complex128",
                self.path()
            ))),
            _ => self.key_value(value),
        }
    }

    /// Runs `run` one level deeper, within the depth limit.
    fn deeper(&mut self, run: impl FnOnce(&mut Self) -> Result<(), Failure>) -> Result<(), Failure> {
        self.meter.consume_fuel(1)?;
        self.meter.enter()?;
        let result = run(self);
        self.meter.leave();
        result
    }

    fn newline(&mut self) -> Result<(), Failure> {
        if self.out.is_empty() {
            return Ok(());
        }
        self.text("\n")
    }

    fn indent(&mut self) -> Result<(), Failure> {
        (1..self.key.len()).try_for_each(|_| self.text("  "))
    }

    fn path(&self) -> String {
        let parts: Vec<String> = self.key.iter().map(quoted_key).collect();
        parts.join(".")
    }

    fn table(&mut self, map: &Map) -> Result<(), Failure> {
        if self.key.len() == 1 {
            self.newline()?;
        }
        if !self.key.is_empty() {
            self.indent()?;
            let path = self.path();
            self.push(format_args!("[{path}]"))?;
            self.newline()?;
        }
        self.entries(map)
    }

    fn tables(&mut self, list: &List) -> Result<(), Failure> {
        if self.key.is_empty() {
            return Err(Failure::message(
                "toml: top-level values must be Go maps or structs",
            ));
        }
        for item in list.items() {
            self.newline()?;
            self.indent()?;
            let path = self.path();
            self.push(format_args!("[[{path}]]"))?;
            self.newline()?;
            self.item_entries(item)?;
        }
        Ok(())
    }

    fn item_entries(&mut self, item: &Value) -> Result<(), Failure> {
        match item {
            Value::Map(map) => self.entries(map),
            Value::Object(object) => self.deeper(|writer| writer.item_entries(&object.plain())),
            _ => Ok(()),
        }
    }

    fn entries(&mut self, map: &Map) -> Result<(), Failure> {
        let (simple, tables) = partition(map, self.meter)?;
        for (key, value) in simple.iter().chain(&tables) {
            self.key.push(key.clone());
            let result = self.deeper(|writer| writer.encode(value));
            self.key.pop();
            result?;
        }
        Ok(())
    }

    fn key_value(&mut self, value: &Value) -> Result<(), Failure> {
        let Some(key) = self.key.last().cloned() else {
            return self.element(value);
        };
        self.indent()?;
        self.push(format_args!("{} = ", quoted_key(&key)))?;
        self.element(value)?;
        self.newline()
    }

    fn element(&mut self, value: &Value) -> Result<(), Failure> {
        match value {
            Value::String(text) => self.text(&quoted(text)),
            Value::Bool(value) => self.push(format_args!("{value}")),
            Value::Int(value, _) => self.push(format_args!("{value}")),
            Value::Uint(value, _) => self.push(format_args!("{value}")),
            Value::Float(value) => self.text(&float(*value)),
            Value::List(list) => self.inline_list(list),
            Value::Map(map) => self.inline_table(map),
            Value::Object(object) => self.deeper(|writer| writer.element(&object.plain())),
            Value::Nil | Value::Complex(..) => Ok(()),
        }
    }

    fn inline_list(&mut self, list: &List) -> Result<(), Failure> {
        self.text("[")?;
        for (index, item) in list.items().iter().enumerate() {
            if index > 0 {
                self.text(", ")?;
            }
            self.deeper(|writer| writer.element(item))?;
        }
        self.text("]")
    }

    /// Writes an inline table. Like the Go library, it omits a nil entry but not the comma before it.
    fn inline_table(&mut self, map: &Map) -> Result<(), Failure> {
        let (simple, tables) = partition(map, self.meter)?;
        self.text("{")?;
        let total = simple.len() + tables.len();
        for (index, (key, value)) in simple.iter().chain(&tables).enumerate() {
            if matches!(value, Value::Nil) {
                continue;
            }
            self.push(format_args!("{} = ", quoted_key(key)))?;
            self.deeper(|writer| writer.element(value))?;
            if index + 1 < total {
                self.text(", ")?;
            }
        }
        self.text("}")
    }

    fn push(&mut self, text: std::fmt::Arguments<'_>) -> Result<(), Failure> {
        let start = self.out.len();
        // Writing to a string cannot fail.
        let _ = self.out.write_fmt(text);
        self.charge(self.out.len() - start)
    }

    fn text(&mut self, text: &str) -> Result<(), Failure> {
        self.charge(text.len())?;
        self.out.push_str(text);
        Ok(())
    }

    /// Limits the text while it grows: a tree that shares its parts is larger as text.
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
        let group = match kind(value, meter)? {
            Kind::Table | Kind::TableList => &mut tables,
            Kind::Nil | Kind::Simple => &mut simple,
        };
        group.push((key.clone(), value.clone()));
    }
    Ok((simple, tables))
}

fn kind(value: &Value, meter: &mut Meter) -> Result<Kind, Failure> {
    match value {
        Value::Nil => Ok(Kind::Nil),
        Value::List(list) if list.is_nil() => Ok(Kind::Nil),
        Value::Map(_) => Ok(Kind::Table),
        Value::Object(object) => {
            meter.allocate(object.plain_bytes())?;
            meter.enter()?;
            let kind = kind(&object.plain(), meter);
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
        match kind(item, meter)? {
            Kind::Nil => return Err(Failure::message("toml: cannot encode array with nil element")),
            Kind::Table => {}
            Kind::Simple | Kind::TableList => all_tables = false,
        }
    }
    Ok(if all_tables { Kind::TableList } else { Kind::Simple })
}

fn float(value: f64) -> String {
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

fn quoted_key(key: &Str) -> String {
    let bare = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    if !key.is_empty() && key.iter().all(bare) {
        key.to_string()
    } else {
        quoted(key)
    }
}

fn quoted(text: &Str) -> String {
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
