"""Functions that touch the machine: its GPUs, its environment, or nothing at all."""

from __future__ import annotations

import re

RUNS_NOTHING = re.compile(
    r"(builtins(?!\.(exec|eval|__import__)$)|os|sys|pathlib|argparse|logging|warnings|time|datetime|json|collections"
    r"|functools|typing|re|string|math|platform|dataclasses|enum|abc|itertools|operator|copy|contextlib|threading"
    r"|queue|multiprocessing|concurrent|subprocess|shutil|glob|fnmatch|tempfile|urllib|hashlib|pickle|csv|gzip|zipfile"
    r"|tarfile|io|socket|struct|inspect|textwrap|types|uuid|signal|traceback|gc|atexit|getpass|decimal|fractions"
    r"|statistics|configparser|calendar|locale|codecs|base64|pprint|heapq|bisect|weakref|faulthandler|resource"
    r"|matplotlib|numpy(?!\.random)|absl|click|typer|fire|tqdm|yaml|toml|tomli|tomllib|dotenv|rich|typing_extensions"
    r"|tensorflow\.(config|get_logger$|autograph\.set_verbosity$|compat\.v1\.logging|TensorSpec|TensorShape|DType)"
    r"|keras\.(utils|saving)\.(register_keras_serializable|get_custom_objects)"
    r"|keras\.(backend|config)\.(set_)?(floatx|epsilon|image_data_format))(\.|$)"
)
"""Run no TensorFlow operation and draw nothing, so that workers may start after them."""

CHOOSES_START = ("multiprocessing.get_context", "multiprocessing.set_start_method")
"""Choose how processes are started: they are forks, unless something else is said."""

POOL_OF_PROCESSES = ("concurrent.futures.ProcessPoolExecutor", "concurrent.futures.process.ProcessPoolExecutor")
"""Start processes, which are no forks where each has a number of tasks only."""

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
