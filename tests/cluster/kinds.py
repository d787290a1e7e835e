"""Kinds of custom resources in the cluster of the tests: made so that they are served, whatever was there before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from devcluster import Admin, Refused

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
Definition = dict[str, Any]


def install(admin: Admin, definitions: Sequence[Definition]) -> None:
    """Return once all of them are served. One that an earlier test has taken away is waited for until it is gone."""
    for definition in definitions:
        name = definition["metadata"]["name"]
        # What is applied to a definition that is being deleted is gone with it.
        admin.until(lambda name=name: not _is_going(admin, name), 60, f"{name} is gone")
        admin.apply(definition)
    for definition in definitions:
        admin.until(lambda one=definition: _is_served(admin, one), 60, f"{definition['metadata']['name']} is served")


def remove(admin: Admin, definitions: Sequence[Definition]) -> None:
    """Ask for their end; nobody waits for it."""
    for definition in definitions:
        admin.delete(f"{DEFINITIONS}/{definition['metadata']['name']}")


def foreign_kind(api_version: str, kind: str, plural: str, has_status: bool = True) -> Definition:
    """A kind of another project: any fields, and a subresource for its status where the project's own has one."""
    group, _, version = api_version.partition("/")
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural, "singular": kind.lower(), "listKind": f"{kind}List"},
            "versions": [{
                "name": version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema},
                **({"subresources": {"status": {}}} if has_status else {}),
            }],
        },
    }  # fmt: skip


def _is_going(admin: Admin, name: str) -> bool:
    try:
        return "deletionTimestamp" in admin.get(f"{DEFINITIONS}/{name}")["metadata"]
    except Refused as refused:
        if refused.status != 404:
            raise
        return False


def _is_served(admin: Admin, definition: Definition) -> bool:
    spec = definition["spec"]
    version = next(version["name"] for version in spec["versions"] if version["served"])
    try:
        found = admin.get(f"/apis/{spec['group']}/{version}")["resources"]
        if spec["names"]["plural"] not in {resource["name"] for resource in found}:
            return False
        admin.get(f"/apis/{spec['group']}/{version}/{spec['names']['plural']}?limit=1")
    except Refused as refused:
        if refused.status not in (404, 503):
            raise
        return False
    return True
