{{/* Name of the release's objects: the release's own name where it says berth already. */}}
{{- define "berth.name" -}}
{{- if contains "berth" .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-berth" .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "berth.serviceAccount" -}}
{{- .Values.serviceAccount.name | default (include "berth.name" .) -}}
{{- end -}}

{{- define "berth.priorityClass" -}}
{{- .Values.priorityClass.name | default (include "berth.name" .) -}}
{{- end -}}

{{- define "berth.selector" -}}
app.kubernetes.io/name: berth
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: scheduler
{{- end -}}

{{- define "berth.labels" -}}
{{ include "berth.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/part-of: berth
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "berth.image" -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) -}}
{{- end -}}
{{- end -}}

{{/* Name of the Lease. */}}
{{- define "berth.lease" -}}
{{- .Values.config.leaderElection.name | default (include "berth.name" .) -}}
{{- end -}}

{{- define "berth.leaseNamespace" -}}
{{- .Values.config.leaderElection.namespace | default .Release.Namespace -}}
{{- end -}}

{{/* The configuration object as YAML. */}}
{{- define "berth.config" -}}
{{- $config := deepCopy .Values.config -}}
{{- $_ := set $config "apiVersion" "berth.dev/v1alpha1" -}}
{{- $_ := set $config "kind" "SchedulerConfiguration" -}}
{{- $_ := set $config.leaderElection "namespace" (include "berth.leaseNamespace" .) -}}
{{- $_ := set $config.leaderElection "name" (include "berth.lease" .) -}}
{{- if .Values.shadow -}}
{{- $_ := set $config.leaderElection "enabled" false -}}
{{- end -}}
{{- toYaml $config -}}
{{- end -}}

{{/* "yes" where a name of another scheduler is served: its Lease has to be looked at. */}}
{{- define "berth.servesForeign" -}}
{{- range .Values.config.schedulerNames -}}
{{- if has . (list "default-scheduler" "volcano" "kai-scheduler" "scheduler-plugins-scheduler" "koord-scheduler" "yunikorn") -}}yes{{- end -}}
{{- end -}}
{{- end -}}

{{/* The node agent beside the scheduler: names and labels of its own. */}}
{{- define "berth.agent.name" -}}
{{- printf "%s-agent" (include "berth.name" .) -}}
{{- end -}}

{{- define "berth.agent.selector" -}}
app.kubernetes.io/name: berth
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: agent
{{- end -}}

{{- define "berth.agent.labels" -}}
{{ include "berth.agent.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/part-of: berth
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{/* Where the scheduler and the node agent may go. */}}
{{- define "berth.networkPolicy.egress" -}}
# The API server; its addresses are no pods and cannot be selected.
- ports:
  {{- range .Values.networkPolicy.apiServer.ports }}
  - protocol: TCP
    port: {{ . }}
  {{- end }}
  {{- with .Values.networkPolicy.apiServer.cidrs }}
  to:
  {{- range . }}
  - ipBlock:
      cidr: {{ . }}
  {{- end }}
  {{- end }}
# Names; a DNS cache on the node is no pod either.
- ports:
  - protocol: UDP
    port: 53
  - protocol: TCP
    port: 53
{{- end }}
