//! Random templates that cover the whole grammar and are usually well-formed, and random data for them.

use mainstay_testkit::Random;

/// Returns a template and its data as JSON.
pub(crate) fn case(random: &mut Random) -> (Vec<u8>, String) {
    let mut writer = Writer {
        random,
        out: String::new(),
        vars: vec!["$"],
        defined: 0,
        ranges: 0,
    };
    match writer.random.below(4) {
        0 | 1 => writer.whole(),
        2 => writer.action(Writer::pipeline),
        _ => writer.node(2),
    }
    let mut text = writer.out.into_bytes();
    if random.chance(1, 8) {
        damage(&mut text, random);
    }
    (text, data(random))
}

/// Returns data with every JSON type, under the names that the templates use.
fn data(random: &mut Random) -> String {
    let mut fields = Vec::new();
    for name in FIELDS {
        if !random.chance(1, 8) {
            fields.push(format!("{name:?}:{}", json(random, 3)));
        }
    }
    if random.chance(1, 20) {
        json(random, 3)
    } else {
        format!("{{{}}}", fields.join(","))
    }
}

const FIELDS: &[&str] = &["a", "b", "c", "d", "list", "map", "n", "s", "x", "_y1", "Zé"];

fn json(random: &mut Random, depth: usize) -> String {
    let many = |random: &mut Random| random.below(4);
    match random.below(if depth == 0 { 8 } else { 12 }) {
        0 => "null".into(),
        1 => "true".into(),
        2 => "false".into(),
        3 | 4 => (*random.pick(&[
            "0", "1", "-1", "3", "1.5", "1e6", "12345678", "1e21", "-0.25", "1e-7", "100000",
        ]))
        .into(),
        5..=7 => format!(
            "{:?}",
            random.pick(&["", "a", "str", "hello world", "<b>&'", "é", "0", "%d", "x y"])
        ),
        8 | 9 => {
            let items: Vec<String> = (0..many(random)).map(|_| json(random, depth - 1)).collect();
            format!("[{}]", items.join(","))
        }
        _ => {
            let count = many(random);
            let entries: Vec<String> = FIELDS
                .iter()
                .skip(random.below(6))
                .take(count)
                .map(|name| format!("{name:?}:{}", json(random, depth - 1)))
                .collect();
            format!("{{{}}}", entries.join(","))
        }
    }
}

/// Removes, duplicates, changes or moves a byte. Most results do not parse.
fn damage(text: &mut Vec<u8>, random: &mut Random) {
    for _ in 0..=random.below(2) {
        if text.is_empty() {
            return;
        }
        let at = random.below(text.len());
        match random.below(4) {
            0 => drop(text.remove(at)),
            1 => text.insert(at, *random.pick(b"{}()|.$\"'`- \n:=,/*\\ax\x01\xff%")),
            2 => {
                let other = random.below(text.len());
                text.swap(at, other);
            }
            _ => text[at] = *random.pick(b"{}()|.$\"' -\n:=aeb"),
        }
    }
}

struct Writer<'r> {
    random: &'r mut Random,
    out: String,
    vars: Vec<&'static str>,
    defined: usize,
    ranges: usize,
}

