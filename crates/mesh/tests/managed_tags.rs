//! Tests `updateStrategy.revisionTags`: tags that an Istio creates, keeps and deletes, and reports of
//! obstacles.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a panic is how a test fails"
)]

mod support;

use mainstay_api::{IstioSpec, TagSpec};
use mainstay_mesh::snapshot::Failure;
use mainstay_mesh::{ErrorClass, Observation, Requeue, Subject};
use serde_json::{Value, json};
use support::{World, revision_spec};

fn spec(version: &str, strategy: &str, tags: Option<&[&str]>) -> Value {
    let mut spec =
        json!({"version": version, "namespace": "istio-system", "updateStrategy": {"type": strategy}});
    if let Some(tags) = tags {
        spec["updateStrategy"]["revisionTags"] = json!(tags);
    }
    spec
}

fn tags_condition(world: &World, istio: &str) -> String {
    let reported = world.conditions(&Subject::istio(istio));
    reported
        .into_iter()
        .find(|line| line.starts_with("TagsReconciled"))
        .unwrap_or_default()
}

#[test]
fn tags_that_an_istio_creates() {
    let check = |strategy: &str, tags: Option<&[&str]>, expected: &[&str]| {
        let mut world = World::default();
        world.istio("mesh", spec("v1.29.1", strategy, tags));
        world.settle_and_check_idle();
        assert_eq!(world.tags(), expected, "{strategy} {tags:?}");
        let condition = if expected.is_empty() {
            ""
        } else {
            "TagsReconciled=True/TagsReconciled"
        };
        assert_eq!(tags_condition(&world, "mesh"), condition, "{strategy} {tags:?}");
        for tag in world.snapshot.tags().iter() {
            let istio = world.snapshot.istios().get("mesh").unwrap();
            assert_eq!(tag.metadata.owner_references, [istio.owner_reference()]);
            assert_eq!(
                (
                    tag.spec.target_ref.kind.as_str(),
                    tag.spec.target_ref.name.as_str()
                ),
                ("Istio", "mesh")
            );
            assert_eq!(tag.status.istio_revision, istio.status.active_revision_name);
        }
    };
    check("RevisionBased", None, &["default"]);
    check("RevisionBased", Some(&[]), &[]);
    check("RevisionBased", Some(&["prod", "canary"]), &["canary", "prod"]);
    check("RevisionBased", Some(&["prod", "prod", ""]), &["prod"]);
    check("InPlace", None, &[]);
    check("InPlace", Some(&[]), &[]);
    check("InPlace", Some(&["prod"]), &["prod"]);
}

#[test]
fn an_istio_that_already_has_revisions_gets_no_implicit_tag() {
    let mut world = World::default();
    world.istio("mesh", spec("v1.29.1", "RevisionBased", Some(&[])));
    world.settle();
    world.edit::<mainstay_api::RevisionSpec>("mesh-v1-29-1", |revision| {
        revision
            .metadata
            .annotations
            .remove(mainstay_api::names::IMPLICIT_TAG);
    });
    world.istio("mesh", spec("v1.29.1", "RevisionBased", None));
    world.namespace("app", "istio-injection=enabled");
    let executed = world.settle_and_check_idle();
    assert!(world.tags().is_empty(), "{executed:#?}");
    let reported = "TagsReconciled=True/NoTagsRequested: no tag is created, because this Istio already had revisions; set \
        spec.updateStrategy.revisionTags to [\"default\"] to create the tag \"default\"";
    assert_eq!(tags_condition(&world, "mesh"), reported);
    world.istio("mesh", spec("v1.28.2", "RevisionBased", None));
    world.settle_and_check_idle();
    assert!(world.tags().is_empty(), "not with a new revision either");
    world.tag("default", "Istio", "mesh");
    world.settle_and_check_idle();
    let tag = world.snapshot.tags().get("default").unwrap();
    assert!(
        tag.metadata.owner_references.is_empty(),
        "a tag of that name created by a user is left alone"
    );
    world.delete::<TagSpec>("default");
    world.istio("mesh", spec("v1.28.2", "RevisionBased", Some(&["default"])));
    world.settle_and_check_idle();
    assert_eq!(world.tags(), ["default"]);
    assert_eq!(
        tags_condition(&world, "mesh"),
        "TagsReconciled=True/TagsReconciled"
    );
}

