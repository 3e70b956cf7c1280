{{- define "labels" -}}
app.kubernetes.io/name: {{ printf "%q" .app }}
{{- range $key, $value := . }}
{{ $key }}: {{ $value }}
{{- end }}
{{- end -}}
{{- define "image" -}}
{{- if .global.hub }}{{ .global.hub }}/{{ end }}pilot:{{ or .tag .global.tag "latest" }}
{{- end -}}
{{- range $round := 2000 }}
{{- $values := $.Values }}
{{- $name := printf "istiod%s" (or (and $values.revision (printf "-%s" $values.revision)) "") }}
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ $name }}
  namespace: {{ $.Release.Namespace }}
  labels:
{{ template "labels" $values.podLabels }}
spec:
{{- if not $values.autoscaleEnabled }}
  replicas: {{ $values.replicaCount }}
{{- else if and $values.autoscaleMin $values.autoscaleMax }}
  # between {{ $values.autoscaleMin }} and {{ $values.autoscaleMax }}
{{- end }}
  template:
    spec:
      containers:
      - image: {{ template "image" $values }}
{{- with $values.global.imagePullPolicy }}
        imagePullPolicy: {{ . }}
{{- end }}
        args: ["discovery", {{ printf "--log_output_level=%s" $values.global.logging.level | printf "%q" }}]
        ports:
{{- range $index, $port := $values.ports }}
        - containerPort: {{ or $port.targetPort $port.port }}
          name: {{ .name }}
{{- if eq .name "https-webhook" }}
          protocol: TCP
{{- end }}
{{- end }}
        env:
{{- range $key, $value := $values.env }}
{{- if ne $value "" }}
        - name: {{ $key }}
          value: {{ printf "%q" $value }}
{{- end }}
{{- end }}
{{- if or (eq (len $values.tolerations) 0) ($values.global).platform }}
      # {{ index $values.resources.requests "cpu" }} {{ ($values.resources.requests).memory }}
{{- end }}
{{- end }}
