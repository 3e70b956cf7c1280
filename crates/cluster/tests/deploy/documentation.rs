//! Tests the statements of docs/rbac.md: permissions with `SelfSubjectAccessReview`, and the admission
//! policy with writes that it must deny.

use std::sync::Arc;

use mainstay_catalog::Catalog;
use mainstay_cluster::survey::survey;
use mainstay_mesh::snapshot::Source;
use mainstay_mesh::{Library, Settings, Snapshot};
use mainstay_testkit::repository_root;
use serde_json::{Value, json};

use super::charts::{documents, operator_chart, releases};
use super::host::Host;
use super::settings::{Setting, check_setting};
use crate::{ACCOUNT, JOB, Owners, with_owner};

fn page() -> String {
    std::fs::read_to_string(repository_root().join("docs/rbac.md")).unwrap()
}

/// Returns the first indented block of the page after the line that contains `heading`, without its
/// indentation.
fn indented_block(heading: &str, indentation: &str) -> String {
    let page = page();
    let mut lines = page.lines().skip_while(|line| !line.contains(heading));
    lines.next().unwrap();
    let from = lines.skip_while(|line| !line.starts_with(indentation));
    let lines = from.take_while(|line| line.starts_with(indentation));
    lines
        .flat_map(|line| [&line[indentation.len()..], "\n"])
        .collect()
}

/// Whether an account has the permission that `attributes` describe.
async fn is_allowed(host: &Host, account: &str, attributes: Value) -> bool {
    let review = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": attributes});
    let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let response = host.create(Some(account), path, &review).await;
    response["status"]["allowed"]
        .as_bool()
        .unwrap_or_else(|| panic!("{response}"))
}

/// Parses a request of the table, such as `create deployments.apps -n=default`.
fn attributes(request: &str) -> Value {
    let words: Vec<&str> = request.split(' ').collect();
    let option = |name: &str| {
        words
            .iter()
            .find_map(|word| word.strip_prefix(name))
            .unwrap_or_default()
    };
    let (resource, group) = words[1].split_once('.').unwrap_or((words[1], ""));
    let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
    json!({"resourceAttributes": {"verb": words[0], "resource": resource, "subresource": subresource,
        "group": group, "namespace": option("-n="), "name": option("name=")}})
}

/// Returns the requests of the tables in a section, and whether each of them is allowed.
fn table(heading: &str) -> Vec<(String, bool)> {
    let page = page();
    let lines = page.lines().skip_while(|line| *line != heading).skip(1);
    let lines = lines.take_while(|line| !line.starts_with('#'));
    let row = |line: &str| {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        match cells.as_slice() {
            [request, expected @ ("yes" | "no"), ..] => {
                Some((request.trim_end_matches('`').to_owned(), *expected == "yes"))
            }
            _ => None,
        }
    };
    let lines = lines.filter_map(|line| line.strip_prefix("| `"));
    lines.filter_map(row).collect()
}