#[test]
fn the_implicit_tag_is_created_when_the_first_revision_is_ready() {
    let mut world = World::default();
    world.ready = false;
    world.istio("mesh", spec("v1.29.1", "RevisionBased", None));
    world.settle_and_check_idle();
    assert!(world.tags().is_empty());
    assert_eq!(
        tags_condition(&world, "mesh"),
        "TagsReconciled=Unknown/WaitingForRevision: tag \"default\" is created once IstioRevision \"mesh-v1-29-1\" is ready"
    );
    let mut restarted = world.with_restarted_operator();
    for world in [&mut world, &mut restarted] {
        world.deployment("istio-system", "istiod-mesh-v1-29-1", 1, 1);
        world.settle_and_check_idle();
        assert_eq!(world.tags(), ["default"]);
        assert_eq!(
            tags_condition(world, "mesh"),
            "TagsReconciled=True/TagsReconciled"
        );
    }
}

#[test]
fn the_implicit_tag_waits_while_another_injector_serves_its_namespaces() {
    let mut world = World::default();
    world.observe(Observation::ForeignInjector(
        "istio-sidecar-injector".into(),
        true,
    ));
    world.istio("mesh", spec("v1.29.1", "RevisionBased", None));
    world.settle_and_check_idle();
    assert!(world.tags().is_empty());
    assert_eq!(
        tags_condition(&world, "mesh"),
        "TagsReconciled=True/TagsReconciled: tag \"default\" is not created: MutatingWebhookConfiguration \
         \"istio-sidecar-injector\" already injects namespaces labeled istio-injection=enabled"
    );
    world.observe(Observation::ForeignInjector(
        "istio-sidecar-injector".into(),
        false,
    ));
    world.settle_and_check_idle();
    assert_eq!(world.tags(), ["default"]);
}

#[test]
fn an_invalid_tag_name_is_reported_and_the_others_are_created() {
    let mut world = World::default();
    let long = "a".repeat(44);
    let longest = "b".repeat(43);
    let bad = ["Prod", "a.b", "-a", "a-", "a_b", "../x", "a b", long.as_str()];
    for name in bad {
        world.istio(
            "mesh",
            spec("v1.29.1", "RevisionBased", Some(&[name, "prod", &longest])),
        );
        world.settle_and_check_idle();
        assert_eq!(world.tags(), [longest.as_str(), "prod"], "{name}");
        let reported = format!(
            "TagsReconciled=False/InvalidTagName: tag {name:?} is invalid: use at most 43 lower-case letters, digits and '-', \
             and start and end with a letter or digit"
        );
        assert_eq!(tags_condition(&world, "mesh"), reported);
        assert_eq!(
            world.conditions(&Subject::istio("mesh"))[0],
            "state=Healthy",
            "{name}"
        );
    }
}

#[test]
fn a_tag_that_cannot_be_created_does_not_affect_the_others() {
    let mut world = World::default();
    world.istio("mesh", spec("v1.29.1", "RevisionBased", Some(&[])));
    world.settle();
    world.istio("mesh", spec("v1.29.1", "RevisionBased", Some(&["a", "b", "c"])));
    let subject = Subject::istio("mesh");
    let creates = |world: &World, name: &str| {
        let plan = world.plan(&subject);
        plan.actions()
            .find(|action| action.to_string() == format!("create tag {name}"))
            .cloned()
    };
    let retry_at = world.snapshot.now + jiff::SignedDuration::from_secs(5);
    for name in ["a", "b"] {
        let failure = Failure {
            action: creates(&world, name).unwrap(),
            class: ErrorClass::Other,
            message: format!("no {name}"),
            retry_at,
        };
        world.observe(Observation::Failed(subject.clone(), failure));
    }
    world.settle_and_check_idle();
    assert_eq!(world.tags(), ["c"]);
    assert_eq!(
        tags_condition(&world, "mesh"),
        "TagsReconciled=False/TagFailed: failed to create IstioRevisionTag \"a\": no a; failed to create IstioRevisionTag \
         \"b\": no b"
    );
    assert_eq!(world.conditions(&subject)[0], "state=Healthy");
    assert_eq!(world.plan(&subject).requeue, Requeue::At(retry_at));
    world.advance(5);
    world.queue.insert(subject.clone());
    world.settle_and_check_idle();
    assert_eq!(world.tags(), ["a", "b", "c"]);
}