const VARS: &[&str] = &["$a", "$b", "$x1", "$é"];
const INTS: &[&str] = &[
    "0", "1", "2", "3", "-1", "+4", "0x1F", "0b101", "0o17", "017", "1_000", "'a'", "'\\n'", "'é'",
];
const NUMBERS: &[&str] = &[
    "1.5",
    "1e3",
    ".5",
    "2.",
    "1e-7",
    "0x1p4",
    "0x1.8p-2",
    "2i",
    "1+2i",
    "-0",
    "-0.0",
    "1e21",
    "123456789.25",
];
const STRINGS: &[&str] = &[
    r#""""#,
    r#""a""#,
    r#""str""#,
    r#""a b""#,
    r#""é\n\t""#,
    r#""\x41\u00e9\U0001F600""#,
    r#""<&'\">""#,
    "`raw \\n`",
    r#""%d""#,
    r#""\xff""#,
    r#""0""#,
    r#""{{""#,
];
const FORMATS: &[&str] = &[
    "%v", "%d", "%s", "%q", "%x", "%X", "%T", "%t", "%5d", "%-5d|", "%05d", "%+d", "% d", "%#x", "%b", "%o",
    "%O", "%c", "%U", "%#U", "%e", "%E", "%f", "%F", "%g", "%G", "%.2f", "%8.3f", "%08.3f", "%+v", "%#v",
    "%6v|", "%-6v|", "%.1s", "%5.1s", "%% x", "% X", "%# x", "%+q", "%#q", "%[1]v", "%[2]v", "%[9]v", "%*d",
    "%.*f", "%!", "%z", "%é", "%", "%.3g", "%#g", "%#e", "%.0f", "%+.2e", "%06.1f", "%x", "%.3x", "%#o",
    "%#b", "%q", "%w", "%010s", "%-010d|", "%+05d", "% 05d", "%.5d", "%.0d",
];

