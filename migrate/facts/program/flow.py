"""Which bindings of a name can reach one use of it."""

from __future__ import annotations

import libcst as cst

from .index import Definition, Index


def reaching(index: Index, use: cst.Name) -> list[Definition]:
    """Bindings that may give the name its value at `use`.

    One where the code is straight, several where it branches or loops; none of `path` in `os.path`.
    """
    if use not in index.reaching:
        index.reaching[use] = _reaching(index, use)
    return index.reaching[use]


def before(index: Index, definition: Definition) -> list[Definition]:
    """Bindings that may give a name the value that it has before one of its bindings is made."""
    return reaching(index, index.probe(definition.name, definition.statement))


def bound_once(index: Index, use: cst.CSTNode) -> Definition | None:
    """The binding that gives a name its value, where there is but one."""
    found = reaching(index, use) if isinstance(use, cst.Name) else []
    return found[0] if len(found) == 1 else None


def uses(index: Index, definition: Definition) -> list[cst.Name]:
    """The names that a binding may give their value."""
    return [name for name in index.names[definition.name] if definition in reaching(index, name)]


def assigned(index: Index, node: cst.CSTNode) -> cst.BaseExpression | None:
    """The value of a name that is assigned in one place; None for any other node."""
    found = reaching(index, node) if isinstance(node, cst.Name) else []
    values = [d.value for d in found if d.kind == "assign" and not d.path and isinstance(d.value, cst.BaseExpression)]
    return values[0] if len(values) == len(found) == 1 else None


def _reaching(index: Index, use: cst.Name) -> list[Definition]:
    if index.is_label(use):
        return []
    scope, found = index.lookup(use.value, index.scope_of(use))
    comprehensions = [d for d in found if d.kind == "comp" and _comprehension_holds(index, d, use)]
    if comprehensions:
        return comprehensions[-1:]
    found = [d for d in found if d.kind != "comp"]
    if len(found) <= 1 or any(_declared_global(index, d) for d in found):
        return found
    if scope is not index.scope_of(use):
        return found if _runs_between(index, use, found) else _last_at_top(index, found)
    return _Walk(index, use.value, found).back_from(use) or found


def _declared_global(index: Index, definition: Definition) -> bool:
    """Whether another function binds the name by `global`: then it can happen at any time."""
    assigned = definition.kind in {"assign", "for", "with", "other"}
    return assigned and index.scope_of(definition.statement) is not definition.scope


def _runs_between(index: Index, use: cst.Name, found: list[Definition]) -> bool:
    """Whether the function that holds the use is called, itself or through others, before the last binding."""
    function = index.enclosing_function(use)
    reached = {function.name.value} if function is not None else set()
    grown = True
    while grown:  # names of functions from which the reading one is called
        callers = {
            n.name.value for name in reached for use in index.names[name] if (n := index.enclosing_function(use))
        }
        grown = not callers <= reached
        reached |= callers
    order: dict[cst.CSTNode, int] = {node: place for place, node in enumerate(index.root(use).body)}
    last = order.get(_top(index, found[-1].statement), -1)
    uses = [use for name in reached for use in index.names[name] if index.enclosing_function(use) is None]
    return any(order.get(_top(index, use), last) < last for use in uses if _is_called(index, use))


def _is_called(index: Index, use: cst.Name) -> bool:
    return isinstance(call := index.parents[use], cst.Call) and call.func is use


def _top(index: Index, node: cst.CSTNode) -> cst.CSTNode:
    """The statement of the module that holds the node."""
    chain = [node, *index.ancestors(node)]
    return chain[-2] if len(chain) > 1 else node


def _last_at_top(index: Index, found: list[Definition]) -> list[Definition]:
    """Seen from another scope a name has its final value, which is certain where the last binding is unconditional."""
    last = found[-1]
    holder = index.parents.get(last.statement)
    if isinstance(holder, cst.SimpleStatementLine):
        holder = index.parents.get(holder)
    owner = index.parents.get(holder) if isinstance(holder, cst.IndentedBlock) else holder
    return [last] if owner is last.scope else found


