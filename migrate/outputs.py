"""Names of functions that write, show, say or fetch something outside the process: data only.

Spelled as `facts.program.Names` spells them. What TensorFlow's own names mean besides is in `migrate.catalogue`.
"""

from __future__ import annotations

import re
from enum import Enum


class EffectKind(Enum):
    """What a call, or a statement, does outside the process."""

    PRINT = "prints or logs"
    SHOW = "draws or shows"
    EVENTS = "makes a writer of summary files"
    SAVE = "writes, moves or deletes files"
    OPEN = "opens a file to write it, for which the null device can stand"
    OPEN_FORMAT = "opens a file to write it, for which the null device cannot stand"
    LOG_FILE = "opens a log file"
    FOLDER = "makes a folder, by os"
    FOLDER_OF_PATH = "makes a folder, by pathlib"
    FETCH = "downloads a file unless it is there"
    ONCE = "has to be done once, such as a command of the shell"
    RUN = "tells the run of a tracker"
    READ_RUN = "reads from the run of a tracker, which rank 0 alone has"


# Write, move or delete files; what they need is made by every worker.
WRITES = frozenset(
    {
        "tensorflow.saved_model.save",
        "tensorflow.io.write_file",
        "tensorflow.io.write_graph",
        "tensorflow.io.gfile.copy",
        "tensorflow.io.gfile.remove",
        "tensorflow.io.gfile.rename",
        "tensorflow.io.gfile.rmtree",
        "tensorflow.summary.trace_on",
        "tensorflow.summary.trace_export",
        "tensorflow.summary.trace_off",
        "tensorflow.profiler.experimental.start",
        "tensorflow.profiler.experimental.stop",
        "keras.models.save_model",
        "keras.saving.save_model",
        "keras.utils.save_img",
        "keras.preprocessing.image.save_img",
        "keras.utils.plot_model",
        "numpy.save",
        "numpy.savez",
        "numpy.savez_compressed",
        "numpy.savetxt",
        "shutil.rmtree",
        "shutil.copy",
        "shutil.copy2",
        "shutil.copyfile",
        "shutil.copytree",
        "shutil.move",
        "shutil.make_archive",
        "os.remove",
        "os.unlink",
        "os.rename",
        "os.replace",
        "os.rmdir",
        "os.removedirs",
        "os.symlink",
        "cv2.imwrite",
        "imageio.imwrite",
        "imageio.imsave",
        "imageio.mimwrite",
        "imageio.mimsave",
        "imageio.v2.imwrite",
        "imageio.v2.mimsave",
        "imageio.v3.imwrite",
        "skimage.io.imsave",
        "scipy.io.savemat",
        "scipy.io.wavfile.write",
        "soundfile.write",
        "joblib.dump",
        "pyarrow.parquet.write_table",
        "yaml.dump_all",
        "matplotlib.pyplot.imsave",
        "matplotlib.image.imsave",
    }
)
SHOWS = frozenset({"matplotlib.pyplot.savefig", "matplotlib.pyplot.show", "matplotlib.pyplot.pause"})
BY_THEMSELVES = ("cv2.", "imageio.", "soundfile.", "pyarrow.", "matplotlib.pyplot.show", "matplotlib.pyplot.pause")
"""What writes, or shows, by code of its own, which the runtime does not see."""
NATIVE_TABLES = frozenset({"to_hdf", "to_parquet", "to_feather"})
"""Methods of tables that do."""
_LEVELS = ("debug", "info", "warning", "warn", "error", "exception", "critical", "fatal", "log", "vlog")
PRINTS = frozenset(
    {
        "builtins.print",
        "tensorflow.print",
        "pprint.pprint",
        "sys.stdout.write",
        "sys.stdout.flush",
        "sys.stderr.write",
        "rich.print",
        "IPython.display.display",
        "IPython.display.clear_output",
        "tqdm.tqdm.write",
        "tqdm.auto.tqdm.write",
        *(f"{module}.{level}" for module in ("logging", "absl.logging") for level in _LEVELS),
    }
)
# Open a file: the position of the mode, and the mode without one. The null device can stand for the file.
OPENS = {
    "builtins.open": (1, "r"),
    "io.open": (1, "r"),
    "codecs.open": (1, "r"),
    "gzip.open": (1, "rb"),
    "bz2.open": (1, "rb"),
    "lzma.open": (1, "rb"),
    "tensorflow.io.gfile.GFile": (1, "r"),
    "tensorflow.io.TFRecordWriter": (None, "w"),
}
# The same, for files of which the null device cannot take the place.
OPENS_FORMAT = {
    "h5py.File": (1, "r"),
    "zipfile.ZipFile": (1, "r"),
    "tarfile.open": (1, "r"),
    "imageio.get_writer": (None, "w"),
    "imageio.v2.get_writer": (None, "w"),
    "cv2.VideoWriter": (None, "w"),
    "pandas.ExcelWriter": (None, "w"),
    "matplotlib.backends.backend_pdf.PdfPages": (None, "w"),
}
# Log files: where their path is.
LOG_FILES = {
    "logging.FileHandler": ("filename", 0),
    "logging.handlers.RotatingFileHandler": ("filename", 0),
    "logging.handlers.TimedRotatingFileHandler": ("filename", 0),
    "logging.basicConfig": ("filename", None),
}
PATH_STEPS = frozenset({"joinpath", "with_suffix", "with_name", "with_stem", "resolve", "absolute", "expanduser"})
# Leave a file behind and find it the next time: rank 0 comes first.
FETCHES = frozenset(
    {
        "keras.utils.get_file",
        *(
            f"keras.datasets.{name}.load_data"
            for name in ("mnist", "fashion_mnist", "cifar10", "cifar100", "imdb", "reuters", "boston_housing")
        ),
        "keras.datasets.california_housing.load_data",
        "keras.datasets.imdb.get_word_index",
        "keras.datasets.reuters.get_word_index",
        "sklearn.datasets.fetch_openml",
        "sklearn.datasets.fetch_california_housing",
        "sklearn.datasets.fetch_20newsgroups",
        "sklearn.datasets.fetch_covtype",
        "sklearn.datasets.fetch_olivetti_faces",
        "tensorflow_datasets.load",
    }
)
# Have to be done once: they do not look for what they leave behind, as of a shell's commands is not known;
# and a folder that each worker makes for itself would not be that of rank 0, which writes into it.
ONCE = frozenset(
    {
        "urllib.request.urlretrieve",
        "wget.download",
        "gdown.download",
        "shutil.unpack_archive",
        "tempfile.mkdtemp",
        "tempfile.mktemp",
        "os.system",
        *(
            f"subprocess.{name}"
            for name in ("run", "call", "check_call", "check_output", "getoutput", "getstatusoutput")
        ),
    }
)
# Of a path.
FOLDERS = frozenset({EffectKind.FOLDER, EffectKind.FOLDER_OF_PATH})
READS = frozenset({"restore", "read", "load_weights", "restore_or_initialize"})
BUFFERS = frozenset({"io.BytesIO", "io.StringIO", "pyarrow.BufferOutputStream"})

