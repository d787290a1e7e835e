"""From pod specs to classes: requests against a literal reading of Kubernetes' rules, and each kind of wish."""

from __future__ import annotations

from fractions import Fraction

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.base.errors import BadInput
from berth.kube import wire
from berth.model.workload import Capability, LabelSelector, NodeTerm, Requirement, Toleration
from berth.sources.pod_class import PodReader, read_template
from berth.sources.selectors import NOTHING, both


def reading(spec: dict, metadata: dict | None = None):
    return read_template({"metadata": metadata or {}, "spec": {"containers": [{}], **spec}}, path="")


def pod_class(spec: dict, metadata: dict | None = None):
    found = reading(spec, metadata)
    assert found.problems == ()
    return found.pod_class


# ---- requests, by the rules in the words of the documentation

AMOUNTS = {
    "cpu": ["0", "100m", "0.5", "1500m", "2"],
    "memory": ["0", "128Mi", "1Gi", "1e9", "1.5Gi"],
    "nvidia.com/gpu": ["0", "1", "8"],
    "rdma/hca": ["1", "2"],
}
SCALE = {"m": Fraction(1, 1000), "Mi": 2**20, "Gi": 2**30}


def as_fraction(text: str) -> Fraction:
    for suffix, scale in SCALE.items():
        if text.endswith(suffix):
            return Fraction(text.removesuffix(suffix)) * scale
    return Fraction(text)


@st.composite
def container_amounts(draw):
    """A container's resources as the API server accepts them: extended ones by limit alone or both alike."""
    requests, limits = {}, {}
    for name, choices in AMOUNTS.items():
        form = draw(st.sampled_from(["none", "limit", "request", "both"]))
        text = draw(st.sampled_from(choices))
        is_extended = "/" in name
        if form == "limit" or (is_extended and form == "request"):
            limits[name] = text
        elif form == "request":
            requests[name] = text
        elif form == "both":
            requests[name], limits[name] = text, text
    return {"resources": {k: v for k, v in (("requests", requests), ("limits", limits)) if v or draw(st.booleans())}}


@st.composite
def specs(draw):
    spec = {"containers": draw(st.lists(container_amounts(), min_size=1, max_size=3))}
    inits = draw(st.lists(st.tuples(container_amounts(), st.booleans()), max_size=4))
    spec["initContainers"] = [{**c, "restartPolicy": "Always"} if sidecar else c for c, sidecar in inits]
    if draw(st.booleans()):
        spec["overhead"] = {"cpu": "250m", "memory": "120Mi"}
    if draw(st.booleans()):
        spec["resources"] = draw(
            st.fixed_dictionaries(
                {},
                optional={
                    "requests": st.fixed_dictionaries({}, optional={"cpu": st.sampled_from(["1", "64"])}),
                    "limits": st.fixed_dictionaries({}, optional={"memory": st.sampled_from(["1Gi", "512Gi"])}),
                },
            )
        )
    return spec


def literally(spec: dict) -> dict[str, Fraction]:
    """At each moment of the pod's life, what runs together; the most of any moment, resource by resource."""

    def asks(container: dict, name: str) -> Fraction | None:
        resources = container.get("resources", {})
        for side in ("requests", "limits"):
            if name in (resources.get(side) or {}):
                return as_fraction(resources[side][name])
        return None

    inits, mains = spec.get("initContainers", []), spec["containers"]
    wanted: dict[str, Fraction] = {}
    pod = spec.get("resources", {})
    for name in AMOUNTS:
        moments = []
        for i, init in enumerate(inits):
            running = [c for c in inits[:i] if c.get("restartPolicy") == "Always"] + [init]
            moments.append(sum((asks(c, name) or 0) for c in running))
        steady = mains + [c for c in inits if c.get("restartPolicy") == "Always"]
        moments.append(sum((asks(c, name) or 0) for c in steady))
        total = Fraction(max(moments))
        if name in (pod.get("requests") or {}):
            total = as_fraction(pod["requests"][name])
        elif name in (pod.get("limits") or {}) and all(asks(c, name) is None for c in mains + inits):
            total = as_fraction(pod["limits"][name])
        wanted[name] = total + as_fraction(spec.get("overhead", {}).get(name, "0"))
    return wanted


