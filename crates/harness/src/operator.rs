//! An operator that runs as a task on a simulated cluster.

use mainstay_operator::OperatorError;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::HarnessError;

/// A running operator.
#[derive(Debug)]
pub struct RunningOperator {
    pub(crate) stop: oneshot::Sender<()>,
    pub(crate) task: JoinHandle<Result<(), OperatorError>>,
}

impl RunningOperator {
    /// Stops the operator gracefully and waits until it has ended.
    pub async fn stop(self) -> Result<(), HarnessError> {
        // The receiver is gone if the operator has ended by itself.
        let _ = self.stop.send(());
        match self.task.await {
            Ok(result) => Ok(result?),
            Err(_) => Err(HarnessError::OperatorPanicked),
        }
    }
}
