"""What TensorFlow's C++ code says whenever it starts, told from what a script says by its exact form.

Of the information lines (I) of TensorFlow's and XLA's own files all are recognised; of their warnings and errors only
those that every start makes on a machine without a GPU, or with several copies of a CUDA library linked in.
"""

import re

_TREES = rb"(?:external/(?:local_xla|local_tsl|xla|tsl|org_tensorflow)/)?(?:tensorflow|xla|tsl)/[\w/]+\.(?:cc|h|cu)"
# absl's log names a file without its folder.
_FILES = (
    rb"(?:asm_compiler|auto_mixed_precision|autotune_\w+|bfc_allocator|buffer_comparator|computation_placer"
    rb"|cpu_allocator_impl|cpu_compiler|cpu_feature_guard|cuda_\w+|cudart_stub|device_compiler|direct_session"
    rb"|dot_merger|dso_loader|executable_run_options|executor|gemm_algorithm_picker|gpu_\w+|graph_constructor"
    rb"|grappler_\w+|lift_as_host_call\w*|local_rendezvous|loader|meta_optimizer|mlir_graph_optimization_pass"
    rb"|node_file_writer|op_kernel|port|profiler_\w+|py_utils|ragged_tensor_\w+|remapper|remote_tensor_handle_data"
    rb"|root_dataset|rocm_\w+|se_gpu_pjrt_client|service|shuffle_dataset_op|subprocess_compilation|tfrt_\w+"
    rb"|tpu_\w+|xla_\w+)\.(?:cc|h)"
)
_DATED = rb"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{6}: (?P<level>[IWEF]) (?:%b|%b):\d+\] (?P<said>.*)"
_ABSL = rb"(?P<level>[IWEF])\d{4} \d\d:\d\d:\d{1,10}\.\d{6} +\d+ (?:%b|%b):\d+\] (?P<said>.*)"
_LOGGED = [re.compile(form % (_TREES, _FILES), re.DOTALL) for form in (_DATED, _ABSL)]
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
    logged = _logged(line)
    if logged is None:
        return False
    return logged["level"] == b"I" or (logged["level"] != b"F" and bool(_AT_EVERY_START.match(logged["said"])))


def complaint(line: bytes) -> bytes | None:
    """What a warning or error of TensorFlow's C++ code says; None for any other line."""
    logged = _logged(line)
    return logged["said"] if logged is not None and logged["level"] in (b"W", b"E") else None


def _logged(line: bytes) -> "re.Match[bytes] | None":
    return _LOGGED[0].fullmatch(line) or _LOGGED[1].fullmatch(line)
