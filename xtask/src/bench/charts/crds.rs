//! A chart of custom resource definitions, as operators ship them: long schemas with descriptions,
//! and a few template actions in the head of each file.

use std::fmt::Write as _;

use super::{Files, chart_yaml};

/// Number of definitions.
const DEFINITIONS: usize = 60;

/// Names of resources; the number of the definition makes them unique.
const KINDS: &[&str] = &[
    "Gateway", "Route", "Policy", "Backend", "Listener", "Pool", "Probe", "Rule",
];

/// Names and types of properties, repeated on every level.
const FIELDS: &[(&str, Shape)] = &[
    ("class", Shape::Scalar("string")),
    ("annotations", Shape::StringMap),
    ("args", Shape::StringList),
    ("enabled", Shape::Scalar("boolean")),
    ("endpoints", Shape::ObjectList),
    (
        "interval",
        Shape::Pattern("^(0|(([0-9]+)h)?(([0-9]+)m)?(([0-9]+)s)?)$"),
    ),
    ("limits", Shape::Quantity),
    ("mode", Shape::Enumeration(&["Strict", "Permissive", "Disabled"])),
    ("port", Shape::Port),
    ("selector", Shape::Object),
    ("weight", Shape::Scalar("integer")),
];

/// Nesting of objects in a schema.
const DEPTH: usize = 4;

/// Shape of a property.
#[derive(Clone, Copy)]
enum Shape {
    Scalar(&'static str),
    Pattern(&'static str),
    Enumeration(&'static [&'static str]),
    Port,
    Quantity,
    StringMap,
    StringList,
    Object,
    ObjectList,
}

/// Sentences of descriptions.
const SENTENCES: &[&str] = &[
    "Defines how connections of this listener are balanced over the endpoints of a pool.",
    "If unset, the value of the surrounding policy applies, and the default of the cluster after it.",
    "More info: https://example.com/docs/concepts/policies/#inheritance",
    "This field is immutable once the resource is accepted; the `Accepted` condition reports conflicts.",
    "Deprecated: use `spec.template.selector` instead, which is evaluated per namespace.",
    "Requests above the limit are queued for at most `interval` and rejected with status 503 afterwards.",
];

pub(super) fn files() -> Files {
    let values = "crds:\n  install: true\n  annotations:\n    example.com/keep: \"true\"\n  labels: {}\n";
    let mut files = vec![
        ("Chart.yaml".into(), chart_yaml("crds")),
        ("values.yaml".into(), values.into()),
    ];
    files.extend(
        (0..DEFINITIONS).map(|number| (format!("templates/crd-{number:02}.yaml"), definition(number))),
    );
    files
}

fn definition(number: usize) -> String {
    let kind = format!("{}{number}", pick(KINDS, number));
    let name = kind.to_lowercase();
    let mut out = format!(
        "{{{{- if .Values.crds.install }}}}\n---\napiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata:\n  \
         annotations:\n    controller-gen.kubebuilder.io/version: v0.17.0\n    {{{{- with .Values.crds.annotations }}}}\n    \
         {{{{- toYaml . | nindent 4 }}}}\n    {{{{- end }}}}\n  {{{{- with .Values.crds.labels }}}}\n  labels:\n    \
         {{{{- toYaml . | nindent 4 }}}}\n  {{{{- end }}}}\n  name: {name}s.bench.example.com\nspec:\n  group: bench.example.com\n  \
         names:\n    categories:\n    - bench\n    kind: {kind}\n    listKind: {kind}List\n    plural: {name}s\n    \
         singular: {name}\n  scope: Namespaced\n  versions:\n  - additionalPrinterColumns:\n    \
         - jsonPath: .status.conditions[?(@.type == 'Ready')].status\n      name: Ready\n      type: string\n    name: v1\n    \
         schema:\n      openAPIV3Schema:\n        description: {kind} is part of the bench.\n        properties:\n          \
         apiVersion:\n            type: string\n          kind:\n            type: string\n          metadata:\n            \
         type: object\n          spec:\n"
    );
    let mut schema = Schema {
        out: &mut out,
        count: number,
    };
    schema.object(12, DEPTH);
    out.push_str("        required:\n        - spec\n        type: object\n    served: true\n    storage: true\n    subresources:\n      status: {}\n{{- end }}\n");
    out
}

fn pick<T: Copy + Default>(table: &[T], number: usize) -> T {
    table.get(number % table.len()).copied().unwrap_or_default()
}

/// Writer of one schema.
struct Schema<'a> {
    out: &'a mut String,
    /// Number of properties so far; selects the sentences.
    count: usize,
}

impl Schema<'_> {
    fn line(&mut self, indent: usize, text: &str) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.out, "{:indent$}{text}", "");
    }

    /// Writes the fields of an object schema.
    fn object(&mut self, indent: usize, depth: usize) {
        self.description(indent);
        self.line(indent, "properties:");
        for (name, shape) in FIELDS {
            self.line(indent + 2, &format!("{name}:"));
            self.property(indent + 4, *shape, depth);
        }
        self.line(indent, "type: object");
    }

    fn property(&mut self, indent: usize, shape: Shape, depth: usize) {
        self.count += 1;
        match shape {
            Shape::Object | Shape::ObjectList if depth == 0 => self.scalar(indent, "string"),
            Shape::Object => self.object(indent, depth - 1),
            Shape::ObjectList => {
                self.description(indent);
                self.line(indent, "items:");
                self.object(indent + 2, depth - 1);
                self.line(indent, "maxItems: 64");
                self.line(indent, "type: array");
                self.line(indent, "x-kubernetes-list-type: atomic");
            }
            Shape::Scalar(kind) => self.scalar(indent, kind),
            Shape::Pattern(pattern) => {
                self.description(indent);
                self.line(indent, &format!("pattern: {pattern}"));
                self.line(indent, "type: string");
            }
            Shape::Enumeration(names) => {
                self.description(indent);
                self.line(indent, "enum:");
                for name in names {
                    self.line(indent, &format!("- {name}"));
                }
                self.line(indent, "type: string");
            }
            Shape::Port => {
                self.description(indent);
                self.line(indent, "format: int32");
                self.line(indent, "maximum: 65535");
                self.line(indent, "minimum: 1");
                self.line(indent, "type: integer");
            }
            Shape::Quantity => {
                self.line(indent, "anyOf:");
                self.line(indent, "- type: integer");
                self.line(indent, "- type: string");
                self.description(indent);
                self.line(indent, "x-kubernetes-int-or-string: true");
            }
            Shape::StringMap => {
                self.line(indent, "additionalProperties:");
                self.line(indent, "  type: string");
                self.scalar(indent, "object");
            }
            Shape::StringList => {
                self.description(indent);
                self.line(indent, "items:");
                self.line(indent, "  type: string");
                self.line(indent, "type: array");
            }
        }
    }

    fn scalar(&mut self, indent: usize, kind: &str) {
        self.description(indent);
        self.line(indent, &format!("type: {kind}"));
    }

    /// Writes a description: a literal block, a plain scalar over two lines, or one line.
    fn description(&mut self, indent: usize) {
        let [first, second, third] = [0, 1, 2].map(|offset| pick(SENTENCES, self.count + offset));
        match self.count % 3 {
            0 => {
                self.line(indent, "description: |-");
                for sentence in [first, second, third] {
                    self.line(indent + 2, sentence);
                }
            }
            1 if !first.contains(": ") && !second.contains(": ") => {
                self.line(indent, &format!("description: {first}"));
                self.line(indent + 2, second);
            }
            _ => self.line(indent, &format!("description: '{}'", first.replace('\'', "''"))),
        }
    }
}
