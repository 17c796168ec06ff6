/* The network on a device. A pass takes a batch of molecules, which stand one after the other as
 * if they were one molecule without edges in between: one upload of everything the batch needs,
 * the launches of all components over all its atoms and edges, one download of forces and
 * energies. The number of launches does not depend on the batch.
 */
#include <stdlib.h>
#include <string.h>

#include "perfkit/annotate.h"
#include "workloads/batched_forces/model.h"

/* ---- steps ----------------------------------------------------------------------------------- */

static int run_components(struct model *m, const struct pass *pass, enum component begin,
                          enum component end, double times[COMPONENTS])
{
    uint64_t start = now_ns();

    for (int c = (int)begin; c < (int)end; c++) {
        int result;
        uint64_t stop;

        perfkit_range_push(component_names[c]);
        result = component_functions[c](m, pass);
        if (result == 0 && m->form.apart)
            result = dev_queue_finish(m->session->queue);
        perfkit_range_pop();
        if (result != 0)
            return -1;
        stop = now_ns();
        times[c] += (double)(stop - start);
        start = stop; /* without a gap: the components sum to the step */
    }
    return 0;
}

/* The times of a new step, all zero; NULL when memory ran out. */
static double *next_times(struct model *m)
{
    if (m->steps == m->steps_capacity) {
        size_t capacity = m->steps_capacity ? 2 * m->steps_capacity : 32;
        void *times = realloc(m->times, capacity * sizeof m->times[0]);

        if (!times)
            return NULL;
        m->times = times;
        m->steps_capacity = capacity;
    }
    memset(m->times[m->steps], 0, sizeof m->times[0]);
    return m->times[m->steps++];
}

int model_step(struct model *m)
{
    double *times = next_times(m);

    if (!times)
        return -1;
    for (uint32_t p = 0; p < m->pass_count; p++)
        if (run_components(m, &m->passes[p], TRANSFER_IN, COMPONENTS, times) != 0)
            return -1;
    return 0;
}