/// Checks a list of requests.
async fn check_requests(host: &Host, rows: &[(String, bool)]) {
    let mut wrong = Vec::new();
    for (request, expected) in rows {
        if is_allowed(host, ACCOUNT, attributes(request)).await != *expected {
            wrong.push(request.clone());
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Checks the tables of requests, and that a setting is needed for the requests of its table. Returns the
/// number of rows.
pub(crate) async fn check_table(host: &Host, setting: Setting) -> usize {
    let rows = table(setting.heading());
    assert!(rows.len() >= setting.least_rows(), "{}", rows.len());
    check_requests(host, &rows).await;
    if setting == Setting::None {
        for other in [Setting::Delivery, Setting::IstioOperator] {
            let mut rows = table(other.heading());
            for row in &mut rows {
                row.1 = false;
            }
            check_requests(host, &rows).await;
        }
    }
    rows.len()
}

pub(super) fn workload(kind: &str, namespace: &str) -> Value {
    json!({"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "w", "namespace": namespace},
        "spec": {"selector": {"matchLabels": {"a": "b"}}, "serviceName": "s", "template": {"metadata": {"labels": {"a": "b"}},
            "spec": {"containers": [{"name": "c", "image": "i"}]}}}})
}

pub(super) fn without_service_name(mut object: Value) -> Value {
    if object["kind"] != "StatefulSet" {
        object["spec"].as_object_mut().unwrap().remove("serviceName");
    }
    object
}

/// Checks the admission policy. Returns the number of denied writes.
pub(crate) async fn check_admission_policy(host: &Host, owners: &Owners, setting: Setting) -> usize {
    let workload = without_service_name(workload("Deployment", "shop"));
    wait_until_denied(host, &workload, "only for control planes").await;
    wait_until_denied(host, &with_owner(&workload, &owners.cni), "only in its namespace").await;
    check_secrets_and_pods(host, setting).await
        + check_own_workloads(host, owners).await
        + check_restarts(host, &owners.cni).await
        + check_setting(host, setting).await
}

async fn check_secrets_and_pods(host: &Host, setting: Setting) -> usize {
    let secret =
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "shop"}});
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "shop"},
        "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let (secrets, pods) = ("/api/v1/namespaces/shop/secrets", "/api/v1/namespaces/shop/pods");
    let account = host.create(Some(ACCOUNT), secrets, &secret).await;
    let made = host.create(None, secrets, &secret).await;
    assert_eq!(
        made["kind"], "Secret",
        "only the operator's account is confined: {made}"
    );
    assert_eq!(host.create(None, pods, &pod).await["kind"], "Pod");
    let mut changed = made.clone();
    changed["metadata"]["labels"] = json!({"a": "b"});
    let responses = [
        account,
        host.send(Some(ACCOUNT), "PUT", &format!("{secrets}/s"), &changed)
            .await,
        host.send(Some(ACCOUNT), "DELETE", &format!("{secrets}/s"), &json!({}))
            .await,
        host.send(Some(ACCOUNT), "DELETE", &format!("{pods}/p"), &json!({}))
            .await,
    ];
    for response in &responses {
        let message = response["message"].as_str().unwrap_or_default();
        assert!(message.contains(setting.secrets_message()), "{response}");
    }
    responses.len()
}

pub(super) async fn check_denied(host: &Host, object: &Value, expected: &str) {
    let error = host.apply(Some(ACCOUNT), object).await.unwrap_err();
    assert!(error.contains(expected), "{}: {error}", object["kind"]);
}

async fn check_own_workloads(host: &Host, owners: &Owners) -> usize {
    let mut count = 0;
    for kind in ["Deployment", "DaemonSet"] {
        let object = |namespace: &str| without_service_name(workload(kind, namespace));
        check_denied(
            host,
            &object("istio-system"),
            "only for control planes, CNI plugins and ztunnels",
        )
        .await;
        let mut istio = owners.cni.clone();
        istio["kind"] = json!("Istio");
        check_denied(
            host,
            &with_owner(&object("istio-cni"), &istio),
            "only for control planes",
        )
        .await;
        // The owner does not exist. Only the tested rule denies such a write, so its message is reported;
        // otherwise a server may report that of any other rule.
        let mut absent = owners.cni.clone();
        absent["name"] = json!("absent");
        for namespace in ["kube-system", "kube-public", "kube-node-lease"] {
            check_denied(
                host,
                &with_owner(&object(namespace), &absent),
                "protected namespaces",
            )
            .await;
        }
        // A policy cannot require that an owner exists.
        let mut accepted = with_owner(&object("shop"), &absent);
        accepted["metadata"]["name"] = json!("absent-owner");
        host.apply(Some(ACCOUNT), &accepted).await.unwrap();
        count += 5 + check_own_namespaces(host, owners, object).await;
    }
    count
}

/// Checks writes with each owner in the namespaces of the other owners, and with a wrong UID.
async fn check_own_namespaces(host: &Host, owners: &Owners, object: impl Fn(&str) -> Value) -> usize {
    let expected = "only in its namespace";
    let pairs = [
        ("istio-cni", &owners.cni),
        ("istio-system", &owners.revision),
        ("ztunnel", &owners.ztunnel),
    ];
    let mut count = 0;
    for (own, owner) in pairs {
        // The name differs for each owner, because a write to an existing workload would be an update.
        let object = |namespace: &str| {
            let mut object = object(namespace);
            object["metadata"]["name"] = json!(format!("in-{own}"));
            object
        };
        for other in ["istio-cni", "istio-system", "ztunnel", "shop"] {
            if other != own {
                check_denied(host, &with_owner(&object(other), owner), expected).await;
                count += 1;
            }
        }
        let mut forged = owner.clone();
        forged["uid"] = json!("00000000-0000-0000-0000-000000000001");
        check_denied(host, &with_owner(&object(own), &forged), expected).await;
        host.apply(Some(ACCOUNT), &with_owner(&object(own), owner))
            .await
            .unwrap();
        count += 1;
    }
    count
}