#[test]
fn only_tags_that_are_no_longer_listed_are_deleted() {
    let mut world = World::default();
    world.istio(
        "mesh",
        spec("v1.29.1", "RevisionBased", Some(&["prod", "canary"])),
    );
    world.settle();
    world.tag("own", "Istio", "mesh");
    world.istio("mesh", spec("v1.29.1", "RevisionBased", Some(&["prod"])));
    let executed = world.settle_and_check_idle();
    assert_eq!(executed[0], "Istio/mesh: delete tag canary (TagRemoved)");
    assert_eq!(world.tags(), ["own", "prod"]);
    world.istio("mesh", spec("v1.29.1", "RevisionBased", Some(&[])));
    world.settle_and_check_idle();
    assert_eq!(world.tags(), ["own"]);
    assert_eq!(
        tags_condition(&world, "mesh"),
        "TagsReconciled=True/TagsReconciled"
    );
}

#[test]
fn a_tag_is_kept_while_workloads_refer_to_it() {
    let mut world = World::default();
    world.istio("mesh", spec("v1.29.1", "RevisionBased", Some(&["prod"])));
    world.namespace("app", "istio.io/rev=prod");
    world.settle();
    world.istio("mesh", spec("v1.29.1", "RevisionBased", Some(&[])));
    world.settle_and_check_idle();
    assert_eq!(world.tags(), ["prod"]);
    assert_eq!(
        tags_condition(&world, "mesh"),
        "TagsReconciled=False/TagStillInUse: tag \"prod\" is no longer requested, but kept while workloads refer to it"
    );
    world.namespace("app", "");
    world.settle_and_check_idle();
    assert!(world.tags().is_empty());
    assert_eq!(
        tags_condition(&world, "mesh"),
        "TagsReconciled=True/TagsReconciled"
    );
}

#[test]
fn a_tag_with_another_owner_is_reported_and_not_changed() {
    let mut world = World::default();
    world.revision("other", revision_spec("other"));
    world.tag("prod", "IstioRevision", "other");
    world.istio(
        "mesh",
        spec("v1.29.1", "RevisionBased", Some(&["prod", "canary"])),
    );
    let executed = world.settle_and_check_idle();
    let reported = "TagsReconciled=False/TagNameTaken: IstioRevisionTag \"prod\" exists and is not managed by this Istio";
    assert_eq!(tags_condition(&world, "mesh"), reported);
    assert!(
        executed.iter().any(|line| line.contains("event !TagNameTaken")),
        "{executed:#?}"
    );
    assert_eq!(
        world.snapshot.tags().get("prod").unwrap().spec.target_ref.name,
        "other"
    );
    assert_eq!(world.tags(), ["canary", "prod"], "the rest is reconciled");
    world.istio("mesh", spec("v1.29.1", "RevisionBased", Some(&["canary"])));
    world.settle_and_check_idle();
    assert_eq!(world.tags(), ["canary", "prod"], "not ours to delete");
}

#[test]
fn an_implicit_default_tag_may_have_another_owner() {
    let mut world = World::default();
    world.tag("default", "Istio", "mesh");
    world.istio("mesh", spec("v1.29.1", "RevisionBased", None));
    world.settle_and_check_idle();
    assert_eq!(
        tags_condition(&world, "mesh"),
        "TagsReconciled=True/TagsReconciled: IstioRevisionTag \"default\" exists and is not managed by this Istio"
    );
    assert!(
        world
            .snapshot
            .tags()
            .get("default")
            .unwrap()
            .metadata
            .owner_references
            .is_empty()
    );
}

