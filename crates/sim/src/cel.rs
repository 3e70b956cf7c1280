//! CEL: compiles expressions and evaluates them within depth and cost limits.
//!
//! Parser, type checker and core evaluation are implemented here. The Kubernetes function libraries are
//! those of `kube-cel`. `cel::Program` (cel 0.13, kube-cel 0.8, default settings) cannot be used instead:
//! 62 of the 197 expressions in the unit tests and conformance scenarios have different results. For
//! example, it compiles `1 + 'a'` and rejects `self.?q.orValue('none')`. It did not finish the nested loop
//! of the test `cost_is_bounded` within a minute.

mod ast;
mod check;
mod eval;
mod fold;
mod lex;
mod library;
mod number;
mod overloads;
mod parse;
mod source;
mod types;
mod url;
mod value;

pub(crate) use eval::{Failure, KnownNames, Names};
pub(crate) use types::Type;
pub(crate) use value::Val;

/// Cost limit of one expression.
pub(crate) const PER_CALL_LIMIT: u64 = 1_000_000;
/// Cost budget of all validation expressions of one object, or of one policy, together.
pub(crate) const VALIDATION_BUDGET: u64 = 10_000_000;
/// Maximum length of the result of a `messageExpression`, in bytes.
const MAX_MESSAGE_LEN: usize = 5 * 1024;

/// A compiled expression.
#[derive(Debug)]
pub(crate) struct Program {
    expr: ast::Expr,
    patterns: library::Patterns,
}

/// Error of an expression that does not compile. The report consists of one or more messages with position
/// and source line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{report}")]
pub(crate) struct CompileError {
    report: String,
}

impl CompileError {
    fn new(report: String) -> Self {
        Self { report }
    }
}

/// Compiles an expression that may use `names`. Returns the program and the type of its result.
pub(crate) fn compile<'t>(
    source: &str,
    names: &[(&str, Type<'t>)],
) -> Result<(Program, Type<'t>), CompileError> {
    let expr = parse::parse(source)?;
    let kind = check::check_types(source, &expr, names)?;
    let patterns = library::Patterns::new(&expr);
    Ok((Program { expr, patterns }, kind))
}

impl Program {
    /// Returns whether the expression refers to `name`.
    pub(crate) fn uses(&self, name: &str) -> bool {
        self.expr.refers_to(name)
    }

    /// Evaluates the expression. `cost` is the remaining budget, which is reduced by the cost of the
    /// evaluation.
    pub(crate) fn evaluate<'a>(&'a self, names: &dyn Names<'a>, cost: &mut u64) -> Result<Val<'a>, Failure> {
        eval::evaluate(&self.expr, &self.patterns, names, cost)
    }
}

/// Returns the trimmed result of a `messageExpression` if it can be used as a message.
pub(crate) fn message_text(result: &Val<'_>) -> Option<String> {
    let Val::Text(text) = result else { return None };
    let text = text.trim();
    let is_usable = !text.is_empty() && text.len() <= MAX_MESSAGE_LEN && !text.contains('\n');
    is_usable.then(|| text.to_owned())
}

#[cfg(test)]
mod tests;
