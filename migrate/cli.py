"""The `tfdp` command. A command imports what it needs when it runs: `tfdp --help` loads no libcst, no TensorFlow."""

from __future__ import annotations

from typing import Any, Literal

import click

from .command_line import PROCESSES, Processes, ScriptCommand, policy, policy_options, same_policy_options
from .console import Console


@click.group(cls=Console, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="tfdp", prog_name="tfdp", message="%(prog)s %(version)s")
def main() -> None:
    """Turn a single-GPU TensorFlow training script into a data-parallel one, run it, and prove it.

    Exit status: 0 nothing to do, or done; 1 something would change, is refused, or is not proved; 2 an error.
    """


@main.command()
@click.argument("paths", metavar="PATH...", nargs=-1, required=True)
@click.option("--diff", "show_diff", is_flag=True, help="Print the change as a diff for git apply; write nothing.")
@click.option("--check", "check_only", is_flag=True, help="Write nothing; exit 1 if something would change.")
@click.option(
    "--format",
    "style",
    type=click.Choice(["text", "markdown", "github"]),
    default="text",
    show_default=True,
    help="How --diff and --check show each file on stdout: markdown lists each change with its reason, github prints "
    "annotations for GitHub Actions; both then the diff of --diff.",
)
@click.option("-o", "--output", metavar="FILE", help="Write the result to FILE (- for stdout); needs a single input.")
@policy_options
@click.option(
    "--target",
    type=click.Choice(["tfdp", "single", "horovod"]),
    default="tfdp",
    show_default=True,
    help="single: only take tfdp itself, or tf.distribute, out of scripts, so that they train on one device. horovod: "
    "write them for Horovod and TensorFlow up to 2.15, or refuse what it has nothing for.",
)
@click.option(
    "--partial",
    is_flag=True,
    help="Also write files in which something is refused, with a TODO(tfdp) comment at each such place.",
)
@click.option("--backup", is_flag=True, help="Keep each original beside its file, as FILE.orig; tfdp verify finds it.")
@click.option("-v", "--verbose", is_flag=True, help="Name unchanged files too, and show tracebacks of internal errors.")
@click.pass_context
def migrate(
    ctx: click.Context,
    /,
    *,
    paths: tuple[str, ...],
    show_diff: bool,
    check_only: bool,
    style: Literal["text", "markdown", "github"],
    output: str | None,
    target: Literal["tfdp", "single", "horovod"],
    partial: bool,
    backup: bool,
    verbose: bool,
    **asked: Any,
) -> None:
    """Rewrite training scripts in place.

    PATH is a file, a directory (all *.py below it, hidden, venv, node_modules and __pycache__ folders left out) or -
    for standard input, whose result goes to standard output. Each file is written as a whole or not at all.
    """
    from . import several_files
    from .one_file import MigrateOptions

    if output is not None and (show_diff or check_only):
        raise click.UsageError("-o writes a file, --diff and --check never do: leave one of them out", ctx)
    if backup and (output is not None or show_diff or check_only or "-" in paths):
        raise click.UsageError("--backup keeps the originals of files that are rewritten in place: leave it out", ctx)
    if style != "text" and not (show_diff or check_only):
        raise click.UsageError(f"--format {style} is for --diff and --check", ctx)
    chosen = policy(ctx, asked)
    if target != "tfdp" and (partial or chosen != type(chosen)()):
        why = "trains on one device" if target == "single" else "shards the input, with a batch for each worker"
        raise click.UsageError(f"--target {target} {why}: there is no batch, rate or road to choose", ctx)
    options = MigrateOptions(chosen, show_diff, check_only, output, partial, style, backup, target)
    try:
        ctx.exit(several_files.migrate_files(paths, options, verbose))
    except several_files.SeveralInputs as error:
        raise click.UsageError(str(error), ctx) from error


