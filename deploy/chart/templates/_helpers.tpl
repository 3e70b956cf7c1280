{{- define "mainstay.name" -}}
{{- .Values.nameOverride | default .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- end }}

{{- define "mainstay.serviceAccount" -}}
{{- .Values.serviceAccount.name | default (include "mainstay.name" .) -}}
{{- end }}

{{- define "mainstay.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end }}

{{- define "mainstay.selector" -}}
app.kubernetes.io/name: mainstay
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "mainstay.labels" -}}
{{ include "mainstay.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- /* The security context of every container of this chart. */ -}}
{{- define "mainstay.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
runAsNonRoot: true
capabilities:
  drop: ["ALL"]
seccompProfile:
  type: RuntimeDefault
{{- end }}
