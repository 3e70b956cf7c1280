//! A chart that generates 30 certificates, as charts with webhooks do: a certificate authority and the
//! certificates that it signs.

use super::{Files, chart_yaml};

/// Number of certificates that the authority signs.
const SIGNED: usize = 29;

pub(super) fn files() -> Files {
    let values = format!("signed: {SIGNED}\ndays: 365\n");
    vec![
        ("Chart.yaml".into(), chart_yaml("certificates")),
        ("values.yaml".into(), values),
        ("templates/secrets.yaml".into(), SECRETS.into()),
    ]
}

const SECRETS: &str = r#"{{- $ca := genCA (printf "%s-ca" .Release.Name) (int .Values.days) }}
{{- range $number := until (int .Values.signed) }}
{{- $service := printf "%s-webhook-%d" $.Release.Name $number }}
{{- $names := list $service (printf "%s.%s" $service $.Release.Namespace) (printf "%s.%s.svc" $service $.Release.Namespace) }}
{{- $signed := genSignedCert $service (list) $names (int $.Values.days) $ca }}
---
apiVersion: v1
kind: Secret
metadata:
  name: {{ $service }}
  labels:
    app.kubernetes.io/instance: {{ $.Release.Name }}
type: kubernetes.io/tls
data:
  ca.crt: {{ $ca.Cert | b64enc }}
  tls.crt: {{ $signed.Cert | b64enc }}
  tls.key: {{ $signed.Key | b64enc }}
{{- end }}
"#;
