//! Go's `text/template` for Rust: takes template text and values, gives text. Values alias as Go's maps do, native objects
//! have methods, and every run is bounded. Knows nothing of charts, files, clocks or the network.

mod error;
mod function;
mod limit;
mod object;
mod string;
mod tree;
mod value;

pub use error::{Error, Position};
pub use function::{Call, Failure, Function, Host, Templates, Type};
pub use limit::{Exhausted, Limits, Meter};
pub use object::{Object, Shape, Signature};
pub use string::Str;
pub use tree::TreeError;
pub use value::{IntKind, List, ListType, Map, MapType, Value};
