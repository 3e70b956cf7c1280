//! YAML and JSON, parsed and written exactly as in Go: text with positions to values, and values to text.
//! Independent of Kubernetes, charts and templates.

mod budget;
mod chars;
mod decode;
mod entries;
mod error;
mod float;
mod json;
#[cfg(feature = "serde_json")]
mod json_value;
mod json_writer;
mod order;
mod read;
mod resolve;
mod sink;
mod spanned;
mod timestamp;
mod value;
mod yaml_writer;

pub use budget::{Budget, Numbers};
pub use decode::{Options, parse, parse_list, parse_map, parse_with, reads_as};
pub use entries::parse_entries;
pub use error::{Error, Operation, Position, Problem};
pub use float::float_to_json;
pub use json::{parse_json, parse_json_list, parse_json_map, parse_json_map_partial};
pub use json_writer::{JsonWriter, to_json, to_json_pretty, to_json_raw};
pub use order::natural_cmp;
pub use read::{
    Elision, ElisionRules, Outline, OutlineItem, check_syntax, elidable_values, is_simple, outline,
    root_scalar,
};
pub use sink::{KeyOrder, Sink};
pub use spanned::{
    Document, Node, NodeId, NodeKind, ScalarStyle, Span, SpannedValue, parse_spanned, parse_spanned_values,
};
pub use value::{Map, Value};
pub use yaml_writer::{YamlWriter, to_yaml_v2, to_yaml_v3};
