//! How a module declares its functions: takes a name, the Go parameter types and the code, gives a row.

use mainstay_template::{Call, Failure, Function, Type, Value};

/// What a row runs.
pub(crate) type Run = fn(&mut Call<'_>) -> Result<Value, Failure>;

/// A function of exactly these parameters.
pub(crate) const fn fixed(name: &'static str, params: &'static [Type], run: Run) -> Function {
    Function {
        name,
        params,
        variadic: false,
        run,
    }
}

/// A function whose last parameter repeats.
pub(crate) const fn variadic(name: &'static str, params: &'static [Type], run: Run) -> Function {
    Function {
        name,
        params,
        variadic: true,
        run,
    }
}
