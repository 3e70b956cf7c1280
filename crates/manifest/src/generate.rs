//! The complete pipeline, from a request to objects.

use mainstay_chart::{ObjectIdentity, merge_maps};
use mainstay_yaml::{Map, Value};

use crate::addons::addon_objects;
use crate::component::{COMPONENTS, ComponentName, Instance, instances};
use crate::confine::{check_namespace, check_objects, check_values};
use crate::diagnostic::Diagnostics;
use crate::limits::Steps;
use crate::merge::{Merged, Origins, map_at, merge_inputs, put, text_at};
use crate::object::{Object, compare_objects};
use crate::overlay::{Naming, apply_overlays};
use crate::render::Renderer;
use crate::request::Request;
use crate::settings::{Customization, Workload, apply_settings};
use crate::translate::{Translated, Translator, translate};
use crate::validate::validate;
use crate::values::chart_input;

/// Result of a generation.
#[derive(Clone, Debug)]
pub struct Rendered {
    /// Objects of the enabled components, in dependency order.
    pub components: Vec<ComponentObjects>,
    /// Warnings, including errors that `--force` downgraded.
    pub warnings: Diagnostics,
    /// Merged and translated configuration.
    pub configuration: Value,
    /// Merged files and settings of the user, without a profile.
    pub user_configuration: Value,
    /// Number of nodes that settings and overlays visited.
    pub steps: u64,
}

/// Objects of one component.
#[derive(Clone, Debug)]
pub struct ComponentObjects {
    /// Component that contains the objects.
    pub component: ComponentName,
    /// Objects in the order of the charts.
    pub objects: Vec<Object>,
}

impl Rendered {
    /// Returns the objects of all components in order of installation.
    #[must_use]
    pub fn sorted_objects(&self) -> Vec<&Object> {
        let components = self.components.iter();
        let mut objects: Vec<&Object> = components.flat_map(|one| &one.objects).collect();
        objects.sort_by(|a, b| compare_objects(a, b));
        objects
    }
}

/// Generates the objects of a configuration. On failure, returns all errors and warnings.
pub fn generate(request: &Request<'_>) -> Result<Rendered, Diagnostics> {
    let translator = Translator::for_minor(request.charts.minor());
    let merged = merge_inputs(request)?;
    let mut translated = translate(&merged, translator);
    let mut problems = validate(&merged, &translated);
    if request.force {
        problems = problems.downgrade_forced();
    }
    if problems.has_errors() {
        return Err(problems);
    }
    add_unvalidated(&mut translated);
    let mut run = Run {
        translator,
        origins: &merged.origins,
        translated: &translated,
        is_confined: request.is_confined,
        steps: Steps::default(),
        problems: &mut problems,
    };
    let components = run.generate_components(request)?;
    let steps = run.steps.used();
    let problems = if request.force {
        problems.downgrade_forced()
    } else {
        problems
    };
    if problems.has_errors() {
        return Err(problems);
    }
    Ok(Rendered {
        components,
        warnings: problems,
        configuration: Value::Map(translated.operator),
        user_configuration: Value::Map(merged.user_operator.clone()),
        steps,
    })
}

/// Merges `spec.unvalidatedValues` into the values.
fn add_unvalidated(translated: &mut Translated) {
    let more = map_at(&translated.operator, &["spec", "unvalidatedValues"]);
    if !more.is_empty() {
        let mut values = map_at(&translated.operator, &["spec", "values"]);
        merge_maps(&mut values, more);
        put(&mut translated.operator, &["spec", "values"], Value::Map(values));
    }
}

/// State of rendering and patching all components.
struct Run<'a> {
    translator: &'static Translator,
    origins: &'a Origins,
    translated: &'a Translated,
    is_confined: bool,
    steps: Steps,
    problems: &'a mut Diagnostics,
}

