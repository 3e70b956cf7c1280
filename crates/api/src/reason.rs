//! Reasons. Status, events, logs, CLI and rehearsal use the same words.

use crate::vocabulary::vocabulary;

vocabulary! {
    /// Reason of a condition, an action or an event.
    Reason {
        // Conditions, spelled as upstream.
        /// Everything the object requests is in place.
        Reconciled = "Reconciled",
        /// All components run.
        Ready = "Ready",
        /// The objects the revision depends on are healthy.
        DependenciesHealthy = "DependenciesHealthy",
        /// Reconciled and ready: a state, never a condition's reason.
        Healthy = "Healthy",
        /// Reconciling the object failed.
        ReconcileError = "ReconcileError",
        /// The active revision does not exist.
        ActiveRevisionNotFound = "ActiveRevisionNotFound",
        /// The active revision cannot be read.
        FailedToGetActiveRevision = "FailedToGetActiveRevision",
        /// A revision and a tag have the same name, and the other one is older.
        NameAlreadyExists = "NameAlreadyExists",
        /// The target does not exist.
        RefNotFound = "RefNotFound",
        /// Not all istiod pods are ready.
        IstiodNotReady = "IstiodNotReady",
        /// The remote control plane is not ready.
        RemoteIstiodNotReady = "RemoteIstiodNotReady",
        /// Not all pods of the `DaemonSet` are ready.
        DaemonSetNotReady = "DaemonSetNotReady",
        /// Readiness cannot be determined.
        ReadinessCheckFailed = "ReadinessCheckFailed",
        /// The revision needs an `IstioCNI`, and there is none.
        IstioCniNotFound = "IstioCNINotFound",
        /// The revision needs the `IstioCNI`, and it is not healthy.
        IstioCniNotHealthy = "IstioCNINotHealthy",
        /// The revision needs a `ZTunnel`, and there is none.
        ZTunnelNotFound = "ZTunnelNotFound",
        /// The revision needs the `ZTunnel`, and it is not healthy.
        ZTunnelNotHealthy = "ZTunnelNotHealthy",
        /// The health of the dependencies cannot be determined.
        DependencyCheckFailed = "DependencyCheckFailed",
        /// A namespace, a pod or a tag refers to it.
        ReferencedByWorkloads = "ReferencedByWorkloads",
        /// Nothing refers to it.
        NotReferencedByAnything = "NotReferencedByAnything",
        /// Whether it is in use cannot be determined.
        UsageCheckFailed = "UsageCheckFailed",

        // Managed tags.
        /// Every tag the Istio requests is in place.
        TagsReconciled = "TagsReconciled",
        /// A tag or revision of that name exists and has another owner.
        TagNameTaken = "TagNameTaken",
        /// An older Istio requests the same tag.
        TagClaimedByOther = "TagClaimedByOther",
        /// The tag is no longer requested, but workloads still refer to it.
        TagStillInUse = "TagStillInUse",

        // Actions.
        /// The active revision does not exist yet.
        RevisionCreated = "RevisionCreated",
        /// The active revision differs from what the Istio requests.
        RevisionUpdated = "RevisionUpdated",
        /// An inactive revision was unused for the whole grace period.
        RevisionPruned = "RevisionPruned",
        /// A requested tag does not exist yet.
        TagCreated = "TagCreated",
        /// A managed tag differs from what the Istio requests.
        TagUpdated = "TagUpdated",
        /// A managed tag is no longer requested.
        TagRemoved = "TagRemoved",
        /// A tag refers to another revision now.
        TagMoved = "TagMoved",
        /// The release is not known to be installed.
        ReleaseMissing = "ReleaseMissing",
        /// Chart, version, values or owner differ from those installed.
        ReleaseOutdated = "ReleaseOutdated",
        /// Another client changed installed objects.
        ReleaseDrifted = "ReleaseDrifted",
        /// The release is installed, but no longer requested.
        ReleaseObsolete = "ReleaseObsolete",
        /// The object is being deleted.
        ObjectDeleted = "ObjectDeleted",
        /// The object needs a finalizer before anything is installed.
        FinalizerMissing = "FinalizerMissing",
        /// Everything the object installed is gone.
        CleanedUp = "CleanedUp",
        /// The status is out of date.
        StatusChanged = "StatusChanged",
        /// The next probe of the remote control plane is due.
        ProbeDue = "ProbeDue",
        /// The result of the probe differs from the last one.
        ProbeChanged = "ProbeChanged",
        // Workload migration.
        /// Every workload is on the active revision.
        AllWorkloadsMigrated = "AllWorkloadsMigrated",
        /// Workloads are being migrated.
        MigrationInProgress = "MigrationInProgress",
        /// The migration is paused.
        MigrationPaused = "MigrationPaused",
        /// The version is above `maxVersion`.
        VersionAboveMaximum = "VersionAboveMaximum",
        /// The target revision is not ready.
        TargetRevisionNotReady = "TargetRevisionNotReady",
        /// A setting of the migration is invalid.
        InvalidMigrationSettings = "InvalidMigrationSettings",
        /// Workloads cannot be read.
        WorkloadsUnreadable = "WorkloadsUnreadable",
        /// Some workloads are not ready on the target revision.
        WorkloadsFailed = "WorkloadsFailed",
        /// A migration requires `updateStrategy` `RevisionBased`.
        NotRevisionBased = "NotRevisionBased",
        /// A migration started.
        MigrationStarted = "MigrationStarted",
        /// A batch started.
        BatchStarted = "BatchStarted",
        /// A workload is not ready on the target revision.
        WorkloadFailed = "WorkloadFailed",
        /// A migration ended.
        MigrationEnded = "MigrationEnded",
        /// The labels of a namespace name an old revision.
        NamespaceOnOldRevision = "NamespaceOnOldRevision",
        /// A workload runs on an old revision, and a batch has capacity for it.
        WorkloadOnOldRevision = "WorkloadOnOldRevision",
        // Why a workload is skipped.
        /// By annotation of the workload or its namespace.
        SkippedByAnnotation = "SkippedByAnnotation",
        /// Its kind is not selected.
        KindNotSelected = "KindNotSelected",
        /// It is paused: a restart would not reach its pods.
        WorkloadPaused = "WorkloadPaused",
        /// Its update strategy is `OnDelete`: its pods are replaced only when they are deleted.
        UpdatesOnDelete = "UpdatesOnDelete",
        /// It refers to a tag that is fixed to an old revision.
        PinnedByTag = "PinnedByTag",
        /// Injection is no longer requested: a restart would remove its proxy.
        NoReference = "NoReference",

        /// `updateWorkloads` has no effect.
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
