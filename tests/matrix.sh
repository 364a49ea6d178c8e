#!/usr/bin/env bash
# The suite on other supported TensorFlow and Python versions: `make matrix`, or `CELLS="py3.11-tf2.15" make matrix`.
# A cell is pyX.Y-tfA.B[-tfkeras]; `full` cells run the tests that need TensorFlow ($TESTS), the others import and train on two processes.
set -uo pipefail
cd "$(dirname "$0")/.."
CELLS=${CELLS:-"py3.11-tf2.15 py3.10-tf2.15 py3.11-tf2.18 py3.10-tf2.18 py3.12-tf2.18 py3.10-tf2.21 py3.12-tf2.21 py3.13-tf2.21 py3.11-tf2.21-tfkeras"}
FULL=${FULL:-"py3.11-tf2.15 py3.11-tf2.18 py3.11-tf2.21-tfkeras"}
TESTS=${TESTS:-"tests/single tests/parallel tests/calls --sample"}
export TF_CPP_MIN_LOG_LEVEL=2
failed=()

interpreter() { # of version $1: from PATH, else from pyenv
    command -v "python$1" 2>/dev/null && "python$1" -c 'pass' 2>/dev/null && return
    ls -d "${PYENV_ROOT:-$HOME/.pyenv}"/versions/"$1".*/bin/python 2>/dev/null | tail -n 1
}

for cell in $CELLS; do
    IFS=- read -r py tf flavour <<<"$cell"
    python=$(interpreter "${py#py}" | tail -n 1)
    venv=.matrix/$cell
    echo "== $cell"
    if [ -z "$python" ]; then
        echo "   no Python ${py#py} on this machine: not run"
        failed+=("$cell (no interpreter)")
        continue
    fi
    if [ ! -e "$venv/.installed" ]; then
        rm -rf "$venv" && "$python" -m venv "$venv" &&
            "$venv/bin/python" -m pip install --quiet --disable-pip-version-check "tensorflow-cpu==${tf#tf}.*" \
                ${flavour:+"tf-keras==${tf#tf}.*"} 'pytest<9.2' pytest-timeout pytest-xdist matplotlib scipy cloudpickle -e . && touch "$venv/.installed"
    fi
    [ -n "${flavour:-}" ] && export TF_USE_LEGACY_KERAS=1
    case " $FULL " in
        *" $cell "*) "$venv/bin/python" -m pytest -q -n 2 --dist loadgroup $TESTS ;;
        *) "$venv/bin/python" -m pytest -q tests/parallel -k smoke ;;
    esac || failed+=("$cell")
    unset TF_USE_LEGACY_KERAS
done

if [ ${#failed[@]} -gt 0 ]; then
    printf 'failed: %s\n' "${failed[@]}" >&2
    exit 1
fi
