"""The Helm chart: rendered by Helm's own engine, held against Kubernetes' schemas and what pods are to be denied."""

from __future__ import annotations

import copy
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from deploy_driver import DEPLOY, DIGEST, as_command, compose, containers
from test_compose import FILES, GIVEN
from test_containerfile import parse

CHART = DEPLOY / "helm" / "consilium"
VALUES = yaml.safe_load((CHART / "values.yaml").read_text())
OWN: dict[str, Any] = {
    "images": {"registry": "registry.example.org/consilium"},
    "addressBook": '{"chain_id": 1}',
    "secrets": {"api": "consilium-api", "worker": "consilium-worker", "aggregator": "consilium-aggregator"},
    "api": {"ingress": {"host": "consilium.example.org", "tlsSecret": "consilium-tls"}},
    "aggregator": {"fleet": {"tlsSecret": "fleet-tls", "name": "fl.example.org"}},
}
KUBERNETES = ("1.27", "1.37")
PROGRAM = """
import json, sys
import helm_python as helm, kubernetes_validate, yaml
asked = json.load(sys.stdin)
try:
    with helm.Chart.load(sys.argv[1]) as chart:
        chart.validate_schema(asked)
        files = chart.render(asked, name="one", namespace="two")
        linted = helm.lint(sys.argv[1], asked, strict=True)
except helm.HelmError as error:
    print(json.dumps({"refused": str(error)}))
    sys.exit()
found = [one for name, text in files.items() if name.endswith(".yaml") for one in yaml.safe_load_all(text) if one]
for one in found:
    for version in sys.argv[2:]:
        kubernetes_validate.validate(one, version, strict=True)
print(json.dumps({"objects": found, "linted": linted, "notes": files["consilium/templates/NOTES.txt"]}))
"""
Objects = list[dict[str, Any]]


# Without Helm


def test_the_chart_has_compose_files_images() -> None:
    operator = compose(FILES["operator"], GIVEN["operator"])["services"]
    assert VALUES["images"]["nginx"] == operator["proxy"]["image"]
    assert DIGEST.fullmatch(VALUES["images"]["nginx"])


def test_hospitals_reach_what_the_proxy_lets_them_reach() -> None:
    """One rule in two places, for a chart cannot read what lies beside it."""
    proxy = (DEPLOY / "proxy" / "nginx.conf").read_text()
    proxy += (DEPLOY / "proxy" / "templates" / "superlink.conf.template").read_text()
    chart = (CHART / "templates" / "aggregator.yaml").read_text()
    for rule in (
        r'map "\$request_method \$request_uri" \$is_fleet \{[^}]*\}', r"map \$request_uri \$superlink \{[^}]*\}",
        r"map \$request_uri \$fleet_path \{[^}]*\}", r"if \(\$is_fleet = 0\) \{[^}]*\}",
        r"ssl_protocols [^;]*;", r"client_max_body_size [^;]*;", r"proxy_next_upstream [^;]*;",
        r"proxy_read_timeout [^;]*;", r"limit_conn clients [^;]*;", r"limit_conn_status [^;]*;",
    ):  # fmt: skip
        in_proxy, in_chart = (re.search(rule, text) for text in (proxy, chart))
        assert in_proxy is not None, rule
        assert in_chart is not None, rule
        assert in_proxy[0].split() == in_chart[0].split()


# With it


@pytest.fixture(scope="module")
def render(tmp_path_factory: pytest.TempPathFactory) -> Callable[[dict[str, Any]], dict[str, Any]]:
    folder = tmp_path_factory.mktemp("helm")
    requirements = Path(__file__).with_name("helm-requirements.txt")
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--require-hashes"]
    fetched = subprocess.run([*pip, "--target", folder, "-r", requirements], capture_output=True, text=True)
    if fetched.returncode:
        pytest.skip(f"Helm's library cannot be had here: {fetched.stderr.strip().splitlines()[-1]}")

    def rendered(values: dict[str, Any]) -> dict[str, Any]:
        program = [sys.executable, "-c", PROGRAM, str(CHART), *KUBERNETES]
        path = os.environ | {"PYTHONPATH": str(folder)}
        found = subprocess.run(program, input=json.dumps(values), capture_output=True, text=True, env=path)
        assert found.returncode == 0, found.stderr[-4000:]
        answer: dict[str, Any] = json.loads(found.stdout)
        return answer

    return rendered


