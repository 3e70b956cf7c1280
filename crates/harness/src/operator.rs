//! An operator that runs as a tokio task.

use mainstay_operator::{Operator, OperatorError};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::HarnessError;

/// A running operator. Dropping it aborts the operator, even in the middle of a write.
#[derive(Debug)]
pub struct RunningOperator {
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<Result<(), OperatorError>>,
}

impl RunningOperator {
    /// Starts an operator on the current runtime.
    #[must_use]
    pub fn start(operator: Operator) -> Self {
        let (stop, stopped) = oneshot::channel();
        let stopped = async {
            let _ = stopped.await;
        };
        Self {
            stop: Some(stop),
            task: tokio::spawn(operator.run(stopped)),
        }
    }

    /// Stops the operator gracefully and waits until it has ended.
    pub async fn stop(mut self) -> Result<(), HarnessError> {
        if let Some(stop) = self.stop.take() {
            // Sending fails if the operator has already ended.
            let _ = stop.send(());
        }
        self.ended().await
    }

    /// Waits until the operator has ended.
    pub async fn ended(mut self) -> Result<(), HarnessError> {
        match (&mut self.task).await {
            Ok(result) => Ok(result?),
            Err(_) => Err(HarnessError::OperatorPanicked),
        }
    }

    /// Whether the operator's task has ended.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.task.is_finished()
    }

    /// Aborts the operator immediately, even in the middle of a write.
    pub fn kill(self) {
        drop(self);
    }
}

impl Drop for RunningOperator {
    fn drop(&mut self) {
        self.task.abort();
    }
}
