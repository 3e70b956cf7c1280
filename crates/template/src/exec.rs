//! Execution of templates. Functions run templates through [`Templates`].

mod call;
mod eval;
mod field;
mod truth;
mod walk;

use std::collections::HashMap;
use std::sync::Arc;

use crate::ast::{NodeId, Source, Template};
use crate::error::{Error, Position};
use crate::function::{Failure, Host, Templates};
use crate::limit::{LimitExceeded, Meter};
use crate::set::{MissingKey, TemplateSet};
use crate::slot::Slot;
use crate::value::Value;
use mainstay_gostd::quote::quote;

/// Runs the template `name` of `set` with `dot`. Returns no output if the run fails.
pub fn execute(
    set: &TemplateSet,
    name: &str,
    dot: Value,
    meter: &mut Meter,
    host: &mut dyn Host,
) -> Result<Vec<u8>, Error> {
    let _cycles = crate::cycle::CycleScope::new();
    Scope::new(set).execute_named(name, dot, meter, host)
}

/// Visible templates: the definitions of the active `tpl` texts, innermost first, and the templates of the
/// set. The first match is used.
struct Scope<'a> {
    set: &'a TemplateSet,
    own: HashMap<Arc<str>, Template>,
    outer: Option<&'a Scope<'a>>,
}

impl<'a> Scope<'a> {
    fn new(set: &'a TemplateSet) -> Self {
        Self {
            set,
            own: HashMap::new(),
            outer: None,
        }
    }

    fn find(&self, name: &str) -> Option<&Template> {
        let mut scope = Some(self);
        while let Some(inner) = scope {
            if let Some(template) = inner.own.get(name) {
                return Some(template);
            }
            scope = inner.outer;
        }
        self.set.find(name)
    }

    fn execute_named(
        &self,
        name: &str,
        dot: Value,
        meter: &mut Meter,
        host: &mut dyn Host,
    ) -> Result<Vec<u8>, Error> {
        let Some(template) = self.find(name) else {
            let set = quote(self.set.name());
            return Err(Error::plain(format!(
                "template: no template {} associated with template {set}",
                quote(name)
            )));
        };
        self.run(template, dot, meter, host)
    }

    fn run(
        &self,
        template: &Template,
        dot: Value,
        meter: &mut Meter,
        host: &mut dyn Host,
    ) -> Result<Vec<u8>, Error> {
        let mut run = Run {
            scope: self,
            missing_key: self.set.missing_key_option(),
            source: &template.source,
            template,
            meter,
            host,
            out: Vec::with_capacity(512),
            at: None,
            vars: Vec::with_capacity(8),
            frame: 0,
            argument_lists: Vec::new(),
            scratch: Vec::new(),
        };
        run.run_root(&Slot::result(dot).unwrap_interface())
            .map_err(|error| *error)?;
        Ok(run.out)
    }
}

/// Error of a failed step. Boxed, because most steps succeed.
type Fault = Box<Error>;
type Step<T> = Result<T, Fault>;

/// A running template, including those it calls by `template`.
struct Run<'a> {
    scope: &'a Scope<'a>,
    missing_key: MissingKey,
    source: &'a Source,
    template: &'a Template,
    meter: &'a mut Meter,
    host: &'a mut dyn Host,
    out: Vec<u8>,
    /// Node that errors refer to.
    at: Option<NodeId>,
    /// Variables, by the index of their name. The innermost scope is last.
    vars: Vec<(u32, Slot)>,
    /// Index of the first variable of this template.
    frame: usize,
    /// Argument lists that can be reused.
    argument_lists: Vec<Vec<Value>>,
    /// Scratch buffer for text that becomes a string.
    scratch: Vec<u8>,
}

