"""Functions that touch the machine: its GPUs, its environment, or nothing at all."""

from __future__ import annotations

import re

RUNS_NOTHING = re.compile(
    r"(builtins|os|sys|pathlib|argparse|logging|warnings|matplotlib|numpy(?!\.random)|time|datetime|json|absl"
    r"|collections|functools|typing|re|string|math|platform|tensorflow\.config)\."
)
"""Run no TensorFlow operation and draw nothing, so that workers may start after them."""

SETS_ENVIRONMENT = ("os.environ.setdefault", "os.environ.update", "os.putenv")
"""Set variables of the environment."""

CHOOSES_DEVICES = ("tensorflow.config.set_visible_devices", "tensorflow.config.experimental.set_visible_devices")
"""Choose the devices that TensorFlow uses."""

CONFIGURES_SESSION = (
    *("tensorflow.compat.v1.ConfigProto", "tensorflow.ConfigProto", "tensorflow.compat.v1.GPUOptions"),
    *("tensorflow.compat.v1.Session", "tensorflow.compat.v1.InteractiveSession"),
)
"""TensorFlow 1's sessions, and what says which GPU they use."""

SETS_SESSION = ("tensorflow.compat.v1.keras.backend.set_session", "keras.backend.set_session")
"""Give Keras a session of TensorFlow 1."""