impl Writer<'_> {
    fn whole(&mut self) {
        for index in 0..self.random.below(3) {
            self.write(&format!("{{{{define \"d{index}\"}}}}"));
            let vars = std::mem::replace(&mut self.vars, vec!["$"]);
            self.nodes(2);
            self.vars = vars;
            self.write("{{end}}");
            self.defined = index + 1;
        }
        self.nodes(3);
    }

    fn write(&mut self, text: &str) {
        self.out.push_str(text);
    }

    fn nodes(&mut self, depth: usize) {
        for _ in 0..=self.random.below(4) {
            self.node(depth);
        }
    }

    /// Writes delimiters, sometimes with trim markers.
    fn action(&mut self, inside: impl FnOnce(&mut Self)) {
        let open = *self.random.pick(&["{{", "{{", "{{", "{{- ", "{{ ", "{{\n"]);
        self.write(open);
        inside(self);
        let close = *self.random.pick(&["}}", "}}", "}}", " -}}", " }}"]);
        self.write(close);
    }

    fn node(&mut self, depth: usize) {
        match self.random.below(if depth == 0 { 10 } else { 18 }) {
            0..=2 => {
                let text = *self
                    .random
                    .pick(&["x", " ", "\n", " text ", "a: b\n  c", "é", "}}", "-", "%d"]);
                self.write(text);
            }
            3..=6 => self.action(Self::pipeline),
            7 => self.declaration(),
            8 => {
                let comment = *self.random.pick(&["{{/* c */}}", "{{- /* c\n*/ -}}"]);
                self.write(comment);
            }
            9 if self.ranges > 0 => {
                let word = *self.random.pick(&["break", "continue"]);
                let when = *self.random.pick(&["true", ".", "eq . 1"]);
                self.write(&format!("{{{{if {when}}}}}{{{{{word}}}}}{{{{end}}}}"));
            }
            9 => self.call(),
            10..=12 => self.branch("if", depth),
            13 | 14 => self.branch("with", depth),
            15 | 16 => self.branch("range", depth),
            _ => self.block(depth),
        }
    }

    fn declaration(&mut self) {
        let name = *self.random.pick(VARS);
        let assign = self.vars.contains(&name) && self.random.chance(1, 2);
        self.action(|w| {
            w.write(name);
            w.write(if assign { " = " } else { " := " });
            w.pipeline();
        });
        self.vars.push(name);
    }

    fn call(&mut self) {
        let unknown = self.defined == 0 || self.random.chance(1, 12);
        let name = if unknown {
            7
        } else {
            self.random.below(self.defined)
        };
        self.action(|w| {
            w.write(&format!("template \"d{name}\""));
            if w.random.chance(3, 4) {
                w.write(" ");
                w.pipeline();
            }
        });
    }

    fn block(&mut self, depth: usize) {
        let name = format!("b{}", self.random.below(40));
        self.action(|w| {
            w.write(&format!("block {name:?} "));
            w.pipeline();
        });
        let vars = std::mem::replace(&mut self.vars, vec!["$"]);
        let ranges = std::mem::take(&mut self.ranges);
        self.nodes(depth - 1);
        (self.vars, self.ranges) = (vars, ranges);
        self.write("{{end}}");
    }

    fn branch(&mut self, word: &str, depth: usize) {
        let scope = self.vars.len();
        let is_range = word == "range";
        self.action(|w| w.head(word));
        self.ranges += usize::from(is_range);
        self.nodes(depth - 1);
        self.ranges -= usize::from(is_range);
        if !is_range && self.random.chance(1, 4) {
            self.action(|w| w.head(&format!("else {word}")));
            self.nodes(depth - 1);
        }
        if self.random.chance(1, 3) {
            self.action(|w| w.write("else"));
            self.nodes(depth - 1);
        }
        self.vars.truncate(scope);
        self.action(|w| w.write("end"));
    }

    fn head(&mut self, word: &str) {
        self.write(word);
        self.write(" ");
        if self.random.chance(1, 4) {
            let name = *self.random.pick(VARS);
            self.write(name);
            self.vars.push(name);
            if word == "range" && self.random.chance(1, 2) {
                let second = *self.random.pick(VARS);
                self.write(", ");
                self.write(second);
                self.vars.push(second);
            }
            let assign = *self.random.pick(&[" := ", " := ", " = "]);
            self.write(assign);
        }
        if word == "range" && self.random.chance(2, 3) {
            let field =
                *self
                    .random
                    .pick(&[".list", ".map", ".a", ".", ".x", "3", ".s", ".map.list", "$.list"]);
            self.write(field);
        } else {
            self.pipeline();
        }
    }

    fn pipeline(&mut self) {
        self.command(2);
        while self.random.chance(1, 6) {
            self.write(" | ");
            let function = *self.random.pick(&[
                "print",
                "len",
                "html",
                "js",
                "urlquery",
                "not",
                "println",
                "printf \"%v\"",
                "eq 1",
                "index .map",
                "and 1",
                "or 0",
                "call",
                ".s",
                "$",
                "slice",
            ]);
            self.write(function);
        }
    }

    fn command(&mut self, depth: usize) {
        match self.random.below(14) {
            0..=4 => self.operand(depth),
            5 | 6 => self.printf(depth),
            7 => self.compare(depth),
            8 => {
                let name = *self.random.pick(&["and", "or"]);
                self.arguments(name, 0, 4, depth);
            }
            9 => {
                let name = *self
                    .random
                    .pick(&["not", "len", "html", "js", "urlquery", "call"]);
                self.arguments(name, 1, 1, depth);
            }
            10 => {
                let name = *self.random.pick(&["print", "println", "html"]);
                self.arguments(name, 0, 4, depth);
            }
            11 => self.index(),
            12 => {
                let name = *self.random.pick(&[
                    "len", "not", "print", "eq", "index", "slice", "lt", "and", "printf",
                ]);
                self.arguments(name, 0, 4, depth);
            }
            _ => {
                let from = self.random.below(3);
                let of = *self.random.pick(&[".s", ".list", "\"héllo\"", ".a", "."]);
                self.write(&format!("slice {of} {from}"));
                if self.random.chance(1, 3) {
                    let to = self.random.below(5);
                    self.write(&format!(" {to}"));
                }
            }
        }
    }

    fn arguments(&mut self, name: &str, least: usize, most: usize, depth: usize) {
        self.write(name);
        for _ in 0..least + self.random.below(most - least + 1) {
            self.write(" ");
            self.operand(depth);
        }
    }

    fn compare(&mut self, depth: usize) {
        let name = *self.random.pick(&["eq", "ne", "lt", "le", "gt", "ge"]);
        match self.random.below(3) {
            0 => {
                let (a, b) = (*self.random.pick(INTS), *self.random.pick(INTS));
                self.write(&format!("{name} {a} {b}"));
            }
            1 => {
                let (a, b) = (*self.random.pick(STRINGS), *self.random.pick(STRINGS));
                self.write(&format!("{name} {a} {b}"));
            }
            _ => self.arguments(name, 2, 3, depth),
        }
    }

    fn index(&mut self) {
        let of = *self
            .random
            .pick(&[".list", ".map", ".a", ".", "\"abc\"", ".x", "$"]);
        self.write(&format!("index {of}"));
        for _ in 0..self.random.below(3) {
            let by = *self.random.pick(&[
                "0", "1", "2", "\"a\"", "\"s\"", "\"list\"", ".n", ".b", "nil", "1.0",
            ]);
            self.write(&format!(" {by}"));
        }
    }

    fn printf(&mut self, depth: usize) {
        let count = 1 + self.random.below(3);
        let format: Vec<String> = (0..count).map(|_| self.directive()).collect();
        self.write(&format!("printf \"{}\"", format.join(" ")));
        for _ in 0..(count + self.random.below(3)).saturating_sub(1) {
            self.write(" ");
            self.operand(depth);
        }
    }

    /// Returns a common format directive, or a random one.
    fn directive(&mut self) -> String {
        if self.random.chance(1, 2) {
            return (*self.random.pick(FORMATS)).into();
        }
        let mut text = String::from("%");
        for _ in 0..self.random.below(3) {
            text.push(*self.random.pick(&['#', '0', '+', '-', ' ']));
        }
        for part in [
            "[1]", "[2]", "3", "7", "12", "*", ".", ".0", ".1", ".3", ".12", ".*", ".[1]*",
        ] {
            if self.random.chance(1, 10) {
                text.push_str(part);
            }
        }
        let verbs = [
            'v', 'd', 's', 'q', 'x', 'X', 'T', 't', 'b', 'o', 'O', 'c', 'U', 'e', 'E', 'f', 'F', 'g', 'G',
            'w', 'z', '%',
        ];
        text.push(*self.random.pick(&verbs));
        text
    }

    fn operand(&mut self, depth: usize) {
        let text = match self.random.below(20) {
            0..=5 => self.field(),
            6 => ".".into(),
            7..=9 => self.variable(),
            10 | 11 => (*self.random.pick(INTS)).into(),
            12 => (*self.random.pick(NUMBERS)).into(),
            13..=15 => (*self.random.pick(STRINGS)).into(),
            16 => (*self.random.pick(&["true", "false"])).into(),
            17 if self.random.chance(1, 6) => (*self.random.pick(&[
                "true.x",
                "nope",
                "1.x",
                "$zz",
                "1e400",
                "1+i",
                "0x",
                "99999999999999999999",
            ]))
            .into(),
            17 => (*self.random.pick(&[
                "nil",
                "print",
                "$.a.b",
                "18446744073709551615",
                "-9223372036854775808",
            ]))
            .into(),
            _ if depth == 0 => ".s".into(),
            _ => return self.parenthesized(depth),
        };
        self.write(&text);
    }

    fn parenthesized(&mut self, depth: usize) {
        self.write("(");
        if self.random.chance(1, 12) {
            let name = *self.random.pick(VARS);
            self.write(&format!("{name} := "));
            self.vars.push(name);
        }
        self.command(depth - 1);
        self.write(")");
        if self.random.chance(1, 4) {
            let field = self.field();
            self.write(&field);
        }
    }

    fn field(&mut self) -> String {
        let count = 1 + usize::from(self.random.chance(1, 3)) + usize::from(self.random.chance(1, 10));
        let mut text = String::new();
        for _ in 0..count {
            text.push('.');
            let name: &&str = self.random.pick(FIELDS);
            text.push_str(name);
        }
        text
    }

    fn variable(&mut self) -> String {
        let name = if self.random.chance(1, 40) {
            *self.random.pick(VARS)
        } else {
            *self.random.pick(&self.vars)
        };
        if self.random.chance(1, 3) {
            format!("{name}{}", self.field())
        } else {
            name.into()
        }
    }
}