impl Run<'_> {
    /// Creates an error at the current node.
    fn fail<T>(&self, message: impl AsRef<str>) -> Step<T> {
        Err(self.fault(message.as_ref()))
    }

    #[cold]
    #[allow(clippy::unnecessary_box_returns)]
    fn fault(&self, message: &str) -> Fault {
        let (template, parsed) = (&self.template.name, &self.template.text_name);
        let Some(node) = self.at else {
            return Box::new(Error::plain(format!("template: {template}: {message}")));
        };
        let (line, column) = self.source.line_and_column(node);
        let shown = self.source.show(node);
        let text = format!(
            "template: {parsed}:{line}:{column}: executing {} at <{shown}>: {message}",
            quote(template.as_bytes())
        );
        let at = vec![Position {
            template: parsed.to_string(),
            line,
            column: Some(column),
        }];
        Box::new(Error {
            text,
            at,
            limit_exceeded: None,
        })
    }

    /// Creates the error of an exceeded limit at the current node.
    #[cold]
    #[allow(clippy::unnecessary_box_returns)]
    fn limit_fault(&self, limit: LimitExceeded) -> Fault {
        let mut fault = self.fault(&limit.to_string());
        fault.limit_exceeded = Some(limit);
        fault
    }

    /// Creates the error of a failed function. If the function ran templates, their positions are appended
    /// to the position of the call.
    #[cold]
    #[allow(clippy::unnecessary_box_returns)]
    fn failure(&self, name: &[u8], failure: Failure) -> Fault {
        let name = String::from_utf8_lossy(name);
        match failure {
            Failure::LimitExceeded(limit) => self.limit_fault(limit),
            Failure::Message(text) => self.fault(&format!("error calling {name}: {text}")),
            Failure::Template(inner) | Failure::Parse(inner) => {
                let mut fault = self.fault(&format!("error calling {name}: {}", inner.text));
                fault.at.extend(inner.at);
                fault.limit_exceeded = inner.limit_exceeded;
                fault
            }
        }
    }

    #[inline]
    fn consume_fuel(&mut self, steps: u64) -> Step<()> {
        match self.meter.consume_fuel(steps) {
            Ok(()) => Ok(()),
            Err(limit) => Err(self.limit_fault(limit)),
        }
    }
}

/// Implementation of [`Templates`] that is passed to one function call.
struct Callback<'a> {
    scope: &'a Scope<'a>,
}

impl Templates for Callback<'_> {
    fn execute(
        &mut self,
        name: &str,
        dot: Value,
        meter: &mut Meter,
        host: &mut dyn Host,
    ) -> Result<Vec<u8>, Failure> {
        run_nested(meter, |meter| self.scope.execute_named(name, dot, meter, host))
    }

    fn execute_text(
        &mut self,
        name: &str,
        text: &[u8],
        dot: Value,
        meter: &mut Meter,
        host: &mut dyn Host,
    ) -> Result<Vec<u8>, Failure> {
        meter.consume_fuel(text.len() as u64 / 16)?;
        if memchr::memmem::find(text, LEFT_DELIM).is_none() {
            return render_plain_text(text, meter);
        }
        let parsed = self
            .scope
            .set
            .parse_only(name, text)
            .map_err(|error| Failure::Parse(Box::new(error)))?;
        let mut own = HashMap::new();
        for template in parsed.templates() {
            if !template.is_blank() || self.scope.find(&template.name).is_none() {
                own.insert(Arc::clone(&template.name), template);
            }
        }
        let main = Template {
            name: name.into(),
            text_name: Arc::clone(&parsed.name),
            source: Arc::clone(&parsed.source),
            root: parsed.main,
        };
        let scope = Scope {
            set: self.scope.set,
            own,
            outer: Some(self.scope),
        };
        run_nested(meter, |meter| scope.run(&main, dot, meter, host))
    }
}

/// Left delimiter of an action.
const LEFT_DELIM: &[u8] = b"{{";

/// Returns a text without actions. Consumes the resources of its two nodes.
fn render_plain_text(text: &[u8], meter: &mut Meter) -> Result<Vec<u8>, Failure> {
    meter.enter()?;
    meter.leave();
    meter.consume_fuel(2)?;
    meter.consume_output(text.len())?;
    Ok(text.to_vec())
}

fn run_nested(
    meter: &mut Meter,
    run: impl FnOnce(&mut Meter) -> Result<Vec<u8>, Error>,
) -> Result<Vec<u8>, Failure> {
    meter.enter()?;
    let result = crate::stack::ensure_stack(|| run(meter));
    meter.leave();
    result.map_err(|error| Failure::Template(Box::new(error)))
}
