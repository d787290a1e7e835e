"""Queues to begin with: one for who sits in front of it, one for what serves, one for what may take its time."""

from __future__ import annotations

import re

from berth.base.errors import BadInput

# What Kubernetes takes as a name of an object (RFC 1123), no longer than the value of the label that names a queue.
_NAME = re.compile(r"(?=.{1,63}\Z)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
# Of these the ones that YAML takes for something else than a text.
_NO_TEXT = re.compile(r"\d.*|y|n|yes|no|on|off|true|false|null")

_INTERACTIVE = """\
# For notebooks and debugging: somebody sits in front of it.
#   wait      seconds to minutes: what it guarantees is taken back from those who borrow it
#   longest   12 h; 4 h where nothing is said
#   leaving   nobody is asked to leave; so nothing runs beyond the quota
#   sharing   partitions and time-slices do for most: sharing: [mig, time-slice] keeps it to them
#   saving    not needed
apiVersion: berth.dev/v1alpha1
kind: GPUQueue
metadata:
  name: NAME
spec:
  weight: 4
  quota: {"*": 8}            # GPUs that people need at the same time, as a rule
  borrowing: false           # what cannot leave does not take what belongs to others
  lending: true              # at night others use it
  reclaim: Any
  maxTimeLimit: 12h
  preemptible: false
  defaults:
    time-limit: 4h
"""

_SERVING = """\
# For services: what answers requests, and grows and shrinks with them.
#   wait      seconds to minutes within the quota
#   longest   no bound: services run until somebody ends them
#   leaving   nobody is asked to leave; so nothing runs beyond the quota
#   sharing   as pods ask; keep one class in allowedClasses, so that replicas answer alike
#   saving    not needed
apiVersion: berth.dev/v1alpha1
kind: GPUQueue
metadata:
  name: NAME
spec:
  weight: 4
  quota: {"*": 16}           # GPUs at the busiest hour
  borrowing: false
  lending: true              # in quiet hours others use it
  reclaim: Any               # and leave when the next replica comes
  preemptible: false
"""

_BATCH = """\
# For training and evaluation: it may take its time, and uses whatever nobody else does.
#   wait      hours, by share; its limits of time are what starts are foretold by
#   longest   7 d; 1 d where nothing is said
#   leaving   yes, not within half an hour of a start
#   sharing   whole GPUs, as a rule
#   saving    required: berth.dev/checkpoint-every
apiVersion: berth.dev/v1alpha1
kind: GPUQueue
metadata:
  name: NAME
spec:
  weight: 1
  quota: {"*": 8}            # what it gets even when everybody wants something
  borrowing: true
  lending: true
  reclaim: LowerPriority
  maxTimeLimit: 7d
  preemptible: true
  checkpointRequired: true
  defaults:
    time-limit: 1d
    min-runtime: 30m
"""

PRESETS = {"interactive": _INTERACTIVE, "serving": _SERVING, "batch": _BATCH}


def preset(kind: str, name: str) -> str:
    """The manifest of a preset, for a queue of that name. Raises BadInput for a name that Kubernetes refuses."""
    if not _NAME.fullmatch(name):
        problem = f"{name!r} is no name of a queue: Kubernetes refuses it."
        remedy = (
            "Write lower case letters, digits, - and ., at most 63, a letter or digit at both ends, such as team-a."
        )
        raise BadInput("NAME", problem, remedy)
    written = f'"{name}"' if _NO_TEXT.fullmatch(name) else name
    return PRESETS[kind].replace("name: NAME", f"name: {written}", 1)
