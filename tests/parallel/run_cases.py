"""What each rank runs for conftest.py: cases in order, each with its result in a file of the rank.

A rank that fails goes on only if all others fail in the same case: else they are in the middle of a collective, or of
the next case.
"""

import functools
import importlib.util
import json
import pathlib
import sys
import traceback

import tfdp.runtime as dp
from tfdp.runtime.initialise import join_as_written
from tfdp.runtime.job import current


def main(plan_path):
    plan = json.loads(pathlib.Path(plan_path).read_text())
    if plan["init"] == {"as_written": True}:
        join_as_written()
    else:
        dp.init(**plan["init"])
    with pathlib.Path(plan_path).with_name(f"{dp.rank()}.jsonl").open("w", buffering=1) as results:
        for path, name in plan["cases"]:
            error = run(getattr(imported(path), name))
            results.write(json.dumps({"case": [path, name], "error": error}) + "\n")
            if error and not all_have_failed(f"{path}:{name}"):
                sys.exit(1)


@functools.cache
def imported(path):
    specification = importlib.util.spec_from_file_location(pathlib.Path(path).stem, path)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def all_have_failed(name):
    store = current().store
    store.publish(f"{name} failed on rank {dp.rank()}", b"")
    try:
        for rank in range(dp.size()):
            if rank != dp.rank():
                store.fetch(f"{name} failed on rank {rank}", timeout=3)
    except dp.TfdpError:
        return False
    return True


def run(case):
    try:
        case()
    except Exception:
        return traceback.format_exc()
    return None


if __name__ == "__main__":
    main(sys.argv[1])
