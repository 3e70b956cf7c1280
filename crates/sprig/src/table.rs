//! Constructors for function declarations.

use mainstay_template::{Call, Failure, Function, Type, Value};

/// The implementation of a function.
pub(crate) type Run = fn(&mut Call<'_>) -> Result<Value, Failure>;

/// Declares a function with exactly these parameters.
pub(crate) const fn fixed(name: &'static str, params: &'static [Type], run: Run) -> Function {
    Function {
        name,
        params,
        variadic: false,
        run,
    }
}

/// Declares a variadic function.
pub(crate) const fn variadic(name: &'static str, params: &'static [Type], run: Run) -> Function {
    Function {
        name,
        params,
        variadic: true,
        run,
    }
}
