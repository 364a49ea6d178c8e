"""Reinforcement learning, and adversaries: what is learnt decides what is seen next."""

import random
from collections import deque

import numpy as np
import tensorflow as tf

from . import L, descend, examples, keras, kind, mlp, some, square


class World:
    """Moves at random, and with what is done in it."""

    def reset(self):
        self.state, self.time = np.random.rand(4), 0
        return self.state

    def step(self, action):
        self.state = np.clip(self.state + (action - 0.5) * 0.1 + np.random.randn(4) * 0.02, -1, 2)
        self.time += 1
        return self.state, float(self.state.sum()), self.time > 12


@kind
def deep_q_learning():
    world, memory, chance, updates = World(), deque(maxlen=200), 1.0, 0
    values, target, optimizer = mlp(16, 2), mlp(16, 2), keras.optimizers.Adam(0.01)
    values.build((None, 4)), target.build((None, 4))
    target.set_weights(values.get_weights())
    for _ in range(2):
        state, done = world.reset(), False
        while not done:
            greedy = int(np.argmax(values.predict_on_batch(state[None])[0]))
            action = random.randrange(2) if random.random() < chance else greedy
            after, reward, done = world.step(action)
            memory.append((state, action, reward, after, done))
            state = after
            if len(memory) < 17:
                continue
            states, actions, rewards, afters, ends = map(np.array, zip(*random.sample(memory, 10), strict=True))
            wanted = rewards + 0.9 * (1 - ends) * target(afters).numpy().max(1)

            def loss(states=states, actions=actions, wanted=wanted):
                chosen = tf.reduce_sum(values(states) * tf.one_hot(actions, 2, dtype=tf.float64), 1)
                return square(chosen, wanted)

            value = descend(optimizer, [values], loss)
            chance, updates = chance * 0.95, updates + 1
            if updates % 4 == 0:
                target.set_weights(values.get_weights())
            yield [values, target, optimizer, np.array(chance)], value


@kind
def q_learning_by_train_on_batch():
    world, memory = World(), []
    values = mlp(16, 2)
    values.compile(keras.optimizers.Adam(0.01), "mse")
    state = world.reset()
    for number in range(16):
        action = int(np.argmax(values.predict_on_batch(state[None])[0]))
        after, reward, done = world.step(action)
        memory.append((state, action, reward, after))
        state = world.reset() if done else after
        if number < 10:
            continue
        states, actions, rewards, afters = map(np.array, zip(*random.sample(memory, 7), strict=True))
        wanted = values.predict_on_batch(states)
        wanted[np.arange(7), actions] = rewards + 0.9 * values.predict_on_batch(afters).max(1)
        yield [values, values.optimizer], np.array(values.train_on_batch(states, wanted))


@kind
def proximal_policy_optimization():
    policy, critic, optimizer, state = mlp(16, 2), mlp(16, 1), keras.optimizers.Adam(0.01), np.random.rand(4)
    policy.build((None, 4)), critic.build((None, 4))
    for _ in range(2):
        states, actions, rewards, chances = [], [], [], []
        for _ in range(11):
            chance = tf.nn.softmax(policy(state[None]))[0].numpy()
            action = np.random.choice(2, p=chance / chance.sum())
            states.append(state), actions.append(action), chances.append(chance[action])
            state = np.clip(state + (action - 0.5) * 0.1 + np.random.randn(4) * 0.05, 0, 1)
            rewards.append(state.sum())
        seen, returns = tf.constant(np.array(states)), np.cumsum(rewards[::-1])[::-1]
        gain = tf.constant(returns) - critic(seen)[:, 0]
        gain = (gain - tf.reduce_mean(gain)) / tf.math.reduce_std(gain)
        for _ in range(2):
            with tf.GradientTape() as tape:
                chosen = tf.reduce_sum(tf.nn.softmax(policy(seen)) * tf.one_hot(actions, 2, dtype=tf.float64), 1)
                ratio = chosen / np.array(chances)
                clipped = tf.minimum(ratio * gain, tf.clip_by_value(ratio, 0.8, 1.2) * gain)
                loss = square(critic(seen)[:, 0], returns) - tf.reduce_mean(clipped)
            weights = policy.trainable_variables + critic.trainable_variables
            found, _ = tf.clip_by_global_norm(tape.gradient(loss, weights), 0.5)
            optimizer.apply_gradients(zip(found, weights, strict=True))
            yield [policy, critic, optimizer], loss


