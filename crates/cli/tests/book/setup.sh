# Functions for `<!-- setup: … -->` comments: what exists before a page begins. Sourced by every page's shell.

# Prints line, exit code and run time of a block that began at $3.
report_block() {
  awk -v line="$1" -v code="$2" -v begin="$3" -v end="$EPOCHREALTIME" \
    'BEGIN { printf "line %d: exit %d in %.1f s\n", line, code, end - begin }'
}

# Runs the operator as a process beside the sandbox, whose Deployments run nothing.
start_operator_process() {
  POD_NAMESPACE=sail-operator mainstay operator run --leader-elect=false \
    --metrics-bind-address=0 --health-probe-bind-address=0 > .operator.log 2>&1 &
}

# Installs Istio 1.28.2 with the real istioctl, from charts in the layout of its releases.
install_with_istioctl() {
  local charts=$PWD/resources/1.28.2/installer/charts
  mkdir -p .istio/charts/istio-control
  ln -s "$charts/base" .istio/charts/base
  ln -s "$charts/istiod" .istio/charts/istio-control/istio-discovery
  ln -s "$PWD/resources/1.28.2/installer/profiles" .istio/profiles
  istioctl install --manifests "$PWD/.istio" -f "$1" -y
}

# Installs the definitions, and runs the operator.
start_operator() {
  mainstay crds install > /dev/null
  kubectl get namespace sail-operator > /dev/null 2>&1 || kubectl create namespace sail-operator > /dev/null
  start_operator_process
}

# Creates the namespace `shop` with two injected Deployments and a Service.
run_application() {
  kubectl create namespace shop
  kubectl label namespace shop istio-injection=enabled
  kubectl -n shop create deployment cart --image=nginx --replicas=2
  kubectl -n shop create deployment catalog --image=nginx --replicas=2
  kubectl -n shop expose deployment cart --port=80
  kubectl -n shop rollout status deployment/cart --timeout=60s
  kubectl -n shop rollout status deployment/catalog --timeout=60s
}

# Creates an Istio 1.28.2 called `default` with workload migration, and an application on it.
start_mesh() {
  start_operator
  kubectl create namespace istio-system
  kubectl apply -f - <<'END'
apiVersion: sailoperator.io/v1
kind: Istio
metadata: {name: default}
spec:
  version: v1.28.2
  namespace: istio-system
  updateStrategy:
    type: RevisionBased
    inactiveRevisionDeletionGracePeriodSeconds: 30
    workloadMigration: {strategy: Batched, batched: {batchSize: 2, delayBetweenBatches: 1s}}
END
  kubectl wait --for=condition=Ready istio/default --timeout=120s
  kubectl wait --for=condition=Reconciled istiorevisiontag/default --timeout=60s
  run_application
}
