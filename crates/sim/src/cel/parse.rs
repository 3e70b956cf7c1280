//! Parser. Nesting and length of expressions are limited.

use super::CompileError;
use super::ast::{Expr, Fold, Kind, Macro};
use super::lex::{PositionedToken, Token, tokenize};
use super::source::report;

/// Maximum nesting depth.
const MAX_DEPTH: usize = 60;
/// Maximum height of the syntax tree. Chains of operators are left-deep: each operator increases the height.
const MAX_HEIGHT: usize = 250;
/// Maximum length of a source, in bytes.
const MAX_LEN: usize = 100_000;

/// Tokens at which an expression can start, as in the error messages of cel-go.
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
        tokens: tokenize(source)?,
        at: 0,
        depth: 0,
    };
    let expr = parser.parse_expression()?;
    if *parser.peek() == Token::End {
        return Ok(expr);
    }
    let (at, text) = parser.current();
    parser.fail(
        at,
        &format!("Syntax error: mismatched input '{text}' expecting <EOF>"),
    )
}

struct Parser<'a> {
    source: &'a str,
    tokens: Vec<PositionedToken>,
    at: usize,
    depth: usize,
}

type Parsed = Result<Expr, CompileError>;

impl Parser<'_> {
    fn peek(&self) -> &Token {
        self.tokens
            .get(self.at)
            .map_or(&Token::End, |positioned| &positioned.token)
    }

    /// Returns position and text of the current token.
    fn current(&self) -> (usize, String) {
        let last = self.tokens.get(self.at).or(self.tokens.last());
        last.map_or((0, String::new()), |positioned| {
            (positioned.at, positioned.text.clone())
        })
    }

    fn fail<T>(&self, at: usize, message: &str) -> Result<T, CompileError> {
        Err(CompileError::new(report(self.source, at, message)))
    }

    fn is(&self, expected: &str) -> bool {
        matches!(self.peek(), Token::Symbol(symbol) if *symbol == expected)
    }

    /// Skips the symbol and returns its position if it is the current token.
    fn eat(&mut self, sign: &str) -> Option<usize> {
        let at = self.current().0;
        self.is(sign).then(|| {
            self.at += 1;
            at
        })
    }

    /// Skips the symbol and returns its position; any other token is an error.
    fn expect(&mut self, sign: &str) -> Result<usize, CompileError> {
        if let Some(at) = self.eat(sign) {
            return Ok(at);
        }
        let (at, text) = self.current();
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

    fn parse_expression(&mut self) -> Parsed {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            let at = self.current().0;
            return self.fail(at, &format!("expression recursion limit exceeded: {MAX_DEPTH}"));
        }
        let condition = self.parse_or()?;
        let expr = if let Some(at) = self.eat("?") {
            let yes = self.parse_or()?;
            self.expect(":")?;
            let no = self.parse_expression()?;
            self.new_call(at, "_?_:_", vec![condition, yes, no])?
        } else {
            condition
        };
        self.depth -= 1;
        Ok(expr)
    }

    fn parse_or(&mut self) -> Parsed {
        self.parse_logical("||", "_||_", Self::parse_and)
    }

    fn parse_and(&mut self) -> Parsed {
        self.parse_logical("&&", "_&&_", Self::parse_relation)
    }

    fn parse_relation(&mut self) -> Parsed {
        let operators = [
            ("==", "_==_"),
            ("!=", "_!=_"),
            ("<=", "_<=_"),
            (">=", "_>=_"),
            ("<", "_<_"),
            (">", "_>_"),
        ];
        self.parse_left_associative(&operators, Self::parse_sum)
    }

    fn parse_sum(&mut self) -> Parsed {
        self.parse_left_associative(&[("+", "_+_"), ("-", "_-_")], Self::parse_product)
    }

    fn parse_product(&mut self) -> Parsed {
        self.parse_left_associative(&[("*", "_*_"), ("/", "_/_"), ("%", "_%_")], Self::parse_unary)
    }

    /// Parses left-associative operators of one precedence. `in` has the precedence of comparisons.
    fn parse_left_associative(
        &mut self,
        operators: &[(&str, &str)],
        next: fn(&mut Self) -> Parsed,
    ) -> Parsed {
        let has_in = operators.iter().any(|(sign, _)| *sign == "==");
        let mut left = next(self)?;
        loop {
            let at = self.current().0;
            let found = operators
                .iter()
                .find(|(sign, _)| self.is(sign))
                .map(|(_, name)| *name);
            let is_in = has_in && matches!(self.peek(), Token::Ident(word) if word == "in");
            let name = match found {
                Some(name) => name,
                None if is_in => "@in",
                None => return Ok(left),
            };
            self.at += 1;
            let right = next(self)?;
            left = self.new_call(at, name, vec![left, right])?;
        }
    }

    /// Parses terms that are joined by a logical operator into a balanced tree.
    fn parse_logical(&mut self, sign: &str, name: &str, next: fn(&mut Self) -> Parsed) -> Parsed {
        let (mut terms, mut places) = (vec![next(self)?], Vec::new());
        while let Some(at) = self.eat(sign) {
            places.push(at);
            terms.push(next(self)?);
        }
        while terms.len() > 1 {
            let (mut paired, mut next_places) = (Vec::new(), Vec::new());
            let mut rest = terms.into_iter();
            let mut between = places.into_iter();
            while let Some(left) = rest.next() {
                let Some(right) = rest.next() else {
                    paired.push(left);
                    break;
                };
                let at = between.next().unwrap_or(0);
                paired.push(self.new_call(at, name, vec![left, right])?);
                next_places.extend(between.next());
            }
            (terms, places) = (paired, next_places);
        }
        match terms.pop() {
            Some(term) => Ok(term),
            None => self.fail(0, "Syntax error: empty expression"),
        }
    }

    fn new_expr(&self, at: usize, kind: Kind) -> Parsed {
        let expr = Expr::new(at, kind);
        if expr.height > MAX_HEIGHT {
            return self.fail(at, &format!("expression recursion limit exceeded: {MAX_HEIGHT}"));
        }
        Ok(expr)
    }

    fn new_call(&self, at: usize, name: &str, arguments: Vec<Expr>) -> Parsed {
        self.new_expr(at, Kind::Call(name.to_owned(), None, arguments))
    }

    fn parse_unary(&mut self) -> Parsed {
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
                        return self.parse_members(number);
                    }
                    Token::Double(number) => {
                        self.at += 1;
                        let number = Expr::new(at, Kind::Double(-number));
                        return self.parse_members(number);
                    }
                    _ => {}
                }
            }
            let primary = self.parse_primary()?;
            let operand = self.parse_members(primary)?;
            return if count % 2 == 0 {
                Ok(operand)
            } else {
                self.new_call(at, name, vec![operand])
            };
        }
        let primary = self.parse_primary()?;
        self.parse_members(primary)
    }

    fn parse_members(&mut self, mut expr: Expr) -> Parsed {
        loop {
            if let Some(at) = self.eat(".") {
                expr = self.parse_member(expr, at)?;
            } else if let Some(at) = self.eat(".?") {
                let name = self.parse_identifier()?;
                expr = self.new_expr(at, Kind::OptionalSelect(Box::new(expr), name))?;
            } else if self.is("[") || self.is("[?") {
                let optional = self.is("[?");
                let at = self.current().0;
                self.at += 1;
                let index = self.parse_expression()?;
                self.expect("]")?;
                expr = self.new_call(at, if optional { "_[?_]" } else { "_[_]" }, vec![expr, index])?;
            } else {
                return Ok(expr);
            }
        }
    }

    fn parse_identifier(&mut self) -> Result<String, CompileError> {
        if let Token::Ident(word) = self.peek().clone() {
            self.at += 1;
            return Ok(word);
        }
        let (at, text) = self.current();
        self.fail(
            at,
            &format!("Syntax error: mismatched input '{text}' expecting IDENTIFIER"),
        )
    }

    fn parse_member(&mut self, target: Expr, at: usize) -> Parsed {
        let name = self.parse_identifier()?;
        let Some(open) = self.eat("(") else {
            return self.new_expr(at, Kind::Select(Box::new(target), name));
        };
        let arguments = self.parse_arguments(")")?;
        self.new_member_call(target, name, arguments, open)
    }

    fn parse_arguments(&mut self, close: &str) -> Result<Vec<Expr>, CompileError> {
        let mut all = Vec::new();
        if self.eat(close).is_some() {
            return Ok(all);
        }
        loop {
            all.push(self.parse_expression()?);
            if self.eat(",").is_none() {
                break;
            }
        }
        self.expect(close)?;
        Ok(all)
    }

    /// Creates a member call, or a macro if name and number of arguments match one.
    fn new_member_call(&mut self, target: Expr, name: String, arguments: Vec<Expr>, at: usize) -> Parsed {
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
            ("sortBy", 2) => Macro::SortBy,
            _ => {
                return self.new_expr(at, Kind::Call(name, Some(Box::new(target)), arguments));
            }
        };
        let has_two_variables = match kind {
            Macro::Map => name == "transformList",
            Macro::TransformMap | Macro::TransformMapEntry => true,
            Macro::All | Macro::Exists | Macro::ExistsOne => count == 3,
            _ => false,
        };
        let has_filter =
            count == if has_two_variables { 4 } else { 3 } && (has_two_variables || kind == Macro::Map);
        let mut rest = arguments.into_iter();
        let name = self.macro_variable(rest.next())?;
        let second = if has_two_variables {
            Some(self.macro_variable(rest.next())?)
        } else {
            None
        };
        let filter = if has_filter { rest.next() } else { None };
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
        self.new_expr(
            at,
            if optional {
                Kind::Optional(fold)
            } else {
                Kind::Fold(fold)
            },
        )
    }

    fn macro_variable(&self, argument: Option<Expr>) -> Result<String, CompileError> {
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

    fn parse_primary(&mut self) -> Parsed {
        let (at, text) = self.current();
        let token = self.peek().clone();
        self.at += 1;
        let kind = match token {
            Token::Int(i64::MIN) => return self.fail(at, "invalid int literal"),
            Token::Int(number) => Kind::Int(number),
            Token::Uint(number) => Kind::Uint(number),
            Token::Double(number) => Kind::Double(number),
            Token::Text(text) => Kind::Text(text),
            Token::Bytes(bytes) => Kind::Bytes(bytes),
            Token::Ident(word) => return self.parse_name(word, at),
            Token::Symbol("(") => {
                let inner = self.parse_expression()?;
                self.expect(")")?;
                return Ok(inner);
            }
            Token::Symbol("[") => Kind::List(self.parse_items(false)?),
            Token::Symbol("[?") => Kind::List(self.parse_items(true)?),
            Token::Symbol("{") => Kind::Map(self.parse_entries(false)?),
            Token::Symbol("{?") => Kind::Map(self.parse_entries(true)?),
            Token::Symbol(".") => {
                let word = self.parse_identifier()?;
                return self.parse_name(word, at);
            }
            Token::End => {
                return self.fail(
                    at,
                    &format!("Syntax error: mismatched input '<EOF>' expecting {STARTS}"),
                );
            }
            Token::Symbol(_) => {
                return self.fail(
                    at,
                    &format!("Syntax error: extraneous input '{text}' expecting {STARTS}"),
                );
            }
        };
        self.new_expr(at, kind)
    }

    fn parse_name(&mut self, word: String, at: usize) -> Parsed {
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
                    return self.new_expr(at, Kind::Ident(word));
                };
                let mut arguments = self.parse_arguments(")")?;
                if word == "has" && arguments.len() == 1 {
                    return match arguments.pop() {
                        Some(Expr {
                            kind: Kind::Select(operand, field),
                            ..
                        }) => self.new_expr(open, Kind::Has(operand, field)),
                        other => {
                            let at = other.map_or(open, |other| other.at);
                            self.fail(at, "invalid argument to has() macro")
                        }
                    };
                }
                return self.new_expr(open, Kind::Call(word, None, arguments));
            }
        };
        self.new_expr(at, kind)
    }

    fn parse_items(&mut self, mut optional: bool) -> Result<Vec<(bool, Expr)>, CompileError> {
        let mut all = Vec::new();
        while self.eat("]").is_none() {
            optional = optional || self.eat("?").is_some();
            all.push((optional, self.parse_expression()?));
            optional = false;
            if self.eat(",").is_none() {
                self.expect("]")?;
                break;
            }
        }
        Ok(all)
    }

    fn parse_entries(&mut self, mut optional: bool) -> Result<Vec<(bool, Expr, Expr)>, CompileError> {
        let mut all = Vec::new();
        while self.eat("}").is_none() {
            optional = optional || self.eat("?").is_some();
            let key = self.parse_expression()?;
            self.expect(":")?;
            all.push((optional, key, self.parse_expression()?));
            optional = false;
            if self.eat(",").is_none() {
                self.expect("}")?;
                break;
            }
        }
        Ok(all)
    }
}
