"""Build hook: makes the links by which an editable install sees `migrate/`, `rules/`, `runtime/` as `tfdp.*`."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PARTS = ("migrate", "rules", "runtime")


class EditableLinks(BuildHookInterface):  # type: ignore[type-arg]
    """Fills `.editable/tfdp`, which `dev-mode-dirs` puts on the path.

    The links are committed, so that editors and type checkers find `tfdp` in a fresh clone. They are made again all the
    same: archives and checkouts without symbolic links turn them into text files, and the install would then succeed
    with a package that cannot be imported.
    """

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002 - hatchling's signature
        if version != "editable":
            return
        package = Path(self.root) / ".editable" / "tfdp"
        if package.is_dir() and not package.is_symlink():
            shutil.rmtree(package)
        package.mkdir(parents=True)
        for part in PARTS:
            (package / part).symlink_to(Path("..", "..", part), target_is_directory=True)
