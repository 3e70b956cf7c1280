//! Label selectors, as text (`app=a,tier in (x,y),!old`) and as objects (`matchLabels`, `matchExpressions`).

use serde_json::Value;

use super::SelectorError;
use crate::tree;
use crate::validation::names;

/// A conjunction of requirements.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabelSelector {
    terms: Vec<Term>,
    matches_nothing: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Term {
    key: String,
    operator: Operator,
    values: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    In,
    NotIn,
    Exists,
    Absent,
    Greater,
    Less,
}

impl LabelSelector {
    /// Parses a selector. The error contains the API server's message.
    pub fn parse(text: &str) -> Result<Self, SelectorError> {
        Parser {
            tokens: lex(text),
            at: 0,
        }
        .parse_selector()
        .map(|terms| Self {
            terms,
            matches_nothing: false,
        })
    }

    /// Parses a `metav1.LabelSelector`. `None` matches no object, an empty selector matches every object.
    #[must_use]
    pub fn from_object(selector: Option<&Value>) -> Self {
        let Some(selector) = selector.filter(|there| there.is_object()) else {
            return Self {
                terms: Vec::new(),
                matches_nothing: true,
            };
        };
        let equal = tree::map(selector, &["matchLabels"])
            .into_iter()
            .flatten()
            .map(|(key, value)| Term {
                key: key.clone(),
                operator: Operator::In,
                values: vec![value.as_str().unwrap_or("").to_owned()],
            });
        let expressions = tree::list(selector, &["matchExpressions"])
            .iter()
            .filter_map(parse_expression);
        Self {
            terms: equal.chain(expressions).collect(),
            matches_nothing: false,
        }
    }

    /// Parses a map of labels, the selector of Services and replication controllers.
    #[must_use]
    pub fn from_map(labels: Option<&Value>) -> Self {
        let labels = labels.and_then(Value::as_object);
        let term = |(key, value): (&String, &Value)| Term {
            key: key.clone(),
            operator: Operator::In,
            values: vec![value.as_str().unwrap_or("").to_owned()],
        };
        Self {
            terms: labels.into_iter().flatten().map(term).collect(),
            matches_nothing: false,
        }
    }

    /// Returns whether the selector matches every object.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty() && !self.matches_nothing
    }

    /// Returns whether an object with these labels matches.
    #[must_use]
    pub fn matches<'a>(&self, label: &dyn Fn(&str) -> Option<&'a str>) -> bool {
        !self.matches_nothing && self.terms.iter().all(|term| term.matches(label(&term.key)))
    }

    /// Returns whether an object with these labels, given as a JSON map, matches.
    #[must_use]
    pub fn matches_map(&self, labels: Option<&Value>) -> bool {
        self.matches(&|key| labels?.get(key)?.as_str())
    }
}

impl Term {
    fn matches(&self, value: Option<&str>) -> bool {
        let listed = |value: &str| self.values.iter().any(|one| one == value);
        let number = |text: &str| text.parse::<i64>().ok();
        match (self.operator, value) {
            (Operator::In, Some(value)) => listed(value),
            (Operator::NotIn, Some(value)) => !listed(value),
            (Operator::Exists, Some(_)) | (Operator::NotIn | Operator::Absent, None) => true,
            (Operator::Greater | Operator::Less, Some(value)) => {
                let bound = self.values.first().and_then(|bound| number(bound));
                match (number(value), bound) {
                    (Some(value), Some(bound)) if self.operator == Operator::Greater => value > bound,
                    (Some(value), Some(bound)) => value < bound,
                    _ => false,
                }
            }
            _ => false,
        }
    }
}

fn parse_expression(value: &Value) -> Option<Term> {
    let operator = match tree::text(value, &["operator"]) {
        "In" => Operator::In,
        "NotIn" => Operator::NotIn,
        "Exists" => Operator::Exists,
        "DoesNotExist" => Operator::Absent,
        _ => return None,
    };
    let values = tree::list(value, &["values"])
        .iter()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect();
    Some(Term {
        key: tree::text(value, &["key"]).to_owned(),
        operator,
        values,
    })
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Word(String),
    Symbol(String),
    End,
}