#[test]
fn a_tag_is_created_once_the_revision_of_its_name_is_gone() {
    let mut world = World::default();
    world.istio("default", spec("v1.29.1", "InPlace", None));
    world.namespace("app", "istio-injection=enabled");
    world.settle();
    world.istio("default", spec("v1.29.1", "RevisionBased", Some(&["default"])));
    world.settle_and_check_idle();
    assert_eq!(
        tags_condition(&world, "default"),
        "TagsReconciled=False/TagNameTaken: tag \"default\" cannot be created while an IstioRevision of that name exists"
    );
    world.namespace("app", "");
    world.settle();
    world.advance(30);
    world.queue.insert(Subject::istio("default"));
    world.settle_and_check_idle();
    assert_eq!(
        (world.revisions(), world.tags()),
        (vec!["default-v1-29-1"], vec!["default"])
    );
    assert_eq!(
        tags_condition(&world, "default"),
        "TagsReconciled=True/TagsReconciled"
    );
}

fn owner_of_prod(world: &World) -> &str {
    let tag = world.snapshot.tags().get("prod").unwrap();
    &tag.metadata.owner_references[0].name
}

#[test]
fn the_older_of_two_istios_keeps_a_tag_that_both_list() {
    let mut world = World::default();
    world.istio("b", spec("v1.29.1", "RevisionBased", Some(&["prod"])));
    world.advance(1);
    world.istio("a", spec("v1.29.1", "RevisionBased", Some(&["prod", "own"])));
    world.settle_and_check_idle();
    assert_eq!(owner_of_prod(&world), "b");
    assert_eq!(
        tags_condition(&world, "a"),
        "TagsReconciled=False/TagClaimedByOther: tag \"prod\" belongs to Istio \"b\", which is older and lists it too"
    );
    assert_eq!(
        world.conditions(&Subject::istio("a"))[0],
        "state=Healthy",
        "everything else is reconciled"
    );
    assert_eq!(world.tags(), ["own", "prod"]);

    world.istio("b", spec("v1.29.1", "RevisionBased", Some(&[])));
    world.settle_and_check_idle();
    assert_eq!(
        owner_of_prod(&world),
        "a",
        "deleted by one Istio, created by the other"
    );
    assert_eq!(tags_condition(&world, "a"), "TagsReconciled=True/TagsReconciled");
}

#[test]
fn an_older_istio_takes_over_a_tag_once_the_tag_is_unused() {
    let mut world = World::default();
    world.istio("old", spec("v1.28.2", "RevisionBased", Some(&[])));
    world.advance(1);
    world.istio("young", spec("v1.29.1", "RevisionBased", Some(&["prod"])));
    world.namespace("app", "istio.io/rev=prod");
    world.settle();
    world.istio("old", spec("v1.28.2", "RevisionBased", Some(&["prod"])));
    world.settle_and_check_idle();
    assert_eq!(owner_of_prod(&world), "young", "workloads refer to it");
    assert_eq!(
        tags_condition(&world, "young"),
        "TagsReconciled=False/TagClaimedByOther: tag \"prod\" belongs to Istio \"old\", which is older and lists it too; tag \"prod\" is \
         no longer requested, but kept while workloads refer to it"
    );
    world.namespace("app", "");
    world.settle_and_check_idle();
    assert_eq!(owner_of_prod(&world), "old");
}

#[test]
fn of_two_istios_of_equal_age_the_smaller_uid_keeps_the_tag() {
    let mut world = World::default();
    world.istio("z", spec("v1.29.1", "RevisionBased", Some(&["prod"])));
    world.istio("a", spec("v1.29.1", "RevisionBased", Some(&["prod"])));
    world.settle_and_check_idle();
    assert_eq!(
        world
            .snapshot
            .tags()
            .get("prod")
            .unwrap()
            .metadata
            .owner_references[0]
            .name,
        "z"
    );
}

#[test]
fn the_other_istio_gets_the_tag_when_the_older_one_is_deleted() {
    let mut world = World::default();
    world.istio("b", spec("v1.29.1", "RevisionBased", Some(&["prod"])));
    world.advance(1);
    world.istio("a", spec("v1.28.2", "RevisionBased", Some(&["prod"])));
    world.settle();
    world.delete::<IstioSpec>("b");
    world.settle_and_check_idle();
    let tag = world.snapshot.tags().get("prod").unwrap();
    assert_eq!(
        (
            tag.metadata.owner_references[0].name.as_str(),
            tag.status.istio_revision.as_str()
        ),
        ("a", "a-v1-28-2")
    );
}

