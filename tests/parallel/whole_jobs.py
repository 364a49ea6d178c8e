"""What cases ask of a whole job: values that must be all workers', and folders of them."""

import itertools
import pathlib
import pickle
import shutil
import tempfile

import tfdp.runtime as dp
from tfdp.runtime.job import current
from tfdp.runtime.store import apart

gathered, stories = itertools.count(), itertools.count()


def common(value):
    """A value that must be all workers'."""
    every = current().store.gather(f"machine/{next(gathered)}", pickle.dumps(value))
    assert [pickle.loads(each) for each in every] == [value] * dp.size()
    return value


def folder():
    """An empty one, of all workers."""
    with apart():
        return dp.broadcast_object(tempfile.mkdtemp())


def after_root(story):
    """Its value; the others come to each line of it when rank 0 is through with all, and has removed everything."""
    place = folder()
    key = f"through with story {next(stories)}"
    if dp.rank() > 0:
        current().store.fetch(key, publisher=0)
    found = story(pathlib.Path(place))
    if dp.rank() == 0:
        shutil.rmtree(place)
        current().store.publish(key, b"")
    dp.barrier()
    return common(found)


def filled(place):
    for name in ("a.txt", "b/c.txt"):
        (place / name).parent.mkdir(exist_ok=True)
        if dp.rank() == 0:
            (place / name).write_text(name)
    return place