@pytest.fixture(scope="module")
def objects(render: Callable[[dict[str, Any]], dict[str, Any]]) -> Objects:
    answer = render(OWN)
    assert "refused" not in answer, answer
    assert [one for one in answer["linted"]["messages"] if one["severity"] > 1] == []
    found: Objects = answer["objects"]
    return found


def pods(objects: Objects) -> dict[str, dict[str, Any]]:
    return {
        one["metadata"]["name"]: one["spec"]["template"]["spec"] for one in objects if "template" in one.get("spec", {})
    }


def of(objects: Objects, kind: str) -> dict[str, dict[str, Any]]:
    return {one["metadata"]["name"]: one for one in objects if one["kind"] == kind}


deep = pytest.mark.deep


@deep
def test_every_object_keeps_kubernetes_schemas(objects: Objects) -> None:
    assert len(objects) > 12
    assert of(objects, "Secret") == {}
    names = [(one["kind"], one["metadata"]["name"]) for one in objects]
    assert len(set(names)) == len(names)


@deep
def test_pods_keep_the_restricted_standard(objects: Objects) -> None:
    assert set(pods(objects)) == {"one-api", "one-worker", "one-aggregator"}
    for pod in pods(objects).values():
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert pod["automountServiceAccountToken"] is False
        assert not pod.keys() & {"hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace"}
        assert not [volume for volume in pod["volumes"] if "hostPath" in volume]
        for container in [*pod["containers"], *pod.get("initContainers", [])]:
            context = container["securityContext"]
            assert context["allowPrivilegeEscalation"] is False
            assert context["readOnlyRootFilesystem"] is True
            assert context["capabilities"] == {"drop": ["ALL"]}
            assert context.get("runAsUser", pod["securityContext"]["runAsUser"]) > 0
            assert container["resources"]["limits"]["memory"]
            assert "env" not in container
            assert "envFrom" not in container
        for container in pod["containers"]:
            assert {"readinessProbe", "livenessProbe"} & container.keys()


@deep
def test_what_a_pod_mounts_is_there_and_is_writable_where_the_image_writes(objects: Objects) -> None:
    claims = of(objects, "PersistentVolumeClaim")
    maps = of(objects, "ConfigMap")
    stateful = of(objects, "StatefulSet")["one-aggregator"]["spec"]
    for name, pod in pods(objects).items():
        volumes = {volume["name"]: volume for volume in pod["volumes"]}
        if name == "one-aggregator":
            volumes |= {claim["metadata"]["name"]: claim for claim in stateful["volumeClaimTemplates"]}
        for volume in volumes.values():
            if "persistentVolumeClaim" in volume:
                assert volume["persistentVolumeClaim"]["claimName"] in claims
            if "configMap" in volume:
                assert volume["configMap"]["name"] in maps
        for container in [*pod["containers"], *pod.get("initContainers", [])]:
            mounts = {mount["mountPath"]: mount for mount in container["volumeMounts"]}
            assert {mount["name"] for mount in mounts.values()} <= volumes.keys()
            role = container["name"]
            if role in ("api", "worker", "aggregator"):
                written = {path for found in containers().all(role, "VOLUME") for path in as_command(found)} | {"/tmp"}
                assert {path for path, mount in mounts.items() if not mount.get("readOnly")} == written
                config = as_command(containers().last(role, "CMD") or "")
                parse(config)
                assert Path(config[-1]).parent == Path("/run/secrets")
                assert mounts["/run/secrets"]["readOnly"] is True
                assert container["image"] == f"registry.example.org/consilium/consilium-{role}:0.1.0"


@deep
def test_a_key_file_is_its_readers_alone(objects: Objects) -> None:
    (keys,) = pods(objects)["one-aggregator"]["initContainers"]
    assert keys["command"][:2] == ["install", "--mode=0400"]
    volumes = {volume["name"]: volume for volume in pods(objects)["one-aggregator"]["volumes"]}
    assert volumes["keys"]["emptyDir"]["medium"] == "Memory"
    (aggregator, fleet) = pods(objects)["one-aggregator"]["containers"]
    assert {"keys", "home", "from"} & {mount["name"] for mount in fleet["volumeMounts"]} == set()
    assert {mount["name"] for mount in aggregator["volumeMounts"]} >= {"keys", "home"}


