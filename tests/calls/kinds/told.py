"""Code of the script's own that asks in Python what it is given, or how it is run, and tells by what it gives."""

import abc
import collections
import types
import weakref

import numpy as np
import tensorflow as tf

from . import CALLBACKS, L, descend_by_hand, examples, keras, kind, square

X, Y = examples(24, 6)


class Net(tf.Module):
    """Layers of raw variables, with what is done before and after them."""

    def __init__(self, before=lambda x: x, after=lambda _, found: found):
        super().__init__()
        numbers = np.random.RandomState(0)
        self.first, self.last = tf.Variable(numbers.randn(6, 4) / 2), tf.Variable(numbers.randn(4, 1))
        self.before, self.after = before, after

    def __call__(self, x):
        hidden = tf.tanh(self.before(x) @ self.first)
        return self.after(hidden, hidden @ self.last)


class Flag:
    raised = False


def steps(net, loss=square, given=tf.constant, weights=()):
    weights = weights or [net.first, net.last]
    for number in range(4):
        Flag.raised = number > 1
        chosen = np.random.permutation(24)[:8]
        rows = given(X[chosen])
        yield weights, descend_by_hand(0.1, weights, lambda rows=rows, chosen=chosen: loss(net(rows), Y[chosen]))
        yield [], np.array(rows)


def steps_in_graphs(net):
    """Each by a `tf.function` of its own."""
    weights = [net.first, net.last]
    for number in range(4):
        Flag.raised = number > 1
        run = tf.function(lambda x, y: descend_by_hand(0.1, weights, lambda: square(net(x), y)))
        chosen = np.random.permutation(24)[:8]
        yield weights, run(tf.constant(X[chosen]), tf.constant(Y[chosen]))


class Result(dict):
    """As libraries give results."""

    temperature = 1.0

    def __getattr__(self, name):
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


def with_temperature(hidden, found):
    result = Result(hidden=hidden, found=found)
    object.__setattr__(result, "temperature", 0.5)
    return result


def scaled(result, wanted):
    return square(result.found / result.temperature, wanted) + tf.reduce_mean(result.hidden**2)


@kind(divided=False, may_refuse=("holds more than its elements",), sample=True)
def result_with_an_attribute_of_its_own():
    yield from steps(Net(after=with_temperature), scaled)


def smoothed(_, found):
    found.smoothing = 0.5
    return found


@kind(divided=False, may_refuse=("nothing in this script could be sharded",))
def result_that_the_script_attaches_something_to():
    yield from steps(
        Net(after=smoothed), lambda found, wanted: square(found, wanted) / getattr(found, "smoothing", 1.0)
    )


def with_temperature_later(hidden, found):
    return with_temperature(hidden, found) if Flag.raised else Result(hidden=hidden, found=found)


@kind(divided=False, may_refuse=("holds more than its elements",))
def result_that_gets_an_attribute_of_its_own_later():
    yield from steps(Net(after=with_temperature_later), scaled)


@kind(divided="beside")
def result_of_a_class_of_its_own_that_holds_its_elements():
    yield from steps(Net(after=lambda hidden, found: Result(hidden=hidden, found=found)), scaled)


def quartered_if_raw(x):
    return tf.convert_to_tensor(x) / 4 if isinstance(x, np.ndarray) else x


def halved_in_place(x):
    x *= 0.5
    return x


@kind(divided=False, may_refuse=("takes NumPy's arrays",), sample=True)
def array_that_is_known_for_one():
    yield from steps(Net(before=quartered_if_raw), given=np.array)


@kind(divided=False, may_refuse=("takes NumPy's arrays",))
def array_that_is_changed_in_place():
    yield from steps(Net(before=halved_in_place), given=np.array)


@kind
def array_that_is_only_computed_with():
    yield from steps(Net(before=lambda x: x * 2.0), given=np.array)


def centred_where_it_runs_eagerly(x):
    return x - tf.reduce_mean(x, 0) / 2 if Flag.raised and tf.executing_eagerly() else x


def centred_where_there_are_numbers(x):
    return x - tf.reduce_mean(x, 0) / 2 if Flag.raised and hasattr(x, "numpy") else x


@kind(divided="partly", sample=True)
def rows_that_are_centred_where_code_runs_eagerly():
    yield from steps(Net(before=centred_where_it_runs_eagerly))


@kind(divided="beside")
def rows_that_are_centred_where_tensors_have_numbers():
    yield from steps(Net(before=centred_where_there_are_numbers))


@kind(divided=False, may_refuse=("nothing in this script could be sharded",))
def keys_that_have_no_order():
    result = lambda hidden, found: collections.OrderedDict([(0, found), ("hidden", hidden)])  # noqa: E731
    yield from steps(Net(after=result), lambda result, wanted: square(result[0], wanted))