@given(specs())
def test_requests_are_those_of_the_fullest_moment(spec):
    found = reading(spec)
    assert found.problems == ()
    expected = {}
    for name, amount in literally(spec).items():
        units = amount * 1000 if name == "cpu" else amount
        if units:
            expected[name] = int(units)
    assert dict(found.pod_class.requests) == expected


@pytest.mark.parametrize(
    "resources, told",
    [
        (
            {"limits": {"nvidia.com/gpu": "1.5"}},
            'spec.containers[0].resources.limits["nvidia.com/gpu"] is "1.5": GPUs are whole numbers. '
            "Ask for a MIG profile or a shared resource instead.",
        ),
        ({"limits": {"nvidia.com/gpu": 0.5}}, "GPUs are whole numbers"),
        ({"requests": {"nvidia.com/gpu": "1"}}, "needs a limit of the same amount"),
        ({"requests": {"nvidia.com/gpu": "1"}, "limits": {"nvidia.com/gpu": "2"}}, "both must be equal"),
        ({"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}, 'more than its limit "1"'),
        ({"requests": {"memory": "-1Gi"}}, "an amount is never negative"),
        ({"requests": {"memory": "80 GB"}}, "not a quantity"),
        ({"limits": {"rdma/hca": "500m"}}, "whole numbers only"),
        (
            {"limits": {"gpu": 1}},
            "spec.containers[0].resources.limits.gpu is 1: a resource without a domain is one of cpu, memory, "
            "ephemeral-storage and hugepages-<size>, and GPUs are nvidia.com/gpu. Write nvidia.com/gpu.",
        ),
        ({"requests": {"memroy": "1Gi"}}, "Write memory."),
        ({"requests": {"pods": "1"}}, "a resource without a domain is one of"),
    ],
)
def test_amounts_that_kubernetes_refuses_are_told_with_their_path(resources, told):
    found = reading({"containers": [{"resources": resources}]})
    assert any(told in problem for problem in found.problems)
    assert all(problem.startswith("spec.containers[0].resources") for problem in found.problems)
    assert found.pod_class.problems == found.problems


def test_resources_without_a_domain_that_kubernetes_has():
    amounts = {"cpu": "1", "memory": "1Gi", "ephemeral-storage": "1Gi", "hugepages-2Mi": "4Mi"}
    assert reading({"containers": [{"resources": {"limits": amounts}}]}).problems == ()


@pytest.mark.parametrize("amount", [10**30, -(10**30), 1e308, 2**64])
def test_amounts_beyond_64_bits_are_read(amount):
    found = reading({"containers": [{"resources": {"limits": {"cpu": amount}}}]})
    assert dict(found.pod_class.requests).get("cpu", 0) >= 0
    assert bool(found.problems) == (amount < 0)


def test_a_type_error_in_a_manifest_names_the_field():
    with pytest.raises(BadInput) as refused:
        read_template({"spec": {"containers": "none"}}, "jobs/train.yaml")
    assert refused.value.sentence.startswith(
        'jobs/train.yaml: spec.template.spec.containers: expected a list, got "none".'
    )
    assert refused.value.exit_code == 2


def test_absurd_amounts_stay_within_64_bits_when_a_node_is_full_of_them():
    found = pod_class({"containers": [{"resources": {"requests": {"memory": "9e30"}}}] * 3})
    assert dict(found.requests)["memory"] * 1000 < 2**63


# ---- wishes


def test_identical_pods_share_one_class_and_others_do_not():
    reader = PodReader()

    def read(text: str):
        return reader.read(msgspec.json.decode(text, type=wire.PodSpec)).pod_class

    one = read('{"containers": [{"image": "a", "resources": {"limits": {"cpu": "1", "memory": "1Gi"}}}]}')
    same = read('{"nodeName": "n", "containers": [{"resources": {"limits": {"memory": "1Gi", "cpu": "1000m"}}}]}')
    other = read('{"containers": [{"resources": {"limits": {"cpu": "1", "memory": "2Gi"}}}]}')
    assert one is same and one is not other
    assert len(reader) == 2


def test_a_reader_forgets_rather_than_grow_without_bound():
    reader = PodReader(most=10)
    for i in range(35):
        spec = msgspec.convert({"containers": [{}], "nodeSelector": {"i": str(i)}}, wire.PodSpec)
        reader.read(spec)
    assert len(reader) <= 10


def test_node_selector_and_affinity():
    found = pod_class(
        {
            "nodeSelector": {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3", "empty": None},
            "affinity": {
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [
                            {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a", "b"]}]},
                            {
                                "matchExpressions": [{"key": "mem", "operator": "Gt", "values": ["40000"]}],
                                "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}],
                            },
                            {},
                        ]
                    },
                    "preferredDuringSchedulingIgnoredDuringExecution": [
                        {"weight": 5, "preference": {"matchExpressions": [{"key": "x", "operator": "Exists"}]}},
                        {"weight": 7, "preference": {}},
                    ],
                }
            },
        }
    )
    assert found.node_selector == (("empty", ""), ("nvidia.com/gpu.product", "NVIDIA-H100-80GB-HBM3"))
    assert found.node_affinity == (
        NodeTerm((Requirement("zone", "In", ("a", "b")),)),
        NodeTerm((Requirement("mem", "Gt", ("40000",)),), (Requirement("metadata.name", "In", ("n1",)),)),
        NodeTerm(),
    )
    assert [(p.weight, len(p.term.expressions)) for p in found.preferred_nodes] == [(5, 1)]


@pytest.mark.parametrize(
    "expression",
    [
        {"key": "a", "operator": "in", "values": ["x"]},
        {"key": "a", "operator": "In", "values": []},
        {"key": "a", "operator": "Exists", "values": ["x"]},
        {"key": "a", "operator": "Gt", "values": ["1.5"]},
        {"key": "a", "operator": "Lt", "values": ["1", "2"]},
    ],
)
def test_expressions_that_kubernetes_refuses(expression):
    terms = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    found = reading({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}})
    assert len(found.problems) == 1
    assert found.problems[0].startswith(
        "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"
        ".nodeSelectorTerms[0].matchExpressions[0]."
    )


def test_affinity_between_pods():
    term = {"labelSelector": {"matchLabels": {"app": "a"}}, "topologyKey": "zone"}
    chosen = {**term, "namespaceSelector": {"matchLabels": {"team": "x"}}}
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    found = pod_class(
        {
            "affinity": {
                "podAffinity": {required: [term, {"topologyKey": "zone"}]},
                "podAntiAffinity": {
                    required: [{**term, "namespaces": ["b", "a"]}, {**term, "namespaceSelector": {}}, chosen],
                    "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": term}],
                },
            }
        }
    )
    assert [t.selector for t in found.near] == [LabelSelector((("app", "a"),)), NOTHING]
    assert [(t.namespaces, t.all_namespaces) for t in found.apart] == [(("a", "b"), False), ((), True), ((), False)]
    assert found.unsupported == ("affinity to pods of namespaces that are chosen by labels",)
    assert found.depends_on_pods


