"""Questions to the API server about identities and rights: who is this, may they, may we."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Generic, TypeVar

import msgspec
from msgspec import Struct, field

from berth.kube.client import Client
from berth.kube.errors import ApiError

_AUTHENTICATION = "/apis/authentication.k8s.io/v1"
_AUTHORIZATION = "/apis/authorization.k8s.io/v1"

T = TypeVar("T")


class User(Struct, frozen=True):
    """Somebody, as the API server knows them."""

    username: str | None = None
    uid: str | None = None
    groups: tuple[str, ...] | None = None
    extra: dict[str, tuple[str, ...]] | None = None


class TokenAnswer(Struct, frozen=True):
    """`user` means something only where `authenticated`; `error` says why a token could not be checked."""

    authenticated: bool = False
    user: User = field(default_factory=User)
    audiences: tuple[str, ...] | None = None
    error: str | None = None


class Action(Struct, frozen=True, omit_defaults=True):
    """A verb on a resource. Empty `namespace`: in all of them; empty `name`: any."""

    verb: str
    resource: str
    group: str = ""
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    version: str = ""

    def __str__(self) -> str:
        """As one would say it: `create pods/binding in team-a`."""
        kind = f"{self.resource}.{self.group}" if self.group else self.resource
        what = f"{kind}/{self.subresource}" if self.subresource else kind
        which = f"{what} {self.name}" if self.name else what
        return f"{self.verb} {which} in {self.namespace}" if self.namespace else f"{self.verb} {which}"


class PathAction(Struct, frozen=True):
    """A verb on a path that is no resource, `get /metrics`."""

    verb: str
    path: str

    def __str__(self) -> str:
        return f"{self.verb} {self.path}"


class Ruling(Struct, frozen=True, rename="camel"):
    """Whether it is allowed. Neither `allowed` nor `denied`: nobody allows it."""

    allowed: bool = False
    denied: bool = False
    reason: str | None = None
    evaluation_error: str | None = None


class ResourceRule(Struct, frozen=True, rename="camel"):
    verbs: tuple[str, ...] | None = None
    api_groups: tuple[str, ...] | None = None
    resources: tuple[str, ...] | None = None
    resource_names: tuple[str, ...] | None = None

    def allows(self, action: Action) -> bool:
        wanted = f"{action.resource}/{action.subresource}" if action.subresource else action.resource
        return (
            _has(self.verbs, action.verb)
            and _has(self.api_groups, action.group)
            and (_has(self.resources, wanted) or _has(self.resources, f"*/{action.subresource}"))
            and (not self.resource_names or action.name in self.resource_names)
        )


class PathRule(Struct, frozen=True, rename="camel"):
    verbs: tuple[str, ...] | None = None
    non_resource_urls: tuple[str, ...] | None = field(default=None, name="nonResourceURLs")


class Rules(Struct, frozen=True, rename="camel"):
    """What we may do in one namespace. `incomplete`: an authorizer could not list its rules; ask for each action."""

    resource_rules: tuple[ResourceRule, ...] | None = None
    non_resource_rules: tuple[PathRule, ...] | None = None
    incomplete: bool = False
    evaluation_error: str | None = None

    def allow(self, action: Action) -> bool:
        return any(rule.allows(action) for rule in self.resource_rules or ())


class _Reviewed(Struct, Generic[T], frozen=True):
    status: T


class _Named(Struct, frozen=True, rename="camel"):
    user_info: User = field(default_factory=User)


async def review_token(client: Client, token: str, audiences: tuple[str, ...] = ()) -> TokenAnswer:
    """Whose token this is. The right to ask is `create tokenreviews`."""
    spec: dict[str, Any] = {"token": token}
    if audiences:
        spec["audiences"] = audiences
    return await _ask(client, _AUTHENTICATION, "TokenReview", spec, TokenAnswer)


async def may(client: Client, user: User, action: Action | PathAction) -> Ruling:
    """Whether `user` may do this (SubjectAccessReview)."""
    spec: dict[str, Any] = {"user": user.username or "", **_attributes(action)}
    for key, value in (("uid", user.uid), ("groups", user.groups), ("extra", user.extra)):
        if value:
            spec[key] = value
    return await _ask(client, _AUTHORIZATION, "SubjectAccessReview", spec, Ruling)


async def may_we(client: Client, action: Action | PathAction) -> Ruling:
    """Whether we may do this (SelfSubjectAccessReview). Everybody may ask."""
    return await _ask(client, _AUTHORIZATION, "SelfSubjectAccessReview", _attributes(action), Ruling)


async def our_rules(client: Client, namespace: str) -> Rules:
    """All that we may do in a namespace, in one call (SelfSubjectRulesReview)."""
    return await _ask(client, _AUTHORIZATION, "SelfSubjectRulesReview", {"namespace": namespace}, Rules)


async def who_am_i(client: Client) -> User:
    """Who we are to the API server (SelfSubjectReview)."""
    return (await _ask(client, _AUTHENTICATION, "SelfSubjectReview", None, _Named)).user_info


async def _ask(client: Client, group: str, kind: str, spec: Mapping[str, Any] | None, type: type[T]) -> T:
    question: dict[str, Any] = {"apiVersion": group.removeprefix("/apis/"), "kind": kind}
    if spec is not None:
        question["spec"] = spec
    path = f"{group}/{kind.lower()}s"
    # A review stores nothing, so it may be asked again.
    body = await client.request("POST", path, question, repeatable=True)
    try:
        reviewed: _Reviewed[T] = msgspec.json.decode(body, type=_Reviewed[type])  # type: ignore[valid-type]
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ApiError(200, "Undecodable", f"the answer is no {kind}: {error}", verb="POST", path=path) from None
    return reviewed.status


def _attributes(action: Action | PathAction) -> dict[str, Any]:
    key = "resourceAttributes" if isinstance(action, Action) else "nonResourceAttributes"
    return {key: msgspec.to_builtins(action)}


def _has(granted: tuple[str, ...] | None, wanted: str) -> bool:
    return granted is not None and (wanted in granted or "*" in granted)
