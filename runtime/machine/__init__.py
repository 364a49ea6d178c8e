"""The machine that the script runs on: files and folders, commands, clocks. What it asks of it, and does to it, rank 0
does, and all workers go on with its answer."""

from .functions import share_gfile, share_machine

__all__ = ["share_gfile", "share_machine"]
