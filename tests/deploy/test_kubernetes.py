"""The manifests: as Kubernetes' schemas have it, with commands, settings and addresses of ours, and no secret."""

import copy
import secrets
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from seckill.backends.payment.provider_choice import open_provider
from seckill.cli import app
from seckill.operations.production_refusals import make_believe
from seckill.settings import TABLE, read, require_production
from tests.deploy.schema import faults
from tests.fixtures import missing

FOLDER = Path(__file__).parents[2] / "deploy" / "kubernetes"
BACKLOG = FOLDER / "scale-on-backlog"
BASE = yaml.safe_load((FOLDER / "kustomization.yaml").read_text())
MANIFESTS: list[dict[str, Any]] = [
    manifest
    for path in [*(FOLDER / name for name in BASE["resources"]), BACKLOG / "worker-autoscaler.yaml"]
    for manifest in yaml.safe_load_all(path.read_text())
]
SECRETS = {
    "SECKILL_REDIS_URL": "rediss://seckill:x@valkey:6379/0",
    "SECKILL_DATABASE_URL": "postgresql://seckill:x@postgres/seckill",
    "SECKILL_JWT_SECRET": secrets.token_urlsafe(48),
    "SECKILL_ADMIN_KEY": secrets.token_hex(24),
    "SECKILL_PAYMENT_SECRET": secrets.token_urlsafe(48),
}
ROLES = ("api", "worker", "keeper")


def named(kind: str) -> dict[str, dict[str, Any]]:
    return {each["metadata"]["name"]: each for each in MANIFESTS if each["kind"] == kind}


def pod(workload: dict[str, Any]) -> dict[str, Any]:
    spec: dict[str, Any] = workload["spec"]["template"]["spec"]
    return spec


WORKLOADS = named("Deployment") | named("Job")


@pytest.mark.parametrize("manifest", MANIFESTS, ids=lambda each: f"{each['kind']} {each['metadata']['name']}")
def test_kubernetes_understands_it(manifest: dict[str, Any]) -> None:
    assert faults(manifest) == []


@pytest.mark.parametrize(
    ("path", "wrong", "fault"),
    [
        ("spec.replicas", "two", "is not integer"),
        ("spec.replica", 2, "is not known"),
        ("spec.template.spec.containers.0.livenessProbe.httpGet", {"path": "/healthz"}, "port is missing"),
        ("spec.template.spec.containers.0.ports.0.containerPort", True, "is not integer"),
    ],
)
def test_what_is_wrong_is_noticed(path: str, wrong: object, fault: str) -> None:
    manifest = copy.deepcopy(WORKLOADS["seckill-worker"])
    *way, last = path.split(".")
    place: Any = manifest
    for step in way:
        place = place[int(step)] if isinstance(place, list) else place[step]
    place[last] = wrong
    assert any(fault in found for found in faults(manifest)), faults(manifest)


def kustomize() -> list[str]:
    if kubectl := shutil.which("kubectl"):
        return [kubectl, "kustomize"]
    program = shutil.which("kustomize") or str(Path(sys.prefix) / "servers" / "kustomize" / "kustomize")
    if not Path(program).exists():
        missing("there is neither kubectl nor kustomize: scripts/get-servers builds the latter, if there is Go")
    return [program, "build"]


