//! Integration scenarios from the Sail Operator's test lists, for any cluster. `scenarios.txt` maps the
//! lines of these lists to scenarios.

#![allow(unreachable_pub, reason = "a module of each test program, not a crate")]

pub mod base;
pub mod cni;
pub mod istio;
pub mod migration;
pub mod revision;
pub mod steps;
pub mod tag;
pub mod update;
pub mod ztunnel;

/// Passes all scenarios to a macro, grouped by module.
macro_rules! each {
    ($macro:ident) => {
        $macro! {
            istio {
                another_istio_namespace_is_rejected,
                creates_its_revision,
                updates_its_revision,
                a_pending_helm_release_does_not_block_installation,
                recreates_a_deleted_revision,
                deletion_removes_all_objects,
                a_version_at_its_end_of_life_is_rejected,
                the_clusters_tls_profile_is_applied,
                tls_settings_of_the_user_are_kept,
                only_the_default_in_place_istio_has_the_default_validator,
                a_value_cannot_add_an_object,
            }
            update {
                the_namespace_cannot_change,
                in_place_without_workloads,
                in_place_with_workloads,
                revision_based_without_workloads,
                revision_based_with_workloads,
                from_in_place_to_revision_based_without_workloads,
                from_in_place_to_revision_based_with_workloads,
                from_revision_based_to_in_place_without_workloads,
                from_revision_based_to_in_place_with_workloads,
                the_default_tag_is_created_automatically,
                an_istio_with_revisions_gets_no_default_tag,
                the_default_tag_waits_for_another_injector,
                a_rejected_tag_does_not_affect_the_others,
                managed_tags_move_when_the_new_revision_is_ready,
            }
            revision {
                validation_rules_reject_and_accept,
                needs_a_network_plug_in,
                needs_a_node_proxy,
                a_namespace_may_be_created_later,
                readiness_follows_istiod,
                changes_to_owned_objects_are_reverted,
                ignored_changes_cause_no_calls,
                namespaces_and_pods_refer_to_the_default_revision,
                namespaces_and_pods_refer_to_a_named_revision,
                two_control_planes_at_once,
                an_older_tag_keeps_its_name,
                gateway_classes_are_written_to_a_config_map,
                remote_control_plane_has_no_istiod,
                the_endpoint_slice_of_a_remote_istiod_is_reverted,
            }
            tag {
                tag_of_an_istio_in_place,
                tag_of_a_revision_based_istio,
                tag_of_a_revision_in_place,
                tag_of_a_revision_based_revision,
                name_conflict_with_an_istio_in_place,
                a_missing_target_is_reported,
                a_tag_is_not_affected_by_a_later_revision_of_its_name,
                a_tag_may_move_to_another_namespace,
            }
            base {
                is_installed_and_deleted_with_the_default_revision,
                is_installed_and_deleted_with_the_default_tag,
                owned_objects_are_restored,
                follows_the_tag_within_a_namespace,
                follows_the_tag_to_another_namespace,
            }
            cni {
                is_installed_updated_and_deleted,
                readiness_follows_the_daemon_set,
                owned_objects_are_restored,
                a_namespace_may_be_created_later,
                only_the_name_default_is_accepted,
            }
            ztunnel {
                is_installed_updated_and_deleted,
                readiness_follows_the_daemon_set,
                owned_objects_are_restored,
                values_of_the_target_are_used,
                a_missing_target_is_reported,
                fips_mode_enables_tls_1_2,
            }
        }
    };
}
pub(crate) use each;
