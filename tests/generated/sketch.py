"""A training script in parts, and how the parts become text: roads to train, nesting, order."""

from __future__ import annotations

from dataclasses import dataclass, field
from textwrap import indent

from pen import Pen, spelled

TAPES = ("tape in a function", "tape in the loop")
LOOPS = (*TAPES, "train_on_batch")
FITS = ("fit", "train_step")
ROADS = (*LOOPS, *FITS)


@dataclass
class Sketch:
    """The parts of a script; fragments add to them. `batch` examples in a batch, `steps` batches in an epoch."""

    pen: Pen
    road: str
    batch: int = 16
    steps: int = 4
    plain: bool = (
        False  # whether what is not said is kept simple, so that nothing else than a wrong fragment is refused
    )
    batch_text: str = "16"
    data: list[str] = field(default_factory=list)
    arrays: tuple[str, str] = ("x", "y")
    source: str = ""  # what the loop, or fit, takes its batches from
    shared: list[str] = field(default_factory=list)  # what the data part gives to the loop
    header: str = ""  # of the loop over batches, or ""
    fit_arguments: str = ""
    model_lines: list[str] = field(default_factory=list)
    in_layers: list[str] = field(default_factory=list)  # expressions of layers that stand before the last one
    optimizer: str = "keras.optimizers.SGD(0.05)"
    loss: str = "tf.reduce_mean(tf.square({0} - {1}))"
    penalty: str = ""
    step_given: list[tuple[str, str]] = field(
        default_factory=list
    )  # parameters of the step, and what is given for them
    step_rows: str = "{0}"  # what becomes of the examples inside the step
    step_gradients: str = "{0}"
    before: list[str] = field(default_factory=list)
    before_epoch: list[str] = field(default_factory=list)
    in_batch: list[str] = field(default_factory=list)
    around: tuple[str, str] = ("", "")  # a header under which the step is called, and what follows its block
    after_step: list[str] = field(default_factory=list)
    after_epoch: list[str] = field(default_factory=list)
    after: list[str] = field(default_factory=list)
    callbacks: list[str] = field(default_factory=list)
    epochs: int = 2

    def __post_init__(self) -> None:
        pen = self.pen
        self.nesting = pen.pick(
            ("flat", "main", "parts", "trainer") if self.road in TAPES else ("flat", "main", "parts")
        )
        self.model, self.opt = pen.name("model"), pen.name("optimizer")
        if self.nesting == "trainer":
            self.m, self.o = f"self.{self.model}", f"self.{self.opt}"
        else:
            self.m, self.o = self.model, self.opt
        self.xb, self.yb = pen.name("xb"), pen.name("yb")
        self.value, self.epoch, self.step = pen.name("loss"), pen.name("epoch"), pen.name("step")

    def text(self) -> str:
        """The script."""
        setup, loop = self._setup(), self._loop()
        step = self._step()
        form = self.nesting
        if form == "trainer":
            body = self._trainer(step, loop)
        elif form == "parts":
            body = self._parts(setup, step, loop)
        else:
            body = "\n".join([*self.data, *setup, *([step] if step else []), *loop])
            if form == "main":
                body = f"def main():\n{_in(body)}\n\n\nif __name__ == '__main__':\n    main()"
        return spelled("\n\n\n".join([*self.pen.tops, body]) + "\n", self.pen)

    def _setup(self) -> list[str]:
        lines = [*self.model_lines]
        if self.road == "train_on_batch" or self.road in FITS:
            return [*lines, *self._compiled()]
        return [*lines, f"{self.opt} = {self.optimizer}"]

    def _compiled(self) -> list[str]:
        loss = "'mse'" if self.loss == "tf.reduce_mean(tf.square({0} - {1}))" and self.pen.maybe() else None
        if loss is None:
            loss = self.pen.function(self.loss, 2)
        if self.pen.maybe():
            return [f"{self.m}.compile(optimizer={self.optimizer}, loss={loss})"]
        return [f"{self.opt} = {self.optimizer}", f"{self.m}.compile({self.opt}, {loss})"]

    def _step(self) -> str:
        """The function of a step, or "" where the loop holds it."""
        if self.road != "tape in a function":
            return ""
        given = ", ".join([self.xb, self.yb, *(name for name, _ in self.step_given)])
        me = "self, " if self.nesting == "trainer" else ""
        return f"{self.pen.pick(('@tf.function', '@tf.function()'))}\ndef {self.step}({me}{given}):\n" + _in(
            "\n".join([*self._update(), f"return {self.value}"])
        )

    def _update(self) -> list[str]:
        loss = self.loss.format(self.yb, f"{self.m}({self.step_rows.format(self.xb)}, training=True)")
        gradients = self.pen.name("local")
        return [
            "with tf.GradientTape() as tape:",
            f"    {self.value} = {loss}{self.penalty}",
            f"{gradients} = {self.step_gradients.format(f'tape.gradient({self.value}, {self.m}.trainable_variables)')}",
            f"{self.o}.apply_gradients(zip({gradients}, {self.m}.trainable_variables))",
        ]

    def _call(self) -> str:
        if self.road == "tape in the loop":
            return "\n".join([*(f"{name} = {given}" for name, given in self.step_given), *self._update()])
        if self.road == "train_on_batch":
            return f"{self.value} = {self.m}.train_on_batch({self.xb}, {self.yb})"
        given = ", ".join([self.xb, self.yb, *(value for _, value in self.step_given)])
        return f"{self.value} = {'self.' if self.nesting == 'trainer' else ''}{self.step}({given})"

    def _called(self) -> list[str]:
        head, tail = self.around
        return [head, _in(self._call()), *([tail] if tail else [])] if head else [self._call()]

    def _loop(self) -> list[str]:
        if self.road in FITS:
            callbacks = f", callbacks=[{', '.join(self.callbacks)}]" if self.callbacks else ""
            fit = f"{self.m}.fit({self.fit_arguments}, epochs={self.epochs}{callbacks}, verbose=0)"
            return [*self.before, fit, *self.after]
        batch = "\n".join([*self.in_batch, *self._called(), *self.after_step])
        epoch = "\n".join([*self.before_epoch, self.header, _in(batch), *self.after_epoch])
        return [*self.before, f"for {self.epoch} in range({self.epochs}):", _in(epoch), *self.after]

    def _parts(self, setup: list[str], step: str, loop: list[str]) -> str:
        """Functions that make the data and the model, and one that trains."""
        load, build, train = self.pen.name("helper"), self.pen.name("helper"), self.pen.name("helper")
        shared = ", ".join(self.shared)
        compiled = self.road not in TAPES
        made = self.model if compiled else f"{self.model}, {self.opt}"
        parts = [
            f"def {load}():\n{_in(chr(10).join([*self.data, f'return {shared}']))}",
            f"def {build}():\n{_in(chr(10).join([*setup, f'return {made}']))}",
        ]
        if self.pen.maybe():
            parts.reverse()
        body = "\n".join([*([step] if step else []), *loop])
        parts.append(f"def {train}({made}, {shared}):\n{_in(body)}")
        if self.plain or self.pen.maybe():
            end = f"{shared} = {load}()\n{made} = {build}()\n{train}({made}, {shared})"
        else:
            star = "*" if not compiled else ""
            also = "*" if len(self.shared) > 1 else ""
            end = f"{train}({star}{build}(), {also}{load}())"
        return "\n\n\n".join([*parts, end])

    def _trainer(self, step: str, loop: list[str]) -> str:
        """A class whose methods are the step and the loop."""
        name, run = self.pen.pick(("Trainer", "Experiment", "Runner")), self.pen.pick(("run", "train", "fit_all"))
        shared = ", ".join(self.shared)
        start = f"def __init__(self, {self.model}, {self.opt}):\n    {self.m} = {self.model}\n    {self.o} = {self.opt}"
        whole = f"def {run}(self, {shared}):\n{_in(chr(10).join(loop))}"
        methods = "\n\n".join(part for part in (start, step, whole) if part)
        end = [*self.data, *self.model_lines, f"{self.opt} = {self.optimizer}"]
        end.append(f"{name}({self.model}, {self.opt}).{run}({shared})")
        return f"class {name}:\n{_in(methods)}\n\n\n" + "\n".join(end)


def _in(text: str) -> str:
    return indent(text, "    ")
