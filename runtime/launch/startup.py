"""What TensorFlow's C++ code says whenever it starts, told from what a script says by its exact form.

Of the information lines (I) of TensorFlow's and XLA's own files all are recognised, if the file is surely theirs, else
those that are known; of their warnings and errors only those that every start makes on a machine without a GPU, or with
several copies of a CUDA library linked in.
"""

import re

_TREES = rb"(?:external/(?:local_xla|local_tsl|xla|tsl|org_tensorflow)/)?(?:tensorflow|xla|tsl)/[\w/]+\.(?:cc|h|cu)"
# absl's log names a file without its folder: these names are no script's.
_FILES = (
    rb"(?:cpu_allocator_impl|cpu_feature_guard|cuda_(?:diagnostics|dnn|executor)|cudart_stub|dump_mlir_util"
    rb"|gemm_algorithm_picker|local_rendezvous|mlir_graph_optimization_pass|se_gpu_pjrt_client|subprocess_compilation"
    rb"|tfrt_\w+)\.(?:cc|h)"
)
_OF_KERNELS = rb"(?:executor|local_rendezvous|op_kernel)\.cc"
_DATED = re.compile(
    rb"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{6}: (?P<level>[IWEF]) (?P<file>%b):\d+\] (?P<said>.*)" % _TREES, re.DOTALL
)
_ABSL = re.compile(
    rb"(?P<level>[IWEF])\d{4} \d\d:\d\d:\d{1,10}\.\d{6} +\d+ (?P<file>\w+\.(?:cc|h|cu)):\d+\] (?P<said>.*)", re.DOTALL
)
_FOR_INFORMATION = re.compile(
    rb"oneDNN custom operations are on\. "
    rb"|This TensorFlow binary is optimized "
    rb"|Could not find cuda drivers on your machine, GPU will not be used\."
    rb"|Created device /job:"
    rb"|XLA service 0x[0-9a-f]+ initialized for platform "
    rb"|  StreamExecutor device \(\d+\): "
    rb"|Loaded cuDNN version "
    rb"|Compiled cluster using XLA!"
    rb"|successful NUMA node read from SysFS had negative value "
    rb"|Memory patch applied: M_TRIM_THRESHOLD="
    rb"|Started server with target: grpc://"
    rb"|Filling up shuffle buffer |Shuffle buffer filled\."
)
_AT_EVERY_START = re.compile(
    rb"Unable to register cu(?:FFT|DNN|BLAS) factory: "
    rb"|computation placer already registered\. Please check linkage and avoid linking the same target more than once\."
    rb"|failed call to cuInit: "
    rb"|TF-TRT Warning: Could not find TensorRT"
    rb"|Could not load dynamic library '[^']+'; dlerror: "
    rb"|Ignore above cudart dlerror if you do not have a GPU set up on your machine\."
    rb"|Cannot dlopen some (?:TensorRT|GPU) libraries\. "
)
_BESIDE = re.compile(
    rb"WARNING: All log messages before absl::InitializeLog\(\) is called are written to STDERR"
    rb"|To enable the following instructions: [A-Z0-9_. ]+, in other operations, rebuild TensorFlow with the "
    rb"appropriate compiler flags\."
    rb"|Skipping registering GPU devices\.\.\."
)


def is_startup(line: bytes) -> bool:
    """Whether a line of stderr, without its end, is one that TensorFlow writes at its start or for information."""
    if _BESIDE.fullmatch(line):
        return True
    logged = _DATED.fullmatch(line) or _ABSL.fullmatch(line)
    if logged is None or logged["level"] == b"F":
        return False
    if logged["level"] != b"I":
        return _AT_EVERY_START.match(logged["said"]) is not None
    return logged.re is _DATED or bool(re.fullmatch(_FILES, logged["file"]) or _FOR_INFORMATION.match(logged["said"]))


def complaint(line: bytes) -> bytes | None:
    """What a warning or error of TensorFlow's C++ code says, as a kernel's that fails; None for any other line."""
    logged = _DATED.fullmatch(line) or _ABSL.fullmatch(line)
    if logged is None or logged["level"] not in (b"W", b"E"):
        return None
    return logged["said"] if logged.re is _DATED or re.fullmatch(_OF_KERNELS, logged["file"]) else None