def test_spread_with_the_pods_own_revision():
    found = pod_class(
        {
            "topologySpreadConstraints": [
                {
                    "maxSkew": 2, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "minDomains": 3,
                    "labelSelector": {}, "matchLabelKeys": ["pod-template-hash", "absent"],
                },
                {"maxSkew": 1, "topologyKey": "host", "whenUnsatisfiable": "ScheduleAnyway"},
            ]
        },
        {"labels": {"pod-template-hash": "7f"}},
    )  # fmt: skip
    assert len(found.spread) == 1
    assert (found.spread[0].max_skew, found.spread[0].min_domains) == (2, 3)
    assert found.spread[0].selector.expressions == (Requirement("pod-template-hash", "In", ("7f",)),)


def test_classes_differ_where_spread_refers_to_labels_that_differ():
    spec = {
        "containers": [{}],
        "topologySpreadConstraints": [{"topologyKey": "z", "labelSelector": {}, "matchLabelKeys": ["hash"]}],
    }
    reader, converted = PodReader(), msgspec.convert(spec, wire.PodSpec)
    first = reader.read(converted, {"hash": "1", "index": "0"}).pod_class
    assert reader.read(converted, {"hash": "1", "index": "1"}).pod_class is first
    assert reader.read(converted, {"hash": "2", "index": "0"}).pod_class is not first