impl Run<'_> {
    fn generate_components(&mut self, request: &Request<'_>) -> Result<Vec<ComponentObjects>, Diagnostics> {
        let oldest = format!("v1.{}.0", self.translator.kube_minor);
        let version = request.kube_version.as_deref().unwrap_or(&oldest);
        let mut renderer = Renderer::new(request.charts, version).map_err(|error| *error)?;
        let mut all = Vec::new();
        for component in COMPONENTS {
            let found = instances(component, &self.translated.operator);
            let found = found.map_err(|error| self.origins.add_location(*error))?;
            let mut objects = Vec::new();
            for instance in &found {
                objects.extend(self.generate_instance(instance, &mut renderer));
            }
            if !found.is_empty() {
                all.push(ComponentObjects {
                    component: component.name,
                    objects,
                });
            }
        }
        let (objects, found) = addon_objects(&self.translated.operator, request.charts, &mut self.steps);
        self.add_located(found);
        if !objects.is_empty() {
            all.push(ComponentObjects {
                component: ComponentName::Addons,
                objects,
            });
        }
        Ok(all)
    }

    /// Renders and patches an instance. A failure is recorded and does not prevent checking the other
    /// instances.
    fn generate_instance(&mut self, instance: &Instance, renderer: &mut Renderer<'_>) -> Vec<Object> {
        if self.is_confined
            && let Err(error) = check_namespace(instance)
        {
            self.problems.push(self.origins.add_location(*error));
            return Vec::new();
        }
        let input = chart_input(instance.clone(), self.translated, self.translator);
        let mut objects = match renderer.render(&input, self.problems) {
            Ok(objects) => objects,
            Err(error) => {
                self.problems.push(self.origins.add_location(*error));
                return Vec::new();
            }
        };
        let rendered: Vec<ObjectIdentity> = objects.iter().map(Object::identity).collect();
        if self.is_confined
            && let Err(error) = check_values(&input, &rendered, renderer)
        {
            self.problems.push(self.origins.add_location(*error));
        }
        if let Some(settings) = instance.settings() {
            self.customize(instance, settings, &mut objects);
        }
        if self.is_confined {
            self.add_located(check_objects(instance, self.translated, &rendered, &objects));
        }
        objects
    }

    /// Applies the settings and overlays of an instance.
    fn customize(&mut self, instance: &Instance, settings: &Map, objects: &mut [Object]) {
        let revision = self.revision();
        let workload = match instance.component.name {
            ComponentName::Pilot if !revision.is_empty() => format!("{}-{revision}", instance.workload()),
            _ => instance.workload().to_owned(),
        };
        let customization = Customization {
            path: &instance.path,
            settings,
            workload: Workload {
                kind: instance.component.workload_kind,
                name: &workload,
                container: instance.component.container,
                service: &workload,
            },
            is_gateway: instance.component.is_gateway,
        };
        let found = apply_settings(&customization, objects, &mut self.steps);
        self.add_located(found);
        let naming = Naming {
            revision: &revision,
            namespace: &instance.namespace,
        };
        let found = apply_overlays(&customization, naming, objects, &mut self.steps);
        self.add_located(found);
    }

    fn add_located(&mut self, found: Diagnostics) {
        self.problems
            .append(found.map(|one| self.origins.add_location(one)));
    }

    /// Returns the revision; empty for the default revision.
    fn revision(&self) -> String {
        let revision = text_at(&self.translated.operator, &["spec", "values", "revision"]);
        if revision == "default" {
            String::new()
        } else {
            revision
        }
    }
}

/// Returns the merged configuration without rendering. Used by `profile dump`.
pub fn configuration(request: &Request<'_>) -> Result<Map, Diagnostics> {
    let Merged { operator, .. } = merge_inputs(request)?;
    Ok(operator)
}

/// Returns the merged and translated configuration, whose `spec.values` are those of the charts, without
/// validation and rendering.
pub fn translated_configuration(request: &Request<'_>) -> Result<Map, Diagnostics> {
    let translator = Translator::for_minor(request.charts.minor());
    let mut translated = translate(&merge_inputs(request)?, translator);
    add_unvalidated(&mut translated);
    Ok(translated.operator)
}