class _Walk:
    def __init__(self, index: Index, name: str, found: list[Definition]) -> None:
        self.index, self.name, self.found = index, name, found

    def back_from(self, use: cst.Name) -> list[Definition]:
        """Walk backwards through the bodies that hold the use, until a binding is certain."""
        result: list[Definition] = []
        node: cst.CSTNode = self.index.statement_of(use)
        if isinstance(node, cst.For) and self._within(use, node.target):
            return [d for d in self.found if d.statement is node]
        if isinstance(node, cst.While):  # its test is read again after each run of its body
            result += [d for d in self.found if self._within(d.statement, node.body)]
        while not isinstance(node, cst.Module):
            parent = self.index.parents[node]
            for earlier in reversed(_before(parent, node)):
                inside = [d for d in self.found if self._within(d.statement, earlier)]
                result += [d for d in inside if d not in result]
                if inside and self._certain(earlier, inside):
                    return (
                        result if isinstance(earlier, cst.If) else [inside[-1], *(d for d in result if d not in inside)]
                    )
            result += [d for d in self._tried(parent, node) if d not in result]
            header = self._header(parent, node)
            result += [d for d in header if d not in result]
            if header and not isinstance(parent, cst.While):
                return result
            if isinstance(parent, cst.For | cst.While) and node is parent.body:
                result += [d for d in self.found if d not in result and self._within(d.statement, parent.body)]
            if isinstance(parent, cst.FunctionDef | cst.Lambda):
                return result
            node = parent
        return result

    def _binds(self, node: cst.CSTNode | None) -> bool:
        """Whether a run of a statement or body binds the name, or does not come to its end."""
        if isinstance(node, cst.IndentedBlock | cst.SimpleStatementSuite | cst.SimpleStatementLine | cst.Else):
            parts = [node.body] if isinstance(node, cst.Else) else node.body
            return any(map(self._binds, parts))
        if isinstance(node, cst.Return | cst.Break | cst.Continue | cst.Raise):
            return True
        if any(d.statement is node for d in self.found):
            return True
        if isinstance(node, cst.If):
            return self._binds(node.body) and self._binds(node.orelse)
        if isinstance(node, cst.Try):
            tried = self._binds(node.body) or self._binds(node.orelse)
            handled = all(self._binds(handler.body) for handler in node.handlers)
            return (tried and handled) or (node.finalbody is not None and self._binds(node.finalbody.body))
        return isinstance(node, cst.With | cst.For | cst.While) and self._binds(node.body)

    def _within(self, node: cst.CSTNode, holder: cst.CSTNode) -> bool:
        return within(self.index, node, holder)

    def _tried(self, parent: cst.CSTNode, node: cst.CSTNode) -> list[Definition]:
        """Bindings in the other parts of a `try` that may have run before a handler, or what it does at last."""
        if not isinstance(parent, cst.Try) or node is parent.body or node is parent.orelse:
            return []
        others = [parent.body, *((*parent.handlers, parent.orelse) if node is parent.finalbody else ())]
        return [d for d in self.found if any(part is not None and self._within(d.statement, part) for part in others)]

    def _header(self, parent: cst.CSTNode, node: cst.CSTNode) -> list[Definition]:
        """Bindings that the owner of a body makes before it: loop targets, `with … as`, parameters."""
        if isinstance(parent, cst.For) and node is not parent.body:
            return []
        if isinstance(parent, cst.For | cst.With | cst.FunctionDef | cst.Lambda | cst.ExceptHandler):
            kinds = {"for", "with", "param", "other"}
            return [d for d in self.found if d.statement is parent and d.kind in kinds]
        return []

    def _certain(self, statement: cst.CSTNode, inside: list[Definition]) -> bool:
        if isinstance(statement, cst.If):
            return isinstance(statement.orelse, cst.Else) and all(
                any(self._within(d.statement, branch) for d in inside) for branch in (statement.body, statement.orelse)
            )
        between = [inside[-1].statement]
        for parent in self.index.ancestors(inside[-1].statement):
            if between[-1] is statement:
                break
            between.append(parent)
        return not any(
            isinstance(node, cst.If | cst.For | cst.While | cst.Try | cst.TryStar | cst.Match) for node in between
        )


def within(index: Index, node: cst.CSTNode, holder: cst.CSTNode) -> bool:
    """Whether `holder` is the node or one of its parents."""
    return node is holder or any(parent is holder for parent in index.ancestors(node))


def _comprehension_holds(index: Index, definition: Definition, use: cst.Name) -> bool:
    comp = next(n for n in index.ancestors(definition.value or use) if isinstance(n, cst.BaseComp))
    return within(index, use, comp) and not within(index, use, definition.value or comp)


def _before(parent: cst.CSTNode, node: cst.CSTNode) -> list[cst.CSTNode]:
    if isinstance(parent, cst.Try) and node is parent.orelse:
        return [parent.body]
    body = getattr(parent, "body", None)
    if not isinstance(body, list | tuple) or node not in body:
        return []
    return list(body[: list(body).index(node)])
