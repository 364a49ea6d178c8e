"""Builders of new syntax around a user's own nodes, which keep their text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import libcst as cst

# What an outcome does to an expression, or to the value of an argument, of which None says that it is left out.
Change = Callable[[cst.BaseExpression | None], cst.BaseExpression]


def call(function: str, node: cst.BaseExpression, **keywords: str) -> cst.Call:
    """`function(node, keyword=source, …)`.

    A parenthesis that only held the node's lines together becomes the call's.
    """
    before: cst.BaseParenthesizableWhitespace = cst.SimpleWhitespace("")
    after: cst.BaseParenthesizableWhitespace = cst.SimpleWhitespace("")
    if len(node.lpar) == 1 and not isinstance(node, cst.Tuple | cst.GeneratorExp | cst.NamedExpr | cst.Yield):
        before, after = node.lpar[0].whitespace_after, node.rpar[0].whitespace_before
        node = node.with_changes(lpar=(), rpar=())
    args = [cst.Arg(node), *(keyword(k, cst.parse_expression(v)) for k, v in keywords.items())]
    args[-1] = args[-1].with_changes(whitespace_after_arg=after)
    return cst.Call(cst.parse_expression(function), args, whitespace_before_args=before)


def times(node: cst.BaseExpression, factor: str) -> cst.BinaryOperation:
    """`node * factor`, with a parenthesis around what binds more loosely."""
    tight = cst.Name | cst.Attribute | cst.Call | cst.Subscript | cst.Integer | cst.Float
    if not node.lpar and not isinstance(node, tight):
        node = node.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
    return cst.BinaryOperation(node, cst.Multiply(), cst.parse_expression(factor))


def calling(function: str, **keywords: str) -> Change:
    """Puts `function(…, keyword=source)` around what is there."""

    def change(value: cst.BaseExpression | None) -> cst.BaseExpression:
        assert value is not None
        return call(function, value, **keywords)

    return change


def multiplying(factor: str) -> Change:
    """Multiplies what is there."""

    def change(value: cst.BaseExpression | None) -> cst.BaseExpression:
        assert value is not None
        return times(value, factor)

    return change


def replacing(source: str) -> Change:
    """Puts an expression in its place, whatever is there."""
    return lambda _: cst.parse_expression(source)


def first_argument(function: str, node: cst.BaseExpression) -> cst.Call:
    """`function(f, …)` of the call `f(…)`, on lines of its own where its arguments are."""
    call = cst.ensure_type(node, cst.Call)
    before = call.whitespace_before_args
    space = before if isinstance(before, cst.ParenthesizedWhitespace) else cst.SimpleWhitespace(" ")
    separator = cst.Comma(whitespace_after=space) if call.args else cst.MaybeSentinel.DEFAULT
    return call.with_changes(
        func=cst.parse_expression(function), args=[cst.Arg(call.func, comma=separator), *call.args]
    )


def keyword(name: str, value: cst.BaseExpression) -> cst.Arg:
    """`name=value` as an argument, without spaces around the sign."""
    tight = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
    return cst.Arg(value, keyword=cst.Name(name), equal=tight)


def with_argument(call: cst.Call, index: int | None, arg: cst.Arg) -> cst.Call:
    """The call with its argument at `index` replaced by `arg`'s value, or with `arg` added at the end (before
    `**kwargs`)."""
    args = list(call.args)
    if index is not None:
        args[index] = args[index].with_changes(value=arg.value)
        return call.with_changes(args=args)
    end = next((i for i, a in enumerate(args) if a.star == "**"), len(args))
    trailing = args[-1].comma if args else cst.MaybeSentinel.DEFAULT
    tail = args[-1].whitespace_after_arg if args else cst.SimpleWhitespace("")
    if end == len(args) and args:
        separator = _separator(args)
        args[-1] = args[-1].with_changes(comma=separator, whitespace_after_arg=cst.SimpleWhitespace(""))
        arg = arg.with_changes(comma=trailing, whitespace_after_arg=tail)
    args.insert(end, arg)
    return call.with_changes(args=args)


def with_parameter(parameters: cst.Parameters, name: str, default: str) -> cst.Parameters:
    """The parameters with `name=default` added at the end, before `**kwargs`."""
    tight = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
    added = cst.Param(cst.Name(name), default=cst.parse_expression(default), equal=tight)
    by_keyword = isinstance(parameters.star_arg, cst.Param | cst.ParamStar) or bool(parameters.kwonly_params)
    field = "kwonly_params" if by_keyword else "params"
    present: list[cst.Param] = list(getattr(parameters, field))
    if present and parameters.star_kwarg is None:
        last = present[-1]
        separator = _separator(present)
        added = added.with_changes(comma=last.comma, whitespace_after_param=last.whitespace_after_param)
        present[-1] = last.with_changes(comma=separator, whitespace_after_param=cst.SimpleWhitespace(""))
    elif not present and isinstance(parameters.star_arg, cst.Param):
        star = parameters.star_arg
        star = star.with_changes(comma=cst.Comma(whitespace_after=cst.SimpleWhitespace(" ")))
        parameters = parameters.with_changes(star_arg=star)
    return parameters.with_changes(**{field: [*present, added]})


def _separator(args: Sequence[cst.Arg | cst.Param]) -> cst.Comma:
    """A comma in the call's own style: with a line break where its other arguments have one."""
    if len(args) > 1 and isinstance(args[0].comma, cst.Comma):
        return args[0].comma
    return cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))


