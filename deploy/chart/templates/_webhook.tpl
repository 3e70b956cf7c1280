{{- /* Written by `cargo xtask codegen` from crates/cluster/src/admission.rs. */ -}}

{{- define "mainstay.webhooks" -}}
- admissionReviewVersions:
    - v1
  clientConfig:
    service:
      name: {{ include "mainstay.name" . }}-webhook
      namespace: {{ .Release.Namespace }}
      path: /validate-istiooperator
      port: 443
  failurePolicy: Fail
  matchConditions:
    - expression: 'request.operation == ''CREATE'' || !has(object.spec) || !has(oldObject.spec) || object.spec != oldObject.spec || (has(object.metadata.annotations) && ''install.mainstay.dev/istio-version'' in object.metadata.annotations ? object.metadata.annotations[''install.mainstay.dev/istio-version''] : '''') != (has(oldObject.metadata.annotations) && ''install.mainstay.dev/istio-version'' in oldObject.metadata.annotations ? oldObject.metadata.annotations[''install.mainstay.dev/istio-version''] : '''')'
      name: changed
  matchPolicy: Equivalent
  name: validation.install.mainstay.dev
  rules:
    - apiGroups:
        - install.istio.io
      apiVersions:
        - v1alpha1
      operations:
        - CREATE
        - UPDATE
      resources:
        - istiooperators
      scope: Namespaced
  sideEffects: None
  timeoutSeconds: 10
{{- end }}