def test_kustomize_puts_it_together(tmp_path: Path) -> None:
    """It does so with the component, as an overlay of an operator's."""
    shutil.copytree(FOLDER, tmp_path / "kubernetes")
    (tmp_path / "mine").mkdir()
    overlay = {"resources": ["../kubernetes"], "components": ["../kubernetes/scale-on-backlog"], "namespace": "shop"}
    (tmp_path / "mine" / "kustomization.yaml").write_text(yaml.safe_dump(overlay))
    done = subprocess.run([*kustomize(), str(tmp_path / "mine")], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    built = list(yaml.safe_load_all(done.stdout))
    assert len(built) == len(MANIFESTS)
    assert [fault for manifest in built for fault in faults(manifest)] == []
    images = {c["image"] for each in built if each["kind"] in ("Deployment", "Job") for c in pod(each)["containers"]}
    assert images == {f"{BASE['images'][0]['newName']}:{BASE['images'][0]['newTag']}"}


def test_every_role_is_a_command_of_ours_and_is_started_more_than_once() -> None:
    assert set(WORKLOADS) == {f"seckill-{name}" for name in (*ROLES, "migrate")}
    for name, workload in WORKLOADS.items():
        [container] = pod(workload)["containers"]
        assert container["args"] == [name.removeprefix("seckill-")]
        assert container["args"][0] in set(app)
    scaled = {each["spec"]["scaleTargetRef"]["name"]: each["spec"]["minReplicas"] for each in scalers()}
    for role in ROLES:
        assert WORKLOADS[f"seckill-{role}"]["spec"].get("replicas", scaled.get(f"seckill-{role}")) == 2
        assert named("PodDisruptionBudget")[f"seckill-{role}"]["spec"]["maxUnavailable"] == 1


def scalers() -> list[dict[str, Any]]:
    return list(named("HorizontalPodAutoscaler").values())


def test_what_scales_is_there_and_by_figures_that_exist() -> None:
    assert {each["spec"]["scaleTargetRef"]["name"] for each in scalers()} == {"seckill-api", "seckill-worker"}
    [rule] = yaml.safe_load((BACKLOG / "prometheus-adapter.yaml").read_text())["rules"]["external"]
    [metric] = named("HorizontalPodAutoscaler")["seckill-worker"]["spec"]["metrics"]
    from seckill.telemetry import BACKLOG as GAUGE  # noqa: PLC0415 (counts from its import on)

    assert metric["external"]["metric"]["name"] == rule["name"]["as"] == rule["seriesQuery"] == GAUGE._name


@pytest.mark.parametrize("role", ROLES)
def test_its_settings_are_enough_for_each_role(role: str) -> None:
    environ = named("ConfigMap")["seckill-settings"]["data"] | SECRETS
    assert set(environ) <= {setting.variable for setting in TABLE}
    settings = read(environ)
    require_production(settings, role)  # type: ignore[arg-type]
    assert (settings.durability, settings.rehearsal) == ("strict", "off")
    assert make_believe(settings, open_provider(settings)) == []


def test_secrets_come_by_reference_only() -> None:
    assert not named("Secret")
    assert not set(named("ConfigMap")["seckill-settings"]["data"]) & set(SECRETS)
    text = (FOLDER / "settings.yaml").read_text()
    for name in SECRETS:
        assert f"--from-literal={name}=" in text, "the command that makes it names them all"
    for workload in WORKLOADS.values():
        [container] = pod(workload)["containers"]
        assert {"secretRef": {"name": "seckill-secrets"}} in container["envFrom"]
        assert "env" not in container


def test_nothing_runs_as_root_or_writes_to_its_image() -> None:
    for workload in WORKLOADS.values():
        spec = pod(workload)
        [container] = spec["containers"]
        assert spec["securityContext"]["runAsNonRoot"]
        assert spec["securityContext"]["runAsUser"] == 10001, "as the Dockerfile has it"
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert spec["automountServiceAccountToken"] is False
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert {mount["mountPath"] for mount in container["volumeMounts"]} == {"/tmp"}
        assert container["resources"]["requests"].keys() == {"cpu", "memory"}


@pytest.mark.parametrize("role", ROLES)
def test_probes_ask_where_the_role_answers(role: str) -> None:
    [container] = pod(WORKLOADS[f"seckill-{role}"])["containers"]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    settings = read(named("ConfigMap")["seckill-settings"]["data"])
    assert ports["figures"] == settings.metrics_port
    asked = {kind: container[f"{kind}Probe"]["httpGet"] for kind in ("startup", "liveness", "readiness")}
    assert {get["path"] for get in asked.values()} == {"/healthz", "/readyz"}
    assert asked["readiness"]["path"] == "/readyz", "one that is not ready is not killed for it"
    assert {ports[get["port"]] for get in asked.values()} == {settings.port if role == "api" else settings.metrics_port}


def test_labels_find_what_they_are_for() -> None:
    for workload in named("Deployment").values():
        labels = workload["spec"]["template"]["metadata"]["labels"]
        assert workload["spec"]["selector"]["matchLabels"] == labels
        name = workload["metadata"]["name"]
        assert named("PodDisruptionBudget")[name]["spec"]["selector"]["matchLabels"] == labels
        [spread] = pod(workload)["topologySpreadConstraints"]
        assert spread["labelSelector"]["matchLabels"] == labels
    api = WORKLOADS["seckill-api"]["spec"]["template"]["metadata"]["labels"]
    assert named("Service")["seckill-api"]["spec"]["selector"] == api
    assert named("NetworkPolicy")["seckill-api"]["spec"]["podSelector"]["matchLabels"] == api