@kind(divided=False)
def policy_gradient_of_episodes():
    """One call for one state, all of an episode under one tape; episodes of different lengths."""
    policy, optimizer, world = mlp(8, 2), keras.optimizers.Adam(0.02), World()
    for length in (5, 7):
        state, rewards, chances = world.reset(), [], []
        with tf.GradientTape() as tape:
            for _ in range(length):
                logits = policy(tf.constant(state[None]))
                action = int(tf.random.categorical(logits, 1)[0, 0])
                chances.append(tf.nn.log_softmax(logits)[0, action])
                state, reward, _ = world.step(action)
                rewards.append(reward)
            returns = np.cumsum(rewards[::-1])[::-1]
            loss = -tf.reduce_sum(tf.stack(chances) * (returns - returns.mean()))
        found = tape.gradient(loss, policy.trainable_variables)
        optimizer.apply_gradients(zip(found, policy.trainable_variables, strict=True))
        yield [policy, optimizer], loss


@kind
def actor_and_critic_with_continuous_actions():
    """The critic's gradient goes through the actor's actions; targets follow slowly."""
    actor, critic, slow = mlp(8, 2), mlp(8, 1), mlp(8, 1)
    critic.build((None, 6)), slow.build((None, 6))
    slow.set_weights(critic.get_weights())
    optimizers = keras.optimizers.Adam(0.01), keras.optimizers.Adam(0.02)
    states = np.random.rand(32, 4)

    @tf.function
    def step(seen, after):
        wanted = tf.reduce_sum(seen, 1, keepdims=True) + 0.9 * slow(tf.concat([after, tf.tanh(actor(after))], 1))

        def critic_loss():
            noisy = tf.tanh(actor(seen)) + 0.1 * tf.random.normal([tf.shape(seen)[0], 2], dtype=tf.float64)
            return square(critic(tf.concat([seen, tf.stop_gradient(noisy)], 1)), wanted)

        def actor_loss():
            return -tf.reduce_mean(critic(tf.concat([seen, tf.tanh(actor(seen))], 1)))

        values = descend(optimizers[1], [critic], critic_loss), descend(optimizers[0], [actor], actor_loss)
        for followed, weight in zip(slow.weights, critic.weights, strict=True):
            followed.assign(0.9 * followed + 0.1 * weight)
        return values

    actor.build((None, 4))
    for optimizer, model in zip(optimizers, (actor, critic), strict=True):
        optimizer.build(model.trainable_variables)
    for _ in range(3):
        yield [actor, critic, slow, *optimizers], step(*some(9, states, states[::-1]))


def adversaries():
    generator = keras.Sequential([L.Dense(16), L.BatchNormalization(), L.LeakyReLU(), L.Dense(8)])
    critic = keras.Sequential([L.Dense(16), L.LeakyReLU(), L.Dropout(0.3), L.Dense(1)])
    generator.build((None, 4)), critic.build((None, 8))
    return generator, critic


@kind(bound=1e-9)
def generative_adversarial_networks():
    x, _ = examples()
    (generator, critic), bce = adversaries(), keras.losses.BinaryCrossentropy(from_logits=True)
    optimizers = keras.optimizers.Adam(0.01), keras.optimizers.Adam(0.01)
    optimizers[0].build(generator.trainable_variables), optimizers[1].build(critic.trainable_variables)

    @tf.function
    def step(real, count):
        drawn = tf.random.normal([count, 4], dtype=tf.float64)
        with tf.GradientTape() as first, tf.GradientTape() as second:
            fake = generator(drawn, training=True)
            true, false = critic(real, training=True), critic(fake, training=True)
            fooled = bce(tf.ones_like(false), false)
            told = bce(tf.ones_like(true), true) + bce(tf.zeros_like(false), false)
        for tape, loss, optimizer, model in (
            (first, fooled, optimizers[0], generator),
            (second, told, optimizers[1], critic),
        ):
            found = tape.gradient(loss, model.trainable_variables)
            optimizer.apply_gradients(zip(found, model.trainable_variables, strict=True))
        return fooled + told

    for _ in range(3):
        yield [generator, critic, *optimizers], step(some(11, x), 11)


