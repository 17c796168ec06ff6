/* One training step: which phase it is in, what it transfers, allocates, and leaves to the host.
 * Everything that the variants differ in is here, but for the tiles (passes.c).
 *
 *   for each pass (a sequence, or all of them): allocate its matrices, bring its tokens to the
 *   device, run it forward and backward, bring its losses to the host, free its matrices; then Adam
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/embedding/embedding.h"
#include "perfkit/annotate.h"
#include "workloads/common/grow.h"
#include "workloads/transformer/model.h"

static const struct {
    const char *range;
    enum component component;
} phases[PHASES] = {
    [PHASE_ALLOCATION] = {"allocation", ALLOCATION},
    [PHASE_IN] = {"transfer in", TRANSFER_IN},
    [PHASE_FORWARD] = {"forward", COMPUTE},
    [PHASE_BACKWARD] = {"backward", COMPUTE},
    [PHASE_EXCHANGE] = {"exchange", COMPUTE},
    [PHASE_UPDATE] = {"update", COMPUTE},
    [PHASE_OUT] = {"transfer out", TRANSFER_OUT},
    [PHASE_WAIT] = {"wait", COMPUTE},
    [PHASE_HOST] = {"host", HOST},
};

/* Ends the phase that the step is in and begins `next`, without a gap: the phases sum to the step.
 * PHASES ends the last one. */
static int enter(struct model *m, enum phase next)
{
    uint64_t now;

    if (m->phase == next)
        return 0;
    if (m->phase != PHASES) {
        int result = m->form.apart ? dev_queue_finish(m->session->queue) : 0;

        now = now_ns();
        m->times[m->steps - 1][phases[m->phase].component] += (double)(now - m->phase_start_ns);
        perfkit_range_pop();
        m->phase = PHASES;
        if (result != 0)
            return -1;
    } else {
        now = now_ns();
    }
    m->phase = next;
    m->phase_start_ns = now;
    if (next != PHASES)
        perfkit_range_push(phases[next].range);
    return 0;
}

/* ---- memory ---------------------------------------------------------------------------------- */

static int allocate(struct model *m, size_t bytes, struct dev_buffer **out)
{
    uint64_t before;
    int result;

    if (!m->pool)
        return session_alloc(m->session, bytes, out);
    before = dev_pool_stats(m->pool).allocations;
    result = dev_pool_alloc(m->pool, bytes, out);
    m->session->tally.allocations += (uint32_t)(dev_pool_stats(m->pool).allocations - before);
    return result;
}

static int allocate_matrices(struct model *m)
{
    if (enter(m, PHASE_ALLOCATION) != 0)
        return -1;
    for (int i = 0; i < MATRICES; i++) {
        if (m->floats[i] && allocate(m, m->floats[i] * sizeof(float), &m->matrix[i]) != 0)
            return -1;
        if (m->floats[i] && m->poison && dev_fill(m->session->queue, m->matrix[i], 0xff, NULL) != 0)
            return -1;
    }
    return 0;
}

static void free_matrices(struct model *m)
{
    for (int i = 0; i < MATRICES; i++) {
        if (m->pool)
            dev_pool_free(m->pool, m->matrix[i]);
        else
            dev_free(m->matrix[i]);
        m->matrix[i] = NULL;
    }
}

/* ---- transfers ------------------------------------------------------------------------------- */

static enum dev_sync sync_of(const struct model *m)
{
    return m->form.blocking ? DEV_BLOCKING : DEV_ASYNC;
}

/* The tokens of this step's pass, page-locked where copies are not waited for. */
static const uint32_t *pass_tokens(const struct model *m, uint32_t pass)
{
    const uint32_t *tokens = m->host_tokens ? dev_host_pointer(m->host_tokens) : m->corpus;

    return tokens + m->step % CORPUS_BATCHES * batch_tokens(&m->shape) +
           (size_t)pass * m->pass_sequences * (m->shape.length + 1);
}

static int write_tokens(struct model *m, uint32_t pass)
{
    size_t tokens = (size_t)m->pass_sequences * (m->shape.length + 1);

    if (enter(m, PHASE_IN) != 0)
        return -1;
    return session_write(m->session, m->session->queue, m->buffer[TOKENS], pass_tokens(m, pass),
                         tokens * sizeof(uint32_t), sync_of(m));
}

/* The tables come to the host, which gathers the rows and sends the result. */
static int embed_on_host(struct model *m, uint32_t pass)
{
    const struct shape *s = &m->shape;
    const uint32_t *tokens = pass_tokens(m, pass);
    size_t width = s->width, tables = (size_t)m->layout.positions + s->length * width;

    if (enter(m, PHASE_OUT) != 0 ||
        session_read(m->session, m->session->queue, m->buffer[WEIGHTS], m->tables,
                     tables * sizeof(float), DEV_BLOCKING) != 0 ||
        enter(m, PHASE_HOST) != 0)
        return -1;
    for (uint32_t row = 0; row < m->pass_rows; row++) {
        const float *token = m->tables + tokens[embedding_token(row, s->length)] * width;
        const float *position = m->tables + m->layout.positions + row % s->length * width;

        for (size_t i = 0; i < width; i++)
            m->gathered[row * width + i] = token[i] + position[i];
    }
    if (enter(m, PHASE_IN) != 0)
        return -1;
    return session_write(m->session, m->session->queue, m->matrix[INPUT], m->gathered,
                         m->pass_rows * width * sizeof(float), sync_of(m));
}

