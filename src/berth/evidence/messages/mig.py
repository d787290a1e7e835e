"""mig-parted and the MIG manager."""

from berth.evidence.message import Message

_PROFILE = r"(?P<profile>\d+(?:c\.\d+)?g\.\d+gb(?:[+-][\w.]+)?)"

MESSAGES: tuple[Message, ...] = (
    Message(
        "mig.in_use",
        ("in use by another client", "could not be reset", "error resetting all gpus"),
        r"could not be reset|(?P<pci>[0-9A-Fa-f]{8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.\d)[: ].*?In use by another client|"
        r"In use by another client|error resetting all GPUs",
    ),
    Message(
        "mig.drm_holds",
        ("nvidia_drm", "nvidia-drm"),
        r"nvidia[_-]drm\b.*?(?:loaded|in use|holds)|unload (?:the )?nvidia[_-]drm",
    ),
    Message(
        "mig.mode_pending",
        ("change pending", "mig mode is", "mig mode change", "mig mode is in pending", "mig.mode", "mig_mode"),
        r"[Mm]ode change pending: true|[Aa]t least one mode change pending|MIG mode (?:is|change).*?pending|"
        r"Warning: MIG mode is in pending (?:enable|disable) state|"
        r"mig[._]mode[._]current\W+(?:(?:is|=)\W*)?Disabled.*?mig[._]mode[._]pending\W+(?:(?:is|=)\W*)?Enabled|"
        r"mig[._]mode[._]current\W+(?:(?:is|=)\W*)?Enabled.*?mig[._]mode[._]pending\W+(?:(?:is|=)\W*)?Disabled",
    ),
    # Some machines (passed through, Ampere) change the mode only when they start anew.
    Message(
        "mig.needs_reboot",
        ("mig mode", "enable mig", "enabling mig", "disable mig", "mig is enabled", "mig by hand", "mig manually"),
        r"\b(?:had|have|has|needed?|must)\b[^\n]{0,12}?\b(?:(?:en|dis)able|set|switch)\b[^\n]{0,12}?\bMIG\b"
        r"(?:(?!\bwithout\b|\bno )[\s\S]){0,120}?\breboot|"
        r"\b(?:MIG mode|enabl(?:e|ing) MIG|MIG is enabled)\b[^\n]{0,60}?"
        r"\b(?:only (?:after|with|by)|requires?|needs?|not (?:\w+ )?(?:until|before|without))\b[^\n]{0,25}?"
        r"\b(?:reboot|power cycle|GPU reset)",
        lines=3,
    ),
    Message(
        "mig.none_found",
        ("no mig devices found", "no gpu instances found"),
        r"No MIG devices found|No GPU instances found: Not Found",
    ),
    Message("mig.mode_disabled", "with mig mode disabled", r"unable to apply MIG config with MIG mode disabled"),
    Message("mig.applies", "applying the mig mode", r"Applying the MIG mode change"),
    Message("mig.mode_checked", "asserting mig mode", r"Asserting MIG mode: (?P<wanted>Enabled|Disabled)"),
    Message("mig.mode_now", "current mig mode", r"Current MIG mode: (?P<mode>Enabled|Disabled)"),
    # The first row of a device in nvidia-smi's table: in MIG mode the column of ECC errors says On.
    Message("mig.on_in_table", "on |", r"^\|\s+\d+\s+\S[^\n|]*\|[^\n|]*\|\s+On\s+\|\s*$"),
    Message("mig.applied", "mig configuration applied", r"MIG configuration applied successfully"),
    Message(
        "mig.applied_without_effect",
        (
            "mode unchanged",
            "mig disabled",
            "mig is disabled",
            "mig still disabled",
            "mig is still disabled",
            "mig mode",
            "mig configuration",
            "no mig devices",
            "no mig instances",
            "mig devices not found",
            "apply succeeded",
            "unable to get device name",
        ),
        r"unable to get device name: \W{0,2}failed to find device with id[^\n]*\n(?:[^\n]*\n){0,3}?[^\n]*"
        r"MIG configuration applied successfully"
        r"|MIG configuration applied successfully[^\n]*\n(?:[^\n]*\n){0,3}?[^\n]*\bexport\b[^\n]*mig-devices: \{\}"
        r"|MIG (?:mode )?(?:is )?(?:still )?[Dd]isabled\b.{0,60}?\bsuccess|apply succeeded\W+mode unchanged|"
        r"MIG (?:mode|configuration) .*?unchanged|(?:success\w*|applied)\b.*?\bno MIG (?:devices|instances)|"
        r"MIG devices not found after",
        lines=5,
    ),
    Message(
        "mig.state_set",
        ("mig.config.state", "config.state"),
        r"[Cc]hanging the '?nvidia\.com/mig\.config\.state'? node label to '(?P<state>\w+)'",
    ),
    Message(
        "mig.config_unknown",
        (
            "unable to validate the selected mig",
            "failed to validate mig configuration",
            "mig-config",
            "migconfig",
            "mig config ",
            "error selecting",
            "mig-parted",
        ),
        r"Unable to validate the selected MIG configuration|failed to validate MIG configuration"
        r"|selected mig-?config not present:? ?(?P<name>\S*)|"
        r"mig-parted\b.*?[Ee]rror (?:parsing|reading|unmarshal\w*) (?:MIG )?config|"
        r"mig[ -]?config (?P<wanted>\S+ )?not (?:found|present)|[Ee]rror selecting (?:specific )?MIG config",
    ),
    Message(
        "mig.profile_unsupported",
        (
            "unsupported mig device specified",
            "unable to get device name",
            "gpu instance profile info",
            "invalid mig profile",
            "no such profile",
            "no such mig profile",
            "failed to find device with id",
            "mig profile",
        ),
        rf"Unsupported MIG Device specified {_PROFILE}|"
        r"(?<!device name: )(?<!device name: \[)failed to find device with id '?(?P<id>[0-9a-f]+)|"
        r"GPU [Ii]nstance [Pp]rofile [Ii]nfo|invalid MIG profile|\bMIG\b.*?no such profile|no such MIG profile",
    ),
    Message(
        "mig.orderings_failed",
        (
            "all orderings failed",
            "multiple config orderings",
            "error creating gpu instance",
            "error creating compute instance",
            "unable to create a gpu instance",
            "unable to create gpu instance",
            "failed to create gpu instances",
            "failed to create compute instances",
            "error executing nvidia-smi mig",
        ),
        r"error executing nvidia-smi mig [^\n]*-c[gc]i\b|"
        r"[Ff]ailed to create (?:GPU|compute) instances: |all orderings failed|multiple config orderings"
        r"|error creating (?:GPU|[Cc]ompute) [Ii]nstance|"
        r"[Uu]nable to create (?:a )?GPU instance.*?(?P<why>Insufficient Resources|.*)",
    ),
    Message(
        "mig.apply_failed",
        (
            "error applying mig",
            "error setting migconfig",
            "error setting mig mode",
            "failed to apply mig",
            "nvidia-mig-manager.service.d",
            "unable to apply mig",
            "error checking mig capable",
            "unable to apply the mig",
            "failed to persist config",
            "failed to initialize systemd manager",
            "failed to check if a mig mode",
            "host gpu clients",
            "failed to restart validator pod",
            "failed to restart kubernetes gpu clients",
            "host's gpu clients file",
            "paths required for cdi",
            "clear migconfig",
            "exiting so as not to reboot multiple",
            "-apply-config hook",
            "-apply-mode hook",
            "-apply-exit hook",
            "error parsing hooks",
            "value of 'nvidia.com/mig.config.state'",
        ),
        # The manager's steps, in their order: each of them sets the state to failed.
        r"failed to persist config|failed to initialize systemd manager"
        r"|failed to check if a MIG mode change is required"
        r"|failed to (?:shutdown|restart) host GPU clients|failed to restart (?:validator pod|Kubernetes GPU clients)"
        r"|error parsing host's GPU clients file|failed to get paths required for cdi"
        r"|exceeded maximum attempts to clear MigConfig|Exiting so as not to reboot multiple times"
        r"|[Ee]rror (?:running|executing) \S*-apply-(?:config|mode|exit) hooks?|[Ee]rror parsing hooks"
        r"|[Uu]nable to set the value of 'nvidia\.com/mig\.config\.state'"
        r"|[Ee]rror checking MIG capable|Unable to persist \S+ to \S*nvidia-mig-manager\.service\.d"
        r"|[Ee]rror applying MIG"
        r"|[Ee]rror setting M(?:ig|IG)(?:Config| [Mm]ode)|[Ff]ailed to apply MIG"
        r"|Unable to apply (?:the )?MIG (?:mode|config)",
    ),
    Message(
        "mig.clients_would_not_leave",
        ("gpu client", "gpu clients", "unable to restart k8s clients", "pod did not shutdown"),
        r"(?:device-plugin|gpu-feature-discovery|dcgm-exporter|dcgm) pod did not shutdown"
        r"|[Uu]nable to restart k8s clients|[Uu]nable to (?:shut ?down|tear down) (?:all |k8s )?GPU clients?|"
        r"(?:timed out|timeout|failed).*?(?:shut(?:ting)? ?down).*?GPU clients?|"
        r"GPU client pods? .*?(?:timed out|still running)",
    ),
    Message(
        "mig.lost_at_reboot",
        ("with_reboot", "already attempted a reboot", "reboot"),
        r"MIG mode change (?:did not take effect|failed) after reboot(?:ing)?|"
        r"already (?:attempted|tried) (?:a )?reboot|[Rr]eboot(?:ing)? (?:is )?required .*?MIG|"
        r"MIG.*?(?:requires?|needs?) (?:a )?reboot",
    ),
    Message(
        "mig.manager_absent",
        ("mig-manager", "mig manager"),
        r"mig[- ]manager\W+(?:pod |daemonset )?(?:is |was |does )?(?:not|n't|never) (?:deployed|started|running"
        r"|scheduled|run|there)"
        r"|gpu\.deploy\.mig-manager\b\W{0,3}(?:label )?(?:is )?(?:missing|not set|absent|false)",
    ),
    # Labels of a node, wherever somebody mentions them.
    Message("mig.paused", "paused-for-mig-change", r"paused-for-mig-change"),
    Message(
        "mig.state_label",
        "mig.config.state",
        r"mig\.config\.state['\"]?\s*(?:[=:]|is|stays|stuck (?:at|in|on))\s*['\"]?"
        r"(?P<state>failed|pending|rebooting)\b",
    ),
    Message(
        "mig.toggle_unsupported",
        ("mig mode change is not supported", "unable to enable mig mode", "mig is not supported", "mig mode for gpu",
         "no mig-supported devices found"),
        r"No MIG-supported devices found|[Uu]nable to (?:enable"
        r"|disable) MIG [Mm]ode for GPU (?P<pci>[0-9A-Fa-f:.]+)?:? ?(?P<why>.*)|"
        r"MIG mode change is not supported",
    ),
)
