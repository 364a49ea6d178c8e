"""What functions and methods of libraries change, besides giving a value."""

from __future__ import annotations

import re

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

ONLY_COMPUTES = re.compile(
    r"builtins\.(abs|float|format|int|len|max|min|repr|round|str|sum)$|math\.|time\.(time|strftime)$"
    r"|os\.path\.(abspath|basename|dirname|expanduser|join|realpath|splitext)$|pathlib\.Path$"
)
"""Functions that only compute. Any other may draw or count, which all workers have to do."""

READS_RECORDS = re.compile(
    r"keras\.datasets\.\w+\.load_data$|keras\.utils\.\w+_from_directory$|tensorflow_datasets\.|numpy\.(load|genfromtxt|from)\w*$"
    r"|pandas\.read_\w+$|sklearn\.datasets\.|scipy\.io\.loadmat$|h5py\.File$|pickle\.load$|joblib\.load$|tensorflow\.data\."
)
"""Give examples: read from files, or made up."""