/* The probabilities of all tokens come to the host, which takes the targets' ones. */
static int loss_on_host(struct model *m, uint32_t pass)
{
    const struct shape *s = &m->shape;
    const uint32_t *tokens = pass_tokens(m, pass);
    size_t bytes = (size_t)m->pass_rows * s->vocabulary * sizeof(float);

    if (enter(m, PHASE_OUT) != 0 ||
        session_read(m->session, m->session->queue, m->matrix[LOGITS], m->probabilities, bytes,
                     DEV_BLOCKING) != 0 ||
        enter(m, PHASE_HOST) != 0)
        return -1;
    for (uint32_t row = 0; row < m->pass_rows; row++) {
        uint32_t target = tokens[embedding_token(row, s->length) + 1];

        m->losses[pass * m->pass_rows + row] =
            -logf(m->probabilities[(size_t)row * s->vocabulary + target]);
    }
    if (!m->form.reupload)
        return 0;
    if (enter(m, PHASE_IN) != 0)
        return -1;
    return session_write(m->session, m->session->queue, m->matrix[LOGITS], m->probabilities, bytes,
                         sync_of(m));
}

/* Losses that the device made: of `rows` rows from the beginning of LOSSES. */
static int read_losses(struct model *m, float *to, size_t rows)
{
    if (m->form.loss_host)
        return 0;
    if (enter(m, PHASE_OUT) != 0)
        return -1;
    return session_read(m->session, m->session->queue, m->buffer[LOSSES], to, rows * sizeof(float),
                        sync_of(m));
}

/* ---- the step -------------------------------------------------------------------------------- */

static int run_pass(struct model *m, uint32_t pass)
{
    uint32_t first_row = m->form.blocking ? 0 : pass * m->pass_rows;

    if (allocate_matrices(m) != 0 || write_tokens(m, pass) != 0)
        return -1;
    if (m->form.embed_host && embed_on_host(m, pass) != 0)
        return -1;
    if (enter(m, PHASE_FORWARD) != 0 || (!m->form.embed_host && pass_embed(m) != 0) ||
        pass_forward(m) != 0)
        return -1;
    if (m->form.loss_host && loss_on_host(m, pass) != 0)
        return -1;
    if (enter(m, PHASE_BACKWARD) != 0 || pass_backward(m, first_row) != 0)
        return -1;
    if (m->form.blocking && read_losses(m, m->losses + pass * m->pass_rows, m->pass_rows) != 0)
        return -1;
    if (enter(m, PHASE_ALLOCATION) != 0)
        return -1;
    free_matrices(m);
    return 0;
}

/* The forward pass for nothing, in a range that says so. */
static int rehearse(struct model *m)
{
    int result = enter(m, PHASES);

    perfkit_range_push("slow rank (planted)");
    for (uint32_t pass = 0; pass < m->passes && result == 0; pass++) {
        if (allocate_matrices(m) != 0 || write_tokens(m, pass) != 0 ||
            enter(m, PHASE_FORWARD) != 0 || pass_embed(m) != 0 || pass_forward(m) != 0)
            result = -1;
        free_matrices(m);
    }
    if (enter(m, PHASES) != 0)
        result = -1;
    perfkit_range_pop();
    return result;
}

static int run_step(struct model *m)
{
    struct session *session = m->session;

    for (uint32_t i = 0; m->exchange && i < m->exchange->rehearsals; i++)
        if (rehearse(m) != 0)
            return -1;
    if (enter(m, PHASE_UPDATE) != 0 ||
        session_clear(session, session->queue, m->buffer[GRADIENT]) != 0)
        return -1;
    for (uint32_t pass = 0; pass < m->passes; pass++) {
        m->last_pass = pass + 1 == m->passes;
        if (run_pass(m, pass) != 0)
            return -1;
    }
    if (m->exchange &&
        (enter(m, PHASE_EXCHANGE) != 0 || m->exchange->finish(m->exchange->context) != 0))
        return -1;
    if (enter(m, PHASE_UPDATE) != 0 || pass_update(m) != 0)
        return -1;
    if (!m->form.blocking && read_losses(m, m->losses, rows_of(&m->shape)) != 0)
        return -1;
    if (enter(m, PHASE_WAIT) != 0)
        return -1;
    return dev_queue_finish(session->queue);
}

static int note_loss(struct model *m)
{
    size_t rows = rows_of(&m->shape), count = m->step;
    void *curve = m->curve;
    double sum = 0, *mean;

    for (size_t row = 0; row < rows; row++)
        sum += (double)m->losses[row];
    mean = grow(&curve, &count, &m->curve_capacity, 1, sizeof *mean);
    m->curve = curve;
    if (!mean)
        return -1;
    *mean = sum / (double)rows;
    m->step++;
    return 0;
}

int model_step(struct model *m)
{
    void *times = m->times;
    bool room = grow(&times, &m->steps, &m->steps_capacity, 1, sizeof m->times[0]) != NULL;
    int result;

    m->times = times;
    if (!room)
        return -1;
    m->phase = PHASES;
    result = run_step(m);
    if (result == 0)
        result = enter(m, PHASE_HOST);
    if (result == 0)
        result = note_loss(m);
    if (enter(m, PHASES) != 0)
        result = -1;
    free_matrices(m); /* of a pass that failed */
    return result;
}

void model_component_times(const struct model *m, uint32_t steps, double ns[COMPONENTS])
{
    size_t count = steps < m->steps ? steps : m->steps;

    for (int c = 0; c < COMPONENTS; c++) {
        ns[c] = 0;
        for (size_t s = m->steps - count; s < m->steps; s++)
            ns[c] += m->times[s][c] / (double)count;
    }
}
