"""`python -m tfdp.migrate` is the `tfdp` command, for where its folder is not on the PATH."""

from .cli import main

main(prog_name="tfdp")