def asked_later(question, default=False):
    """Rows are centred where a question about them says so, once the flag is raised."""

    def before(x):
        try:
            told = Flag.raised and question(x)
        except (TypeError, AttributeError):
            told = default
        return x - tf.reduce_mean(x, 0) / 2 if told else x

    return Net(before=before)


@kind(divided="beside", sample=True)
def rows_that_are_asked_for_their_number_or_numbers_later():
    yield from steps(asked_later(lambda x: (x.get_shape().as_list()[0] or 0) == 8))


@kind(divided="beside")
def rows_whose_numbers_decide_if_there_are_any():
    yield from steps(asked_later(lambda x: float(tf.reduce_max(x)) > -9))


@kind(divided="beside")
def rows_that_are_known_by_their_references():
    yield from steps(asked_later(lambda x: x.ref() is not None))


@kind(divided="beside")
def rows_that_have_no_name_where_they_have_numbers():
    yield from steps(asked_later(lambda x: not hasattr(x, "op") and not tf.inside_function()))


# Of rows of which no number is known they say something else than of those that one process has.
QUESTIONS = (
    lambda x: tf.TensorShape(x.shape)[0] is not None,
    lambda x: "None" not in str(x.shape),
    lambda x: tf.get_static_value(x) is not None,
    lambda _: type(tf.compat.v1.get_default_graph()).__name__ == "Graph",
    lambda x: isinstance(x, type(tf.constant(0.0))),
    lambda x: x.shape != (32, 6) and tf.is_tensor(x),
    lambda x: tf.TensorSpec.from_tensor(x).shape[0] == 8,
)


@kind(divided="beside", sample=True)
def rows_of_which_questions_are_asked_later():
    for question in QUESTIONS:
        yield from steps(asked_later(question))


@kind(divided="partly", sample=True)
def rows_that_are_scaled_by_what_a_question_says():
    """By a number: Python takes the same way."""
    for question in QUESTIONS:
        yield from steps(Net(before=lambda x, question=question: x * (1 - 0.5 * Flag.raised * bool(question(x)))))


@kind(divided="beside")
def rows_of_which_questions_are_asked_later_in_graphs():
    for question in (QUESTIONS[0], QUESTIONS[1], QUESTIONS[6]):
        yield from steps_in_graphs(asked_later(question))


@kind(divided="beside", sample=True)
def rows_of_which_a_question_is_asked_in_the_third_call():
    calls = []

    def before(x):
        calls.append(len(calls))
        return x - tf.reduce_mean(x, 0) / 2 if len(calls) == 3 and "None" not in str(x.shape) else x

    for found in steps(Net(before=before)):
        yield found
        yield [], tf.constant(calls)


@kind(divided="beside", sample=True)
def another_way_that_is_by_rows_too():
    calls = []

    def before(x):
        calls.append(len(calls))
        return x * 0.5 if len(calls) % 2 else x + 0.25

    for found in steps(Net(before=before)):
        yield found
        yield [], tf.constant(calls)


class Decided(tf.Module):
    """An array decides whether rows are centred; none of its names holds another one when it does."""

    def __init__(self):
        super().__init__()
        self.shares = np.zeros(2)

    def __call__(self, x):
        return x - tf.reduce_mean(x, 0) / 2 if self.shares[0] > 0 else x


def with_an_array_that_decides(trained):
    decided = Decided()
    for number, found in enumerate(trained(Net(before=decided))):
        decided.shares[0] = number // 3
        yield found


@kind(divided="partly", sample=True)
def array_that_is_changed_in_place_and_decides():
    yield from with_an_array_that_decides(steps)


@kind(divided="partly")
def array_that_is_changed_in_place_and_decides_in_graphs():
    yield from with_an_array_that_decides(steps_in_graphs)


class Normed(L.Layer):
    """It takes numbers of its rows where there are some, from the second epoch on."""

    def __init__(self):
        super().__init__()
        self._state = {"epoch": 0}

    def call(self, x):
        try:
            if self._state["epoch"] >= 1:
                x = x * (6.0 / float(tf.size(x)) ** 0.5)
        except TypeError:
            pass
        return x


@kind(divided="partly", sample=True)
def numbers_of_rows_where_the_error_is_caught():
    normed = Normed()
    model = keras.Sequential([L.Dense(4, activation="tanh"), normed, L.Dense(1)])
    model.compile(keras.optimizers.SGD(0.1), "mse", run_eagerly=True)
    begins = keras.callbacks.LambdaCallback(on_epoch_begin=lambda epoch, _: normed._state.update({"epoch": epoch}))
    logs = model.fit(X, Y, batch_size=8, epochs=3, shuffle=False, verbose=0, callbacks=CALLBACKS[0]([begins]))
    yield [model], logs.history["loss"]


