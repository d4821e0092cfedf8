"""The files for operators name commands, settings and metrics that there are, and run nothing as root."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client import REGISTRY, CollectorRegistry

from context_builder import __version__, metrics
from context_builder.assembly.metrics import ContextBuilderMetrics
from context_builder.cli import COMMANDS
from context_builder.engines.redis_launch import REWRITING
from context_builder.settings.settings import definitions
from context_builder.storage.redis import client_for, host_url

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "scripts/deploy"
LINTERS = ROOT / ".venv/linters/node_modules/.bin"
"""Where ``scripts/linters`` installs them."""
IMAGE = f"context-builder:{__version__}"
OWN_ORDER = ["service-keys-order", "services-alphabetical-order", "top-level-properties-order"]
"""What the compose file orders otherwise: services as they start, and keys as they are read."""
_METRIC = re.compile(r"\b(?:context_builder|thinking|context_tokens|context_prompt)_[a-z_]+\b")


def loaded(name: str) -> Any:
    return yaml.safe_load((DEPLOY / name).read_text(encoding="utf-8"))


def manifests() -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((DEPLOY / "kubernetes/context-builder.yaml").read_text(encoding="utf-8")))


def expressions() -> Iterator[str]:
    """What the dashboard and the alerts ask Prometheus."""
    dashboard = json.loads((DEPLOY / "grafana/dashboards/context-builder.json").read_text(encoding="utf-8"))
    yield from (target["expr"] for panel in dashboard["panels"] for target in panel["targets"])
    yield from (rule["expr"] for group in loaded("prometheus/alerts.yml")["groups"] for rule in group["rules"])


@pytest.fixture(scope="module")
def known() -> dict[str, set[str]]:
    """Every metric's sample names, with its labels."""
    assert metrics.SESSIONS
    registry = CollectorRegistry()
    ContextBuilderMetrics(registry)
    samples: dict[str, set[str]] = {}
    for collector in {*REGISTRY._collector_to_names, *registry._collector_to_names}:
        labels = {*getattr(collector, "_labelnames", ())}
        if not hasattr(collector, "describe"):  # of the process and its interpreter
            continue
        for base in (one.name for one in collector.describe()):
            for name in (base, *(f"{base}{end}" for end in ("_total", "_bucket", "_sum", "_count"))):
                samples[name] = labels
    return samples


def test_what_is_asked_of_prometheus_is_there(known: dict[str, set[str]]) -> None:
    for expression in expressions():
        asked = set(_METRIC.findall(expression))
        assert asked, expression
        assert asked <= known.keys(), expression
        labels = {*re.findall(r"(\w+)\s*(?:=|!=|=~)\s*\"", expression)}
        for by in re.findall(r"by \(([^)]*)\)", expression):
            labels |= {one.strip() for one in by.split(",")}
        assert labels - {"le", "instance"} <= set.union(*(known[name] for name in asked)), expression


def test_outcomes_that_alerts_name_are_counted_so() -> None:
    told = {outcome for one in expressions() for outcome in re.findall(r'outcome="(\w+)"', one)}
    code = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "context_builder/session").glob("*.py"))
    assert told
    for outcome in told:
        assert f'"{outcome}"' in code


def test_every_alert_says_what_to_do() -> None:
    for group in loaded("prometheus/alerts.yml")["groups"]:
        for rule in group["rules"]:
            assert {"summary", "action"} <= rule["annotations"].keys(), rule["alert"]
            for command in re.findall(r"`context-builder (\w+)", rule["annotations"]["action"]):
                assert command in COMMANDS


def test_compose_runs_commands_and_settings_that_there_are() -> None:
    services = loaded("compose.yaml")["services"]
    ours = {name: one for name, one in services.items() if one.get("image") == IMAGE}
    assert ours.keys() == {"migrate", "fleet", "serve"}
    for one in ours.values():
        assert one["command"][0] in COMMANDS
        assert {*one["environment"]} - {"PGPASSWORD"} <= {*definitions()}
        assert not any(
            "PASSWORD" in str(one["environment"][name]) for name in one["environment"] if name.endswith("_URL")
        )
        assert one["read_only"] is True
        assert one["cap_drop"] == ["ALL"]
    assert ours["fleet"]["deploy"]["replicas"] == 2
    for name, one in services.items():
        assert ":" in one["image"] or name in ours, "an image of no fixed version"
        assert "latest" not in one["image"]
        assert all(port.startswith("127.0.0.1:") for port in one.get("ports", ()))
    command = services["valkey"]["command"]
    assert command[1:3] == ["--requirepass", "${REDIS_PASSWORD:?}"]  # one argument, whatever is in it
    options = " ".join(command[3:])
    assert "--notify-keyspace-events El" in options
    for name, value in REWRITING.items():
        assert f"--{name} {value}" in options


