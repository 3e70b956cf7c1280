//! Parses a source into an expression. Nesting and length are limited.

use super::CompileError;
use super::ast::{Expr, Fold, Kind, Macro};
use super::lex::{Positioned, Token, tokens};
use super::source::report;

/// Maximum nesting depth.
const MAX_DEPTH: usize = 60;
/// Maximum height of the tree; chains of operators are left-deep.
const MAX_HEIGHT: usize = 250;
/// Maximum number of characters of a source.
const MAX_LEN: usize = 100_000;

const STARTS: &str = "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}";

pub(super) fn parse(source: &str) -> Result<Expr, CompileError> {
    if source.len() > MAX_LEN {
        let message = format!(
            "expression code point size exceeds limit: size: {}, limit {MAX_LEN}",
            source.len()
        );
        return Err(CompileError::new(report("", 0, &message)));
    }
    let mut parser = Parser {
        source,
        tokens: tokens(source)?,
        at: 0,
        depth: 0,
    };
    let expr = parser.expression()?;
    if *parser.peek() == Token::End {
        return Ok(expr);
    }
    let (at, text) = parser.here();
    parser.fail(
        at,
        &format!("Syntax error: mismatched input '{text}' expecting <EOF>"),
    )
}

struct Parser<'a> {
    source: &'a str,
    tokens: Vec<Positioned>,
    at: usize,
    depth: usize,
}

type Parsed = Result<Expr, CompileError>;

