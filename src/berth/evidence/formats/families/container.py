"""Container runtimes: configuration, CDI specifications."""

from berth.evidence.formats import (
    Format,
    cdi_list,
    cdi_spec,
    containerd_config,
    crictl_info,
    crio_config,
    docker_daemon,
    toolkit_config,
)

FORMATS: tuple[Format, ...] = (
    containerd_config.FORMAT,
    crio_config.FORMAT,
    docker_daemon.FORMAT,
    crictl_info.FORMAT,
    toolkit_config.FORMAT,
    cdi_spec.FORMAT,
    cdi_list.FORMAT,
)
