"""Images, and the manifest of a cluster: what they pin, and that they keep a cluster closed."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "packaging" / "cluster"
IMAGE, MANIFEST = ((FOLDER / name).read_text() for name in ("Containerfile", "raycluster.yaml"))
SMALL = (FOLDER.parent / "Containerfile").read_text()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
RAY = re.search(r'"ray\[default\]==([\d.]+)"', IMAGE)[1]


def test_versions_are_those_of_the_project():
    (ray,) = map(Requirement, PROJECT["optional-dependencies"]["ray"])
    assert ray.specifier.contains(RAY)
    assert f'rayVersion: "{RAY}"' in MANIFEST
    assert set(re.findall(r"dplasso:[\d.]+\d", SMALL)) == {f"dplasso:{PROJECT['version']}"}
    assert len(set(re.findall(r"^FROM (\S+)", SMALL + IMAGE, re.MULTILINE))) == 1
    # The first that asks for a token.
    assert tuple(map(int, RAY.split("."))) >= (2, 52)
    tag = f"dplasso-cluster:{PROJECT['version']}"
    assert tag in IMAGE
    assert set(re.findall(r"dplasso-cluster:[\w.]+", MANIFEST)) == {tag}
    python = re.search(r"^FROM python:(3\.\d+)\.\d+-slim$", IMAGE, re.MULTILINE)[1]
    assert f"Programming Language :: Python :: {python}" in PROJECT["classifiers"]
    assert {"ray", "storage"} <= set(PROJECT["optional-dependencies"])


def test_images_run_as_nobody_special_and_tell_nobody():
    for image in (SMALL, IMAGE):
        assert image.index("\nUSER 1000") > image.rindex("\nRUN")
    assert not re.search(r"(TOKEN|SECRET|PASSWORD|KEY_ID)", IMAGE)
    for setting in ("RAY_USAGE_STATS_ENABLED=0", "RAY_automatic_object_spilling_enabled=0"):
        assert setting in IMAGE


def test_the_manifest_is_a_closed_cluster():
    yaml = pytest.importorskip("yaml", reason="comes with Ray")
    cluster, policy, claim = yaml.safe_load_all(MANIFEST)
    assert (cluster["apiVersion"], cluster["kind"]) == ("ray.io/v1", "RayCluster")
    spec = cluster["spec"]
    assert spec["authOptions"] == {"mode": "token"}
    assert spec["autoscalerOptions"]["version"] == "v2"
    head, (group,) = spec["headGroupSpec"], spec["workerGroupSpecs"]
    # The driver's pod takes no worker, and its dashboard answers itself alone.
    assert head["rayStartParams"] == {"num-cpus": "0", "dashboard-host": "127.0.0.1"}
    assert group["minReplicas"] <= group["replicas"] <= group["maxReplicas"]
    for part in (head, group):
        pod = part["template"]["spec"]
        assert pod["securityContext"]["runAsNonRoot"]
        volumes = {one["name"] for one in pod["volumes"]}
        for container in pod["containers"]:
            assert container["resources"]["requests"] == container["resources"]["limits"]
            assert container["securityContext"]["readOnlyRootFilesystem"]
            assert not container["securityContext"]["allowPrivilegeEscalation"]
            mounted = {one["name"]: one["mountPath"] for one in container["volumeMounts"]}
            assert mounted.keys() == volumes
            assert {"/tmp", "/dev/shm"} <= set(mounted.values())
    name = {"ray.io/cluster": cluster["metadata"]["name"]}
    assert policy["spec"]["podSelector"]["matchLabels"] == name
    assert policy["spec"]["ingress"] == [{"from": [{"podSelector": {"matchLabels": name}}]}]
    volumes = head["template"]["spec"]["volumes"]
    used = [one["persistentVolumeClaim"] for one in volumes if "persistentVolumeClaim" in one]
    assert used == [{"claimName": claim["metadata"]["name"]}]
