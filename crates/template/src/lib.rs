//! Go's `text/template` for Rust. Values alias as Go's maps do, native objects have methods, and every run
//! has limits. Independent of charts, files, clocks and the network.
//!
//! ```
//! use mainstay_template::{Limits, Meter, NoHost, TemplateSet, Value, execute};
//!
//! let mut set = TemplateSet::new();
//! set.parse("greeting", "Hello, {{.}}!")?;
//! let mut meter = Meter::new(Limits::default());
//! let out = execute(&set, "greeting", Value::from("world"), &mut meter, &mut NoHost)?;
//! assert_eq!(out, b"Hello, world!");
//! # Ok::<(), mainstay_template::Error>(())
//! ```

mod ast;
mod builtin;
mod cycle;
mod error;
mod exec;
mod fmt;
mod function;
mod kind;
mod limit;
mod live;
mod names;
mod object;
mod parse;
mod set;
mod slot;
mod stack;
mod string;
mod texts;
mod tree;
mod value;

pub use cycle::CycleScope;
pub use error::{Error, Position};
pub use exec::execute;
pub use fmt::{format, print, print_line, print_value};
pub use function::{Call, Failure, Function, Host, NoHost, Templates, Type};
pub use limit::{LimitExceeded, Limits, Meter};
pub use object::{GoKind, Method, NamedType, Object, Signature};
pub use set::{MissingKey, TemplateSet};
pub use stack::ensure_stack;
pub use string::Str;
pub use tree::{EmitError, encode_base64};
pub use value::{CONTAINER_BYTES, ENTRY_BYTES, IntKind, List, ListType, Map, MapType, UintKind, Value};