def guard(dp: str, comment: str, statements: list[cst.BaseStatement], indent: str | None) -> cst.If:
    """`if dp.rank() == 0:  # comment` around statements; comments and blank lines above the first go above the `if`.

    `indent` is that of the block around it, where it is not the file's own.
    """
    leading = _leading(statements[0])
    statements = [statements[0].with_changes(leading_lines=()), *statements[1:]]
    test = cst.ensure_type(cst.parse_statement(f"if {dp}.rank() == 0:  # tfdp: {comment}\n    pass\n"), cst.If)
    body = cst.ensure_type(test.body, cst.IndentedBlock).with_changes(body=statements, indent=indent)
    header = body.header.with_changes(newline=cst.Newline(value=None))
    return test.with_changes(body=body.with_changes(header=header), leading_lines=leading)


def commented(statement: cst.CSTNodeT, comments: Iterable[str]) -> cst.CSTNodeT:
    """The statement with comment lines right above it, but those that are there already."""
    if isinstance(statement, cst.Module):
        return statement.with_changes(header=_with_comments(statement.header, comments))
    return statement.with_changes(leading_lines=_with_comments(_leading(statement), comments))


def _with_comments(lines_above: Sequence[cst.EmptyLine], comments: Iterable[str]) -> list[cst.EmptyLine]:
    there = {line.comment.value for line in lines_above if line.comment is not None}
    new = [cst.EmptyLine(comment=cst.Comment(c)) for c in dict.fromkeys(comments) if c not in there]
    return [*lines_above, *new]


def below(left: list[cst.EmptyLine], statement: cst.BaseStatement) -> cst.BaseStatement:
    """The statement below the comments and blank lines of others that are gone."""
    if not left or not hasattr(statement, "leading_lines"):
        return statement
    own = _leading(statement)
    if own and own[0].comment is None:  # one blank line is enough
        left = left[: max((i + 1 for i, line in enumerate(left) if line.comment is not None), default=0)]
    return statement.with_changes(leading_lines=[*left, *own])


def lines(code: str) -> list[cst.BaseStatement]:
    """Statements from source text."""
    parsed = cst.parse_module(code)
    body: list[cst.BaseStatement] = list(parsed.body)
    if len(body) == 1 and isinstance(
        body[0], cst.SimpleStatementLine
    ):  # its newline is then that of the module it goes to
        end = body[0].trailing_whitespace.with_changes(newline=cst.Newline(value=None))
        return [body[0].with_changes(trailing_whitespace=end)]
    return body


def _leading(statement: cst.CSTNode) -> tuple[cst.EmptyLine, ...]:
    return tuple(getattr(statement, "leading_lines", ()))
