//! Confines the objects of a component to its chart and to its namespaces, for a controller that writes
//! objects with its own permissions.

use mainstay_chart::ObjectIdentity;
use mainstay_chart::confine::{find_added, has_line_break, is_multi_line, is_outside};

use crate::component::Instance;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::merge::text_at;
use crate::object::Object;
use crate::render::Renderer;
use crate::translate::Translated;
use crate::values::ChartInput;

/// Checks that the namespace of a component, which templates print without quotes, has no line break.
pub(crate) fn check_namespace(instance: &Instance) -> Result<(), Box<Diagnostic>> {
    if is_multi_line(&instance.namespace) {
        let message = "the namespace contains a line break";
        return Err(Box::new(Diagnostic::fatal(instance.path.clone(), message)));
    }
    Ok(())
}

/// Checks that no value adds an object to the rendered ones.
pub(crate) fn check_values(
    input: &ChartInput,
    rendered: &[ObjectIdentity],
    renderer: &mut Renderer<'_>,
) -> Result<(), Box<Diagnostic>> {
    let (chart, path) = (input.instance.component.chart, &input.instance.path);
    let failed = |message: String| Err(Box::new(Diagnostic::fatal(path.clone(), message)));
    if !has_line_break(&input.values) {
        return Ok(());
    }
    let Some(reference) = renderer.render_without_line_breaks(input) else {
        return failed(format!(
            "cannot tell which objects of chart {chart:?} come from values with line breaks; remove the line breaks"
        ));
    };
    let reference = reference.iter().map(Object::identity);
    match find_added(rendered.iter().cloned(), reference) {
        None => Ok(()),
        Some(object) => failed(format!(
            "{object} is not part of chart {chart:?}: a value with a line break adds it; remove the line break"
        )),
    }
}

/// Checks that overlays do not change the kinds of objects, and that every object is in the namespace of the
/// component or of the control plane.
pub(crate) fn check_objects(
    instance: &Instance,
    translated: &Translated,
    rendered: &[ObjectIdentity],
    objects: &[Object],
) -> Diagnostics {
    let mut found = Diagnostics::default();
    let control_plane = text_at(&translated.operator, &["metadata", "namespace"]);
    let namespaces = [instance.namespace.as_str(), control_plane.as_str()];
    let mut push = |message: String| found.push(Diagnostic::fatal(instance.path.clone(), message));
    for (before, object) in rendered.iter().zip(objects) {
        let after = object.identity();
        if (before.group(), &before.kind) != (after.group(), &after.kind) {
            push(format!(
                "an overlay changes {before} to {after}: the kind of an object cannot change"
            ));
        } else if is_outside(&after, &namespaces) {
            push(format!(
                "{after} is outside the namespace {:?} of the component",
                instance.namespace
            ));
        }
    }
    found
}
