//! Label selectors, as text (`app=a,tier in (x,y),!old`) and as objects (`matchLabels`, `matchExpressions`).

use serde_json::Value;

use super::SelectorError;
use crate::tree;
use crate::validation::names;

/// A conjunction of requirements.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabelSelector {
    terms: Vec<Term>,
    nothing: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Term {
    key: String,
    test: Test,
    values: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Test {
    In,
    NotIn,
    Exists,
    Absent,
    Greater,
    Less,
}

impl LabelSelector {
    /// Parses a selector; the error is the API server's message.
    pub fn parse(text: &str) -> Result<Self, SelectorError> {
        Parser {
            tokens: lex(text),
            at: 0,
        }
        .selector()
        .map(|terms| Self {
            terms,
            nothing: false,
        })
    }

    /// Parses a `metav1.LabelSelector`; a missing one selects nothing, an empty one everything.
    #[must_use]
    pub fn from_object(selector: Option<&Value>) -> Self {
        let Some(selector) = selector.filter(|there| there.is_object()) else {
            return Self {
                terms: Vec::new(),
                nothing: true,
            };
        };
        let equal = tree::map(selector, &["matchLabels"])
            .into_iter()
            .flatten()
            .map(|(key, value)| Term {
                key: key.clone(),
                test: Test::In,
                values: vec![value.as_str().unwrap_or("").to_owned()],
            });
        let expressions = tree::list(selector, &["matchExpressions"])
            .iter()
            .filter_map(expression);
        Self {
            terms: equal.chain(expressions).collect(),
            nothing: false,
        }
    }

    /// Parses a map of labels, as in Services and replication controllers.
    #[must_use]
    pub fn from_map(labels: Option<&Value>) -> Self {
        let labels = labels.and_then(Value::as_object);
        let term = |(key, value): (&String, &Value)| Term {
            key: key.clone(),
            test: Test::In,
            values: vec![value.as_str().unwrap_or("").to_owned()],
        };
        Self {
            terms: labels.into_iter().flatten().map(term).collect(),
            nothing: false,
        }
    }

    /// Returns whether every object matches.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty() && !self.nothing
    }

    /// Returns whether an object with these labels matches.
    #[must_use]
    pub fn matches<'a>(&self, label: &dyn Fn(&str) -> Option<&'a str>) -> bool {
        !self.nothing && self.terms.iter().all(|term| term.matches(label(&term.key)))
    }

    /// Returns whether an object with the labels in `labels` (a JSON map) matches.
    #[must_use]
    pub fn matches_map(&self, labels: Option<&Value>) -> bool {
        self.matches(&|key| labels?.get(key)?.as_str())
    }
}

impl Term {
    fn matches(&self, value: Option<&str>) -> bool {
        let listed = |value: &str| self.values.iter().any(|one| one == value);
        let number = |text: &str| text.parse::<i64>().ok();
        match (self.test, value) {
            (Test::In, Some(value)) => listed(value),
            (Test::NotIn, Some(value)) => !listed(value),
            (Test::Exists, Some(_)) | (Test::NotIn | Test::Absent, None) => true,
            (Test::Greater | Test::Less, Some(value)) => {
                let bound = self.values.first().and_then(|bound| number(bound));
                match (number(value), bound) {
                    (Some(value), Some(bound)) if self.test == Test::Greater => value > bound,
                    (Some(value), Some(bound)) => value < bound,
                    _ => false,
                }
            }
            _ => false,
        }
    }
}

fn expression(value: &Value) -> Option<Term> {
    let test = match tree::text(value, &["operator"]) {
        "In" => Test::In,
        "NotIn" => Test::NotIn,
        "Exists" => Test::Exists,
        "DoesNotExist" => Test::Absent,
        _ => return None,
    };
    let values = tree::list(value, &["values"])
        .iter()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect();
    Some(Term {
        key: tree::text(value, &["key"]).to_owned(),
        test,
        values,
    })
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Word(String),
    Sign(String),
    End,
}

/// Characters that are tokens by themselves or in runs.
fn is_sign(c: char) -> bool {
    matches!(c, '=' | '!' | '(' | ')' | ',' | '>' | '<')
}