def test_pods_run_as_nobody_and_write_nowhere_but_in_their_own_folders() -> None:
    kinds = [one["kind"] for one in manifests()]
    assert {"Job", "Deployment", "HorizontalPodAutoscaler", "PodDisruptionBudget", "Service"} <= {*kinds}
    for one in manifests():
        assert one["metadata"]["labels"]["app"] == "context-builder"
        if one["kind"] not in ("Job", "Deployment"):
            continue
        pod = one["spec"]["template"]["spec"]
        assert pod["securityContext"]["runAsNonRoot"] is True
        (container,) = pod["containers"]
        assert container["args"][0] in COMMANDS
        assert container["securityContext"]["readOnlyRootFilesystem"] is True
        assert {each["name"] for each in container.get("env", ())} <= {*definitions()}
        assert {each["name"] for each in container["volumeMounts"]} == {each["name"] for each in pod["volumes"]}
        if one["kind"] == "Deployment":
            assert (
                one["spec"]["selector"]["matchLabels"].items() <= one["spec"]["template"]["metadata"]["labels"].items()
            )
            assert {"startupProbe", "livenessProbe", "readinessProbe"} <= container.keys()
            assert pod["terminationGracePeriodSeconds"] > 5


def test_the_image_is_not_roots_and_has_what_its_commands_need() -> None:
    text = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
    last_stage = text.rpartition("\nFROM ")[2]
    assert "\nUSER 10001\n" in last_stage
    assert "embedded" not in re.findall(r"\[([a-z,]+)\]", text)[0].split(",")
    copied = (ROOT / ".dockerignore").read_text(encoding="utf-8").split()
    for name in ("context_builder", "prompts", "pyproject.toml", "constraints.txt", "README.md", "LICENSE"):
        assert f"!{name}" in copied
        assert (ROOT / name).exists()


@pytest.mark.engines
@pytest.mark.parametrize("unit", sorted(path.name for path in (DEPLOY / "systemd").iterdir()))
def test_a_unit_is_what_systemd_understands(unit: str, tmp_path: Path) -> None:
    text = (DEPLOY / "systemd" / unit).read_text(encoding="utf-8")
    (command,) = re.findall(r"^ExecStart=\S+/context-builder (\w+)", text, re.MULTILINE)
    assert command in COMMANDS
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not here")
    there = tmp_path / unit.replace("@", "@1")
    there.write_text(text.replace("/opt/context-builder/bin/context-builder", "/bin/true"), encoding="utf-8")
    done = subprocess.run(["systemd-analyze", "verify", str(there)], capture_output=True, text=True, check=False)
    complaints = [line for line in (done.stdout + done.stderr).splitlines() if unit.partition("@")[0] in line]
    assert done.returncode == 0, complaints
    assert not [line for line in complaints if "Unknown" in line]


@pytest.mark.engines
@pytest.mark.parametrize(
    "command",
    [
        ["dockerfile-utils", "lint", "Dockerfile"],
        ["dclint", "compose.yaml", "--max-warnings", "0", "--disable-rule", *OWN_ORDER],
        ["kubernetes-validate", "--strict", "kubernetes/context-builder.yaml"],
        ["promtool", "check", "rules", "prometheus/alerts.yml"],
        ["promtool", "check", "config", "--syntax-only", "prometheus/prometheus.yml"],
    ],
    ids=" ".join,
)
def test_linters_find_nothing(command: list[str]) -> None:
    program = shutil.which(command[0]) or shutil.which(command[0], path=LINTERS)
    if program is None:
        missing = f"{command[0]} is not here: ./scripts/linters installs it"
        (pytest.fail if os.environ.get("CI") else pytest.skip)(missing)
    done = subprocess.run([program, *command[1:]], cwd=DEPLOY, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_all_files_and_the_page_name_one_image() -> None:
    files = (DEPLOY / "Dockerfile", DEPLOY / "compose.yaml", DEPLOY / "kubernetes/context-builder.yaml")
    page = ROOT / "docs/how-to/deploy.md"
    for file in (*files, page):
        text = file.read_text(encoding="utf-8")
        named = re.findall(r"(?:-t |image: )(context-builder\S*)", text)
        assert named, file
        assert {*named} == {IMAGE}, file


@pytest.mark.parametrize(
    ("step", "file"),
    [
        ("kubectl exec deploy/context-builder-fleet -- context-builder keys create", "kubernetes/context-builder.yaml"),
        ("docker compose run --rm serve keys create", "compose.yaml"),
    ],
)
def test_the_first_key_has_a_step(step: str, file: str) -> None:
    for path in (DEPLOY / file, ROOT / "docs/how-to/deploy.md"):
        assert f"{step} --role admin --name first" in path.read_text(encoding="utf-8")


def test_every_command_of_compose_finds_the_passwords() -> None:
    needed = {*re.findall(r"\$\{(\w+):\?\}", (DEPLOY / "compose.yaml").read_text(encoding="utf-8"))}
    for path in (DEPLOY / "compose.yaml", ROOT / "docs/how-to/deploy.md"):
        (exported,) = re.findall(r"export ((?:\w+_PASSWORD=\S+ ?)+)", path.read_text(encoding="utf-8"))
        assert {one.partition("=")[0] for one in exported.split()} == needed, path


def test_a_unit_of_systemd_finds_what_it_needs_installed() -> None:
    page = (ROOT / "docs/how-to/deploy.md").read_text(encoding="utf-8")
    (extras,) = re.findall(r"/opt/context-builder/bin/pip install .*'\.\[([a-z,]+)\]'", page)
    assert {"fleet", "postgres", "server"} <= {*extras.split(",")}
    assert "/opt/context-builder/bin/context-builder migrate" in page


def test_a_redis_password_may_have_signs_of_urls() -> None:
    client = client_for(host_url("valkey", 6379, "a@b/c:d#?"))
    assert client.connection_pool.connection_kwargs["password"] == "a@b/c:d#?"
    assert client.connection_pool.connection_kwargs["host"] == "valkey"
