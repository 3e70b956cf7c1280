//! A chart of 200 templates whose helpers include each other deeply, as application charts with a library do.

use std::fmt::Write as _;

use super::{Files, chart_yaml};

/// Components; each has one template of every kind.
const COMPONENTS: &[&str] = &[
    "api",
    "audit",
    "auth",
    "billing",
    "cache",
    "catalog",
    "config",
    "docs",
    "events",
    "export",
    "gateway",
    "identity",
    "index",
    "orders-archive",
    "mail",
    "metrics",
    "orders",
    "search",
    "store",
    "web",
];

/// Kinds of templates with their text; `@` is replaced by the component.
const TEMPLATES: &[(&str, &str)] = &[
    ("deployment", DEPLOYMENT),
    ("service", SERVICE),
    ("serviceaccount", SERVICE_ACCOUNT),
    ("configmap", CONFIG_MAP),
    ("role", ROLE),
    ("rolebinding", ROLE_BINDING),
    ("autoscaler", AUTOSCALER),
    ("disruption", DISRUPTION),
    ("ingress", INGRESS),
    ("networkpolicy", NETWORK_POLICY),
];

/// Number of nested includes of a name.
const CHAIN: usize = 12;

pub(super) fn files() -> Files {
    let mut files = vec![
        ("Chart.yaml".into(), chart_yaml("includes")),
        ("values.yaml".into(), values()),
        ("templates/_helpers.tpl".into(), helpers()),
    ];
    for component in COMPONENTS {
        files.extend(TEMPLATES.iter().map(|(kind, text)| {
            let name = format!("templates/{component}/{kind}.yaml");
            (name, text.replace('@', component))
        }));
    }
    files
}

fn values() -> String {
    let mut out = String::from(VALUES);
    for (number, component) in COMPONENTS.iter().enumerate() {
        // Writing to a string cannot fail.
        let _ = write!(
            out,
            "{component}:\n  enabled: true\n  replicas: {}\n  port: {}\n  image:\n    repository: example/{component}\n    tag: \"\"\n  \
             env:\n    LOG_LEVEL: info\n    WORKERS: \"{number}\"\n  resources:\n    limits:\n      memory: {}Mi\n  ingress:\n    host: {component}.example.com\n",
            1 + number % 3,
            8000 + number,
            128 << (number % 3),
        );
    }
    out
}

/// Returns the helpers, and a chain of templates in which each one includes the next.
fn helpers() -> String {
    let mut out = String::from(HELPERS);
    for link in 0..CHAIN {
        let body = if link + 1 == CHAIN {
            "{{- $name := default .root.Chart.Name .root.Values.nameOverride -}}\n{{- printf \"%s-%s\" $name .component | trunc 63 | trimSuffix \"-\" -}}".to_owned()
        } else {
            format!(
                "{{{{- /* Link {link}. */ -}}}}\n{{{{- if .root.Values.short -}}}}\n{{{{- .component -}}}}\n{{{{- else -}}}}\n\
                 {{{{- include \"includes.name.{}\" . -}}}}\n{{{{- end -}}}}",
                link + 1
            )
        };
        // Writing to a string cannot fail.
        let _ = writeln!(
            out,
            "{{{{- define \"includes.name.{link}\" -}}}}\n{body}\n{{{{- end -}}}}\n"
        );
    }
    out
}

const VALUES: &str = "nameOverride: \"\"\nshort: false\nregistry: registry.example.com\npullPolicy: IfNotPresent\ncommonLabels:\n  team: bench\n  tier: backend\n\
annotations:\n  example.com/owner: bench\npodSecurityContext:\n  runAsNonRoot: true\n  seccompProfile:\n    type: RuntimeDefault\n";

