"""The contract between rooms: whoever is outside a room imports its interface, never a module behind it."""

from __future__ import annotations

from grimp import ImportGraph
from importlinter import Contract, ContractCheck, fields, output


class InterfaceContract(Contract):
    """Each sub-package of the containers is a room; only its own modules import what lies below its `__init__`."""

    containers = fields.ListField(subfield=fields.StringField())
    open_rooms = fields.ListField(subfield=fields.StringField(), required=False, default=[])

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:  # noqa: ARG002 - import-linter's signature
        rooms = [child for holder in self.containers for child in graph.find_children(holder)]
        rooms = [room for room in rooms if graph.find_children(room) and room not in self.open_rooms]
        broken = [
            (importer, inner, room)
            for room in rooms
            for inner in graph.find_descendants(room)
            for importer in graph.find_modules_that_directly_import(inner)
            if importer != room and not importer.startswith(f"{room}.")
        ]
        return ContractCheck(kept=not broken, metadata={"broken": sorted(broken)})

    def render_broken_contract(self, check: ContractCheck) -> None:
        for importer, inner, room in check.metadata["broken"]:
            output.print_error(f"{importer} imports {inner}; it may import {room} alone", bold=False)