int model_components(struct model *m, enum component begin, enum component end)
{
    double times[COMPONENTS] = {0};

    return run_components(m, m->passes, begin, end, times);
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

int model_poison(struct model *m)
{
    for (int i = 0; i < BUFFERS; i++)
        if (m->buffer[i] && dev_fill(m->session->queue, m->buffer[i], 0xff, NULL) != 0)
            return -1;
    memset(dev_host_pointer(m->host_out), 0xff, m->out_offset[OUTPUT_PARTS] * m->pass_count);
    return dev_fill(m->session->queue, m->output, 0xff, NULL);
}

void model_results(const struct model *m, uint32_t molecule, const float **energy,
                   const float **forces)
{
    uint32_t p = molecule / m->batch, first = m->passes[p].first_molecule;
    const char *out = (const char *)dev_host_pointer(m->host_out) + p * m->out_offset[OUTPUT_PARTS];

    *energy = (const float *)(const void *)(out + m->out_offset[ENERGIES]) + (molecule - first);
    *forces = (const float *)(const void *)(out + m->out_offset[FORCES]) +
              3 * (size_t)(m->set->first[molecule] - m->set->first[first]);
}

static void *read_back(struct model *m, int index, size_t bytes)
{
    void *to = malloc(bytes ? bytes : 1);

    if (to && dev_read(m->session->queue, m->buffer[index], 0, to, bytes, DEV_BLOCKING, NULL) == 0)
        return to;
    free(to);
    return NULL;
}

int64_t model_edges(struct model *m, struct edge_list *list)
{
    uint32_t atoms = m->passes[0].atoms;
    size_t edges;

    *list = (struct edge_list){0};
    list->row = read_back(m, ROW, (atoms + 1) * sizeof(uint32_t));
    if (!list->row || list->row[atoms] > m->max_edges)
        return -1;
    edges = list->row[atoms];
    list->receiver = read_back(m, RECEIVER, edges * sizeof(uint32_t));
    list->sender = read_back(m, SENDER, edges * sizeof(uint32_t));
    list->distance = read_back(m, DISTANCE, edges * sizeof(float));
    list->direction = read_back(m, DIRECTION, 3 * edges * sizeof(float));
    list->rbf = read_back(m, BASIS, edges * m->shape.functions * sizeof(float));
    if (!list->receiver || !list->sender || !list->distance || !list->direction || !list->rbf)
        return -1;
    return (int64_t)edges;
}

void edge_list_free(struct edge_list *list)
{
    free(list->row);
    free(list->receiver);
    free(list->sender);
    free(list->distance);
    free(list->direction);
    free(list->rbf);
    *list = (struct edge_list){0};
}

/* ---- setting up ------------------------------------------------------------------------------ */

static int make_passes(struct model *m)
{
    const struct molecules *set = m->set;

    m->pass_count = (set->count + m->batch - 1) / m->batch;
    m->passes = calloc(m->pass_count, sizeof m->passes[0]);
    if (!m->passes)
        return -1;
    for (uint32_t p = 0; p < m->pass_count; p++) {
        struct pass *pass = &m->passes[p];
        uint32_t first = p * m->batch, left = set->count - first, capacity;

        pass->first_molecule = first;
        pass->molecules = left < m->batch ? left : m->batch;
        pass->atoms = set->first[first + pass->molecules] - set->first[first];
        pass->edges = count_edges(set, first, first + pass->molecules, CUTOFF);
        capacity = count_edges(set, first, first + pass->molecules, CUTOFF + SKIN);
        m->max_atoms = pass->atoms > m->max_atoms ? pass->atoms : m->max_atoms;
        m->max_edges = capacity > m->max_edges ? capacity : m->max_edges;
    }
    if (m->max_edges == 0)
        m->max_edges = 1;
    return 0;
}

/* Offsets of parts of `bytes` each, aligned so that views can begin there. */
static void lay_out(const size_t *bytes, size_t parts, size_t *offset)
{
    offset[0] = 0;
    for (size_t i = 0; i < parts; i++)
        offset[i + 1] = offset[i] + (bytes[i] + DEV_VIEW_ALIGN_BYTES - 1) / DEV_VIEW_ALIGN_BYTES *
                                        DEV_VIEW_ALIGN_BYTES;
}

static int make_views(struct dev *dev, const size_t *offset, size_t parts,
                      struct dev_buffer **whole, struct dev_buffer **views)
{
    if (dev_alloc(dev, offset[parts], whole) != 0)
        return -1;
    for (size_t i = 0; i < parts; i++)
        if (dev_view(*whole, offset[i], offset[i + 1] - offset[i], &views[i]) != 0)
            return -1;
    return 0;
}

/* Writes what each pass uploads, atoms and molecules numbered from the pass's first. */
static void collate(struct model *m)
{
    const struct molecules *set = m->set;

    for (uint32_t p = 0; p < m->pass_count; p++) {
        const struct pass *pass = &m->passes[p];
        char *to = (char *)dev_host_pointer(m->host_in) + p * m->in_offset[INPUT_PARTS];
        uint32_t *molecule_of = (void *)(to + m->in_offset[MOLECULE_OF]);
        uint32_t *first = (void *)(to + m->in_offset[FIRST]);
        size_t at = set->first[pass->first_molecule];

        memset(to, 0, m->in_offset[INPUT_PARTS]);
        memcpy(to + m->in_offset[POSITIONS], set->positions + 3 * at,
               3 * pass->atoms * sizeof(float));
        memcpy(to + m->in_offset[SPECIES_OF], set->species + at, pass->atoms * sizeof(uint32_t));
        for (uint32_t i = 0; i <= pass->molecules; i++)
            first[i] = set->first[pass->first_molecule + i] - (uint32_t)at;
        for (uint32_t i = 0; i < pass->molecules; i++)
            for (uint32_t a = first[i]; a < first[i + 1]; a++)
                molecule_of[a] = i;
    }
}

static int make_transfers(struct model *m)
{
    const size_t in_bytes[INPUT_PARTS] = {[POSITIONS] = 3 * (size_t)m->max_atoms * sizeof(float),
                                          [SPECIES_OF] = m->max_atoms * sizeof(uint32_t),
                                          [MOLECULE_OF] = m->max_atoms * sizeof(uint32_t),
                                          [FIRST] = ((size_t)m->batch + 1) * sizeof(uint32_t)};
    const size_t out_bytes[OUTPUT_PARTS] = {
        [FORCES] = 3 * (size_t)m->max_atoms * sizeof(float), [ENERGIES] = m->batch * sizeof(float)};
    struct dev *dev = m->session->dev;

    lay_out(in_bytes, INPUT_PARTS, m->in_offset);
    lay_out(out_bytes, OUTPUT_PARTS, m->out_offset);
    if (make_views(dev, m->in_offset, INPUT_PARTS, &m->input, m->in) != 0 ||
        make_views(dev, m->out_offset, OUTPUT_PARTS, &m->output, m->out) != 0 ||
        dev_alloc_host(dev, m->in_offset[INPUT_PARTS] * m->pass_count, &m->host_in) != 0 ||
        dev_alloc_host(dev, m->out_offset[OUTPUT_PARTS] * m->pass_count, &m->host_out) != 0)
        return -1;
    collate(m);
    return 0;
}

static int make_buffers(struct model *m)
{
    size_t atoms = m->max_atoms, e = m->max_edges, width = m->shape.width;
    size_t basis = e * m->shape.functions, features = atoms * width;
    size_t floats[BUFFERS] = {
        [COUNT] = atoms,     [ROW] = atoms + 1,   [RECEIVER] = e,      [SENDER] = e,
        [DISTANCE] = e,      [DIRECTION] = 3 * e, [BASIS] = basis,     [A] = features,
        [DA] = features,     [G] = features,      [HIDDEN] = features, [BASIS_GRADIENT] = basis,
        [PAIR_GRADIENT] = e, [H] = features};

    if (!m->form.edges_fused)
        floats[SENDER_POSITION] = floats[RECEIVER_POSITION] = floats[VECTOR] = 3 * e;
    if (!m->form.rbf_fused)
        floats[CUT] = e;
    for (uint32_t l = 0; l < m->shape.layers; l++) {
        floats[H + l + 1] = floats[Z + l] = features;
        floats[FILTER + l] = e * width;
    }
    for (int i = 0; i < BUFFERS; i++)
        if (floats[i] && dev_alloc(m->session->dev, 4 * floats[i], &m->buffer[i]) != 0)
            return -1;
    return 0;
}

static int upload(struct model *m, int index, const float *from, size_t count)
{
    struct dev_buffer **to = &m->weight[index];

    if (dev_alloc(m->session->dev, count * sizeof from[0], to) != 0)
        return -1;
    return dev_write(m->session->queue, *to, 0, from, count * sizeof from[0], DEV_BLOCKING, NULL);
}

static int upload_weights(struct model *m, const struct network *n)
{
    size_t width = n->width, square = width * width, filter = width * n->functions;

    if (upload(m, EMBEDDING, n->embedding, SPECIES * width) != 0 ||
        upload(m, READOUT_WEIGHT, n->readout, square) != 0 ||
        upload(m, READOUT_TRANSPOSED, n->readout_transposed, square) != 0 ||
        upload(m, READOUT_BIAS, n->readout_bias, width) != 0 ||
        upload(m, ENERGY, n->energy, width) != 0)
        return -1;
    for (uint32_t l = 0; l < n->layers; l++) {
        const struct layer *layer = &n->layer[l];
        int base = LAYER_WEIGHTS + 5 * (int)l;

        if (upload(m, base + FILTER_W, layer->filter, filter) != 0 ||
            upload(m, base + FILTER_T, layer->filter_transposed, filter) != 0 ||
            upload(m, base + UPDATE_W, layer->update, square) != 0 ||
            upload(m, base + UPDATE_T, layer->update_transposed, square) != 0 ||
            upload(m, base + BIAS, layer->bias, width) != 0)
            return -1;
    }
    return 0;
}

int model_open(struct session *session, const struct molecules *set, const struct network *network,
               struct model_form form, uint32_t batch, struct model **out)
{
    struct model *m = calloc(1, sizeof *m);

    if (!m)
        return -1;
    m->session = session;
    m->set = set;
    m->shape = *network;
    m->form = form;
    m->batch = batch < set->count ? batch : set->count;
    if (make_passes(m) != 0 || make_transfers(m) != 0 || make_buffers(m) != 0 ||
        upload_weights(m, network) != 0 || model_find_kernels(m) != 0) {
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
    for (int i = 0; i < BUFFERS; i++)
        dev_free(m->buffer[i]);
    for (int i = 0; i < WEIGHTS; i++)
        dev_free(m->weight[i]);
    for (int i = 0; i < INPUT_PARTS; i++)
        dev_free(m->in[i]);
    for (int i = 0; i < OUTPUT_PARTS; i++)
        dev_free(m->out[i]);
    dev_free(m->input);
    dev_free(m->output);
    dev_free_host(m->host_in);
    dev_free_host(m->host_out);
    free(m->passes);
    free(m->times);
    free(m);
}
