"""Processes that TF_CONFIG lists, as Kubeflow's TFJob, Vertex AI and others set it."""

import json
from collections.abc import Mapping

from ..foundation import LaunchEnvironmentError
from .found import Found

ENGINE = "TF_CONFIG"
_TRAIN = ("chief", "worker")


def find(environ: Mapping[str, str]) -> Found | None:
    """The rank, None where there is no such list, or this process is an evaluator of it.

    Raises:
        LaunchEnvironmentError: the text is no such list, or has parameter servers.
    """
    text = environ.get(ENGINE)
    if not text:
        return None
    try:
        told = json.loads(text)
        cluster, task = told.get("cluster") or {}, told.get("task") or {}
        hosts = [str(host) for kind in _TRAIN for host in cluster.get(kind, [])]
        kind, index = task.get("type", ""), int(task.get("index", 0))
        before = len(cluster.get("chief", [])) if kind == "worker" else 0
    except (ValueError, TypeError, AttributeError):
        raise LaunchEnvironmentError(f"{ENGINE} is {text!r}: a JSON object with cluster and task is needed") from None
    if len(hosts) < 2 or kind == "evaluator":
        return None
    if kind not in _TRAIN or not 0 <= index < len(cluster.get(kind, [])):
        raise LaunchEnvironmentError(
            f"{ENGINE} says that this process is {kind or 'no task'} {index} of {len(hosts)} workers: a chief or "
            "worker of its cluster was expected. Unset it to run the script as one worker"
        )
    if cluster.get("ps"):
        raise LaunchEnvironmentError(f"{ENGINE} has parameter servers: workers that train together have none")
    rank = before + index
    names = [host.rpartition(":")[0] or host for host in hosts]
    beside = [other for other, name in enumerate(names) if name == names[rank]]
    return Found(ENGINE, rank, len(hosts), beside.index(rank), len(beside), ",".join(hosts), names[0])
