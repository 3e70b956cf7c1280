//! Why: one table of words. The same word stands in status, events, logs, on the terminal and in a rehearsal.

use crate::vocabulary::vocabulary;

vocabulary! {
    /// Why a condition has its status, why an action is taken, why an event was written.
    Reason {
        // Conditions, as upstream spells them.
        /// What the object asks for is in place.
        Reconciled = "Reconciled",
        /// All that must run does.
        Ready = "Ready",
        /// Whatever the revision depends on is healthy.
        DependenciesHealthy = "DependenciesHealthy",
        /// Reconciled and ready: a state, never a condition's reason.
        Healthy = "Healthy",
        /// Bringing about what the object asks for failed.
        ReconcileError = "ReconcileError",
        /// The revision that should be active is not there.
        ActiveRevisionNotFound = "ActiveRevisionNotFound",
        /// The revision that should be active cannot be read.
        FailedToGetActiveRevision = "FailedToGetActiveRevision",
        /// A revision and a tag share one name, and the other one was first.
        NameAlreadyExists = "NameAlreadyExists",
        /// The target does not exist.
        RefNotFound = "RefNotFound",
        /// istiod is not (entirely) ready.
        IstiodNotReady = "IstiodNotReady",
        /// The control plane runs elsewhere and does not answer.
        RemoteIstiodNotReady = "RemoteIstiodNotReady",
        /// A `DaemonSet` is not (entirely) ready.
        DaemonSetNotReady = "DaemonSetNotReady",
        /// Nobody can tell whether it is ready.
        ReadinessCheckFailed = "ReadinessCheckFailed",
        /// The revision needs an `IstioCNI`, and there is none.
        IstioCniNotFound = "IstioCNINotFound",
        /// The revision needs the `IstioCNI`, and it is not healthy.
        IstioCniNotHealthy = "IstioCNINotHealthy",
        /// The revision needs a `ZTunnel`, and there is none.
        ZTunnelNotFound = "ZTunnelNotFound",
        /// The revision needs the `ZTunnel`, and it is not healthy.
        ZTunnelNotHealthy = "ZTunnelNotHealthy",
        /// Nobody can tell whether the dependencies are healthy.
        DependencyCheckFailed = "DependencyCheckFailed",
        /// A namespace, a pod or a tag refers to it.
        ReferencedByWorkloads = "ReferencedByWorkloads",
        /// Nothing refers to it.
        NotReferencedByAnything = "NotReferencedByAnything",
        /// Nobody can tell whether something refers to it.
        UsageCheckFailed = "UsageCheckFailed",

        // Managed tags.
        /// Every tag the Istio asks for is in place.
        TagsReconciled = "TagsReconciled",
        /// A tag or a revision of that name exists and belongs to somebody else.
        TagNameTaken = "TagNameTaken",
        /// An older Istio asks for the same tag.
        TagClaimedByOther = "TagClaimedByOther",
        /// The tag is no longer asked for, but workloads still refer to it.
        TagStillInUse = "TagStillInUse",

        // Actions.
        /// The active revision does not exist yet.
        RevisionCreated = "RevisionCreated",
        /// The active revision differs from what the Istio asks for.
        RevisionUpdated = "RevisionUpdated",
        /// An inactive revision was unused for the whole grace period.
        RevisionPruned = "RevisionPruned",
        /// A tag the Istio asks for does not exist yet.
        TagCreated = "TagCreated",
        /// A managed tag differs from what the Istio asks for.
        TagUpdated = "TagUpdated",
        /// A managed tag is no longer asked for.
        TagRemoved = "TagRemoved",
        /// A tag points to another revision now.
        TagMoved = "TagMoved",
        /// Nothing is known to be installed.
        ReleaseMissing = "ReleaseMissing",
        /// Chart, version, values or owner are not those that were installed.
        ReleaseOutdated = "ReleaseOutdated",
        /// Something else changed what was installed.
        ReleaseDrifted = "ReleaseDrifted",
        /// Installed, but no longer part of what the object asks for.
        ReleaseObsolete = "ReleaseObsolete",
        /// The object is being deleted.
        ObjectDeleted = "ObjectDeleted",
        /// The object must not vanish before what it installed.
        FinalizerMissing = "FinalizerMissing",
        /// What the object installed is gone.
        CleanedUp = "CleanedUp",
        /// The status says something that is no longer so.
        StatusChanged = "StatusChanged",
        /// The remote control plane was not asked for a while.
        ProbeDue = "ProbeDue",
        /// The remote control plane answers differently than before.
        ProbeChanged = "ProbeChanged",
        // Moving workloads.
        /// Every workload is on the active revision.
        AllWorkloadsMigrated = "AllWorkloadsMigrated",
        /// Workloads are being moved.
        MigrationInProgress = "MigrationInProgress",
        /// Nothing new is started until it is no longer paused.
        MigrationPaused = "MigrationPaused",
        /// Workloads do not move to a version above `maxVersion`.
        VersionAboveMaximum = "VersionAboveMaximum",
        /// Workloads move only to a revision that is ready.
        TargetRevisionNotReady = "TargetRevisionNotReady",
        /// A setting of the migration cannot be understood.
        InvalidMigrationSettings = "InvalidMigrationSettings",
        /// Workloads cannot be read.
        WorkloadsUnreadable = "WorkloadsUnreadable",
        /// Some workloads did not come up on the active revision.
        WorkloadsFailed = "WorkloadsFailed",
        /// Workloads move only between revisions.
        NotRevisionBased = "NotRevisionBased",
        /// A migration began.
        MigrationStarted = "MigrationStarted",
        /// A batch began.
        BatchStarted = "BatchStarted",
        /// A workload did not come up on the active revision.
        WorkloadFailed = "WorkloadFailed",
        /// A migration ended.
        MigrationEnded = "MigrationEnded",
        /// The labels of a namespace name an old revision.
        NamespaceOnOldRevision = "NamespaceOnOldRevision",
        /// A workload runs on an old revision, and it is its turn.
        WorkloadOnOldRevision = "WorkloadOnOldRevision",
        // Why a workload is left alone.
        /// Its annotation, or its namespace's, says so.
        SkippedByAnnotation = "SkippedByAnnotation",
        /// Its kind is not among those that move.
        KindNotSelected = "KindNotSelected",
        /// It is paused: a change would not reach its pods.
        WorkloadPaused = "WorkloadPaused",
        /// It replaces pods only when somebody deletes them.
        UpdatesOnDelete = "UpdatesOnDelete",
        /// It uses a tag that is meant to stay on an old revision.
        PinnedByTag = "PinnedByTag",
        /// Nothing asks for injection any more: a restart would take its proxy away.
        NoReference = "NoReference",

        /// `updateWorkloads` never did anything and does nothing.
        DeprecatedField = "DeprecatedField",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_read_as_it_is_written() {
        for reason in Reason::ALL {
            assert_eq!(Reason::from(reason.name().to_owned()), *reason);
            let camel = reason.name().chars().all(char::is_alphanumeric)
                && reason.name().starts_with(char::is_uppercase);
            assert!(camel, "{reason} is not one CamelCase word");
        }
    }

    #[test]
    fn no_two_reasons_share_a_word() {
        let mut names: Vec<_> = Reason::ALL.iter().map(Reason::name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Reason::ALL.len());
    }

    #[test]
    fn a_word_of_others_is_kept() {
        let text = "\"SomethingElse\"";
        let reason: Reason = serde_json::from_str(text).unwrap();
        assert_eq!(reason, Reason::Other("SomethingElse".into()));
        assert_eq!(serde_json::to_string(&reason).unwrap(), text);
    }
}