/// Checks that writes to workloads of other owners may restart pods and change their labels, as workload
/// migration does, but not change the containers. Returns the number of denied writes.
async fn check_restarts(host: &Host, owner: &Value) -> usize {
    let mut count = 0;
    for kind in ["Deployment", "DaemonSet", "StatefulSet"] {
        let other = without_service_name(workload(kind, "shop"));
        host.apply(None, &other).await.unwrap();
        let mut restarted = other.clone();
        restarted["spec"]["template"]["metadata"]["annotations"] = json!({"restarted": "now"});
        restarted["spec"]["template"]["metadata"]["labels"]["istio.io/rev"] = json!("new");
        host.apply(Some(ACCOUNT), &restarted).await.unwrap();
        let mut changed = other.clone();
        changed["spec"]["template"]["spec"]["containers"][0]["image"] = json!("evil");
        let expected = "does not change the pods of other workloads";
        check_denied(host, &changed, expected).await;
        // Adding our owner reference does not make the workload ours.
        check_denied(host, &with_owner(&changed, owner), expected).await;
        count += 2;
    }
    let mut own = with_owner(&without_service_name(workload("Deployment", "istio-cni")), owner);
    own["spec"]["template"]["spec"]["containers"][0]["image"] = json!("new");
    host.apply(Some(ACCOUNT), &own).await.unwrap();
    let mut released = without_service_name(workload("Deployment", "istio-system"));
    released["metadata"]["name"] = json!("helm");
    released["metadata"]["annotations"] = json!({"meta.helm.sh/release-name": "default-istiod"});
    host.apply(None, &released).await.unwrap();
    let mut taken_over = with_owner(&released, owner);
    taken_over["spec"]["template"]["spec"]["containers"][0]["image"] = json!("new");
    host.apply(Some(ACCOUNT), &taken_over).await.unwrap();
    count
}

/// Checks that the list of protected namespaces can be changed.
pub(crate) async fn check_protected_namespaces(host: &Host, owners: &Owners) {
    let mut absent = owners.cni.clone();
    absent["name"] = json!("absent");
    let object = |namespace: &str| {
        let mut object = with_owner(&without_service_name(workload("DaemonSet", namespace)), &absent);
        object["metadata"]["name"] = json!("protected");
        object
    };
    wait_until_denied(host, &object("shop"), "protected namespaces").await;
    host.apply(Some(ACCOUNT), &object("kube-system")).await.unwrap();
}

