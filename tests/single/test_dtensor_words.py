"""The words of DTensor that the runtime has, on its one device."""

import numpy as np
import pytest
import tensorflow as tf

from tfdp.migrate.dialects.dtensor import WORDS
from tfdp.runtime import dtensor
from tfdp.runtime.foundation import TfdpError


def test_the_words_that_are_listed_are_there() -> None:
    assert all(hasattr(dtensor, name) for name in WORDS)
    with pytest.raises(AttributeError, match="replicated weights"):
        dtensor.DTensorDataset  # noqa: B018


def test_a_number_of_devices_is_no_number_here() -> None:
    mesh = dtensor.create_mesh([("batch", 8)])
    for name in ("size", "dim_size", "num_local_devices", "shape"):
        with pytest.raises(TfdpError, match="Write the number"):
            getattr(mesh, name)
    assert mesh.local_device_locations() == [{"batch": 0}]
    with pytest.raises(ValueError, match="no dimension 'model'"):
        dtensor.Layout(["model"], mesh)


def test_values_are_those_of_now() -> None:
    layout = dtensor.Layout.replicated(dtensor.create_mesh([("batch", 2)]), rank=1)
    variable = dtensor.DVariable([1.0, 2.0], layout=layout)
    taken = [dtensor.relayout(variable, layout), dtensor.pack([variable], layout), *dtensor.unpack(variable)]
    variable.assign([5.0, 6.0])
    assert all(np.array_equal(each, [1.0, 2.0]) for each in taken)
    assert dtensor.fetch_layout(taken[0]) is layout
    assert tf.is_tensor(dtensor.copy_to_mesh(variable, layout))
    with pytest.raises(TfdpError, match="is sharded"):
        dtensor.DVariable([1.0], layout=dtensor.Layout(["batch"], layout.mesh))
    with pytest.raises(ValueError, match="2 parts"):
        dtensor.pack([variable, variable], layout)