impl Parser<'_> {
    fn peek(&self) -> &Token {
        self.tokens
            .get(self.at)
            .map_or(&Token::End, |placed| &placed.token)
    }

    fn here(&self) -> (usize, String) {
        let last = self.tokens.get(self.at).or(self.tokens.last());
        last.map_or((0, String::new()), |placed| (placed.at, placed.text.clone()))
    }

    fn fail<T>(&self, at: usize, message: &str) -> Result<T, CompileError> {
        Err(CompileError::new(report(self.source, at, message)))
    }

    fn is(&self, sign: &str) -> bool {
        matches!(self.peek(), Token::Sign(own) if *own == sign)
    }

    fn eat(&mut self, sign: &str) -> Option<usize> {
        let at = self.here().0;
        self.is(sign).then(|| {
            self.at += 1;
            at
        })
    }

    fn want(&mut self, sign: &str) -> Result<usize, CompileError> {
        if let Some(at) = self.eat(sign) {
            return Ok(at);
        }
        let (at, text) = self.here();
        let kind = if *self.peek() == Token::End {
            "mismatched"
        } else {
            "extraneous"
        };
        self.fail(
            at,
            &format!("Syntax error: {kind} input '{text}' expecting '{sign}'"),
        )
    }

    fn expression(&mut self) -> Parsed {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            let at = self.here().0;
            return self.fail(at, &format!("expression recursion limit exceeded: {MAX_DEPTH}"));
        }
        let condition = self.or()?;
        let expr = if let Some(at) = self.eat("?") {
            let yes = self.or()?;
            self.want(":")?;
            let no = self.expression()?;
            self.call(at, "_?_:_", vec![condition, yes, no])?
        } else {
            condition
        };
        self.depth -= 1;
        Ok(expr)
    }

    fn or(&mut self) -> Parsed {
        self.joined("||", "_||_", Self::and)
    }

    fn and(&mut self) -> Parsed {
        self.joined("&&", "_&&_", Self::relation)
    }

    fn relation(&mut self) -> Parsed {
        let signs = [
            ("==", "_==_"),
            ("!=", "_!=_"),
            ("<=", "_<=_"),
            (">=", "_>=_"),
            ("<", "_<_"),
            (">", "_>_"),
        ];
        self.left(&signs, Self::sum)
    }

    fn sum(&mut self) -> Parsed {
        self.left(&[("+", "_+_"), ("-", "_-_")], Self::product)
    }

    fn product(&mut self) -> Parsed {
        self.left(&[("*", "_*_"), ("/", "_/_"), ("%", "_%_")], Self::unary)
    }

    /// Parses left-associative operators of one precedence; `in` has that of comparisons.
    fn left(&mut self, signs: &[(&str, &str)], next: fn(&mut Self) -> Parsed) -> Parsed {
        let compares = signs.iter().any(|(sign, _)| *sign == "==");
        let mut left = next(self)?;
        loop {
            let at = self.here().0;
            let found = signs
                .iter()
                .find(|(sign, _)| self.is(sign))
                .map(|(_, name)| *name);
            let within = compares && matches!(self.peek(), Token::Ident(word) if word == "in");
            let name = match found {
                Some(name) => name,
                None if within => "@in",
                None => return Ok(left),
            };
            self.at += 1;
            let right = next(self)?;
            left = self.call(at, name, vec![left, right])?;
        }
    }

    /// Parses terms joined by one logical operator into a balanced tree.
    fn joined(&mut self, sign: &str, name: &str, next: fn(&mut Self) -> Parsed) -> Parsed {
        let (mut terms, mut places) = (vec![next(self)?], Vec::new());
        while let Some(at) = self.eat(sign) {
            places.push(at);
            terms.push(next(self)?);
        }
        while terms.len() > 1 {
            let (mut paired, mut kept) = (Vec::new(), Vec::new());
            let mut rest = terms.into_iter();
            let mut between = places.into_iter();
            while let Some(left) = rest.next() {
                let Some(right) = rest.next() else {
                    paired.push(left);
                    break;
                };
                let at = between.next().unwrap_or(0);
                paired.push(self.call(at, name, vec![left, right])?);
                kept.extend(between.next());
            }
            (terms, places) = (paired, kept);
        }
        match terms.pop() {
            Some(term) => Ok(term),
            None => self.fail(0, "Syntax error: empty expression"),
        }
    }

    fn make(&self, at: usize, kind: Kind) -> Parsed {
        let expr = Expr::new(at, kind);
        if expr.height > MAX_HEIGHT {
            return self.fail(at, &format!("expression recursion limit exceeded: {MAX_HEIGHT}"));
        }
        Ok(expr)
    }

    fn call(&self, at: usize, name: &str, arguments: Vec<Expr>) -> Parsed {
        self.make(at, Kind::Call(name.to_owned(), None, arguments))
    }

    fn unary(&mut self) -> Parsed {
        for (sign, name) in [("!", "!_"), ("-", "-_")] {
            let Some(at) = self.eat(sign) else { continue };
            let mut count = 1;
            while self.eat(sign).is_some() {
                count += 1;
            }
            if sign == "-" && count == 1 {
                match self.peek().clone() {
                    Token::Int(number) => {
                        self.at += 1;
                        let number = Expr::new(at, Kind::Int(number.wrapping_neg()));
                        return self.member(number);
                    }
                    Token::Double(number) => {
                        self.at += 1;
                        let number = Expr::new(at, Kind::Double(-number));
                        return self.member(number);
                    }
                    _ => {}
                }
            }
            let primary = self.primary()?;
            let below = self.member(primary)?;
            return if count % 2 == 0 {
                Ok(below)
            } else {
                self.call(at, name, vec![below])
            };
        }
        let primary = self.primary()?;
        self.member(primary)
    }

    fn member(&mut self, mut expr: Expr) -> Parsed {
        loop {
            if let Some(at) = self.eat(".") {
                expr = self.field(expr, at)?;
            } else if let Some(at) = self.eat(".?") {
                let name = self.word()?;
                expr = self.make(at, Kind::OptionalSelect(Box::new(expr), name))?;
            } else if self.is("[") || self.is("[?") {
                let optional = self.is("[?");
                let at = self.here().0;
                self.at += 1;
                let index = self.expression()?;
                self.want("]")?;
                expr = self.call(at, if optional { "_[?_]" } else { "_[_]" }, vec![expr, index])?;
            } else {
                return Ok(expr);
            }
        }
    }

    fn word(&mut self) -> Result<String, CompileError> {
        if let Token::Ident(word) = self.peek().clone() {
            self.at += 1;
            return Ok(word);
        }
        let (at, text) = self.here();
        self.fail(
            at,
            &format!("Syntax error: mismatched input '{text}' expecting IDENTIFIER"),
        )
    }

    fn field(&mut self, target: Expr, at: usize) -> Parsed {
        let name = self.word()?;
        let Some(open) = self.eat("(") else {
            return self.make(at, Kind::Select(Box::new(target), name));
        };
        let arguments = self.arguments(")")?;
        self.method(target, name, arguments, open)
    }

    fn arguments(&mut self, close: &str) -> Result<Vec<Expr>, CompileError> {
        let mut all = Vec::new();
        if self.eat(close).is_some() {
            return Ok(all);
        }
        loop {
            all.push(self.expression()?);
            if self.eat(",").is_none() {
                break;
            }
        }
        self.want(close)?;
        Ok(all)
    }

    /// Parses a member call: a macro if name and argument count match one.
    fn method(&mut self, target: Expr, name: String, arguments: Vec<Expr>, at: usize) -> Parsed {
        let count = arguments.len();
        let kind = match (name.as_str(), count) {
            ("all", 2 | 3) => Macro::All,
            ("exists", 2 | 3) => Macro::Exists,
            ("exists_one", 2) | ("existsOne", 2 | 3) => Macro::ExistsOne,
            ("map", 2 | 3) | ("transformList", 3 | 4) => Macro::Map,
            ("filter", 2) => Macro::Filter,
            ("transformMap", 3 | 4) => Macro::TransformMap,
            ("transformMapEntry", 3 | 4) => Macro::TransformMapEntry,
            ("optMap", 2) => Macro::OptMap,
            ("optFlatMap", 2) => Macro::OptFlatMap,
            ("sortBy", 2) => Macro::By,
            _ => {
                return self.make(at, Kind::Call(name, Some(Box::new(target)), arguments));
            }
        };
        let two = match kind {
            Macro::Map => name == "transformList",
            Macro::TransformMap | Macro::TransformMapEntry => true,
            Macro::All | Macro::Exists | Macro::ExistsOne => count == 3,
            _ => false,
        };
        let filtered = count == if two { 4 } else { 3 } && (two || kind == Macro::Map);
        let mut rest = arguments.into_iter();
        let name = self.variable(rest.next())?;
        let second = if two {
            Some(self.variable(rest.next())?)
        } else {
            None
        };
        let filter = if filtered { rest.next() } else { None };
        let Some(body) = rest.next() else {
            return self.fail(at, "invalid macro");
        };
        let fold = Box::new(Fold {
            kind,
            range: target,
            name,
            second,
            filter,
            body,
        });
        let optional = matches!(kind, Macro::OptMap | Macro::OptFlatMap);
        self.make(
            at,
            if optional {
                Kind::Optional(fold)
            } else {
                Kind::Fold(fold)
            },
        )
    }

    fn variable(&self, argument: Option<Expr>) -> Result<String, CompileError> {
        match argument {
            Some(Expr {
                kind: Kind::Ident(name),
                ..
            }) => Ok(name),
            other => {
                let at = other.map_or(0, |expr| expr.at);
                self.fail(at, "argument is not an identifier")
            }
        }
    }

    fn primary(&mut self) -> Parsed {
        let (at, text) = self.here();
        let token = self.peek().clone();
        self.at += 1;
        let kind = match token {
            Token::Int(i64::MIN) => return self.fail(at, "invalid int literal"),
            Token::Int(number) => Kind::Int(number),
            Token::Uint(number) => Kind::Uint(number),
            Token::Double(number) => Kind::Double(number),
            Token::Text(text) => Kind::Text(text),
            Token::Bytes(bytes) => Kind::Bytes(bytes),
            Token::Ident(word) => return self.name(word, at),
            Token::Sign("(") => {
                let inner = self.expression()?;
                self.want(")")?;
                return Ok(inner);
            }
            Token::Sign("[") => Kind::List(self.items(false)?),
            Token::Sign("[?") => Kind::List(self.items(true)?),
            Token::Sign("{") => Kind::Map(self.entries(false)?),
            Token::Sign("{?") => Kind::Map(self.entries(true)?),
            Token::Sign(".") => {
                let word = self.word()?;
                return self.name(word, at);
            }
            Token::End => {
                return self.fail(
                    at,
                    &format!("Syntax error: mismatched input '<EOF>' expecting {STARTS}"),
                );
            }
            Token::Sign(_) => {
                return self.fail(
                    at,
                    &format!("Syntax error: extraneous input '{text}' expecting {STARTS}"),
                );
            }
        };
        self.make(at, kind)
    }

    fn name(&mut self, word: String, at: usize) -> Parsed {
        let kind = match word.as_str() {
            "true" => Kind::Bool(true),
            "false" => Kind::Bool(false),
            "null" => Kind::Null,
            "in" => {
                return self.fail(
                    at,
                    &format!("Syntax error: extraneous input 'in' expecting {STARTS}"),
                );
            }
            _ => {
                let Some(open) = self.eat("(") else {
                    return self.make(at, Kind::Ident(word));
                };
                let mut arguments = self.arguments(")")?;
                if word == "has" && arguments.len() == 1 {
                    return match arguments.pop() {
                        Some(Expr {
                            kind: Kind::Select(operand, field),
                            ..
                        }) => self.make(open, Kind::Has(operand, field)),
                        other => {
                            let at = other.map_or(open, |other| other.at);
                            self.fail(at, "invalid argument to has() macro")
                        }
                    };
                }
                return self.make(open, Kind::Call(word, None, arguments));
            }
        };
        self.make(at, kind)
    }

    fn items(&mut self, mut optional: bool) -> Result<Vec<(bool, Expr)>, CompileError> {
        let mut all = Vec::new();
        while self.eat("]").is_none() {
            optional = optional || self.eat("?").is_some();
            all.push((optional, self.expression()?));
            optional = false;
            if self.eat(",").is_none() {
                self.want("]")?;
                break;
            }
        }
        Ok(all)
    }

    fn entries(&mut self, mut optional: bool) -> Result<Vec<(bool, Expr, Expr)>, CompileError> {
        let mut all = Vec::new();
        while self.eat("}").is_none() {
            optional = optional || self.eat("?").is_some();
            let key = self.expression()?;
            self.want(":")?;
            all.push((optional, key, self.expression()?));
            optional = false;
            if self.eat(",").is_none() {
                self.want("}")?;
                break;
            }
        }
        Ok(all)
    }
}