fn lex(text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '=' if rest.starts_with("==") => 2,
            '!' if rest.starts_with("!=") => 2,
            c if is_sign(c) => 1,
            _ => rest
                .find(|c: char| is_sign(c) || c.is_ascii_whitespace())
                .unwrap_or(rest.len()),
        };
        let (token, after) = rest.split_at_checked(length).unwrap_or((rest, ""));
        tokens.push(if is_sign(first) {
            Token::Sign(token.into())
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

    fn selector(mut self) -> Result<Vec<Term>, SelectorError> {
        let mut terms = Vec::new();
        loop {
            match self.peek() {
                Token::End => return Ok(terms),
                Token::Word(_) => {}
                Token::Sign(sign) if sign == "!" => {}
                Token::Sign(sign) => {
                    return Err(SelectorError(format!(
                        "found '{sign}', expected: !, identifier, or 'end of string'"
                    )));
                }
            }
            terms.push(
                self.requirement()
                    .map_err(|error| SelectorError(format!("unable to parse requirement: {error}")))?,
            );
            match self.next() {
                Token::End => return Ok(terms),
                Token::Sign(sign) if sign == "," => match self.peek() {
                    Token::Word(_) => {}
                    Token::Sign(sign) if sign == "!" => {}
                    other => {
                        return Err(SelectorError(format!(
                            "found '{}', expected: identifier after ','",
                            shown(other)
                        )));
                    }
                },
                other => {
                    return Err(SelectorError(format!(
                        "found '{}', expected: ',' or 'end of string'",
                        shown(&other)
                    )));
                }
            }
        }
    }

    fn requirement(&mut self) -> Result<Term, SelectorError> {
        let mut token = self.next();
        let absent = token == Token::Sign("!".into());
        if absent {
            token = self.next();
        }
        let Token::Word(key) = token else {
            return Err(SelectorError(format!(
                "found '{}', expected: identifier",
                shown(&token)
            )));
        };
        let wrong = names::qualified(&key);
        if !wrong.is_empty() {
            return Err(SelectorError(format!(
                "<nil>: Invalid value: {key:?}: {}",
                wrong.join("; ")
            )));
        }
        let ends = matches!(self.peek(), Token::End) || *self.peek() == Token::Sign(",".into());
        if absent || ends {
            let test = if absent { Test::Absent } else { Test::Exists };
            return Ok(Term {
                key,
                test,
                values: Vec::new(),
            });
        }
        let (test, set) = self.operator()?;
        let values = if set { self.values()? } else { vec![self.exact()?] };
        check_values(&key, test, &values)?;
        Ok(Term { key, test, values })
    }

    fn operator(&mut self) -> Result<(Test, bool), SelectorError> {
        let token = self.next();
        Ok(match shown(&token) {
            "in" => (Test::In, true),
            "notin" => (Test::NotIn, true),
            "=" | "==" => (Test::In, false),
            "!=" => (Test::NotIn, false),
            ">" => (Test::Greater, false),
            "<" => (Test::Less, false),
            other => {
                return Err(SelectorError(format!(
                    "found '{other}', expected: in, notin, =, ==, !=, gt, lt"
                )));
            }
        })
    }

    fn exact(&mut self) -> Result<String, SelectorError> {
        if matches!(self.peek(), Token::End) || *self.peek() == Token::Sign(",".into()) {
            return Ok(String::new());
        }
        match self.next() {
            Token::Word(word) => Ok(word),
            other => Err(SelectorError(format!(
                "found '{}', expected: identifier",
                shown(&other)
            ))),
        }
    }

    fn values(&mut self) -> Result<Vec<String>, SelectorError> {
        let open = self.next();
        if shown(&open) != "(" {
            return Err(SelectorError(format!("found '{}' expected: '('", shown(&open))));
        }
        let mut values = Vec::new();
        let mut after_word = false;
        loop {
            match self.next() {
                Token::Word(word) if !after_word => {
                    values.push(word);
                    after_word = true;
                }
                Token::Sign(sign) if sign == ")" => {
                    if !after_word {
                        values.push(String::new());
                    }
                    break;
                }
                Token::Sign(sign) if sign == "," => {
                    if !after_word {
                        values.push(String::new());
                    }
                    after_word = false;
                }
                other if after_word => {
                    return Err(SelectorError(format!(
                        "found '{}', expected: ',' or ')'",
                        shown(&other)
                    )));
                }
                other => {
                    return Err(SelectorError(format!(
                        "found '{}', expected: ',', or identifier",
                        shown(&other)
                    )));
                }
            }
        }
        values.sort();
        values.dedup();
        Ok(values)
    }
}

fn check_values(key: &str, test: Test, values: &[String]) -> Result<(), SelectorError> {
    let mut wrong = Vec::new();
    for (at, value) in values.iter().enumerate() {
        if matches!(test, Test::Greater | Test::Less) && value.parse::<i64>().is_err() {
            wrong.push(format!("values[{at}]: Invalid value: {value:?}: for 'Gt', 'Lt' operators, the value must be an integer"));
        }
    }
    for (at, value) in values.iter().enumerate() {
        let faults = names::label_value(value);
        if !faults.is_empty() {
            wrong.push(format!(
                "values[{at}][{key}]: Invalid value: {value:?}: {}",
                faults.join("; ")
            ));
        }
    }
    match wrong.as_slice() {
        [] => Ok(()),
        [one] => Err(SelectorError(one.clone())),
        many => Err(SelectorError(format!("[{}]", many.join(", ")))),
    }
}

fn shown(token: &Token) -> &str {
    match token {
        Token::Word(text) | Token::Sign(text) => text,
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
    fn selects() {
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
