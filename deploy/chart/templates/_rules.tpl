{{/*
What the scheduler would refuse at start is refused here: how values go together, which a schema cannot say.
The same rules are in src/berth/app/scheduler/configuration_rules.py.
*/}}
{{- define "berth.rules" -}}
{{- with .Values.config.leaderElection -}}
{{- $retry := float64 (.retrySeconds | default 2) -}}
{{- $renew := float64 (.renewSeconds | default 10) -}}
{{- $lease := float64 (.leaseSeconds | default 15) -}}
{{- if not (and (lt $retry $renew) (lt $renew $lease)) -}}
{{- fail (printf "config.leaderElection: retrySeconds %v, renewSeconds %v and leaseSeconds %v must rise in this order: 2, 10, 15." $retry $renew $lease) -}}
{{- end -}}
{{- end -}}
{{- with .Values.config.batch -}}
{{- $window := float64 (ternary .windowMs 5 (hasKey . "windowMs")) -}}
{{- $most := float64 (ternary .mostMs 50 (hasKey . "mostMs")) -}}
{{- if gt $window $most -}}
{{- fail (printf "config.batch: windowMs %v is above mostMs %v. windowMs is at most mostMs: 5, 50." $window $most) -}}
{{- end -}}
{{- end -}}
{{- $names := list -}}
{{- $labels := list -}}
{{- range (.Values.config.topology | default dict).levels -}}
{{- if has .name $names -}}
{{- fail (printf "config.topology.levels: the level %s is there twice. Leave one of them out." .name) -}}
{{- end -}}
{{- if has .label $labels -}}
{{- fail (printf "config.topology.levels: the label %s is of two levels. Each level has a label of its own." .label) -}}
{{- end -}}
{{- $names = append $names .name -}}
{{- $labels = append $labels .label -}}
{{- end -}}
{{- with .Values.config.gpuClasses -}}
{{- $read := fromYaml . -}}
{{- if hasKey $read "Error" -}}
{{- fail (printf "config.gpuClasses: is no YAML: %s" $read.Error) -}}
{{- end -}}
{{- end -}}
{{- if and (not .Values.config.leaderElection.enabled) (gt (int .Values.replicas) 1) (not .Values.shadow) -}}
{{- fail "config.leaderElection.enabled is false and replicas is above 1: two would decide at once. Set replicas=1." -}}
{{- end -}}
{{- end -}}
