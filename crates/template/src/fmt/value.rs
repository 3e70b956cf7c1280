//! Formatting of one value with one verb, at any depth.

use std::borrow::Borrow;

use super::Printer;
use super::integer::Integer;
use crate::limit::LimitExceeded;
use crate::object::{GoKind, Object};
use crate::stack;
use crate::value::{List, ListType, Map, Value};

/// Number that is printed instead of an address. In Go, addresses differ in every run.
const ADDRESS: u64 = 0x00c0_0001_0000;

impl Printer<'_> {
    /// Writes a whole operand, as `printArg` of package `fmt` does.
    pub(super) fn value(&mut self, value: &Value, verb: u32) -> Result<(), LimitExceeded> {
        match (u8::try_from(verb).unwrap_or(0), value) {
            (b'T' | b'v', Value::Nil) => self.pad(b"<nil>"),
            (_, Value::Nil) => self.bad_verb(None, verb)?,
            (b'T', _) => {
                let name = value.type_name();
                self.string(name.as_bytes(), b's'.into());
            }
            (b'p', Value::List(_) | Value::Map(_) | Value::Object(_)) => {
                self.hexadecimal(ADDRESS, !self.flags.sharp);
            }
            (b'p', _) => self.bad_verb(Some(value), verb)?,
            _ => self.item(value, verb)?,
        }
        Ok(())
    }

    /// Writes an operand or a part of one, as `printValue` of package `fmt` does.
    fn item(&mut self, value: &Value, verb: u32) -> Result<(), LimitExceeded> {
        self.check_limits()?;
        let known = match value {
            Value::Nil => {
                self.push(if self.flags.sharp_v {
                    b"interface {}(nil)"
                } else {
                    b"<nil>"
                });
                true
            }
            Value::Bool(value) => self.boolean(*value, verb),
            Value::Int(value, _) => self.integer(Integer::signed(*value), verb),
            Value::Uint(value, _) => self.integer(Integer::unsigned(*value), verb),
            Value::Float(value) => self.float(*value, verb),
            Value::Complex(real, imaginary) => self.complex(*real, *imaginary, verb),
            Value::String(text) => self.string(text, verb),
            Value::List(_) | Value::Map(_) | Value::Object(_) => return self.nested(value, verb),
        };
        if known {
            Ok(())
        } else {
            self.bad_verb(Some(value), verb)
        }
    }

    fn nested(&mut self, value: &Value, verb: u32) -> Result<(), LimitExceeded> {
        if self.depth >= self.meter.limits().depth {
            return Err(LimitExceeded::Depth);
        }
        if verb == u32::from(b'w') {
            return self.bad_verb(Some(value), verb);
        }
        self.depth += 1;
        let done = stack::ensure_stack(|| match value {
            Value::List(list) => self.list(list, verb),
            Value::Map(map) => self.map(map, verb),
            Value::Object(object) => self.object(object.as_ref(), value, verb),
            _ => Ok(()),
        });
        self.depth -= 1;
        done
    }

    fn boolean(&mut self, value: bool, verb: u32) -> bool {
        let known = verb == u32::from(b't') || verb == u32::from(b'v');
        if known {
            self.pad(if value { b"true" } else { b"false" });
        }
        known
    }

    fn complex(&mut self, real: f64, imaginary: f64, verb: u32) -> bool {
        if !u8::try_from(verb).is_ok_and(|verb| b"vbgGxXfFeE".contains(&verb)) {
            return false;
        }
        self.push(b"(");
        self.float(real, verb);
        let plus = std::mem::replace(&mut self.flags.plus, true);
        self.float(imaginary, verb);
        self.flags.plus = plus;
        self.push(b"i)");
        true
    }

    fn list(&mut self, list: &List, verb: u32) -> Result<(), LimitExceeded> {
        if list.ty() == ListType::Bytes && self.bytes(list, verb) {
            return Ok(());
        }
        let (open, between, close): (&[u8], &[u8], &[u8]) = if self.flags.sharp_v {
            (b"{", b", ", b"}")
        } else {
            (b"[", b" ", b"]")
        };
        if self.flags.sharp_v {
            self.push(list.ty().name().as_bytes());
        }
        self.push(open);
        for (index, item) in list.items().iter().enumerate() {
            if index > 0 {
                self.push(between);
            }
            self.item(item, verb)?;
        }
        self.push(close);
        Ok(())
    }

    /// Formats `[]byte` with the verbs that treat it as a string.
    fn bytes(&mut self, list: &List, verb: u32) -> bool {
        let text = || list.to_bytes();
        match u8::try_from(verb).unwrap_or(0) {
            b'v' | b'd' if self.flags.sharp_v => {
                self.push(b"[]byte{");
                for (index, byte) in text().into_iter().enumerate() {
                    if index > 0 {
                        self.push(b", ");
                    }
                    self.hexadecimal(u64::from(byte), true);
                }
                self.push(b"}");
                true
            }
            b's' | b'x' | b'X' | b'q' => self.string(&text(), verb),
            _ => false,
        }
    }

    fn map(&mut self, map: &Map, verb: u32) -> Result<(), LimitExceeded> {
        let name = map.ty().name();
        let entries = map.entries();
        self.entries(
            name,
            entries.iter().map(|(key, value)| (key.as_bytes(), value)),
            verb,
        )
    }

    fn entries<K: AsRef<[u8]>, V: Borrow<Value>>(
        &mut self,
        name: &str,
        entries: impl Iterator<Item = (K, V)>,
        verb: u32,
    ) -> Result<(), LimitExceeded> {
        let sharp = self.flags.sharp_v;
        if sharp {
            self.push(name.as_bytes());
        }
        self.push(if sharp { b"{" } else { b"map[" });
        for (index, (key, value)) in entries.enumerate() {
            if index > 0 {
                self.push(if sharp { b", " } else { b" " });
            }
            let key = key.as_ref();
            if !self.string(key, verb) {
                self.bad_verb(Some(&Value::string(key)), verb)?;
            }
            self.push(b":");
            self.item(value.borrow(), verb)?;
        }
        self.push(if sharp { b"}" } else { b"]" });
        Ok(())
    }

    fn object(&mut self, object: &dyn Object, value: &Value, verb: u32) -> Result<(), LimitExceeded> {
        if object.go_kind() == GoKind::Map && !object.is_stringer() {
            let keys = object.map_keys().into_iter();
            let entries = keys.map(|key| {
                let value = object.field(&key.to_str_lossy()).unwrap_or_default();
                (key, value)
            });
            return self.entries(&object.type_name(), entries, verb);
        }
        let textual = matches!(u8::try_from(verb), Ok(b'v' | b's' | b'q' | b'x' | b'X'));
        if object.go_kind() == GoKind::Number && !textual {
            return self.item(&object.plain(), verb);
        }
        let text = object.print();
        let known = if object.is_stringer() {
            self.string(&text, verb)
        } else {
            let plain = matches!(u8::try_from(verb), Ok(b'v' | b's'));
            if plain {
                self.push(&text);
            }
            plain
        };
        if known {
            Ok(())
        } else {
            self.bad_verb(Some(value), verb)
        }
    }

    /// Writes `%!verb(type=value)`.
    pub(super) fn bad_verb(&mut self, value: Option<&Value>, verb: u32) -> Result<(), LimitExceeded> {
        self.push(b"%!");
        mainstay_gostd::utf8::push(self.out, verb);
        self.push(b"(");
        match value {
            None => self.push(b"<nil>"),
            Some(value) => {
                let name = value.type_name();
                self.push(name.as_bytes());
                self.push(b"=");
                self.item(value, b'v'.into())?;
            }
        }
        self.push(b")");
        Ok(())
    }
}
