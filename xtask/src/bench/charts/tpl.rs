//! A chart with 5,000 lines of values, most of which are templates that `tpl` renders, as charts with a
//! common library do.

use std::fmt::Write as _;

use super::{Files, chart_yaml};

/// Number of workloads in the values, with fifty lines each.
const WORKLOADS: usize = 100;

pub(super) fn files() -> Files {
    vec![
        ("Chart.yaml".into(), chart_yaml("tpl")),
        ("values.yaml".into(), values()),
        ("templates/_helpers.tpl".into(), HELPERS.into()),
        ("templates/configmaps.yaml".into(), CONFIG_MAPS.into()),
        ("templates/deployments.yaml".into(), DEPLOYMENTS.into()),
        ("templates/services.yaml".into(), SERVICES.into()),
    ]
}

fn values() -> String {
    let mut out = String::from(
        "domain: example.com\nregistry: registry.{{ .Values.domain }}\nlabels:\n  team: '{{ .Release.Name }}-team'\nworkloads:\n",
    );
    for number in 0..WORKLOADS {
        out.push_str(&WORKLOAD.replace("NUMBER", &format!("{number:03}")));
        for setting in 0..20 {
            // Writing to a string cannot fail.
            let _ = writeln!(
                out,
                "      SETTING_{setting:02}: '{{{{ printf \"%s-{setting}\" .Release.Name }}}}.{{{{ .Values.domain }}}}'"
            );
        }
    }
    out
}

const WORKLOAD: &str = r#"  # Workload NUMBER.
  workload-NUMBER:
    enabled: true
    replicas: 2
    image:
      repository: '{{ tpl .Values.registry . }}/workload-NUMBER'
      tag: '{{ .Chart.AppVersion }}'
    ports:
      - name: http
        containerPort: 8080
      - name: metrics
        containerPort: 9090
    annotations:
      checksum/name: '{{ "NUMBER" | sha256sum | trunc 12 }}'
      example.com/host: 'workload-NUMBER.{{ .Values.domain }}'
    affinity:
      podAntiAffinity:
        preferredDuringSchedulingIgnoredDuringExecution:
          - weight: 100
            podAffinityTerm:
              topologyKey: kubernetes.io/hostname
              labelSelector:
                matchLabels:
                  app.kubernetes.io/instance: '{{ .Release.Name }}'
    config: |
      name = {{ .Release.Name }}
      {{- range $key, $value := .Values.labels }}
      {{ $key }} = {{ tpl $value $ }}
      {{- end }}
    env:
"#;

const HELPERS: &str = r#"{{- define "tpl.render" -}}
{{- if typeIs "string" .value }}
{{- tpl .value .context }}
{{- else }}
{{- tpl (.value | toYaml) .context }}
{{- end }}
{{- end -}}

{{- define "tpl.labels" -}}
app.kubernetes.io/name: {{ .name }}
app.kubernetes.io/instance: {{ .context.Release.Name }}
{{ include "tpl.render" (dict "value" .context.Values.labels "context" .context) }}
{{- end -}}
"#;

const CONFIG_MAPS: &str = r#"{{- range $name, $workload := .Values.workloads }}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ $.Release.Name }}-{{ $name }}
  labels:
    {{- include "tpl.labels" (dict "name" $name "context" $) | nindent 4 }}
data:
  config.ini: |
    {{- include "tpl.render" (dict "value" $workload.config "context" $) | nindent 4 }}
  {{- range $key, $value := $workload.env }}
  {{ $key }}: {{ tpl $value $ | quote }}
  {{- end }}
{{- end }}
"#;

const DEPLOYMENTS: &str = r#"{{- range $name, $workload := .Values.workloads }}
{{- if $workload.enabled }}
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ $.Release.Name }}-{{ $name }}
  labels:
    {{- include "tpl.labels" (dict "name" $name "context" $) | nindent 4 }}
  annotations:
    {{- include "tpl.render" (dict "value" $workload.annotations "context" $) | nindent 4 }}
spec:
  replicas: {{ $workload.replicas }}
  selector:
    matchLabels:
      app.kubernetes.io/name: {{ $name }}
  template:
    metadata:
      labels:
        {{- include "tpl.labels" (dict "name" $name "context" $) | nindent 8 }}
    spec:
      affinity:
        {{- include "tpl.render" (dict "value" $workload.affinity "context" $) | nindent 8 }}
      containers:
        - name: main
          image: {{ tpl $workload.image.repository $ }}:{{ tpl $workload.image.tag $ }}
          ports:
            {{- toYaml $workload.ports | nindent 12 }}
          env:
            {{- range $key, $value := $workload.env }}
            - name: {{ $key }}
              value: {{ include "tpl.render" (dict "value" $value "context" $) | quote }}
            {{- end }}
{{- end }}
{{- end }}
"#;

const SERVICES: &str = r#"{{- range $name, $workload := .Values.workloads }}
---
apiVersion: v1
kind: Service
metadata:
  name: {{ $.Release.Name }}-{{ $name }}
  labels:
    {{- include "tpl.labels" (dict "name" $name "context" $) | nindent 4 }}
spec:
  ports:
    {{- range $workload.ports }}
    - name: {{ .name }}
      port: {{ .containerPort }}
    {{- end }}
  selector:
    app.kubernetes.io/name: {{ $name }}
{{- end }}
"#;
