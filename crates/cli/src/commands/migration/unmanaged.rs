//! Plans of migrations for control planes that no operator manages, as if they were adopted.

use kube::Client;
use mainstay_adopt::{AssumedAdoption, Observed, assume_adoptions};
use mainstay_api::Reason;
use mainstay_cluster::survey::Survey;
use mainstay_mesh::Preview;

use super::PlanArgs;
use crate::error::CliError;
use crate::report::ADOPT_HINT;

/// Adds the resources that an adoption would create to the snapshot, if it contains no Istio or lacks the
/// requested one. Returns the assumed adoptions.
pub(super) async fn assume(
    client: &Client,
    found: &mut Survey,
    args: &PlanArgs,
) -> Result<Vec<AssumedAdoption>, CliError> {
    let istios = found.snapshot.istios();
    let is_complete = match &args.which.istio {
        Some(name) => istios.get(name).is_some(),
        None => istios.iter().next().is_some(),
    };
    if is_complete || found.unmanaged.is_empty() {
        return Ok(Vec::new());
    }
    let (observed, _) = Observed::read(client).await?;
    let assumed = assume_adoptions(&observed, &args.shown.charts.open()?);
    let (settings, library) = (found.snapshot.settings.clone(), found.snapshot.library.clone());
    for adoption in &assumed {
        for observation in adoption.observations(&settings, &library)? {
            found.snapshot.observe(observation);
        }
    }
    Ok(assumed)
}

/// Adds the assumption and the next step to the notes. The target revision does not exist before the
/// adoption.
pub(super) fn complete(adoption: &AssumedAdoption, preview: &mut Preview, notes: &mut Vec<String>) {
    let assumption = format!("assuming that the {}, is adopted", adoption.describe());
    notes.splice(0..0, [assumption, ADOPT_HINT.to_owned()]);
    preview
        .held
        .take_if(|(reason, _)| *reason == Reason::TargetRevisionNotReady);
}