#[test]
fn a_changed_managed_tag_is_restored() {
    let mut world = World::default();
    world.istio("mesh", spec("v1.29.1", "RevisionBased", Some(&["prod"])));
    world.settle();
    world.tag("prod", "IstioRevision", "elsewhere");
    world.settle_and_check_idle();
    let tag = world.snapshot.tags().get("prod").unwrap();
    assert_eq!(
        (
            tag.spec.target_ref.kind.as_str(),
            tag.spec.target_ref.name.as_str()
        ),
        ("Istio", "mesh")
    );
}

#[test]
fn a_deleted_managed_tag_is_recreated() {
    let mut world = World::default();
    world.istio("mesh", spec("v1.29.1", "RevisionBased", Some(&["prod"])));
    world.settle();
    let old = world.snapshot.tags().get("prod").unwrap().metadata.uid.clone();
    world.delete::<TagSpec>("prod");
    world.settle_and_check_idle();
    assert_ne!(world.snapshot.tags().get("prod").unwrap().metadata.uid, old);
}

#[test]
fn the_default_tag_is_replaced_by_a_revision_of_its_name() {
    let mut world = World::default();
    world.istio("default", spec("v1.29.1", "RevisionBased", None));
    world.namespace("app", "istio-injection=enabled");
    world.settle();
    assert_eq!(world.tags(), ["default"]);
    world.istio("default", spec("v1.29.1", "InPlace", None));
    world.settle_and_check_idle();
    assert!(
        world.tags().is_empty(),
        "the tag would block the name of the active revision"
    );
    assert_eq!(
        world.conditions(&Subject::revision("default"))[1],
        "Reconciled=True/Reconciled"
    );
}

#[test]
fn a_tag_cannot_have_the_name_of_the_active_revision() {
    let mut world = World::default();
    world.istio("mesh", spec("v1.28.2", "RevisionBased", Some(&["mesh-v1-29-1"])));
    world.settle_and_check_idle();
    assert_eq!(world.tags(), ["mesh-v1-29-1"]);
    world.istio("mesh", spec("v1.29.1", "RevisionBased", Some(&["mesh-v1-29-1"])));
    world.settle_and_check_idle();
    assert!(world.tags().is_empty());
    assert_eq!(
        tags_condition(&world, "mesh"),
        "TagsReconciled=False/TagNameTaken: tag \"mesh-v1-29-1\" cannot be created: it is the name of the active IstioRevision"
    );
    assert_eq!(world.conditions(&Subject::istio("mesh"))[0], "state=Healthy");
}

#[test]
fn a_tag_cannot_have_the_name_of_another_istios_revision() {
    let mut world = World::default();
    world.istio("a", spec("v1.29.1", "RevisionBased", Some(&["b"])));
    world.istio("b", spec("v1.29.1", "InPlace", None));
    world.settle_and_check_idle();
    assert!(world.tags().is_empty());
    assert_eq!(
        tags_condition(&world, "a"),
        "TagsReconciled=False/TagNameTaken: tag \"b\" cannot be created while an IstioRevision of that name exists"
    );
    world.istio("b", spec("v1.23.4", "InPlace", None));
    world.delete::<mainstay_api::RevisionSpec>("b");
    world.settle_and_check_idle();
    assert_eq!(world.tags(), ["b"], "an Istio with an error reserves no name");
}

#[test]
fn managed_tags_wait_for_the_new_revision_too() {
    let mut world = World::default();
    world.istio("mesh", spec("v1.28.2", "RevisionBased", None));
    world.settle();
    world.ready = false;
    world.istio("mesh", spec("v1.29.1", "RevisionBased", None));
    world.settle_and_check_idle();
    assert_eq!(
        world
            .snapshot
            .tags()
            .get("default")
            .unwrap()
            .status
            .istio_revision,
        "mesh-v1-28-2"
    );
    world.deployment("istio-system", "istiod-mesh-v1-29-1", 1, 1);
    world.settle_and_check_idle();
    assert_eq!(
        world
            .snapshot
            .tags()
            .get("default")
            .unwrap()
            .status
            .istio_revision,
        "mesh-v1-29-1"
    );
}