ALL_OPENS = {**OPENS, **OPENS_FORMAT}
FUNCTIONS: dict[str, EffectKind] = {
    **dict.fromkeys(PRINTS, EffectKind.PRINT),
    **dict.fromkeys(SHOWS, EffectKind.SHOW),
    **dict.fromkeys(WRITES, EffectKind.SAVE),
    **dict.fromkeys(OPENS, EffectKind.OPEN),
    **dict.fromkeys(OPENS_FORMAT, EffectKind.OPEN_FORMAT),
    **dict.fromkeys(LOG_FILES, EffectKind.LOG_FILE),
    **dict.fromkeys(("os.makedirs", "os.mkdir"), EffectKind.FOLDER),
    **dict.fromkeys(FETCHES, EffectKind.FETCH),
    **dict.fromkeys(ONCE, EffectKind.ONCE),
}
# Methods, by the beginning of the name of the function that made their object.
METHODS: dict[str, tuple[frozenset[str], EffectKind]] = {
    "PIL.Image.": (frozenset({"save"}), EffectKind.SAVE),
    "pandas.": (
        frozenset({"to_csv", "to_pickle", "to_json", "to_excel", "to_hdf", "to_parquet", "to_feather"}),
        EffectKind.SAVE,
    ),
    "numpy.": (frozenset({"tofile", "dump"}), EffectKind.SAVE),
    "tensorflow.data.": (frozenset({"save"}), EffectKind.SAVE),
    "keras.preprocessing.image.array_to_img": (frozenset({"save"}), EffectKind.SAVE),
    "keras.utils.array_to_img": (frozenset({"save"}), EffectKind.SAVE),
    "wave.open": (frozenset({"writeframes", "setparams"}), EffectKind.SAVE),
    "matplotlib.animation.": (frozenset({"save"}), EffectKind.SAVE),
    **dict.fromkeys(
        ("matplotlib.pyplot.figure", "matplotlib.pyplot.subplots", "matplotlib.pyplot.gcf"),
        (frozenset({"savefig"}), EffectKind.SHOW),
    ),
    **dict.fromkeys(("logging.getLogger", "tensorflow.get_logger"), (frozenset(_LEVELS), EffectKind.PRINT)),
    "tensorflow_datasets.builder": (frozenset({"download_and_prepare"}), EffectKind.FETCH),
    **dict.fromkeys(("zipfile.ZipFile", "tarfile."), (frozenset({"extractall", "extract"}), EffectKind.ONCE)),
}
PATH_METHODS: dict[str, EffectKind] = {
    "mkdir": EffectKind.FOLDER_OF_PATH,
    "open": EffectKind.OPEN,
    **dict.fromkeys(("write_text", "write_bytes", "unlink", "rmdir", "rename", "replace"), EffectKind.SAVE),
    **dict.fromkeys(("touch", "symlink_to", "hardlink_to"), EffectKind.SAVE),
}

# Trackers of experiments.
TRACKERS = frozenset({"wandb", "mlflow"})
# What makes, tells or ends a run, and what the run is told of: of no value to the other ranks.
TELLS_RUN = re.compile(
    r"wandb\.(init|log|finish|join|save|watch|unwatch|alert|define_metric|log_artifact|log_code|log_model|login|setup"
    r"|termlog|termwarn|termerror|mark_preempting|require|Settings|Artifact|Image|Table|Histogram|Video|Audio|Html"
    r"|Plotly|Object3D|plot\.\w+|tensorboard\.patch|(integration\.)?keras\.\w+)"
    r"|mlflow\.(start_run|end_run|set_(tracking_uri|registry_uri|experiment|experiment_tags?|tags?)|delete_tag|log_\w+"
    r"|autolog|(enable|disable)_system_metrics_logging|set_system_metrics_\w+|models\.infer_signature|data\.from_\w+"
    r"|(tensorflow|keras)\.(autolog|log_model|save_model|M[Ll]flow(ModelCheckpoint)?Callback))"
)
# The same of the present run by a name of the module, under which the other ranks have none.
TELLS_PRESENT_RUN = re.compile(
    r"wandb\.(config\.(update|setdefaults?)|(run\.)?summary\.update|run\.(config\.update|log|log_artifact|log_code"
    r"|finish|alert|save|define_metric|mark_preempting))"
)