@main.command(cls=ScriptCommand, context_settings={"allow_interspersed_args": False}, options_metavar="-np N [OPTIONS]")
@click.option(
    *PROCESSES,
    "np",
    metavar="N",
    type=Processes(1),
    help="How many processes to start; auto: one for each GPU. With -H: of its slots so many, by default all.",
)
@click.option("-H", "--hosts", metavar="A:4,B:4", help="Hosts, each with its number of processes, started over ssh.")
@click.option("--hostfile", metavar="FILE", help="The same from a file, a line a host: `a slots=4` or `a:4`.")
@click.option(
    "-x", "forwarded", metavar="NAME", multiple=True, help="A variable that the other hosts' processes get, too."
)
@click.option(
    "--tf-log",
    type=click.Choice(["quiet", "all"]),
    help="Whether to show what TensorFlow's C++ code says whenever it starts.  [default: quiet]",
)
@click.option(
    "--traceback",
    type=click.Choice(["cause", "full"]),
    default="cause",
    show_default=True,
    help="cause: that of the process that failed first, with libraries' frames folded. full: all of every process.",
)
@click.option("--log-dir", metavar="DIR", help="Keep all output there too, by process and as it is.")
@click.option("-v", "--verbose", is_flag=True, help="Say at the end what sharded calls have divided, and what not.")
@click.option(
    "--nnodes", metavar="K", type=click.IntRange(1), help="Of how many hosts this is one; -np is for this one."
)
@click.option("--node-rank", metavar="R", type=click.IntRange(0), help="Which of them this is, from 0 on.")
@click.option("--root", metavar="HOST[:PORT]", help="Where host 0 listens, as all reach it. All know TFDP_SECRET.")
@click.option(
    "--start-timeout", metavar="SECONDS", type=float, help="How long all hosts may take to come.  [default: 300]"
)
@click.option(
    "--link-timeout", metavar="SECONDS", type=float, help="A host that says nothing is lost then.  [default: 30]"
)
@click.option(
    "--port-range",
    metavar="LOW-HIGH",
    help="The TCP ports at which ranks may listen, as a firewall leaves them open: one for each, one more on host 0.",
)
@click.option(
    "--max-restarts",
    metavar="K",
    type=click.IntRange(0),
    default=0,
    help="Start a job that fails again up to K times: a Keras fit goes on after its last epoch.  [default: 0]",
)
@click.option("--independent", is_flag=True, help="Let a script that is not migrated train N models, one a process.")
@click.argument(
    "command", metavar="SCRIPT|-m MODULE|COMMAND [ARGS]...", nargs=-1, required=True, type=click.UNPROCESSED
)
@click.pass_context
def run(ctx: click.Context, /, np: int | None, independent: bool, command: tuple[str, ...], **given: Any) -> None:
    """Run a migrated script on N processes of this machine, or of this one and others.

    Everything after SCRIPT is passed to it. The exit status is that of the first process that fails, and why it failed
    is the last that is said. A script that trains and never calls dp.init() is not run: exit 1.
    """
    from ..runtime.foundation import allow_ports
    from . import running

    hosts = {name: given.pop(name) for name in ("hosts", "hostfile", "forwarded")}
    place = {name: given.pop(name) for name in ("nnodes", "node_rank", "root", "start_timeout", "link_timeout")}
    restarts = given.pop("max_restarts")
    allow_ports(given.pop("port_range"))
    if hosts["hosts"] is not None or hosts["hostfile"] is not None:
        if restarts:
            raise click.UsageError("--max-restarts is for the jobs of one host: leave it or -H out", ctx)
        if place["nnodes"] is not None or place["node_rank"] is not None:
            raise click.UsageError("-H starts all hosts, --nnodes and --node-rank are for one of them", ctx)
        ctx.exit(running.run_on_hosts(np, list(command), independent, given, {**hosts, **place}))
    if hosts["forwarded"]:
        raise click.UsageError("-x is for the hosts of -H: processes of this one have all variables", ctx)
    if np is None:
        raise click.UsageError("Missing option '-np': how many processes, as in `tfdp run -np 2 train.py`", ctx)
    ctx.exit(running.run(np, list(command), independent, given, place, restarts=restarts))


