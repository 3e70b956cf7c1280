#!/usr/bin/env bash
# A new user's first hour with only the release archive, kubectl and Helm. Prints the exit status and the time of each step.
# The commands of the archive's pages are executed separately, by the test of the book.
# Usage: new-user.sh ARCHIVE, in an empty home directory.
set -uo pipefail

archive=$1
failed=0
steps=0
started=$(date +%s%N)
background=()

stop() {
  for process in "${background[@]}"; do kill "$process" 2>/dev/null; done
  wait 2>/dev/null
}
trap stop EXIT

# Runs a command, prints its status and time, and its output if it fails.
step() {
  local name=$1 begin status
  shift
  begin=$(date +%s%N)
  "$@" >step.log 2>&1 </dev/null
  status=$?
  printf '%6.1f s  exit %d  %s\n' "$(($(date +%s%N) - begin))e-9" "$status" "$name"
  steps=$((steps + 1))
  if [ "$status" -ne 0 ]; then
    failed=$((failed + 1))
    sed 's/^/    /' step.log
  fi
}

# Starts a background process that runs until the end of the script.
start() {
  "$@" >>"$1.log" 2>&1 </dev/null &
  background+=($!)
}

# Repeats a command until it succeeds, for at most two minutes.
eventually() {
  local end=$((SECONDS + 120))
  until "$@"; do
    [ "$SECONDS" -lt "$end" ] || return 1
    sleep 0.2
  done
}

completes() {
  # shellcheck disable=SC1091
  source archive/completions/mainstay.bash && complete -p mainstay &&
    COMP_WORDS=(mainstay migr) COMP_CWORD=1 && _mainstay mainstay migr mainstay && [ "${COMPREPLY[*]}" = migration ]
}

shows_page() {
  man -l archive/man/man1/mainstay.1 | grep -q 'SYNOPSIS\|NAME'
}

installs() {
  mkdir -p archive bin && tar -xzf "$archive" -C archive && install -m 755 archive/mainstay bin/mainstay
}

rolled_out() {
  local namespace name
  while read -r namespace name; do
    kubectl rollout restart -n "$namespace" "$name" || return 1
    kubectl rollout status -n "$namespace" "$name" --timeout=120s || return 1
  done < <(kubectl get deployments,statefulsets -A \
    -o jsonpath='{range .items[*]}{.metadata.namespace}{" "}{.kind}/{.metadata.name}{"\n"}{end}')
}

# Writes a chart of Istio to a directory, as `helm pull` would.
chart() {
  local file
  mainstay charts show 1.28.2 "$1" | while read -r file; do
    mkdir -p "$1/$(dirname "$file")" && mainstay charts show 1.28.2 "$1" --file "$file" >"$1/$file" || return 1
  done
}

migrated() {
  [ "$(kubectl get istio default -o jsonpath='{.status.activeRevisionName} {.status.state} {.status.workloadMigration.state}')" = 'default-v1-29-1 Healthy Completed' ]
}

# Ten of the eleven workloads of the mesh migrate, one is skipped by its annotation. A count of 0 is omitted.
counts_workloads() {
  [ "$(kubectl get istio default -o jsonpath='{.status.workloadMigration.totalWorkloads} {.status.workloadMigration.migratedWorkloads} {.status.workloadMigration.failedWorkloads} {.status.workloadMigration.skippedWorkloads}')" = '11 10  1' ]
}

# The upgrade skips this workload by an annotation; the old control plane remains until a user restarts the workload.
restarts_skipped() {
  kubectl rollout restart -n platform deployment/audit && kubectl rollout status -n platform deployment/audit --timeout=120s
}

export PATH=$PWD/bin:$PATH

step 'unpack and install' installs
step 'mainstay --version' mainstay --version
step 'completion in bash' completes
step 'manual page' shows_page
step 'mainstay demo' mainstay demo

export KUBECONFIG=$PWD/kubeconfig POD_NAMESPACE=sail-operator
start mainstay sandbox --inject --kubeconfig "$KUBECONFIG"
step 'sandbox is ready' eventually kubectl get nodes
step 'mainstay crds install' mainstay crds install
step 'kubectl create namespace' kubectl create namespace sail-operator
start mainstay operator run --leader-elect=false --metrics-bind-address 0 --health-probe-bind-address 127.0.0.1:18081
mainstay demo --manifests >demo.yaml
step 'kubectl apply -f demo.yaml' eventually kubectl apply -f demo.yaml
step 'mesh is ready' kubectl wait --for=condition=Ready istio/default --timeout=120s
step 'restart for injection' rolled_out
step 'mainstay status' mainstay status
step 'mainstay migration plan' mainstay migration plan --to v1.29.1
step 'mainstay rehearse' mainstay rehearse --to v1.29.1 --report upgrade.html
step 'upgrade' kubectl patch istio default --type=merge -p '{"spec": {"version": "v1.29.1"}}'
step 'migration is done' eventually migrated
step '10 workloads migrated, 0 failed, 1 skipped' counts_workloads
step 'restart the skipped workload' restarts_skipped
step 'old revision is deleted' kubectl wait --for=delete istiorevision/default-v1-28-2 --timeout=120s
step 'mainstay migration status' mainstay migration status

export KUBECONFIG=$PWD/kubeconfig-adopt
start mainstay sandbox --inject --kubeconfig "$KUBECONFIG"
step 'second sandbox is ready' eventually kubectl get nodes
step 'Istio charts' eval 'chart base && chart istiod'
step 'helm install istio-base' helm install istio-base ./base --namespace istio-system --create-namespace
step 'helm install istiod' helm install istiod ./istiod --namespace istio-system --wait
step 'mainstay crds install' mainstay crds install --only mainstay
step 'mainstay adopt' mainstay adopt
step 'mainstay adopt --apply' mainstay adopt --apply
step 'mainstay adopt --undo' mainstay adopt --undo

seconds=$((($(date +%s%N) - started) / 1000000000))
echo "$((steps - failed)) of $steps steps exit with 0, $seconds s"
[ "$failed" -eq 0 ]
