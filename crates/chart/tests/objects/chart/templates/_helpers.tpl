{{- define "type" }}{{ printf "%T" . }}{{ end }}
{{- define "method" }}{{ .AsMap }}{{ end }}