/// Returns whether a character belongs to a symbol. Symbols are `==`, `!=` and the single characters.
fn is_symbol(c: char) -> bool {
    matches!(c, '=' | '!' | '(' | ')' | ',' | '>' | '<')
}

fn lex(text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '=' if rest.starts_with("==") => 2,
            '!' if rest.starts_with("!=") => 2,
            c if is_symbol(c) => 1,
            _ => rest
                .find(|c: char| is_symbol(c) || c.is_ascii_whitespace())
                .unwrap_or(rest.len()),
        };
        let (token, after) = rest.split_at_checked(length).unwrap_or((rest, ""));
        tokens.push(if is_symbol(first) {
            Token::Symbol(token.into())
        } else {
            Token::Word(token.into())
        });
        rest = after.trim_start();
    }
    tokens.push(Token::End);
    tokens
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
}

impl Parser {
    fn peek(&self) -> &Token {
        self.tokens.get(self.at).unwrap_or(&Token::End)
    }

    fn next(&mut self) -> Token {
        let token = self.peek().clone();
        self.at += 1;
        token
    }

    fn parse_selector(mut self) -> Result<Vec<Term>, SelectorError> {
        let mut terms = Vec::new();
        loop {
            match self.peek() {
                Token::End => return Ok(terms),
                Token::Word(_) => {}
                Token::Symbol(symbol) if symbol == "!" => {}
                Token::Symbol(symbol) => {
                    return Err(SelectorError(format!(
                        "found '{symbol}', expected: !, identifier, or 'end of string'"
                    )));
                }
            }
            terms.push(
                self.parse_requirement()
                    .map_err(|error| SelectorError(format!("unable to parse requirement: {error}")))?,
            );
            match self.next() {
                Token::End => return Ok(terms),
                Token::Symbol(symbol) if symbol == "," => match self.peek() {
                    Token::Word(_) => {}
                    Token::Symbol(symbol) if symbol == "!" => {}
                    other => {
                        return Err(SelectorError(format!(
                            "found '{}', expected: identifier after ','",
                            token_text(other)
                        )));
                    }
                },
                other => {
                    return Err(SelectorError(format!(
                        "found '{}', expected: ',' or 'end of string'",
                        token_text(&other)
                    )));
                }
            }
        }
    }

    fn parse_requirement(&mut self) -> Result<Term, SelectorError> {
        let mut token = self.next();
        let absent = token == Token::Symbol("!".into());
        if absent {
            token = self.next();
        }
        let Token::Word(key) = token else {
            return Err(SelectorError(format!(
                "found '{}', expected: identifier",
                token_text(&token)
            )));
        };
        let wrong = names::qualified(&key);
        if !wrong.is_empty() {
            return Err(SelectorError(format!(
                "<nil>: Invalid value: {key:?}: {}",
                wrong.join("; ")
            )));
        }
        let ends = matches!(self.peek(), Token::End) || *self.peek() == Token::Symbol(",".into());
        if absent || ends {
            let operator = if absent {
                Operator::Absent
            } else {
                Operator::Exists
            };
            return Ok(Term {
                key,
                operator,
                values: Vec::new(),
            });
        }
        let (operator, is_set) = self.parse_operator()?;
        let values = if is_set {
            self.parse_values()?
        } else {
            vec![self.parse_value()?]
        };
        check_values(&key, operator, &values)?;
        Ok(Term {
            key,
            operator,
            values,
        })
    }

    fn parse_operator(&mut self) -> Result<(Operator, bool), SelectorError> {
        let token = self.next();
        Ok(match token_text(&token) {
            "in" => (Operator::In, true),
            "notin" => (Operator::NotIn, true),
            "=" | "==" => (Operator::In, false),
            "!=" => (Operator::NotIn, false),
            ">" => (Operator::Greater, false),
            "<" => (Operator::Less, false),
            other => {
                return Err(SelectorError(format!(
                    "found '{other}', expected: in, notin, =, ==, !=, gt, lt"
                )));
            }
        })
    }

