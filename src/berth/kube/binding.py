"""The bodies of the two writes that a scheduler makes most: built as bytes, without a mapping in between."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

_encode = msgspec.json.encode


def binding_body(
    namespace: str,
    pod: str,
    uid: str,
    resource_version: str | None,
    node: str,
    annotations: Mapping[str, str] | None = None,
) -> bytes:
    """A Binding. `uid` and `resourceVersion` are preconditions, annotations are copied to the pod (BindingREST).

    Names and ids come from the API server and have no character that JSON escapes; annotations may have any.
    """
    version = f',"resourceVersion":"{resource_version}"' if resource_version else ""
    notes = f',"annotations":{_encode(annotations).decode()}' if annotations else ""
    return (
        f'{{"apiVersion":"v1","kind":"Binding","metadata":{{"name":"{pod}","namespace":"{namespace}","uid":"{uid}"'
        f'{version}{notes}}},"target":{{"apiVersion":"v1","kind":"Node","name":"{node}"}}}}'
    ).encode()


def eviction_body(namespace: str, pod: str, uid: str, grace_s: int | None, dry_run: bool) -> bytes:
    """A policy/v1 Eviction of the pod with this uid."""
    grace = f'"gracePeriodSeconds":{grace_s},' if grace_s is not None else ""
    trial = '"dryRun":["All"],' if dry_run else ""
    return (
        f'{{"apiVersion":"policy/v1","kind":"Eviction","metadata":{{"name":"{pod}","namespace":"{namespace}"}},'
        f'"deleteOptions":{{{grace}{trial}"preconditions":{{"uid":"{uid}"}}}}}}'
    ).encode()