def test_host_ports_of_containers_and_sidecars():
    found = pod_class(
        {
            "containers": [{"ports": [{"hostPort": 80, "containerPort": 8080}, {"containerPort": 9}]}],
            "initContainers": [
                {"ports": [{"hostPort": 53, "protocol": "UDP", "hostIP": "10.0.0.1"}], "restartPolicy": "Always"},
                {"ports": [{"hostPort": 7}]},
            ],
        }
    )
    assert found.host_ports == (("0.0.0.0", "TCP", 80), ("10.0.0.1", "UDP", 53))
    on_host = pod_class({"hostNetwork": True, "containers": [{"ports": [{"containerPort": 9}]}]})
    assert on_host.host_ports == (("0.0.0.0", "TCP", 9),)


def test_tolerations_and_claims():
    found = pod_class(
        {
            "tolerations": [{"operator": "Exists"}, {"key": "a", "value": "b", "effect": "NoSchedule"}],
            "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "one"}],
        }
    )
    assert found.tolerations == (Toleration("", "Exists"), Toleration("a", "Equal", "b", "NoSchedule"))
    assert found.unsupported == ("resource claims (dynamic allocation of devices)",)


def test_capabilities_by_annotation():
    found = pod_class(
        {},
        {
            "annotations": {
                "berth.dev/gpu-memory": "80Gi",
                "berth.dev/gpu-compute": "9.0",
                "berth.dev/gpu-product": "H100 | H200",
                "berth.dev/gpu-precision": "FP8",
                "berth.dev/gpu-link": "nvlink",
                "berth.dev/rdma": "required",
            }
        },
    )
    assert found.least == Capability(80 * 2**30, (9, 0), ("H100", "H200"), "fp8", "nvlink", True)


@pytest.mark.parametrize(
    "key, value", [("gpu-memory", "lots"), ("gpu-compute", "hopper"), ("gpu-link", "fast"), ("rdma", "yes")]
)
def test_annotations_that_mean_nothing_are_told(key, value):
    found = reading({}, {"annotations": {f"berth.dev/{key}": value}})
    assert found.problems[0].startswith(f'metadata.annotations["berth.dev/{key}"] is "{value}": ')


def test_shares_of_a_gpu_by_other_schedulers_rules_are_refused_not_overlooked():
    by_annotation = pod_class({}, {"annotations": {"gpu-fraction": "0.5"}})
    assert by_annotation.unsupported == ("a share of a GPU (gpu-fraction)",)
    limits = {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "3000"}
    by_resource = pod_class({"containers": [{"resources": {"limits": limits}}]})
    assert by_resource.unsupported == ("a share of a GPU (nvidia.com/gpumem)",)


def test_a_pod_that_names_its_node_says_so():
    assert pod_class({"nodeName": "gpu-1"}).node_name == "gpu-1"


names = st.sampled_from(["a", "b"])
terms = st.lists(
    st.builds(lambda ks: NodeTerm(tuple(Requirement(k, "Exists") for k in ks)), st.lists(names, max_size=2)), max_size=3
).map(tuple)


@given(terms, terms, st.sets(names))
def test_both_holds_exactly_where_each_holds(one, other, labels):
    def holds(wish: tuple[NodeTerm, ...]) -> bool:
        return not wish or any(t.expressions and all(e.key in labels for e in t.expressions) for t in wish)

    assert holds(both(one, other)) == (holds(one) and holds(other))
