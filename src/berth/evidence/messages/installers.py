"""What brings the operator to a cluster: Helm, and OpenShift's lifecycle manager."""

from berth.evidence.message import Message

MESSAGES: tuple[Message, ...] = (
    # Operator Lifecycle Manager: catalogue, subscription, install plan, cluster service version.
    Message(
        "olm.unresolved",
        (
            "constraints not satisfiable",
            "constraintsnotsatisfiable",
            "resolutionfailed",
            "no operators found",
            "requirementsnotmet",
            "one or more requirements couldn't be found",
            "installcomponentfailed",
            "install strategy failed",
            "unsupportedoperatorgroup",
            "multipleoperatorgroup",
            "toomanyoperatorgroups",
            "nooperatorgroup",
        ),
        r"(?=[^\n]*(?:gpu-operator|nvidia|\bnfd\b|node-feature|network-operator|certified-operators|sriov))[^\n]*?"
        r"(?P<why>constraints not satisfiable|ConstraintsNotSatisfiable|ResolutionFailed|no operators found in "
        r"(?:channel|package|catalog) ?\S*|no operators found from catalog \S+|RequirementsNotMet"
        r"|one or more requirements couldn't be found|InstallComponentFailed|install strategy failed"
        r"|UnsupportedOperatorGroup|MultipleOperatorGroup\w*|TooManyOperatorGroups|NoOperatorGroup)",
    ),
    # A release that a former run left half way.
    Message(
        "helm.release_held",
        (
            "cannot re-use a name that is still in use",
            "another operation (install/upgrade/rollback)",
            "has no deployed releases",
            "upgrade hooks failed",
            "install hooks failed",
            "failed pre-install",
            "failed post-install",
            "failed post-upgrade",
            "failed pre-upgrade",
        ),
        r"(?:INSTALLATION|UPGRADE) FAILED: (?P<why>cannot re-use a name that is still in use|another operation "
        r"\(install/upgrade/rollback\) is in progress|\S+ has no deployed releases"
        r"|(?:pre|post)-(?:install|upgrade) hooks failed[^\n]*|failed (?:pre|post)-(?:install|upgrade)[^\n]*)",
    ),
)
