#!/usr/bin/env bash
# The peer: Horovod 0.28.1 on Gloo beside TensorFlow 2.15.1, in an environment of its own, built in about four minutes.
# Says in one line why there is none; the tests of tests/peers are then skipped.
set -uo pipefail
cd "$(dirname "$0")/../.."
PEER=${TFDP_PEER:-.peers/horovod}
LOG=$PEER.log

none() {
    echo "no Horovod here, so its tests are skipped: $1"
    exit 0
}

interpreter() {
    command -v python3.11 2>/dev/null && python3.11 -c 'pass' 2>/dev/null && return
    ls -d "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.11.*/bin/python 2>/dev/null | tail -n 1
}

[ -e "$PEER/.installed" ] && exit 0
python=$(interpreter | tail -n 1)
[ -n "$python" ] || none "it needs Python 3.11, which is not on this machine"
command -v g++ >/dev/null && command -v make >/dev/null || none "it is compiled, and there is no g++ and make"
echo "building Horovod 0.28.1 in $PEER, once; what the compiler says is in $LOG"
mkdir -p "$(dirname "$PEER")" && rm -rf "$PEER" && "$python" -m venv "$PEER" || none "no environment in $PEER"
# With newer versions of these two its build fails; the versions of TensorFlow after 2.15 have no Horovod.
"$PEER/bin/python" -m pip install --quiet --disable-pip-version-check setuptools==69.5.1 wheel cmake==3.27.9 packaging \
    cloudpickle psutil pyyaml cffi tensorflow-cpu==2.15.1 pytest >"$LOG" 2>&1 || none "pip cannot install what it needs ($LOG)"
HOROVOD_WITH_GLOO=1 HOROVOD_WITHOUT_MPI=1 HOROVOD_WITHOUT_PYTORCH=1 HOROVOD_WITHOUT_MXNET=1 HOROVOD_WITH_TENSORFLOW=1 \
    PATH="$PWD/$PEER/bin:$PATH" timeout 1200 "$PEER/bin/python" -m pip install --disable-pip-version-check \
    --no-build-isolation horovod==0.28.1 >>"$LOG" 2>&1 || none "it does not compile ($LOG)"
touch "$PEER/.installed"
