//! Reasons. The same words are used in status, events, logs, CLI and rehearsal.

use crate::vocabulary::vocabulary;

vocabulary! {
    /// Reason of a condition, an action or an event.
    Reason {
        // Conditions. The spelling is upstream's.
        /// The desired state of the object is in place.
        Reconciled = "Reconciled",
        /// All components are running.
        Ready = "Ready",
        /// The objects that the revision depends on are healthy.
        DependenciesHealthy = "DependenciesHealthy",
        /// Reconciled and ready. Used as a state, never as the reason of a condition.
        Healthy = "Healthy",
        /// Reconciling the object failed.
        ReconcileError = "ReconcileError",
        /// The active revision does not exist.
        ActiveRevisionNotFound = "ActiveRevisionNotFound",
        /// The active revision cannot be read.
        FailedToGetActiveRevision = "FailedToGetActiveRevision",
        /// A revision and a tag have the same name, and this object is the newer of the two.
        NameAlreadyExists = "NameAlreadyExists",
        /// The target of the tag does not exist.
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
        /// A namespace, a pod or a tag refers to the object.
        ReferencedByWorkloads = "ReferencedByWorkloads",
        /// No object refers to the object.
        NotReferencedByAnything = "NotReferencedByAnything",
        /// It cannot be determined whether the object is in use.
        UsageCheckFailed = "UsageCheckFailed",

        // Managed tags.
        /// All tags that the Istio requests are in place.
        TagsReconciled = "TagsReconciled",
        /// A tag or revision with that name exists and has another owner.
        TagNameTaken = "TagNameTaken",
        /// An older Istio requests the same tag.
        TagClaimedByOther = "TagClaimedByOther",
        /// The tag is no longer requested, but is still in use by workloads.
        TagStillInUse = "TagStillInUse",
        /// The implicit tag is created when the first revision is ready.
        WaitingForRevision = "WaitingForRevision",
        /// The Istio had revisions before, so it has no implicit tag.
        NoTagsRequested = "NoTagsRequested",
        /// A name in the list is not a valid tag name.
        InvalidTagName = "InvalidTagName",
        /// A tag could not be created, updated or deleted.
        TagFailed = "TagFailed",

        // Actions.
        /// The active revision does not exist yet.
        RevisionCreated = "RevisionCreated",
        /// The active revision differs from the state that the Istio requests.
        RevisionUpdated = "RevisionUpdated",
        /// An inactive revision was not in use during the whole grace period.
        RevisionPruned = "RevisionPruned",
        /// A requested tag does not exist yet.
        TagCreated = "TagCreated",
        /// A managed tag differs from the state that the Istio requests.
        TagUpdated = "TagUpdated",
        /// A managed tag is no longer requested.
        TagRemoved = "TagRemoved",
        /// A tag now refers to another revision.
        TagMoved = "TagMoved",
        /// It is not known whether the release is installed.
        ReleaseMissing = "ReleaseMissing",
        /// Chart, version, values or owner differ from the installed ones.
        ReleaseOutdated = "ReleaseOutdated",
        /// Another client changed installed objects.
        ReleaseDrifted = "ReleaseDrifted",
        /// The release is installed, but no longer requested.
        ReleaseObsolete = "ReleaseObsolete",
        /// The object is being deleted.
        ObjectDeleted = "ObjectDeleted",
        /// The object requires a finalizer before anything is installed.
        FinalizerMissing = "FinalizerMissing",
        /// All objects that the object installed are deleted.
        CleanedUp = "CleanedUp",
        /// The status is out of date.
        StatusChanged = "StatusChanged",
        /// The next probe of the remote control plane is due.
        ProbeDue = "ProbeDue",
        /// The result of the probe differs from that of the last one.
        ProbeChanged = "ProbeChanged",
        // Workload migration.
        /// All workloads are on the active revision.
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
        /// Namespaces, pods or workloads cannot be read.
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
        /// The labels of a namespace refer to an old revision.
        NamespaceOnOldRevision = "NamespaceOnOldRevision",
        /// A workload runs on an old revision, and a batch has capacity for it.
        WorkloadOnOldRevision = "WorkloadOnOldRevision",
        // Reasons for skipping a workload.
        /// An annotation of the workload or its namespace excludes the workload from migration.
        SkippedByAnnotation = "SkippedByAnnotation",
        /// The kind of the workload is not selected.
        KindNotSelected = "KindNotSelected",
        /// The workload is paused, so a restart would not replace its pods.
        WorkloadPaused = "WorkloadPaused",
        /// The update strategy is `OnDelete`: pods are replaced only when they are deleted.
        UpdatesOnDelete = "UpdatesOnDelete",
        /// The workload refers to a tag that is fixed to an old revision.
        PinnedByTag = "PinnedByTag",
        /// Injection is no longer requested, so a restart would remove the proxy.
        NoReference = "NoReference",
        /// The labels of the namespace disable injection.
        InjectionDisabled = "InjectionDisabled",
        /// The pods use the network of their node, in which no proxy is injected.
        HostNetwork = "HostNetwork",
        /// The pods have no proxy although a revision is requested, so a restart would not migrate them.
        NotInjected = "NotInjected",
        /// The update strategy has a partition, so a restart would not replace all pods.
        UpdatesPartitioned = "UpdatesPartitioned",
        /// An annotation of the workload or its namespace that controls migration has an invalid value.
        InvalidAnnotation = "InvalidAnnotation",

        // Rollouts of applications: conditions.
        /// A rollout is in progress.
        RolloutInProgress = "RolloutInProgress",
        /// The target state is in place.
        RolloutCompleted = "RolloutCompleted",
        /// The rollout was aborted, and the stable state is in place.
        RolloutAborted = "RolloutAborted",
        /// The rollout returns to the stable state.
        RolloutAborting = "RolloutAborting",
        /// An action or `spec.strategy.paused` pauses the rollout.
        RolloutPaused = "RolloutPaused",
        /// The current step waits for a promotion.
        WaitingForPromotion = "WaitingForPromotion",
        /// The current step waits for a period of time.
        WaitingForTime = "WaitingForTime",
        /// Not all replicas are available.
        ReplicasUnavailable = "ReplicasUnavailable",
        /// All revisions exist.
        RevisionsResolved = "RevisionsResolved",
        /// A revision does not exist.
        RevisionNotFound = "RevisionNotFound",
        /// A route refers to a component that the revision does not have.
        ComponentNotFound = "ComponentNotFound",
        /// No cluster matches a selector.
        NoClusterMatched = "NoClusterMatched",
        /// The named cluster does not exist.
        ClusterNotFound = "ClusterNotFound",
        /// The named cluster does not have the labels of the selector.
        ClusterLabelMismatch = "ClusterLabelMismatch",
        /// All clusters can be reached.
        ClustersReachable = "ClustersReachable",
        /// The Secret of a Cluster does not exist.
        SecretNotFound = "SecretNotFound",
        /// The kubeconfig of a Cluster is rejected.
        InvalidKubeconfig = "InvalidKubeconfig",
        /// A cluster rejects the credential.
        CredentialRejected = "CredentialRejected",
        /// A cluster cannot be reached, so nothing is changed in it.
        ClusterUnreachable = "ClusterUnreachable",
        /// An object of the same name belongs to another owner or component, so it is not changed.
        NameConflict = "NameConflict",
        /// Routes have the weights of the current step.
        TrafficApplied = "TrafficApplied",
        /// Routes have not been accepted yet.
        TrafficPending = "TrafficPending",
        /// No revision with a weight is available, so routes do not change.
        NoAvailableBackend = "NoAvailableBackend",
        /// The cluster supports no provider for the routes.
        NoTrafficProvider = "NoTrafficProvider",
        /// The deployment has no traffic settings.
        NoTraffic = "NoTraffic",
        /// The strategy does not support a change of several revisions at once.
        PlanUnsupported = "PlanUnsupported",
        /// A setting is invalid.
        InvalidSpec = "InvalidSpec",
        /// No analysis failed.
        AnalysisPassed = "AnalysisPassed",
        /// An analysis failed.
        AnalysisFailed = "AnalysisFailed",
        /// An analysis has no data.
        AnalysisNoData = "AnalysisNoData",
        /// A template does not exist.
        AnalysisTemplateNotFound = "AnalysisTemplateNotFound",
        /// The rollout made no progress for too long.
        ProgressDeadlineExceeded = "ProgressDeadlineExceeded",
        /// Too many clusters of a wave failed.
        TooManyFailedClusters = "TooManyFailedClusters",
        // Rollouts of applications: actions and events.
        /// A rollout started.
        RolloutStarted = "RolloutStarted",
        /// The next step started.
        StepStarted = "StepStarted",
        /// The object does not exist yet.
        ObjectMissing = "ObjectMissing",
        /// The object differs from the rendered one.
        ObjectOutdated = "ObjectOutdated",
        /// Another client changed the object.
        ObjectDrifted = "ObjectDrifted",
        /// The object is no longer desired.
        ObjectObsolete = "ObjectObsolete",
        /// Objects are added to the inventory, because they are about to be created.
        InventoryExtended = "InventoryExtended",
        /// Objects are removed from the inventory, because they were deleted.
        InventoryReduced = "InventoryReduced",
        /// A growing revision has capacity for more replicas.
        ScaledUp = "ScaledUp",
        /// A shrinking revision needs fewer replicas.
        ScaledDown = "ScaledDown",
        /// The weights of a cluster changed.
        WeightsChanged = "WeightsChanged",
        /// The next measurement of an analysis is due.
        MeasurementDue = "MeasurementDue",
        /// An action took effect.
        ActionAccepted = "ActionAccepted",
        /// An action was requested for another step.
        StaleStep = "StaleStep",
        /// An action has no effect in the current state.
        NotApplicable = "NotApplicable",
        /// Objects in an unreachable cluster were given up.
        ObjectsForgotten = "ObjectsForgotten",

        // Installations by `IstioOperator`s.
        /// Not all components are ready.
        ComponentsNotReady = "ComponentsNotReady",
        /// Components failed.
        ComponentsFailed = "ComponentsFailed",
        /// All components are ready after a change.
        InstallationCompleted = "InstallationCompleted",
        /// An older `IstioOperator` installs the same revision.
        RevisionClaimedByOther = "RevisionClaimedByOther",
        /// Webhooks of the installation handle the same pods as other webhooks.
        WebhookOverlap = "WebhookOverlap",
        /// Proxies are connected to the revision.
        ProxiesConnected = "ProxiesConnected",
        /// No proxy is connected to the revision.
        NoProxiesConnected = "NoProxiesConnected",

        /// `updateWorkloads` has no effect.
        DeprecatedField = "DeprecatedField",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_is_parsed_from_its_name() {
        for reason in Reason::ALL {
            assert_eq!(Reason::from(reason.name().to_owned()), *reason);
            let camel = reason.name().chars().all(char::is_alphanumeric)
                && reason.name().starts_with(char::is_uppercase);
            assert!(camel, "{reason} is not one CamelCase word");
        }
    }

    #[test]
    fn reason_names_are_unique() {
        let mut names: Vec<_> = Reason::ALL.iter().map(Reason::name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Reason::ALL.len());
    }

    #[test]
    fn unknown_reasons_are_preserved() {
        let text = "\"SomethingElse\"";
        let reason: Reason = serde_json::from_str(text).unwrap();
        assert_eq!(reason, Reason::Other("SomethingElse".into()));
        assert_eq!(serde_json::to_string(&reason).unwrap(), text);
    }
}
