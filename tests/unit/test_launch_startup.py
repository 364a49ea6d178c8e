"""Which lines are TensorFlow's at its start. absl's log gives no folder, so a script's own files may be named alike."""

import pytest

from tfdp.runtime.launch import startup

AT = b"1125 02:08:42.123456   12345 "


@pytest.mark.parametrize(
    "line",
    [
        b"I%bloader.cc:33] my C++ loader: 12 shards skipped",
        b"I%bservice.cc:7] my service on port 80",
        b"I%bexecutor.cc:7] 3 jobs",
        b"I%bgpu_queue.cc:7] XLA is off",
        b"W%bport.cc:7] This TensorFlow binary is old",
        b"E%bcuda_fft.cc:7] plan failed",
        b"F%bcpu_feature_guard.cc:7] no AVX",
    ],
)
def test_a_line_that_may_be_the_scripts_is_shown(line):
    assert not startup.is_startup(line % AT)


@pytest.mark.parametrize(
    "line",
    [
        b"I%bport.cc:153] oneDNN custom operations are on. You may see slightly different",
        b"I%bcpu_feature_guard.cc:227] anything",
        b"I%bgenerator_dataset_op.cc:213] Memory patch applied: M_TRIM_THRESHOLD=128 kb was set.",
        b"I%bgpu_device.cc:2020] Created device /job:localhost/replica:0/task:0/device:GPU:0 with 78000 MB memory",
        b"I%bservice.cc:152] XLA service 0x7f8 initialized for platform CUDA (this does not",
        b"I%bservice.cc:160]   StreamExecutor device (0): NVIDIA H100, Compute Capability 9.0",
        b"I%bdevice_compiler.h:188] Compiled cluster using XLA!  This line is logged at most once",
        b"I%bgrpc_server_lib.cc:467] Started server with target: grpc://10.0.0.1:32619",
        b"E%bcuda_fft.cc:467] Unable to register cuFFT factory: Attempting to",
        b"W%bcomputation_placer.cc:177] computation placer already registered. Please check linkage and avoid linking "
        b"the same target more than once.",
    ],
)
def test_a_line_that_is_certainly_tensorflows_is_not(line):
    assert startup.is_startup(line % AT)


def test_an_error_of_a_kernel_is_told_from_the_scripts_own():
    assert startup.complaint(b"W%bop_kernel.cc:1845] UNKNOWN: JobAborted" % AT) == b"UNKNOWN: JobAborted"
    assert startup.complaint(b"W%bloader.cc:1845] UNKNOWN: JobAborted" % AT) is None
    assert startup.complaint(b"I%bop_kernel.cc:1845] UNKNOWN: JobAborted" % AT) is None
