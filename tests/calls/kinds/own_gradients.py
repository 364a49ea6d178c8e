"""Functions with a gradient of their own."""

import tensorflow as tf

from . import KERAS, L, descend, examples, keras, kind, mlp, some, square


def checkpointed(layer):
    """The layer, computed anew for its gradient; its variables are looked up by what they are."""
    known = {(each.value if KERAS == 3 else each).ref() for each in layer.trainable_variables}

    @tf.custom_gradient
    def function(rows):
        def backward(gradient, variables=None):
            assert {each.ref() for each in variables} <= known, [each.name for each in variables]
            with tf.GradientTape() as tape:
                tape.watch(rows)
                again = layer(rows)
            first, *others = tape.gradient(again, [rows, *variables], output_gradients=gradient)
            return first, others

        return layer(rows), backward

    return function


@kind(sample=True)
def functions_that_give_a_gradient_for_each_variable_they_read():
    x, y = examples()
    blocks, head, optimizer = [mlp(6, 8), mlp(6, 8)], L.Dense(1), keras.optimizers.Adam(0.02)
    for each in (*blocks, head):
        each(x[:2])
    functions = [checkpointed(each) for each in blocks]
    for _ in range(3):
        rows, wanted = some(9, x, y)

        def loss(rows=rows, wanted=wanted):
            for each in functions:
                rows = rows + each(rows)
            return square(head(rows), wanted)

        yield [*blocks, head, optimizer], descend(optimizer, [*blocks, head], loss)
