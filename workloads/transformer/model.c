/* A model on a device: its memory, its first weights, and reading them back. */
#include <stdlib.h>
#include <string.h>

#include "workloads/transformer/attention.h"
#include "workloads/transformer/model.h"

const char *const component_names[COMPONENTS] = {
    [TRANSFER_IN] = "transfer in", [COMPUTE] = "compute", [TRANSFER_OUT] = "transfer out",
    [ALLOCATION] = "allocation",   [HOST] = "host",
};

static void size_matrices(struct model *m)
{
    const struct shape *s = &m->shape;
    size_t rows = m->pass_rows, features = rows * s->width;

    m->floats[INPUT] = features;
    m->floats[LOGITS] = rows * s->vocabulary;
    for (uint32_t l = 0; l < s->layers; l++) {
        for (int which = 0; which < PER_LAYER; which++)
            m->floats[layer_matrix(l, (enum layer_matrix)which)] = features;
        m->floats[layer_matrix(l, QKV)] = 3 * features;
        m->floats[layer_matrix(l, SCORES)] = attention_scores(s, m->pass_sequences);
        m->floats[layer_matrix(l, HIDDEN)] = rows * s->hidden;
    }
}

static int make_buffers(struct model *m)
{
    const struct shape *s = &m->shape;
    size_t rows = m->pass_rows, features = rows * s->width, weights = m->layout.count;
    size_t floats[BUFFERS] = {
        [WEIGHTS] = weights,
        [GRADIENT] = weights,
        [MEAN] = weights,
        [SQUARE] = weights,
        [TOKENS] = (size_t)m->pass_sequences * (s->length + 1),
        [LOSSES] = rows_of(s),
        [G] = features,
        [CONTEXT_GRADIENT] = features,
        [QKV_GRADIENT] = 3 * features,
        [SCORE_GRADIENT] = attention_scores(s, m->pass_sequences),
        [PARTS] = m->library ? rows * s->hidden : matmul_parts_floats(dev_info(m->session->dev)),
    };

    for (uint32_t l = 0; l < s->layers; l++)
        floats[STATS + 2 * l] = floats[STATS + 2 * l + 1] = 2 * rows;
    for (int i = 0; i < BUFFERS; i++)
        if (floats[i] && dev_alloc(m->session->dev, 4 * floats[i], &m->buffer[i]) != 0)
            return -1;
    return 0;
}

/* What the host needs; page-locked where the form does not wait for copies. */
static int make_host_memory(struct model *m)
{
    const struct shape *s = &m->shape;
    size_t token_bytes = CORPUS_BATCHES * batch_tokens(s) * sizeof(uint32_t);
    size_t loss_bytes = rows_of(s) * sizeof(float);
    size_t tables = (size_t)m->layout.positions + (size_t)s->length * s->width;
    struct dev *dev = m->session->dev;

    if (m->form.blocking) {
        m->losses = malloc(loss_bytes);
    } else {
        if (dev_alloc_host(dev, token_bytes, &m->host_tokens) != 0 ||
            dev_alloc_host(dev, loss_bytes, &m->host_losses) != 0)
            return -1;
        memcpy(dev_host_pointer(m->host_tokens), m->corpus, token_bytes);
        m->losses = dev_host_pointer(m->host_losses);
    }
    if (m->form.embed_host) {
        m->tables = malloc(tables * sizeof(float));
        m->gathered = malloc((size_t)m->pass_rows * s->width * sizeof(float));
    }
    if (m->form.loss_host)
        m->probabilities = malloc((size_t)m->pass_rows * s->vocabulary * sizeof(float));
    if (m->losses && (!m->form.embed_host || (m->tables && m->gathered)) &&
        (!m->form.loss_host || m->probabilities))
        return 0;
    return dev_fail(dev, "model", "out of host memory");
}

int model_open(struct session *session, const struct shape *shape, struct form form,
               const float *weights, const uint32_t *corpus, struct model **out, char *why,
               size_t why_bytes)
{
    struct model *m;
    struct gemm_library *library = NULL;

    *out = NULL;
    if (form.tiles == TILES_LIBRARY) {
        library = gemm_library_open(session->dev, why, why_bytes);
        if (!library)
            return UNAVAILABLE;
    }
    m = calloc(1, sizeof *m);
    if (!m) {
        gemm_library_close(library);
        return dev_fail(session->dev, "model", "out of host memory");
    }
    m->library = library;
    m->session = session;
    m->shape = *shape;
    m->layout = layout_of(shape);
    m->form = form;
    m->initial = weights;
    m->corpus = corpus;
    m->phase = PHASES;
    m->pass_sequences = form.batched ? shape->sequences : 1;
    m->passes = shape->sequences / m->pass_sequences;
    m->pass_rows = m->pass_sequences * shape->length;
    size_matrices(m);
    if (model_find_kernels(m) != 0 || make_buffers(m) != 0 || make_host_memory(m) != 0 ||
        (!form.alloc_per_op && dev_pool_create(session->dev, &m->pool) != 0) ||
        model_reset(m, false) != 0) {
        model_close(m);
        return -1;
    }
    *out = m;
    return 0;
}

void model_close(struct model *m)
{
    if (!m)
        return;
    gemm_library_close(m->library);
    dev_pool_destroy(m->pool);
    for (int i = 0; i < BUFFERS; i++)
        dev_free(m->buffer[i]);
    dev_free_host(m->host_tokens);
    dev_free_host(m->host_losses);
    if (m->form.blocking)
        free(m->losses);
    free(m->tables);
    free(m->gathered);
    free(m->probabilities);
    free(m->curve);
    free(m->times);
    free(m);
}

void model_set_exchange(struct model *m, const struct model_exchange *exchange)
{
    m->exchange = exchange;
}

struct dev_buffer *model_gradient(const struct model *m)
{
    return m->buffer[GRADIENT];
}

int model_reset(struct model *m, bool poison)
{
    struct dev_queue *queue = m->session->queue;

    m->step = 0;
    m->poison = poison;
    if (poison) {
        memset(m->losses, 0xff, rows_of(&m->shape) * sizeof(float));
        for (int i = 0; i < BUFFERS; i++)
            if (m->buffer[i] && dev_fill(queue, m->buffer[i], 0xff, NULL) != 0)
                return -1;
    }
    if (dev_fill(queue, m->buffer[MEAN], 0, NULL) != 0 ||
        dev_fill(queue, m->buffer[SQUARE], 0, NULL) != 0)
        return -1;
    return dev_write(queue, m->buffer[WEIGHTS], 0, m->initial, m->layout.count * sizeof(float),
                     DEV_BLOCKING, NULL);
}

const float *model_losses(const struct model *m)
{
    return m->losses;
}

const double *model_curve(const struct model *m, size_t *steps)
{
    *steps = m->step;
    return m->curve;
}

int model_read_gradient(struct model *m, float *out)
{
    return dev_read(m->session->queue, m->buffer[GRADIENT], 0, out, m->layout.count * sizeof(float),
                    DEV_BLOCKING, NULL);
}

int model_read_weights(struct model *m, float *out)
{
    return dev_read(m->session->queue, m->buffer[WEIGHTS], 0, out, m->layout.count * sizeof(float),
                    DEV_BLOCKING, NULL);
}

uint64_t model_pool_allocations(const struct model *m)
{
    return m->pool ? dev_pool_stats(m->pool).allocations : 0;
}