const HELPERS: &str = r#"{{- define "includes.fullname" -}}
{{- $name := include "includes.name.0" . -}}
{{- if contains $name .root.Release.Name -}}
{{- .root.Release.Name | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .root.Release.Name $name | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "includes.chart" -}}
{{- printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "includes.selector" -}}
app.kubernetes.io/name: {{ include "includes.name.0" . }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{- define "includes.labels" -}}
helm.sh/chart: {{ include "includes.chart" . }}
{{ include "includes.selector" . }}
{{- if .root.Chart.AppVersion }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
{{- end }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
{{- with .root.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "includes.metadata" -}}
name: {{ include "includes.fullname" . }}
namespace: {{ .root.Release.Namespace | quote }}
labels:
  {{- include "includes.labels" . | nindent 2 }}
{{- with .root.Values.annotations }}
annotations:
  {{- range $key, $value := . }}
  {{ $key }}: {{ $value | quote }}
  {{- end }}
{{- end }}
{{- end -}}

{{- define "includes.image" -}}
{{- $image := .values.image -}}
{{- printf "%s/%s:%s" .root.Values.registry $image.repository (default .root.Chart.AppVersion $image.tag) -}}
{{- end -}}

{{- define "includes.env" -}}
{{- range $key, $value := .values.env }}
- name: {{ $key }}
  value: {{ $value | quote }}
{{- end }}
{{- end -}}

"#;

const DEPLOYMENT: &str = r#"{{- $scope := dict "root" $ "component" "@" "values" (index .Values "@") -}}
{{- if $scope.values.enabled }}
apiVersion: apps/v1
kind: Deployment
metadata:
  {{- include "includes.metadata" $scope | nindent 2 }}
spec:
  replicas: {{ $scope.values.replicas }}
  selector:
    matchLabels:
      {{- include "includes.selector" $scope | nindent 6 }}
  template:
    metadata:
      annotations:
        checksum/config: {{ include (print $.Template.BasePath "/@/configmap.yaml") . | sha256sum }}
      labels:
        {{- include "includes.labels" $scope | nindent 8 }}
    spec:
      serviceAccountName: {{ include "includes.fullname" $scope }}
      {{- with .Values.podSecurityContext }}
      securityContext:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      containers:
        - name: {{ include "includes.name.0" $scope }}
          image: {{ include "includes.image" $scope | quote }}
          imagePullPolicy: {{ .Values.pullPolicy }}
          ports:
            - name: http
              containerPort: {{ $scope.values.port }}
              protocol: TCP
          env:
            {{- include "includes.env" $scope | nindent 12 }}
          livenessProbe:
            httpGet:
              path: /healthz
              port: http
          resources:
            {{- toYaml $scope.values.resources | nindent 12 }}
{{- end }}
"#;

const SERVICE: &str = r#"{{- $scope := dict "root" $ "component" "@" "values" (index .Values "@") -}}
apiVersion: v1
kind: Service
metadata:
  {{- include "includes.metadata" $scope | nindent 2 }}
spec:
  type: ClusterIP
  ports:
    - port: {{ $scope.values.port }}
      targetPort: http
      protocol: TCP
      name: http
  selector:
    {{- include "includes.selector" $scope | nindent 4 }}
"#;

const SERVICE_ACCOUNT: &str = r#"{{- $scope := dict "root" $ "component" "@" "values" (index .Values "@") -}}
apiVersion: v1
kind: ServiceAccount
metadata:
  {{- include "includes.metadata" $scope | nindent 2 }}
automountServiceAccountToken: false
"#;

const CONFIG_MAP: &str = r#"{{- $scope := dict "root" $ "component" "@" "values" (index .Values "@") -}}
apiVersion: v1
kind: ConfigMap
metadata:
  {{- include "includes.metadata" $scope | nindent 2 }}
data:
  name: {{ include "includes.fullname" $scope | quote }}
  application.yaml: |
    server:
      port: {{ $scope.values.port }}
    {{- range $key, $value := $scope.values.env }}
    {{ $key | lower | replace "_" "." }}: {{ $value | quote }}
    {{- end }}
"#;

const ROLE: &str = r#"{{- $scope := dict "root" $ "component" "@" "values" (index .Values "@") -}}
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  {{- include "includes.metadata" $scope | nindent 2 }}
rules:
  - apiGroups: [""]
    resources: ["configmaps"]
    resourceNames: [{{ include "includes.fullname" $scope | quote }}]
    verbs: ["get", "watch"]
"#;

const ROLE_BINDING: &str = r#"{{- $scope := dict "root" $ "component" "@" "values" (index .Values "@") -}}
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  {{- include "includes.metadata" $scope | nindent 2 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: {{ include "includes.fullname" $scope }}
subjects:
  - kind: ServiceAccount
    name: {{ include "includes.fullname" $scope }}
    namespace: {{ .Release.Namespace }}
"#;

const AUTOSCALER: &str = r#"{{- $scope := dict "root" $ "component" "@" "values" (index .Values "@") -}}
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata:
  {{- include "includes.metadata" $scope | nindent 2 }}
spec:
  scaleTargetRef:
    apiVersion: apps/v1
    kind: Deployment
    name: {{ include "includes.fullname" $scope }}
  minReplicas: {{ $scope.values.replicas }}
  maxReplicas: {{ mul $scope.values.replicas 4 }}
  metrics:
    - type: Resource
      resource:
        name: cpu
        target:
          type: Utilization
          averageUtilization: 80
"#;

const DISRUPTION: &str = r#"{{- $scope := dict "root" $ "component" "@" "values" (index .Values "@") -}}
{{- if gt (int $scope.values.replicas) 1 }}
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  {{- include "includes.metadata" $scope | nindent 2 }}
spec:
  maxUnavailable: 1
  selector:
    matchLabels:
      {{- include "includes.selector" $scope | nindent 6 }}
{{- end }}
"#;

const INGRESS: &str = r#"{{- $scope := dict "root" $ "component" "@" "values" (index .Values "@") -}}
{{- with $scope.values.ingress }}
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  {{- include "includes.metadata" $scope | nindent 2 }}
spec:
  rules:
    - host: {{ .host | quote }}
      http:
        paths:
          - path: /
            pathType: Prefix
            backend:
              service:
                name: {{ include "includes.fullname" $scope }}
                port:
                  name: http
{{- end }}
"#;

const NETWORK_POLICY: &str = r#"{{- $scope := dict "root" $ "component" "@" "values" (index .Values "@") -}}
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  {{- include "includes.metadata" $scope | nindent 2 }}
spec:
  podSelector:
    matchLabels:
      {{- include "includes.selector" $scope | nindent 6 }}
  policyTypes: ["Ingress"]
  ingress:
    - ports:
        - port: http
"#;
