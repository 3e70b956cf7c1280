//! The mistakes: arguments, kubeconfig and stdin.

/// A command line that fails, with its environment.
pub(crate) struct Mistake {
    /// Name of the file with the expected transcript, without `.txt`.
    pub(crate) name: &'static str,
    /// Kubeconfig in `$KUBECONFIG`; empty for none.
    pub(crate) kubeconfig: &'static str,
    /// Arguments of `mainstay`, separated by spaces.
    pub(crate) arguments: &'static str,
    /// Contents of stdin.
    pub(crate) stdin: &'static str,
}

const fn typed(name: &'static str, arguments: &'static str) -> Mistake {
    on(name, "", arguments)
}

const fn on(name: &'static str, kubeconfig: &'static str, arguments: &'static str) -> Mistake {
    piped(name, kubeconfig, arguments, "")
}

const fn piped(
    name: &'static str,
    kubeconfig: &'static str,
    arguments: &'static str,
    stdin: &'static str,
) -> Mistake {
    Mistake {
        name,
        kubeconfig,
        arguments,
        stdin,
    }
}

/// All mistakes.
pub(crate) const CASES: &[Mistake] = &[
    // The command line.
    typed("command-unknown", "stauts"),
    typed("command-of-kubectl", "get pods"),
    typed("subcommand-unknown", "migration pln"),
    typed("help-unknown", "help stauts"),
    typed("flag-similar", "status --contxt prod"),
    typed("flag-unknown", "status --bogus"),
    typed("flag-short-unknown", "status -x"),
    typed("flag-without-value", "status -o"),
    typed("flag-of-another-command", "status --snapshot shop.yaml"),
    typed("format-unknown", "status -o xml"),
    typed("format-similar", "status -o jsn"),
    typed("color-unknown", "status --color sometimes"),
    typed("argument-missing", "rehearse"),
    typed("argument-surplus", "version now"),
    typed(
        "flags-conflict",
        "rehearse --to v1.29.1 --snapshot shop.yaml --context prod",
    ),
    typed("namespaces-conflict", "status -n istio-system -A"),
    typed("speed-not-a-number", "demo --speed fast"),
    typed("speed-negative", "sandbox --speed=-1"),
    typed("duration-without-unit", "migration plan --ready-after 5"),
    typed("uninstall-without-revision", "uninstall"),
    typed("shell-unknown", "completion tcsh"),
    typed("fail-on-unknown", "rehearse --to v1.29.1 --fail-on info"),
    // Kubeconfigs.
    typed("cluster-none", "status"),
    typed("context-without-kubeconfig", "status --context prod"),
    typed("kubeconfig-missing", "status --kubeconfig none"),
    typed("kubeconfig-directory", "status --kubeconfig kubeconfigs"),
    on("kubeconfig-variable-missing", "none", "status"),
    on("kubeconfig-broken", "broken", "status"),
    on("kubeconfig-empty", "empty", "status"),
    on("context-unknown", "no-current", "status --context prod"),
    on("context-not-set", "no-current", "status"),
    on("context-dangling", "dangling", "status"),
    on("server-missing", "no-server", "status"),
    on("plugin-missing", "no-plugin", "status"),
    on("server-down", "down", "status"),
    on("server-down-rehearse", "down", "rehearse --to v1.29.1"),
    on("server-down-install", "down", "install -y"),
    on("certificate-authority-wrong", "other-authority", "status"),
    on("credentials-expired", "expired", "status"),
    // Clusters.
    on("definitions-missing", "bare", "status"),
    on("definitions-missing-migration", "bare", "migration plan"),
    on("definitions-missing-rehearse", "bare", "rehearse --to v1.29.1"),
    on("definitions-missing-rollout", "bare", "rollout status"),
    on("definitions-missing-clusters", "bare", "cluster list"),
    on("forbidden", "guest", "status"),
    on("forbidden-definitions", "guest", "crds install"),
    on("istio-missing", "mesh", "migration plan"),
    on("istio-unknown", "mesh", "migration status prod"),
    on("revision-unknown", "mesh", "revision describe canary"),
    on("rollout-unknown", "mesh", "rollout status shop"),
    on("adopt-undo-nothing", "mesh", "adopt --undo"),
    // A version without an end-of-life warning, which would depend on the date.
    on("upgrade-nothing", "mesh", "upgrade -y --istio-version 1.28.2"),
    on(
        "tag-of-unknown-revision",
        "mesh",
        "tag set prod --revision canary",
    ),
    // Snapshots and files.
    typed("snapshot-missing", "rehearse --to v1.29.1 --snapshot none.yaml"),
    typed(
        "snapshot-invalid",
        "rehearse --to v1.29.1 --snapshot invalid.yaml",
    ),
    typed("snapshot-of-no-objects", "sandbox --snapshot list.yaml"),
    piped("snapshot-invalid-stdin", "", "sandbox -f -", "kind: [\n"),
    typed(
        "snapshot-without-istio",
        "rehearse --to v1.29.1 --snapshot pod.yaml",
    ),
    typed(
        "istio-file-without-istio",
        "rehearse -f pod.yaml --snapshot shop.yaml",
    ),
    typed("version-unknown", "rehearse --to v9.9.9 --snapshot shop.yaml"),
    typed(
        "version-end-of-life",
        "rehearse --to v1.21.0 --snapshot shop.yaml",
    ),
    typed(
        "istio-not-in-snapshot",
        "rehearse prod --to v1.29.1 --snapshot shop.yaml",
    ),
    typed(
        "readiness-invalid",
        "rehearse --to v1.29.1 --snapshot shop.yaml --readiness readiness.yaml",
    ),
    typed(
        "report-directory-missing",
        "rehearse --to v1.29.1 --snapshot shop.yaml --report none/a.html",
    ),
    typed("dump-not-empty", "sandbox --dump full"),
    typed(
        "sandbox-kubeconfig-exists",
        "sandbox --kubeconfig kubeconfigs/down",
    ),
    typed("port-in-use", "sandbox --port PORT"),
    typed("manifest-missing", "manifest generate -f none.yaml"),
    typed("manifest-field-unknown", "manifest validate -f typo.yaml"),
    typed("manifest-stdin-first", "manifest generate -f - -f mesh.yaml"),
    piped(
        "rehearse-file-invalid-stdin",
        "",
        "rehearse -f - --snapshot shop.yaml",
        "kind: [\n",
    ),
    typed("profile-unknown", "manifest generate --profile prod"),
    typed("charts-version-unknown", "charts show 9.9.9"),
    typed("charts-directory-missing", "charts list --charts none"),
    typed("chart-missing", "template a ./none"),
    typed("generate-missing", "generate none.yaml"),
    typed("rollout-file-missing", "rollout plan -f none.yaml"),
];