/// Waits until a write is denied with this message: an admission policy takes effect some time after it is
/// written.
async fn wait_until_denied(host: &Host, object: &Value, expected: &str) {
    for _ in 0..300 {
        match host.apply(Some(ACCOUNT), object).await {
            Err(error) if error.contains(expected) => return,
            Ok(()) => host.delete_object(object).await,
            Err(_) => {}
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    panic!("not denied: {expected}");
}

/// Checks the policies before our definitions are installed: only the rule that compares an owner with the
/// objects of its kind is not evaluated.
pub(crate) async fn check_without_definitions(host: &Host) -> usize {
    let owner =
        json!({"apiVersion": "sailoperator.io/v1", "kind": "IstioCNI", "name": "default", "uid": "u"});
    let object = |namespace: &str| without_service_name(workload("DaemonSet", namespace));
    let expected = "only for control planes, CNI plugins and ztunnels";
    wait_until_denied(host, &object("shop"), expected).await;
    let protected = with_owner(&object("kube-system"), &owner);
    check_denied(host, &protected, "protected namespaces").await;
    let forged = with_owner(&object("shop"), &owner);
    host.apply(Some(ACCOUNT), &forged).await.unwrap();
    // Other users are not affected.
    let mut other = object("shop");
    other["metadata"]["name"] = json!("other");
    host.apply(None, &other).await.unwrap();
    2
}

/// Returns the attributes of an update of a Lease.
fn update_lease(namespace: &str, name: &str) -> Value {
    attributes(&format!(
        "update leases.coordination.k8s.io -n={namespace} name={name}"
    ))
}

fn patch_definition(name: &str) -> Value {
    attributes(&format!(
        "patch customresourcedefinitions.apiextensions.k8s.io name={name}"
    ))
}

/// Checks the other roles of the chart. Returns the number of requests.
pub(crate) async fn check_other_roles(host: &Host) -> usize {
    let prometheus = "system:serviceaccount:monitoring:prometheus";
    bind(host, "sail-operator-mainstay-metrics-reader", prometheus).await;
    let url = |path: &str| json!({"nonResourceAttributes": {"verb": "get", "path": path}});
    let expected = [
        (prometheus, url("/metrics"), true),
        (prometheus, url("/logs"), false),
        (ACCOUNT, update_lease("sail-operator", "sail-operator-lock"), true),
        (
            JOB,
            attributes("create customresourcedefinitions.apiextensions.k8s.io"),
            true,
        ),
        (JOB, patch_definition("istios.sailoperator.io"), true),
        (JOB, patch_definition("gateways.networking.istio.io"), true),
        (JOB, patch_definition("other.example.com"), false),
        (JOB, attributes("get secrets -n=default"), false),
    ];
    for (account, request, allowed) in &expected {
        assert_eq!(
            is_allowed(host, account, request.clone()).await,
            *allowed,
            "{account} {request}"
        );
    }
    expected.len()
}

async fn bind(host: &Host, role: &str, account: &str) {
    let group = "rbac.authorization.k8s.io";
    let binding = json!({"apiVersion": format!("{group}/v1"), "kind": "ClusterRoleBinding", "metadata": {"name": format!("test-{role}")},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": role},
        "subjects": [{"kind": "User", "apiGroup": group, "name": account}]});
    host.apply(None, &binding).await.unwrap();
}

/// Checks that the reader role allows all reads, and that without its last three rules only the reads
/// fail that these rules allow.
pub(crate) async fn check_reader_role(host: &Host) {
    let mut role = documents(&indented_block("## A role for readers", "    ")).remove(0);
    host.apply(None, &role).await.unwrap();
    bind(host, role["metadata"]["name"].as_str().unwrap(), "reader").await;
    let unread = async || {
        let (library, _) = Library::from_catalog(&Catalog::embedded().unwrap());
        let now = "2026-11-15T12:00:00Z".parse().unwrap();
        let snapshot = Snapshot::new(now, Arc::new(Settings::default()), Arc::new(library));
        let found = survey(&host.client(Some("reader")).await, snapshot)
            .await
            .unwrap();
        let sources = Source::ALL.into_iter();
        // Workloads are only read for migrations.
        let sources = sources.filter(|source| *source != Source::Workloads);
        let unread = sources.filter(|source| found.snapshot.readable(*source).is_err());
        unread.count() + usize::from(found.leaders.is_err())
    };
    assert_eq!(unread().await, 0);
    role["rules"].as_array_mut().unwrap().truncate(2);
    host.apply(None, &role).await.unwrap();
    assert_eq!(unread().await, 4, "Deployments, DaemonSets, webhooks and leases");
}

/// Checks that the values of the section "Not covered" add rules to the operator's role.
pub(crate) fn check_extra_rules(namespace: &str) {
    let objects = operator_chart(namespace, &indented_block("MCS_API_GROUP", "      "));
    let cluster_roles = objects.iter().filter(|object| object["kind"] == "ClusterRole");
    let rules = cluster_roles.flat_map(|role| role["rules"].as_array().unwrap());
    let added = rules.filter(|rule| rule["apiGroups"] == json!(["mcs.example.com"]));
    assert_eq!(added.count(), 2);
}

/// Removes the role with the granted rules, and checks that existing roles can still be applied, a new
/// one is rejected, and Secrets cannot be read.
pub(crate) async fn check_missing_grants(host: &Host) {
    assert!(is_allowed(host, ACCOUNT, attributes("get secrets -n=default")).await);
    host.delete("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/sail-operator-mainstay-grants")
        .await;
    assert!(!is_allowed(host, ACCOUNT, attributes("get secrets -n=default")).await);
    // Istio's roles also grant permissions on Leases. Without them, only our own Lease can be written.
    assert!(is_allowed(host, ACCOUNT, update_lease("sail-operator", "sail-operator-lock")).await);
    assert!(!is_allowed(host, ACCOUNT, update_lease("sail-operator", "other")).await);
    assert!(!is_allowed(host, ACCOUNT, update_lease("default", "sail-operator-lock")).await);
    let all: Vec<Value> = releases()
        .into_iter()
        .flat_map(|release| release.objects)
        .collect();
    let role = all.iter().rev().find(|object| {
        object["kind"] == "ClusterRole" && object["rules"].as_array().is_some_and(|rules| rules.len() > 10)
    });
    let mut role = role.unwrap().clone();
    let mut applied = host.apply(Some(ACCOUNT), &role).await;
    applied.as_mut().unwrap();
    role["metadata"]["name"] = json!("another");
    let error = host.apply(Some(ACCOUNT), &role).await.unwrap_err();
    assert!(
        error.contains("is attempting to grant RBAC permissions not currently held"),
        "{error}"
    );
}