@kind
def penalty_of_the_gradient_by_the_input():
    """A Wasserstein critic."""
    x, _ = examples()
    generator, critic, optimizer = mlp(16, 8), mlp(16, 1), keras.optimizers.Adam(0.01)

    @tf.function
    def step(real):
        count = tf.shape(real)[0]
        drawn = tf.random.normal([count, 4], dtype=tf.float64, seed=2)
        share = tf.random.uniform([count, 1], dtype=tf.float64, seed=4)

        def loss():
            fake = generator(drawn)
            mixed = real * share + fake * (1 - share)
            with tf.GradientTape() as inner:
                inner.watch(mixed)
                judged = critic(mixed)
            steep = (tf.norm(inner.gradient(judged, mixed), axis=1) - 1) ** 2
            return tf.reduce_mean(critic(fake)) - tf.reduce_mean(critic(real)) + 10 * tf.reduce_mean(steep)

        return descend(optimizer, [critic, generator], loss)

    for _ in range(3):
        yield [generator, critic, optimizer], step(some(9, x))


@kind
def compiled_adversaries_with_a_frozen_half():
    """The classic: a combined model of which the critic does not learn, by train_on_batch."""
    x, _ = examples()
    generator, critic = mlp(8, 8), mlp(8, 1, activation="relu")
    generator.build((None, 4)), critic.build((None, 8))
    loss = keras.losses.BinaryCrossentropy(from_logits=True)
    critic.compile(keras.optimizers.Adam(0.01), loss)
    critic.trainable = False
    start = keras.Input((4,))
    both = keras.Model(start, critic(generator(start)))
    both.compile(keras.optimizers.Adam(0.01), loss)
    for _ in range(2):
        critic.trainable = True
        fake = generator.predict(np.random.randn(9, 4), verbose=0)
        first = critic.train_on_batch(np.concatenate([some(9, x), fake]), np.repeat([1.0, 0.0], 9)[:, None])
        critic.trainable = False
        second = both.train_on_batch(np.random.randn(9, 4), np.ones((9, 1)))
        yield [generator, critic, critic.optimizer, both.optimizer], np.array([first, second])


@kind(divided="partly", keras=3, sample=True)
def head_that_learns_fast_by_stateless_calls():
    """Its weights are tensors, and what it draws and counts stays in a scope of Keras'."""
    x, y = examples()
    trunk, optimizer = mlp(6), keras.optimizers.Adam(0.02)
    head = keras.Sequential([L.Dense(5, activation="tanh"), L.Dropout(0.3, seed=3), L.BatchNormalization(), L.Dense(1)])
    head(trunk(x[:2]))

    def predicted(weights, rows):
        state = [each.value for each in head.non_trainable_variables]
        return head.stateless_call(weights, state, trunk(rows), training=True)[0]

    for _ in range(4):
        rows, wanted = some(8, x, y)
        with tf.GradientTape() as outer:
            fast = [tf.convert_to_tensor(each.value) for each in head.trainable_variables]
            outer.watch(fast)
            start = fast
            for _ in range(2):
                with tf.GradientTape() as tape:
                    tape.watch(fast)
                    loss = square(predicted(fast, rows), wanted)
                fast = [w - 0.1 * g for w, g in zip(fast, tape.gradient(loss, fast), strict=True)]
            value = square(predicted(fast, rows), wanted)
        weights = [*head.trainable_variables, *trunk.trainable_variables]
        found = outer.gradient(value, [*start, *trunk.trainable_variables])
        optimizer.apply_gradients(zip(found, weights, strict=True))
        yield [head, trunk, optimizer], value
