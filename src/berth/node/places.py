"""Where a machine keeps what the agent reads. All of it can be moved: the agent sees the machine's root at /host, a
test made-up trees."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct


class Places(Struct, frozen=True):
    """Folders and files as this process reaches them. `of` derives all from the machine's root."""

    root: Path
    kubelet: Path  # the kubelet's root folder, its --root-dir
    device_plugins: Path  # which the kubelet keeps in /var/lib/kubelet whatever its --root-dir says
    logs: Path  # /var/log
    run: Path
    proc: Path
    sys: Path
    dev: Path
    etc: Path

    @classmethod
    def of(
        cls, root: str = "/host", kubelet: str = "", device_plugins: str = "", logs: str = "", run: str = "",
        proc: str = "",
    ) -> Places:  # fmt: skip
        """What is "" lies where it does on a usual machine, below `root`."""
        base = Path(root)
        root_of_kubelet = Path(kubelet) if kubelet else base / "var/lib/kubelet"
        return cls(
            root=base,
            kubelet=root_of_kubelet,
            device_plugins=Path(device_plugins) if device_plugins else root_of_kubelet / "device-plugins",
            logs=Path(logs) if logs else base / "var/log",
            run=Path(run) if run else base / "run",
            proc=Path(proc) if proc else base / "proc",
            sys=base / "sys",
            dev=base / "dev",
            etc=base / "etc",
        )

    @property
    def pod_resources(self) -> Path:
        return self.kubelet / "pod-resources" / "kubelet.sock"

    @property
    def checkpoint(self) -> Path:
        return self.device_plugins / "kubelet_internal_checkpoint"

    @property
    def driver(self) -> Path:
        return self.proc / "driver" / "nvidia"

    def as_the_machine_names_it(self, path: Path) -> str:
        """Without the place where its root is mounted: what a person on the machine would type."""
        try:
            return f"/{path.relative_to(self.root)}"
        except ValueError:
            return str(path)