@deep
def test_the_network_lets_through_what_is_needed(objects: Objects) -> None:
    policies = of(objects, "NetworkPolicy")
    ports = {
        name: [port["port"] for rule in policy["spec"]["ingress"] for port in rule["ports"]]
        for name, policy in policies.items()
    }
    assert ports == {"one-api": ["http"], "one-worker": [], "one-aggregator": ["fleet"]}
    assert policies["one-api"]["spec"]["ingress"][0]["from"]
    for name, policy in policies.items():
        assert policy["spec"]["policyTypes"] == ["Ingress", "Egress"]
        selector = policy["spec"]["podSelector"]["matchLabels"]
        (pod,) = [one for one in objects if one["metadata"]["name"] == name and "template" in one["spec"]]
        assert selector.items() <= pod["spec"]["template"]["metadata"]["labels"].items()
        assert all("ports" in rule for rule in policy["spec"]["egress"])
    for service in of(objects, "Service").values():
        if selector := service["spec"].get("selector"):
            assert [
                one
                for one in objects
                if "template" in one.get("spec", {})
                and selector.items() <= one["spec"]["template"]["metadata"]["labels"].items()
            ]
    ingress = of(objects, "Ingress")["one-api"]["spec"]
    paths = {path["path"]: path for path in ingress["rules"][0]["http"]["paths"]}
    assert {path: found["backend"]["service"]["name"] for path, found in paths.items()} == {
        "/metrics": "one-nobody", "/ready": "one-nobody", "/": "one-api",
    }  # fmt: skip
    assert "selector" not in of(objects, "Service")["one-nobody"]["spec"]


@deep
@pytest.mark.skipif(shutil.which("nginx") is None, reason="nginx is not installed: apt-get install nginx-light")
def test_nginx_takes_the_fleets_configuration(objects: Objects, tmp_path: Path) -> None:
    text = of(objects, "ConfigMap")["one-fleet"]["data"]["nginx.conf"]
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
         "-subj", "/CN=fl.example.org", "-keyout", tmp_path / "tls.key", "-out", tmp_path / "tls.crt"],
        check=True, capture_output=True,
    )  # fmt: skip
    (tmp_path / "nginx.conf").write_text(text.replace(" /tmp/", f" {tmp_path}/").replace("/run/secrets", str(tmp_path)))
    found = subprocess.run(["nginx", "-t", "-c", tmp_path / "nginx.conf"], capture_output=True, text=True)
    assert found.returncode == 0, found.stderr


@deep
@pytest.mark.parametrize(
    ("path", "value", "named"),
    [
        (("images", "registry"), "", "registry"), (("addressBook",), "", "addressBook"),
        (("secrets", "api"), "", "api"), (("secrets", "aggregator"), "", "aggregator"),
        (("api", "ingress", "host"), "", "host"),
        (("aggregator", "fleet", "tlsSecret"), "", "tlsSecret"), (("images", "nginx"), "nginx:latest", "nginx"),
        (("api", "replicas"), 2, "accessMode"), (("api", "password"), "secret", "password"),
        (("aggregator", "fleet", "name"), "x; }", "name"), (("aggregator", "fleet", "name"), "", "name"),
        (("aggregator", "fleet", "ports", "count"), 10**6, "count"),
        (("networkPolicy",), {"apiFrom": []}, "apiFrom"),
    ],
)  # fmt: skip
def test_values_that_would_not_do_are_refused(
    render: Callable[[dict[str, Any]], dict[str, Any]], path: tuple[str, ...], value: Any, named: str
) -> None:
    values = copy.deepcopy(OWN)
    place = values
    for name in path[:-1]:
        place = place.setdefault(name, {})
    place[path[-1]] = value
    answer = render(values)
    assert named in answer.get("refused", ""), answer


@deep
def test_what_can_be_left_out_can_be_left_out(render: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    values = copy.deepcopy(OWN)
    values["aggregator"] = {"enabled": False}
    del values["secrets"]["aggregator"]
    values["api"] = {"ingress": {"enabled": False}, "replicas": 2, "home": {"accessMode": "ReadWriteMany"}}
    values["networkPolicy"] = {"enabled": False}
    found = render(values)["objects"]
    assert set(pods(found)) == {"one-api", "one-worker"}
    assert of(found, "Ingress") == of(found, "NetworkPolicy") == {}
    assert of(found, "Deployment")["one-api"]["spec"]["replicas"] == 2
