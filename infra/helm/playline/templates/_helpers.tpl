{{/*
services.yaml lists the services, the commands, and their settings. It is generated from the code (test/helm).
*/}}

{{- define "playline.labels" -}}
app.kubernetes.io/name: playline
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .name }}
{{- end }}

{{- define "playline.metadata" -}}
name: {{ .root.Release.Name }}-{{ .name }}
labels:
  {{- include "playline.labels" . | nindent 2 }}
  app.kubernetes.io/version: {{ .root.Values.image.tag | default .root.Chart.AppVersion | quote }}
  app.kubernetes.io/managed-by: {{ .root.Release.Service }}
  helm.sh/chart: {{ .root.Chart.Name }}-{{ .root.Chart.Version }}
{{- end }}

{{- /* Settings that the chart derives from other values. */ -}}
{{- define "playline.derived" -}}
{{- $urls := .root.Values.urls -}}
ADMIN_HOST: 0.0.0.0
ADMIN_PORT: "9464"
HTTP_HOST: 0.0.0.0
HTTP_PORT: {{ .process.port | default "" | quote }}
CLICKHOUSE_USER: {{ .process.account | default "" | quote }}
PUBLIC_URL: {{ get $urls .name | default "" | quote }}
GATEWAY_URL: {{ $urls.gateway | quote }}
CHAIN_API_URL: {{ index $urls "chain-api" | quote }}
PORTAL_ORIGIN: {{ $urls.portal | quote }}
{{- end }}

{{- /* Returns the settings of a process that are not secret. Fails if one is unknown or a required one is missing. */ -}}
{{- define "playline.settings" -}}
{{- $name := .name -}}
{{- $known := concat .process.settings.required .process.settings.optional -}}
{{- $derived := include "playline.derived" . | fromYaml -}}
{{- $settings := dict -}}
{{- range $key, $value := .root.Values.settings -}}
{{- if has $key $known }}{{ $_ := set $settings $key $value }}{{ end -}}
{{- end -}}
{{- range $key, $value := .settings -}}
{{- if hasKey $derived $key }}{{ fail (printf "%s: the chart sets %s" $name $key) }}{{ end -}}
{{- if not (has $key $known) }}{{ fail (printf "%s has no setting %s" $name $key) }}{{ end -}}
{{- $_ := set $settings $key $value -}}
{{- end -}}
{{- range $key, $value := $derived -}}
{{- if and $value (has $key $known) }}{{ $_ := set $settings $key $value }}{{ end -}}
{{- end -}}
{{- range .process.settings.required -}}
{{- if not (get $settings .) }}{{ fail (printf "%s requires the setting %s" $name .) }}{{ end -}}
{{- end -}}
{{- toYaml $settings -}}
{{- end }}

{{- /* Fails if no process has one of the common settings, or if it must not be common. */ -}}
{{- define "playline.checkSettings" -}}
{{- $processes := .root.Files.Get "services.yaml" | fromYaml -}}
{{- $derived := include "playline.derived" (dict "root" .root "name" "" "process" dict) | fromYaml -}}
{{- $known := list -}}
{{- $secrets := list -}}
{{- range $processes -}}
{{- $known = concat $known .settings.required .settings.optional -}}
{{- $secrets = concat $secrets .secrets.required .secrets.optional -}}
{{- end -}}
{{- range $key, $_ := .root.Values.settings -}}
{{- if hasKey $derived $key }}{{ fail (printf "settings: the chart sets %s" $key) }}{{ end -}}
{{- if has $key $secrets }}{{ fail (printf "settings: %s must be in the Secret" $key) }}{{ end -}}
{{- if not (has $key $known) }}{{ fail (printf "settings: no service has the setting %s" $key) }}{{ end -}}
{{- if eq $key "CONSUMER_GROUP" }}{{ fail "settings: all services would share one consumer group; set CONSUMER_GROUP per service" }}{{ end -}}
{{- end -}}
{{- if and .root.Values.ingress.className (not (hasKey .root.Values.settings "TRUSTED_PROXIES")) -}}
{{- fail "settings.TRUSTED_PROXIES is required with an Ingress, because all clients would share one rate limit" -}}
{{- end -}}
{{- end }}

{{- define "playline.secret" -}}
{{- $key := .key -}}
{{- if eq .key "CLICKHOUSE_PASSWORD" }}{{ $key = printf "CLICKHOUSE_%s_PASSWORD" (upper .process.account) }}{{ end -}}
- name: {{ .key }}
  valueFrom:
    secretKeyRef:
      name: {{ ternary .root.Values.secrets.signer .root.Values.secrets.name (eq .key "SIGNER_KEYS") }}
      key: {{ $key }}
      {{- if .optional }}
      optional: true
      {{- end }}
{{- end }}

{{- define "playline.environment" -}}
{{- $context := . -}}
{{- range $key, $value := merge (include "playline.settings" . | fromYaml) (.process.environment | default dict) }}
- name: {{ $key }}
  value: {{ $value | quote }}
{{- end }}
{{- range .process.secrets.required }}
{{ include "playline.secret" (merge (dict "key" .) $context) }}
{{- end }}
{{- range .process.secrets.optional }}
{{ include "playline.secret" (merge (dict "key" . "optional" true) $context) }}
{{- end }}
{{- end }}

{{- /* The pod specification of a process. The caller appends ports and probes to the container, which is last. */ -}}
{{- define "playline.pod" -}}
{{- $values := .root.Values -}}
automountServiceAccountToken: false
# Variables of Services in the namespace, such as REDIS_PORT, could be read as settings.
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  # The user `node` of the image.
  runAsUser: 1000
  runAsGroup: 1000
  fsGroup: 1000
  seccompProfile: { type: RuntimeDefault }
{{- with $values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- with $values.podSpec }}
{{ toYaml . }}
{{- end }}
volumes:
  - name: tmp
    emptyDir: {}
  {{- with $values.secrets.tls }}
  - name: tls
    secret: { secretName: {{ . }}, defaultMode: 0440 }
  {{- end }}
containers:
  - name: playline
    image: {{ printf "%s:%s" $values.image.repository ($values.image.tag | default .root.Chart.AppVersion) | quote }}
    imagePullPolicy: {{ $values.image.pullPolicy }}
    command: {{ toJson .command }}
    env:
      {{- include "playline.environment" . | nindent 6 }}
    securityContext:
      allowPrivilegeEscalation: false
      readOnlyRootFilesystem: true
      capabilities: { drop: [ALL] }
    resources:
      {{- toYaml .resources | nindent 6 }}
    volumeMounts:
      - { name: tmp, mountPath: /tmp }
      {{- if $values.secrets.tls }}
      - { name: tls, mountPath: /etc/playline/tls, readOnly: true }
      {{- end }}
{{- end }}
