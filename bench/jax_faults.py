#!/usr/bin/env python3
"""JAX programs: seventeen with a planted fault and the same without it, and five without a fault.

    jax_faults.py NAME --form bad|fixed [--steps N | --seconds S] [--turn FILE] [--cpu-smoke]

Part of the sets w and x (torch_faults_w.py, torch_faults_x.py: scored once, then tuned on), y, r and q
(torch_faults_y.py, torch_faults_r.py, torch_faults_q.py: scored only). Labels: tests/diagnosis/unseen.tsv. Ranges come
from the module nvtx, perfkit's own package (PERFKIT_LIBPROF names its library) or PyTorch, whichever is found first.
Memory is not taken in advance, as programs run side by side."""
import contextlib
import math
import os
import sys

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
if "--cpu-smoke" in sys.argv:
    os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import jax.numpy as jnp
import numpy as np

import paced

SMOKE = False


def size(full, smoke=None):
    return (smoke or max(2, full // 256)) if SMOKE else full


def rand(seed, *shape, dtype=jnp.float32):
    return jax.random.normal(jax.random.PRNGKey(seed), shape, dtype)


def dense(*widths):
    """Weights and biases of a perceptron."""
    return [(rand(i, a, b) / a ** 0.5, jnp.zeros((b,))) for i, (a, b) in enumerate(zip(widths, widths[1:]))]


def network(params, x):
    for weight, bias in params[:-1]:
        x = jnp.tanh(x @ weight + bias)
    weight, bias = params[-1]
    return x @ weight + bias


def entropy(params, x, truth):
    return -jnp.mean(jnp.sum(jax.nn.log_softmax(network(params, x)) * truth, axis=-1))


def descend(params, grads):
    return jax.tree_util.tree_map(lambda p, g: p - 1e-3 * g, params, grads)


def examples(rows, width, classes):
    labels = np.random.default_rng(1).integers(0, classes, rows)
    return rand(100, rows, width), jax.nn.one_hot(labels, classes)


def w_jax_eager(fixed):
    width, rows = size(1024), size(4096)
    state = {"params": dense(*[width] * 7, 10)}
    x, truth = examples(rows, width, 10)

    def update(params, x, truth):
        return descend(params, jax.grad(entropy)(params, x, truth))
    if fixed:
        update = jax.jit(update)

    def step():
        state["params"] = update(state["params"], x, truth)
        return state["params"]
    return step


def w_jax_scalar(fixed):
    width, rows = size(768), size(2048)
    state, history, waiting = {"params": dense(*[width] * 9, 10)}, [], []
    x, truth = examples(rows, width, 10)

    @jax.jit
    def update(params, x, truth):
        loss, grads = jax.value_and_grad(entropy)(params, x, truth)
        return descend(params, grads), loss

    def step():
        state["params"], loss = update(state["params"], x, truth)
        if not fixed:
            history.append(float(loss))
            return loss
        waiting.append(loss)
        if len(waiting) == 100:
            history.extend(jax.device_get(waiting))
            waiting.clear()
        return loss
    return step


def w_jax_shapes(fixed):
    words, width, rows, longest = size(8000), size(256, 8), size(64, 2), size(1088, 24)
    numbers = np.random.default_rng(2).integers(1, words, (rows, longest), dtype=np.int32)
    embed, params, state = rand(3, words, width), dense(width, 4 * width, width, 2), {"i": 0}

    @jax.jit
    def scores(embed, params, tokens):
        known = (tokens > 0)[..., None]
        x = jnp.where(known, embed[tokens], 0.0)
        return network(params, jnp.sum(jnp.where(known, jnp.tanh(x @ params[0][0]) @ params[1][0], 0.0), axis=1))

    def step():  # sentences of another length in each batch
        state["i"] += 1
        length = 2 + (37 * state["i"]) % (longest - 2)
        if not fixed:
            return scores(embed, params, numbers[:, :length])
        tokens = np.zeros((rows, longest), np.int32)
        tokens[:, :length] = numbers[:, :length]
        return scores(embed, params, tokens)
    return step


def w_jax_upload(fixed):
    count, width = size(32768), size(128, 8)
    table = np.random.default_rng(4).standard_normal((count, width), dtype=np.float32)
    index, params = jnp.asarray(np.random.default_rng(5).integers(0, count, size(65536))), dense(width, 8 * width, width)
    if fixed:
        table = jax.device_put(table)
    forward = jax.jit(lambda params, table, index: network(params, table[index]))

    def step():
        return forward(params, table, index)
    return step


def w_jax_loop(fixed):
    length, rows, width = size(48, 4), size(256), size(256, 8)
    x, start = rand(6, length, rows, width), jnp.zeros((rows, width))
    params = rand(7, width, width) / width ** 0.5, rand(8, width, width) / width ** 0.5

    def cell(params, state, now):
        return jnp.tanh(now @ params[0] + state @ params[1])
    one = jax.jit(cell)

    @jax.jit
    def whole(params, start, x):
        def body(state, now):
            state = cell(params, state, now)
            return state, state
        return jax.lax.scan(body, start, x)[1]

    def step():
        if fixed:
            return whole(params, start, x)
        state, out = start, []
        for now in range(length):
            state = one(params, state, x[now])
            out.append(state)
        return jnp.stack(out)
    return step


def w_jax_train(_):
    """No fault: a training step that XLA compiled, with weights in place."""
    width, rows = size(2048, 16), size(8192)
    kind = jnp.float32 if SMOKE else jnp.bfloat16
    params = [(rand(2 * i, width, 4 * width, dtype=kind) / width ** 0.5,
               rand(2 * i + 1, 4 * width, width, dtype=kind) / (4 * width) ** 0.5) for i in range(2)]
    state, x = {"params": params, "speed": jax.tree_util.tree_map(jnp.zeros_like, params)}, rand(9, rows, width, dtype=kind)

    def loss(params, x):
        for up, down in params:
            x = x + jax.nn.gelu(x @ up) @ down
        return jnp.mean(jnp.square(x.astype(jnp.float32)))

    def update(params, speed, x):
        grads = jax.grad(loss)(params, x)
        speed = jax.tree_util.tree_map(lambda s, g: 0.9 * s + g, speed, grads)
        return jax.tree_util.tree_map(lambda p, s: p - 1e-4 * s, params, speed), speed
    update = jax.jit(update, donate_argnums=(0, 1))

    def step():
        state["params"], state["speed"] = update(state["params"], state["speed"], x)
        return state["params"]
    return step


def x_jax_donate(fixed):
    places, width = size(1 << 17), size(2048, 8)
    state = {"kept": jnp.zeros((places, width)), "at": jnp.zeros((), jnp.int32)}
    row = rand(10, 1, width)

    def keep(kept, at, row):  # of a replay buffer
        return jax.lax.dynamic_update_slice(kept, row, (at, 0)), (at + 1) % places
    keep = jax.jit(keep, donate_argnums=(0,) if fixed else ())

    def step():
        state["kept"], state["at"] = keep(state["kept"], state["at"], row)
        return state["kept"]
    return step


def x_jax_vmap(fixed):
    width, rows = size(256, 8), size(48, 3)
    params, (x, truth) = dense(width, width, width, 10), examples(rows, width, 10)

    def length(params, x, truth):  # of an example's own gradient
        return sum(jnp.sum(jnp.square(g)) for g in jax.tree_util.tree_leaves(jax.grad(entropy)(params, x, truth)))
    one, whole = jax.jit(length), jax.jit(jax.vmap(length, in_axes=(None, 0, 0)))

    def step():
        if fixed:
            return whole(params, x, truth)
        return jnp.stack([one(params, x[i], truth[i]) for i in range(rows)])
    return step


def x_jax_host(fixed):
    width, rows = size(1024, 8), size(4096)
    x, first, second = rand(11, rows, width), dense(*[width] * 4), dense(*[width] * 4)
    forward = jax.jit(network)

    def whiten(y, of):
        return (y - of.mean(y, axis=0)) / (of.std(y, axis=0) + 1e-5)
    on_device = jax.jit(lambda y: whiten(y, jnp))

    def step():
        y = forward(first, x)
        return forward(second, on_device(y) if fixed else jnp.asarray(whiten(np.asarray(y), np)))
    return step


def x_jax_scan(_):
    """No fault: a recurrent network with large products, compiled as a whole."""
    width, rows, length = size(4096, 8), size(4096), size(16, 3)
    kind = jnp.float32 if SMOKE else jnp.bfloat16
    weight, x = rand(12, width, width, dtype=kind) / width ** 0.5, rand(13, length, rows, width, dtype=kind)

    @jax.jit
    def run(weight, x):
        def body(state, now):
            return jnp.tanh(state @ weight + now), None
        return jax.lax.scan(body, jnp.zeros_like(x[0]), x)[0]

    def step():
        return run(weight, x)
    return step


def deep(layers, width, inner):
    """Weights of layers that each add something to what they get."""
    return [(rand(2 * i, width, inner) / width ** 0.5, jnp.zeros((inner,)),
             rand(2 * i + 1, inner, width) / inner ** 0.5, jnp.zeros((width,))) for i in range(layers)]


def distance(params, x, wanted):
    for up, before, down, after in params:
        x = x + jax.nn.gelu(x @ up + before) @ down + after
    return jnp.mean(jnp.square(x - wanted))


def y_jax_static(fixed):
    width, rows = size(1024, 8), size(8192)
    state, (x, wanted) = {"params": deep(4, width, 4 * width), "i": 0}, (rand(20 + i, rows, width) for i in range(2))

    def update(params, x, wanted, rate):
        loss, grads = jax.value_and_grad(distance)(params, x, wanted)
        return jax.tree_util.tree_map(lambda p, g: p - rate * g, params, grads), loss
    update = jax.jit(update, donate_argnums=0, static_argnums=() if fixed else 3)

    def step():  # the rate falls along a cosine
        state["i"] += 1
        rate = 1e-3 * (1 + math.cos(state["i"] / 1000))
        state["params"], loss = update(state["params"], x, wanted, rate)
        return loss
    return step


def y_jax_accumulate(fixed):
    width, rows, parts = size(512, 8), size(2048), 8
    state = {"params": deep(12, width, 2 * width)}
    x, wanted = (rand(30 + i, parts, rows, width) for i in range(2))

    def add(one, other):
        return jax.tree_util.tree_map(lambda a, b: a + b, one, other)

    def apply(params, grads):
        return jax.tree_util.tree_map(lambda p, g: p - 1e-3 * g / parts, params, grads)
    gradient, finish = jax.jit(jax.grad(distance)), jax.jit(apply)

    @jax.jit
    def update(params, x, wanted):
        def body(grads, now):
            return add(grads, jax.grad(distance)(params, *now)), None
        zeros = jax.tree_util.tree_map(jnp.zeros_like, params)
        return apply(params, jax.lax.scan(body, zeros, (x, wanted))[0])

    def step():  # the gradients of eight batches, for one step of the optimizer
        if fixed:
            state["params"] = update(state["params"], x, wanted)
        else:
            grads = jax.tree_util.tree_map(jnp.zeros_like, state["params"])
            for i in range(parts):
                grads = add(grads, gradient(state["params"], x[i], wanted[i]))
            state["params"] = finish(state["params"], grads)
        return state["params"]
    return step


def y_jax_feed(fixed):
    rows, place, batches = size(4096), 64, 4
    pictures = np.random.default_rng(6).integers(0, 256, (batches, rows, place, place), dtype=np.uint8)
    truth = jax.nn.one_hot(np.random.default_rng(7).integers(0, 10, rows), 10)
    state = {"params": dense(place * place, size(8192), size(8192), 10), "i": 0}

    def whitened(pictures, of):
        x = of.flip(pictures, -1).astype(of.float32) / 255
        return ((x - 0.45) / 0.22).reshape(rows, -1)

    def update(params, batch, truth):
        x = whitened(batch, jnp) if fixed else batch
        loss, grads = jax.value_and_grad(entropy)(params, x, truth)
        return descend(params, grads), loss
    update = jax.jit(update, donate_argnums=0)

    def step():  # what is done to pictures before they are looked at: by NumPy, or where the model is
        state["i"] += 1
        batch = pictures[state["i"] % batches]
        state["params"], loss = update(state["params"], batch if fixed else whitened(batch, np), truth)
        return loss
    return step


def y_jax_vision(_):
    """No fault: the training of a network of convolutions, compiled as a whole."""
    rows, place, width, kind = size(64, 2), size(56, 8), size(256, 8), jnp.float32 if SMOKE else jnp.bfloat16
    state = {"params": [rand(40 + i, 3, 3, width, width, dtype=kind) / (9 * width) ** 0.5 for i in range(6)]}
    x = rand(50, rows, place, place, width, dtype=kind)

    def loss(params, x):
        for weight in params:
            y = jax.lax.conv_general_dilated(x, weight, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
            x = x + jax.nn.relu(y)
        return jnp.mean(jnp.square(x.astype(jnp.float32)))
    update = jax.jit(lambda params, x: descend(params, jax.grad(loss)(params, x)), donate_argnums=0)

    def step():
        state["params"] = update(state["params"], x)
        return state["params"]
    return step


def short(tree):
    """In 16 bits."""
    return jax.tree_util.tree_map(lambda a: a if SMOKE else a.astype(jnp.bfloat16), tree)


def r_jax_lambda(fixed):
    width, rows = size(512, 8), size(16384)
    begin, (x, truth) = short(dense(width, width, width, width)), short(examples(rows, width, width))

    def fit(params, x, truth):
        return jax.lax.fori_loop(0, 20, lambda _, p: descend(p, jax.grad(entropy)(p, x, truth)), params)
    once = jax.jit(fit)

    def step():  # a few steps of training, for another task each time
        if fixed:
            return once(begin, x, truth)
        return jax.jit(lambda params, x, truth: fit(params, x, truth))(begin, x, truth)
    return step


def r_jax_keys(fixed):
    width, rows, count = size(1024, 8), size(1024), size(32, 3)
    state, x = {"params": short(deep(count, width, width)), "key": jax.random.PRNGKey(60)}, short(rand(61, rows, width))

    def draw(key):
        found = []
        for _ in range(count):
            key, one = jax.random.split(key)
            found.append(one)
        return key, found

    def loss(params, x, keys):  # a tenth of what each layer adds is dropped
        for (up, before, down, after), key in zip(params, keys):
            y = jax.nn.gelu(x @ up + before)
            y = jnp.where(jax.random.bernoulli(key, 0.9, y.shape), y / 0.9, 0)
            x = x + y @ down + after
        return jnp.mean(jnp.square(x.astype(jnp.float32)))

    def update(params, x, keys):
        return descend(params, jax.grad(loss)(params, x, keys))

    def whole(params, x, key):
        key, keys = draw(key)
        return update(params, x, keys), key
    update_only, draw_too = jax.jit(update, donate_argnums=0), jax.jit(whole, donate_argnums=0)

    def step():
        if fixed:
            state["params"], state["key"] = draw_too(state["params"], x, state["key"])
        else:
            state["key"], keys = draw(state["key"])
            state["params"] = update_only(state["params"], x, keys)
        return state["params"]
    return step


def r_jax_onehot(fixed):
    words, width, tokens = size(32000), size(1024, 8), size(16384)
    table, params = short(rand(70, words, width)), short(deep(6, width, 4 * width))
    text = jnp.asarray(np.random.default_rng(8).integers(0, words, tokens, dtype=np.int32))

    @jax.jit
    def forward(table, params, text):
        x = table[text] if fixed else jax.nn.one_hot(text, words, dtype=table.dtype) @ table
        for up, before, down, after in params:
            x = x + jax.nn.gelu(x @ up + before) @ down + after
        return x

    def step():  # a table of vectors is looked up, as one does where gathers are slow
        return forward(table, params, text)
    return step


def r_jax_mixer(_):
    """No fault: layers that mix the places of a picture and then its channels, compiled as a whole."""
    rows, places, width = size(96, 2), size(256, 4), size(768, 8)
    params = [(deep(1, places, 2 * places)[0], deep(1, width, 4 * width)[0]) for _ in range(4)]
    state, x = {"params": short(params)}, short(rand(80, rows, places, width))

    def mixed(x, weights):
        up, before, down, after = weights
        return jax.nn.gelu(x @ up + before) @ down + after

    def loss(params, x):
        for over_places, over_channels in params:
            x = x + jnp.swapaxes(mixed(jnp.swapaxes(x, 1, 2), over_places), 1, 2)
            x = x + mixed(x, over_channels)
        return jnp.mean(jnp.square(x.astype(jnp.float32)))
    update = jax.jit(lambda params, x: descend(params, jax.grad(loss)(params, x)), donate_argnums=0)

    def step():
        state["params"] = update(state["params"], x)
        return state["params"]
    return step


def q_jax_callback(fixed):
    width, rows, count, seen = size(1024, 8), size(4096), 12, []
    state = {"params": short(deep(count, width, 4 * width))}
    x, wanted = (short(rand(90 + i, rows, width)) for i in range(2))

    def note(norm):
        seen.append(norm)
        del seen[:-100]

    def update(params, x, wanted):
        grads = jax.grad(distance)(params, x, wanted)
        norms = [sum(jnp.sum(jnp.square(g.astype(jnp.float32))) for g in layer) for layer in grads]
        if not fixed:
            for norm in norms:
                jax.debug.callback(note, norm)
        return descend(params, grads), jnp.stack(norms)
    update = jax.jit(update, donate_argnums=0)

    def step():  # how large the gradients of each layer are, for a page of graphs
        state["params"], norms = update(state["params"], x, wanted)
        if fixed:
            note(norms)
        return state["params"]
    return step


def q_jax_map(fixed):
    rows, place, width, room = size(256, 2), size(32, 8), size(128, 8), 4
    kind = jnp.float32 if SMOKE else jnp.bfloat16
    first = rand(110, 3, 3, 3, width, dtype=kind) / 27 ** 0.5
    params = [rand(111 + i, 3, 3, width, width, dtype=kind) / (9 * width) ** 0.5 for i in range(8)]
    state, pictures = {"params": [first, *params], "key": jax.random.PRNGKey(120)}, rand(121, rows, place, place, 3)

    def changed(picture, key):
        one, other, third = jax.random.split(key, 3)
        at = jax.random.randint(one, (2,), 0, 2 * room + 1)
        wide = jnp.pad(picture, ((room, room), (room, room), (0, 0)))
        picture = jax.lax.dynamic_slice(wide, (at[0], at[1], 0), picture.shape)
        picture = jnp.where(jax.random.bernoulli(other), picture[:, ::-1], picture)
        return picture * jax.random.uniform(third, (), minval=0.8, maxval=1.2)

    def convolution(x, weight):
        return jax.lax.conv_general_dilated(x, weight, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))

    def loss(params, x):
        x = convolution(x, params[0])
        for weight in params[1:]:
            x = x + jax.nn.relu(convolution(x, weight))
        return jnp.mean(jnp.square(x.astype(jnp.float32)))

    def update(params, key, pictures):
        key, now = jax.random.split(key)
        keys = jax.random.split(now, rows)
        if fixed:
            x = jax.vmap(changed)(pictures, keys)
        else:
            x = jax.lax.map(lambda both: changed(*both), (pictures, keys))
        return descend(params, jax.grad(loss)(params, x.astype(kind))), key
    update = jax.jit(update, donate_argnums=0)

    def step():  # pictures are cut, turned and made brighter, all at once or one after the other
        state["params"], state["key"] = update(state["params"], state["key"], pictures)
        return state["params"]
    return step


def q_jax_columns(fixed):
    rows, count, width = size(16384), size(192, 4), size(2048, 8)
    tables = np.random.default_rng(9).standard_normal((4, count, rows), dtype=np.float32)
    truth = jax.nn.one_hot(np.random.default_rng(10).integers(0, 16, rows), 16)
    state = {"params": dense(count, width, width, 16), "i": 0}

    def update(params, columns, truth):
        x = (columns if fixed else jnp.stack(list(columns.values()))).T
        loss, grads = jax.value_and_grad(entropy)(params, x, truth)
        return descend(params, grads), loss
    update = jax.jit(update, donate_argnums=0)

    def step():  # a table's columns, each by its name or all as one array
        state["i"] += 1
        table = tables[state["i"] % len(tables)]
        columns = table if fixed else {"column %03d" % i: column for i, column in enumerate(table)}
        state["params"], loss = update(state["params"], columns, truth)
        return loss
    return step


def q_jax_cg(_):
    """No fault: conjugate gradients, each of whose products must wait for the one before."""
    count = size(16384, 64)
    some = rand(130, count, count)
    matrix = (some + some.T) / (2 * count) ** 0.5 + 4 * jnp.eye(count)  # its eigenvalues are between 2 and 6
    wanted = rand(131, count)
    del some

    @jax.jit
    def solve(matrix, wanted):
        def body(_, state):
            x, rest, way, size_of_rest = state
            there = matrix @ way
            far = size_of_rest / jnp.dot(way, there)
            x, rest = x + far * way, rest - far * there
            left = jnp.dot(rest, rest)
            return x, rest, rest + left / size_of_rest * way, left
        begin = jnp.zeros_like(wanted), wanted, wanted, jnp.dot(wanted, wanted)
        return jax.lax.fori_loop(0, 20, body, begin)[0]

    def step():
        return solve(matrix, wanted)
    return step


def ranges():
    """A context manager of a name."""
    try:
        import nvtx
        return nvtx.annotate
    except ImportError:
        pass
    sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python"))
    try:
        import perfkit
        with perfkit.annotate("begin"):
            return perfkit.annotate
    except ImportError:
        import torch
        return torch.cuda.nvtx.range


def prepare(smoke):
    global SMOKE
    SMOKE = smoke
    return (lambda name: contextlib.nullcontext()) if smoke else ranges(), jax.block_until_ready


if __name__ == "__main__":
    sys.exit(paced.main(__doc__, {name: function for name, function in globals().items()
                                  if name[:2] in ("w_", "x_", "y_", "r_", "q_")}, prepare))
