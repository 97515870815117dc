"""Containers of clusters without Enroot, and of clusters with copies of images on their nodes."""

from __future__ import annotations

import json

import pytest

from deepgrid.sbatch import Containers, StoragePaths, render
from deepgrid.sbatch.containers import Images
from tests.sbatch.room import job


@pytest.mark.parametrize(
    ("container", "form", "fetched"),
    [
        ({"image": "ubuntu"}, "apptainer", False),
        ({"image": "ubuntu:22.04"}, "apptainer", True),
        ({"image": "ubuntu", "registry": "r.io"}, "apptainer", True),
        ({"image": "a/b"}, "apptainer", True),
    ],
)
def test_without_enroot_apptainer_runs_all_containers(container: dict[str, object], form: str, fetched: bool) -> None:
    containers = Containers(enroot=False, pyxis=True, local_images={"ubuntu:latest": "/images/debian"})
    (image,) = Images(job(f"[{{run: {{command: x, container: {json.dumps(container)}}}}}]").steps, containers)
    assert (image.form, image.fetched) == (form, fetched)


def test_pyxis_gets_the_path_of_a_local_image() -> None:
    made = job("[{run: {command: x, container: {image: ubuntu}}}, {run: {command: x, container: {image: a}}}]")
    containers = Containers(pyxis=True, local_images={"ubuntu": "/images/ubuntu.sqsh"})
    assert [image.is_file for image in Images(made.steps, containers)] == [True, False]
    script = render(made, StoragePaths(), containers)
    assert "__dg_image=/images/ubuntu.sqsh" in script
    assert """echo "deepgrid: image" 'ubuntu' "is this cluster's own copy," /images/ubuntu.sqsh""" in script
