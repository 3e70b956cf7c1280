{{- /* Written by `cargo xtask codegen` from the embedded charts. */ -}}
{{- define "mainstay.versions" -}}
["v1.31-latest","master","v1.31.0-alpha.eed52ebb","v1.29-latest","v1.29.1","v1.28-latest","v1.28.2","v1.27-latest","v1.27.9","v1.26-latest","v1.26.1","v1.25-latest","v1.25.1","v1.24-latest","v1.24.2"]
{{- end }}