    fn parse_value(&mut self) -> Result<String, SelectorError> {
        if matches!(self.peek(), Token::End) || *self.peek() == Token::Symbol(",".into()) {
            return Ok(String::new());
        }
        match self.next() {
            Token::Word(word) => Ok(word),
            other => Err(SelectorError(format!(
                "found '{}', expected: identifier",
                token_text(&other)
            ))),
        }
    }

    fn parse_values(&mut self) -> Result<Vec<String>, SelectorError> {
        let open = self.next();
        if token_text(&open) != "(" {
            return Err(SelectorError(format!(
                "found '{}' expected: '('",
                token_text(&open)
            )));
        }
        let mut values = Vec::new();
        let mut after_word = false;
        loop {
            match self.next() {
                Token::Word(word) if !after_word => {
                    values.push(word);
                    after_word = true;
                }
                Token::Symbol(symbol) if symbol == ")" => {
                    if !after_word {
                        values.push(String::new());
                    }
                    break;
                }
                Token::Symbol(symbol) if symbol == "," => {
                    if !after_word {
                        values.push(String::new());
                    }
                    after_word = false;
                }
                other if after_word => {
                    return Err(SelectorError(format!(
                        "found '{}', expected: ',' or ')'",
                        token_text(&other)
                    )));
                }
                other => {
                    return Err(SelectorError(format!(
                        "found '{}', expected: ',', or identifier",
                        token_text(&other)
                    )));
                }
            }
        }
        values.sort();
        values.dedup();
        Ok(values)
    }
}

fn check_values(key: &str, operator: Operator, values: &[String]) -> Result<(), SelectorError> {
    let mut wrong = Vec::new();
    for (at, value) in values.iter().enumerate() {
        if matches!(operator, Operator::Greater | Operator::Less) && value.parse::<i64>().is_err() {
            wrong.push(format!("values[{at}]: Invalid value: {value:?}: for 'Gt', 'Lt' operators, the value must be an integer"));
        }
    }
    for (at, value) in values.iter().enumerate() {
        let problems = names::label_value(value);
        if !problems.is_empty() {
            wrong.push(format!(
                "values[{at}][{key}]: Invalid value: {value:?}: {}",
                problems.join("; ")
            ));
        }
    }
    match wrong.as_slice() {
        [] => Ok(()),
        [one] => Err(SelectorError(one.clone())),
        many => Err(SelectorError(format!("[{}]", many.join(", ")))),
    }
}

fn token_text(token: &Token) -> &str {
    match token {
        Token::Word(text) | Token::Symbol(text) => text,
        Token::End => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, labels: &str, expected: bool) {
        let selector = LabelSelector::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        let pairs: Vec<_> = labels
            .split(',')
            .filter_map(|pair| pair.split_once('='))
            .collect();
        let found = selector.matches(&|key| {
            pairs
                .iter()
                .find(|(have, _)| *have == key)
                .map(|(_, value)| *value)
        });
        assert_eq!(found, expected, "{text} on {labels}");
    }

    fn check_error(text: &str, expected: &str) {
        assert_eq!(
            LabelSelector::parse(text).unwrap_err().to_string(),
            expected,
            "{text}"
        );
    }

    #[test]
    fn selectors_match_labels() {
        check("", "a=b", true);
        check("a=b", "a=b", true);
        check("a==b,c", "a=b", false);
        check("a!=b", "", true);
        check("a in (x, y)", "a=y", true);
        check("a notin (x,y)", "a=z", true);
        check("a notin (x,y)", "", true);
        check("!a", "a=b", false);
        check("a>3", "a=5", true);
        check("a<3", "a=5", false);
        check("a=", "a=", true);
        check("a in ()", "a=", true);
    }

    #[test]
    fn errors_match_the_server() {
        check_error("a in x", "unable to parse requirement: found 'x' expected: '('");
        check_error("a=b,", "found '', expected: identifier after ','");
        check_error("=b", "found '=', expected: !, identifier, or 'end of string'");
        check_error(
            "a b",
            "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt",
        );
        check_error("a=b c", "found 'c', expected: ',' or 'end of string'");
    }
}