@main.command(short_help="Prove that a migrated script trains the same model.")
@click.argument("script", metavar="SCRIPT")
@click.argument("args", metavar="[-- ARGS]...", nargs=-1, type=click.UNPROCESSED)
@click.option(
    *PROCESSES,
    "np",
    metavar="N",
    type=Processes(2),
    default=2,
    show_default=True,
    help="Processes; auto: as in tfdp run.",
)
@click.option(
    "--steps",
    metavar="K",
    type=click.IntRange(min=1),
    help="Updates to compare; both runs are stopped after them.  [default: 20, or up to 200 to go past an epoch's end]",
)
@same_policy_options
@click.option("--against", metavar="ORIGINAL", help="SCRIPT is migrated already, and was made from this one.")
@click.option(
    "--timeout",
    metavar="SECONDS",
    type=click.FloatRange(min=0, min_open=True),
    default=600.0,
    show_default=True,
    help="Time for each of the two runs.",
)
@click.option(
    "--float64", is_flag=True, help="Let both run freely in float64, and compare the variables after K updates."
)
@click.option("--keep-randomness", is_flag=True, help="Neutralise nothing; then nothing can be concluded: exit 2.")
@click.option("--show-reference", is_flag=True, help="Print the script that the migrated one must equal; run nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON on stdout.")
@click.option("--html", metavar="FILE", help="Write a page with curves, differences and the diff.")
@click.option("--png", metavar="FILE", help="Write the curves as an image; needs matplotlib.")
@click.option("-v", "--verbose", is_flag=True, help="List every variable, not only those that differ most.")
@click.pass_context
def verify(ctx: click.Context, /, **asked: Any) -> None:
    """Run SCRIPT and its migration, and compare loss, gradients and every variable at each of K updates.

    SCRIPT is the original, which is migrated in memory; or it is migrated, and its original is SCRIPT.orig, in git, or
    named by --against; --batch auto is then what it was migrated for. Nothing on disk changes, and what the script
    writes goes to a scratch folder. The migrated script on N processes must train what one process trains with the same
    global batch. After -- come the script's own arguments. Exit status: 0 proved, 1 not proved, 2 nothing could be
    compared.
    """
    from . import verification

    options = verification.VerifyOptions(policy=policy(ctx, asked), **asked)
    if contradiction := options.contradiction():
        raise click.UsageError(contradiction, ctx)
    ctx.exit(verification.verify(options))


@main.command(short_help="Look whether processes can train together here.")
@click.option(*PROCESSES, "np", metavar="N", type=Processes(1), default=2, show_default=True, help="How many to try.")
@click.option("-H", "--hosts", metavar="A:1,B:1", help="Try it on these hosts, over ssh.")
@click.pass_context
def doctor(ctx: click.Context, np: int, hosts: str | None) -> None:
    """Say what is here to train on, which engine has started this process and by which variables, and try it.

    The self-test joins N processes, sums, and measures; under mpirun or srun those of the job. Exit 1: not ready.
    """
    import os

    from ..runtime.doctor import examine

    ctx.exit(examine(np, ["-H", hosts] if hosts else [], os.environ))


@main.command()
def rules() -> None:
    """List the rules: code, name, what it does."""
    from ..rules import RULES
    from .report.documentation import listing
    from .report.streams import give

    give(listing(RULES))


@main.command(short_help="Show the documentation of a rule.")
@click.argument("rule", metavar="RULE")
@click.pass_context
def explain(ctx: click.Context, rule: str) -> None:
    """Show the documentation of a RULE, by its code (TFDP010) or name (shard-dataset)."""
    from ..rules import RULES
    from .report.documentation import UnknownRule, explanation, find
    from .report.streams import give

    try:
        give(explanation(find(RULES, rule)))
    except UnknownRule as error:
        raise click.UsageError(str(error), ctx) from error


@main.command(short_help="Print what tfdp understands of a script.")
@click.argument("path", metavar="PATH[:LINE]")
@click.option("--at", "line", metavar="LINE", type=click.IntRange(min=1), help="Trace the values on one line instead.")
@click.option("-v", "--verbose", is_flag=True, help="Show tracebacks of internal errors.")
@click.pass_context
def facts(ctx: click.Context, path: str, line: int | None, verbose: bool) -> None:
    """Print what tfdp understands of a script: data, optimizers, gradients, loops.

    For what it does not understand, the places that led there follow, one on each line. With --at LINE, or as
    PATH:LINE, it prints where each value on that line comes from. PATH may be - for standard input.
    """
    from . import several_files

    ctx.exit(several_files.show_facts(path, line, verbose))


@main.command(short_help="Print a training script to try the other commands on.")
@click.argument("name", metavar="[NAME]", required=False)
@click.option("--list", "listed", is_flag=True, help="List the examples; print none.")
@click.pass_context
def example(ctx: click.Context, name: str | None, listed: bool) -> None:
    """Print a small training script for one GPU that needs no data: tfdp example > train.py.

    It runs on a CPU, too, in a few seconds.
    """
    from . import example as examples
    from .report.streams import give

    try:
        give("".join(f"{line}\n" for line in examples.listing()) if listed else examples.text(name or examples.DEFAULT))
    except examples.UnknownExample as error:
        raise click.UsageError(str(error), ctx) from error