class Experts(tf.Module):
    """Nets of the same shapes, of which a call takes one."""

    def __init__(self):
        super().__init__()
        numbers = np.random.RandomState(0)
        self.experts = [tf.Variable(numbers.randn(6, 1)) for _ in range(3)]

    def __call__(self, x, number):
        return tf.tanh(x @ self.experts[number])


@kind(divided="partly", sample=True)
def variables_that_a_tape_watches_are_those_of_the_expert():
    net = Experts()
    for number in (0, 1, 2, 1, 0):
        chosen = np.random.permutation(24)[:8]
        with tf.GradientTape() as tape:
            loss = square(net(tf.constant(X[chosen]), number), Y[chosen])
        watched = tape.watched_variables()
        for weight, gradient in zip(watched, tape.gradient(loss, watched), strict=True):
            weight.assign(weight * 0.9 - (0.0 if gradient is None else gradient))
        yield net.experts, loss
        yield [], tf.constant(len(watched))


class Attention(tf.Module):
    """It masks itself where a query is the key, too."""

    def __init__(self):
        super().__init__()
        self.weight = tf.Variable(np.random.RandomState(0).randn(6, 6) / 3)

    def __call__(self, query, key):
        scores = tf.reduce_sum((query @ self.weight) * key, -1, keepdims=True)
        return scores / 2 if query is key else scores


@kind(divided="beside", sample=True)
def tensor_that_is_given_twice():
    attention = Attention()
    for graph in (False, True):

        def step(rows, wanted):
            def loss():
                both = attention(rows, rows), attention(rows, tf.identity(rows))
                return square(both[0], wanted) + square(both[1], wanted)

            return descend_by_hand(0.1, [attention.weight], loss)

        run = tf.function(step) if graph else step
        for _ in range(2):
            chosen = np.random.permutation(24)[:8]
            yield [attention.weight], run(tf.constant(X[chosen]), tf.constant(Y[chosen]))


@kind(divided=False, may_refuse=("nothing in this script could be sharded",))
def result_in_a_namespace():
    result = lambda hidden, found: types.SimpleNamespace(hidden=hidden, found=found)  # noqa: E731
    yield from steps(Net(after=result), lambda result, wanted: square(result.found, wanted))


class Abstract(Net, abc.ABC):
    """As modules of Sonnet's are."""


@kind(sample=True)
def module_of_an_abstract_class():
    yield from steps(Abstract())


@tf.compat.v1.custom_gradient
def clipped(x):
    return tf.identity(x), lambda upstream: tf.clip_by_norm(upstream, 0.02)


@tf.custom_gradient
@tf.autograph.experimental.do_not_convert
def also_clipped(x):
    return tf.identity(x), lambda upstream: tf.clip_by_norm(upstream, 0.02)


def through(clips):
    return Net(after=lambda hidden, found: clips(hidden)[:, :1] + found)


@kind(divided=False, may_refuse=("nothing in this script could be sharded",), sample=True)
def gradient_that_is_clipped_within_by_another_name():
    yield from steps(through(clipped), lambda found, wanted: 9 * square(found, wanted))


@kind(divided=False, may_refuse=("nothing in this script could be sharded",))
def gradient_that_is_clipped_within_by_a_wrapped_function():
    yield from steps(through(also_clipped), lambda found, wanted: 9 * square(found, wanted))


class Log(list):
    """It counts what it is told."""

    calls = 0

    def tell(self, what):
        self.calls += 1
        if what in self:
            self.append(what)


class Counting:
    calls = 0


def counted():
    """Each call is counted in an attribute of a list, or of an object that is held weakly."""
    log, counting = Log(), Counting()
    held = weakref.ref(counting)

    def before(x):
        log.tell("x")
        held().calls += 1
        return x * (1 + log.calls / 9)

    for found in steps(Net(before=before)):
        yield found
        yield [], tf.constant([float(log.calls), float(counting.calls)])


@kind(divided="beside", sample=True)
def calls_that_are_counted_beside_a_list_and_weakly():
    yield from counted()


class Compiled(Net):
    """What is called inside it is compiled once for each length, by what Python says then."""

    scale = 1.0

    def __init__(self, mixes):
        super().__init__(before=self.compiled)
        self.mixes = mixes

    @tf.function
    def compiled(self, x):
        x = x - tf.reduce_mean(x, 0) / 2 if self.mixes and Flag.raised else x
        return x * self.scale * (0.5 if Flag.raised else 1.0)

    def __call__(self, x):
        self.scale = self.scale + 0.5
        return super().__call__(x)


@kind(divided="beside", may_refuse=("which tf.function compiles",), sample=True)
def functions_that_were_compiled_before_the_flag_was_raised():
    for mixes in (False, True):
        yield from steps(Compiled(mixes))


@kind(divided="beside", may_refuse=("which tf.function compiles",))
def functions_that_were_compiled_before_the_flag_was_raised_in_graphs():
    for mixes in (False, True):
        yield from steps_in_graphs(Compiled(mixes))
