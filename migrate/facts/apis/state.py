"""What functions and methods of libraries change, besides giving a value."""

from __future__ import annotations

import re

CHANGES_GIVEN = re.compile(
    r"builtins\.(setattr|delattr)$|heapq\.heap\w+$|bisect\.insort\w*$|random\.shuffle$|numpy\.random\.shuffle$"
    r"|numpy\.(copyto|place|put|put_along_axis|putmask|fill_diagonal)$|operator\.(setitem|delitem|i[a-z]+)$"
)
"""Change their first argument."""

LEAVES_STATE = re.compile(
    r"(builtins(?!\.(exec|eval|next|input|setattr|delattr)$)|numpy|tensorflow|keras|math|cmath|statistics|collections"
    r"|itertools|functools|operator|copy|string|re|json|yaml|toml|decimal|fractions|textwrap|pprint|argparse|time"
    r"|datetime|os(?!\.(chdir|putenv|environ\.\w+)$)|sys(?!\.set\w+$)|platform|pathlib|shutil|glob|tempfile|io|csv|gzip|bz2"
    r"|lzma|pickle|zipfile|tarfile|h5py|joblib|subprocess|socket|getpass|uuid|secrets|hashlib|base64|random|inspect|gc"
    r"|types|typing|dataclasses|enum|traceback|warnings|logging|absl|tqdm|rich|colorama|termcolor|tabulate|psutil|resource"
    r"|matplotlib(?!\.pyplot\.close$)|seaborn|plotly|PIL|cv2|imageio|skimage|scipy|sklearn|pandas|wandb|mlflow"
    r"|tensorflow_datasets|tfdp)(\.|$)"
)
"""Functions of libraries that keep no state of the script's; what draws or consumes is in other tables."""

READS_NO_FILE = re.compile(
    r"builtins\.(?!(open|input|eval|exec)$)|(math|time|datetime)\.|tensorflow\.(cast|math\.\w+|reduce_\w+|round|shape|size)$"
    r"|numpy\.(?!load|fromfile|genfromtxt|memmap|fromregex)"
)
"""Functions that give a value of what they are given, and ask for no file."""

GIVES_VALUE = frozenset(
    {
        *("as_list", "format", "get", "isoformat", "item", "items", "join", "keys", "lower", "max", "mean", "min"),
        *("numpy", "result", "split", "std", "strftime", "strip", "sum", "tolist", "total_seconds", "upper", "values"),
    }
)
"""Methods that give a value of their object, and ask for no file."""

OF_MANAGERS = ("latest_checkpoint", "checkpoints")
"""Attributes of a `CheckpointManager` that tell which files there are."""

GIVES_ITERATOR = re.compile(
    r"builtins\.(iter|map|filter|zip|enumerate|reversed|open)$|itertools\.|os\.scandir$|glob\.iglob$|csv\.(reader|DictReader)$"
)
"""Give what is used up by going over it."""

GIVES_ELEMENT = re.compile(r"builtins\.(next|min|max|getattr|vars)$")
"""Give one of the very objects that another one holds."""

GIVES_HELD = frozenset({"get", "values", "items", "pop", "popitem", "popleft", "setdefault", "copy", "elements"})
"""Methods that give what their object holds, or a container of it."""

METRICS = ("keras.metrics.",)
"""How the names of the metrics begin, which add up what they are called on."""

TRAINS_MODEL = frozenset({"fit", "fit_generator", "train_on_batch", "compile", "adapt", "reset_states", "swap_weights"})
"""Change a model or a layer."""

MODEL_ONLY_READS = frozenset(
    {
        *("predict", "predict_on_batch", "predict_step", "evaluate", "test_on_batch", "summary", "count_params"),
        *("get_weights", "get_config", "get_layer", "to_json", "call", "numpy_function"),
    }
)
"""Leave a model as it is."""

LEAVES_OBJECT = frozenset(
    {
        # numbers, tensors and arrays
        *("numpy", "item", "tolist", "value", "read_value", "result", "mean", "sum", "min", "max", "std", "var"),
        *("prod", "argmax", "argmin", "argsort", "all", "any", "round", "astype", "copy", "reshape", "ravel"),
        *("flatten", "squeeze", "transpose", "swapaxes", "cumsum", "dot", "nonzero", "clip", "take", "repeat"),
        *("trace", "get_shape", "as_list", "to_tensor", "eval", "cardinality", "numel", "bit_length", "is_integer"),
        *("as_integer_ratio", "hex", "tobytes"),
        # texts
        *("format", "join", "strip", "lstrip", "rstrip", "lower", "upper", "title", "capitalize", "casefold"),
        *("swapcase", "replace", "split", "rsplit", "splitlines", "partition", "rpartition", "startswith"),
        *("endswith", "find", "rfind", "index", "rindex", "count", "center", "ljust", "rjust", "zfill"),
        *("expandtabs", "encode", "decode", "translate", "isdigit", "isalpha", "isnumeric", "isupper", "islower"),
        *("isspace", "removeprefix", "removesuffix", "group", "groups", "groupdict", "match", "fullmatch", "search"),
        *("findall", "sub", "format_map"),
        # containers and tables
        *("get", "keys", "values", "items", "most_common", "elements", "union", "intersection", "difference"),
        *("issubset", "issuperset", "head", "tail", "describe", "to_string", "to_dict", "to_markdown", "to_numpy"),
        *("median", "quantile"),
        # dates, paths, settings
        *("strftime", "isoformat", "timestamp", "total_seconds", "date", "time", "timetuple", "ctime", "weekday"),
        *("exists", "is_file", "is_dir", "resolve", "absolute", "as_posix", "with_suffix", "with_name", "with_stem"),
        *("relative_to", "read_text", "read_bytes", "joinpath", "iterdir", "glob", "rglob", "stat", "format_help"),
        *("get_config", "get_weights", "getvalue", "as_dict", "to_json", "flag_values_dict", "isEnabledFor"),
    }
)
"""Methods, by the names that Python, NumPy, TensorFlow and pandas give them, that give a value and change nothing."""

OF_QUEUES = ("queue.", "multiprocessing.", "asyncio.")
"""Make what `get` takes an element out of."""

READS_RECORDS = re.compile(
    r"keras\.datasets\.\w+\.load_data$|keras\.utils\.\w+_from_directory$|tensorflow_datasets\.|numpy\.(load|genfromtxt|from)\w*$"
    r"|pandas\.read_\w+$|sklearn\.datasets\.|scipy\.io\.loadmat$|h5py\.File$|pickle\.load$|joblib\.load$|tensorflow\.data\."
)
"""Give examples: read from files, or made up."""
