"""What a script that is written for Horovod needs besides Horovod's own names, as text that is put into it."""

from __future__ import annotations

SHARD = '''
def {shard}(data, validation_split=0.0):
    """Every {hvd}.size()-th record of a dataset or of arrays, as many for each worker; none of those held out."""
    if isinstance(data, {tf}.data.Dataset):
        count = int(data.cardinality())
        if count != {tf}.data.INFINITE_CARDINALITY and (count < 0 or count % {hvd}.size()):
            raise ValueError(
                f"{{'unknown' if count < 0 else count}} records cannot be dealt evenly to {{{hvd}.size()}} workers, "
                "which would wait for each other at the end: use .take(n), or .repeat() and a number of steps"
            )
        return data.shard({hvd}.size(), {hvd}.rank())
    rows = int(len({tf}.nest.flatten(data)[0]) * (1.0 - validation_split))
    if rows % {hvd}.size() and {hvd}.rank() == 0:
        print(f"the last {{rows % {hvd}.size()}} of {{rows}} records are left out, as workers get equally many")
    end = rows - rows % {hvd}.size()
    return {tf}.nest.map_structure(lambda part: part[{hvd}.rank() : end : {hvd}.size()], data)
'''
HELD_OUT = '''
def {held_out}(data, validation_split):
    """The records that `fit` holds out for validation: the last ones, all of them for each worker."""
    rows = int(len({tf}.nest.flatten(data)[0]) * (1.0 - validation_split))
    return {tf}.nest.map_structure(lambda part: part[rows:], data)
'''
LOCAL_STEPS = '''
def {local_steps}(steps, down=False, whole=True):
    """How many steps of all workers take as many batches as `steps` of one do: none for 0, all for -1."""
    if isinstance(steps, (list, tuple)):
        return [{local_steps}(each) for each in steps]
    if steps <= 0:
        return steps
    if isinstance(steps, float) or not whole:
        return steps / {hvd}.size()
    return max(1, int(steps / {hvd}.size() if down else steps / {hvd}.size() + 0.5))
'''
BROADCAST = '''
def {broadcast}(*objects):
    """Each worker starts from rank 0's variables; those of the first batch all workers draw alike."""
    for each in objects:
        if getattr(each, "built", True):
            variables = each.variables() if callable(each.variables) else each.variables
            {hvd}.broadcast_variables(variables, root_rank=0)
'''
AT_START = """
class {at_start}({tf}.keras.callbacks.Callback):
    def on_train_begin(self, logs=None):
        {broadcast}(self.model)
"""
ROOT_FIRST = '''
def {root_first}(function, *arguments, **options):
    """Call it on rank 0 first, which downloads, and then on the others."""
    if {hvd}.rank() == 0:
        value = function(*arguments, **options)
    {hvd}.allreduce({tf}.constant(0.0), name="{root_first}")  # for which the others wait
    return value if {hvd}.rank() == 0 else function(*arguments, **options)
'''
REPORT = '''
def {report}(function, *arguments, **options):
    """Call it on rank 0; what it is given is computed on all workers."""
    if {hvd}.rank() == 0:
        function(*arguments, **options)
'''
PIN = """{gpus} = {tf}.config.list_physical_devices("GPU")
if {gpus}:
    {tf}.config.set_visible_devices({gpus}[{hvd}.local_rank()], "GPU")  # one GPU per worker
{tf}.keras.utils.set_random_seed(1)  # all workers draw alike; another number for other draws"""
