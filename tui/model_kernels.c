/* Kernels, from the table `rollup`: a row is what one launch configuration did on one stream within
 * one second. Rows of the last seconds still change and are read again each time; of the others the
 * totals are kept, and the last minute for windows and sparklines. A capture without `rollup` is
 * read kernel by kernel into the same rows. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/base/clock.h"
#include "libprof/base/saturate.h"
#include "tui/model.h"

#define CHUNK 2048
#define MOST_YOUNG 60000  /* rows that are read again at each look */
#define MOST_ROWS 120000u /* of 250 bytes */
#define NO_ROW UINT32_MAX

double tui_quantile(const struct tui_sum *sum, double share)
{
    uint64_t total = 0, seen = 0;
    for (int i = 0; i < PROF_LIVE_BUCKETS; i++)
        total += sum->histogram.counts[i];
    if (!total || sum->count <= 0)
        return NAN;
    for (int i = 0; i < PROF_LIVE_BUCKETS; i++) {
        uint64_t before = seen, count = sum->histogram.counts[i];
        seen += count;
        if ((double)seen >= share * (double)total && seen > 0) {
            /* As many as the rank says of what is spread evenly, by its logarithm, in the bucket.
             */
            double low = fmax(ldexp(1, i), (double)sum->min_ns);
            double high = fmin(ldexp(2, i), (double)sum->max_ns);
            double part = (share * (double)total - (double)before) / (double)(count ? count : 1);
            return fmin(fmax(low * pow(high / low, part), (double)sum->min_ns),
                        (double)sum->max_ns);
        }
    }
    return (double)sum->max_ns;
}

static void sum_add(struct tui_sum *to, const struct tui_sum *what)
{
    if (what->count > 0) {
        to->min_ns = to->count && to->min_ns < what->min_ns ? to->min_ns : what->min_ns;
        to->max_ns = to->count && to->max_ns > what->max_ns ? to->max_ns : what->max_ns;
    }
    to->count = prof_add(to->count, what->count);
    to->sum_ns = prof_add(to->sum_ns, what->sum_ns);
    for (int i = 0; i < PROF_LIVE_BUCKETS; i++)
        to->histogram.counts[i] += what->histogram.counts[i];
}

void tui_work_add(struct tui_work *to, const struct tui_work *what)
{
    to->count = prof_add(to->count, what->count);
    to->ns = prof_add(to->ns, what->ns);
    to->bytes = prof_add(to->bytes, what->bytes);
    to->rated_bytes = prof_add(to->rated_bytes, what->rated_bytes);
    to->rated_ns = prof_add(to->rated_ns, what->rated_ns);
}

/* ---- what a row belongs to ------------------------------------------------------------------- */

static bool kernel_of_config(struct tui_model *model, int64_t config, uint32_t *number)
{
    const struct prof_config *its = prof_config(model->capture, config);
    const char *name = its && its->name ? its->name : "";
    size_t length = strlen(name);
    uint32_t *known = prof_names_get(&model->kernel_names, name, length);
    if (known) {
        *number = *known;
        return true;
    }
    char *copy = strdup(name);
    struct tui_kernel *kernel = copy ? prof_array_add(&model->kernels) : NULL;
    *number = (uint32_t)(model->kernels.count - 1);
    if (!kernel) {
        free(copy);
        return false;
    }
    *kernel = (struct tui_kernel){.name = copy, .config = config};
    return prof_names_put(&model->kernel_names, name, length, *number);
}

/* A configuration may run on many streams. */
static bool count_config(struct tui_model *model, const struct tui_cell *fresh)
{
    if (prof_map_get(&model->seen_configs, (uint64_t)fresh->config))
        return true;
    model->kernels.data[fresh->kernel].configs++;
    return prof_map_put(&model->seen_configs, (uint64_t)fresh->config, 1);
}

static struct tui_cell *cell_of(struct tui_model *model, int64_t config, int64_t stream)
{
    const struct prof_config *its = prof_config(model->capture, config);
    config = its ? its->id : config; /* one for all that the capture does not distinguish */
    const int64_t key[2] = {config, stream};
    uint32_t *known = prof_names_get(&model->cell_keys, (const char *)key, sizeof key);
    if (known)
        return &model->cells.data[*known];
    if (model->most_cells && model->cells.count >= model->most_cells &&
        config != PROF_OTHER_CONFIGS)
        return cell_of(model, PROF_OTHER_CONFIGS, stream);
    uint32_t kernel;
    struct tui_cell *cell =
        kernel_of_config(model, config, &kernel) ? prof_array_add(&model->cells) : NULL;
    if (!cell || !prof_names_put(&model->cell_keys, (const char *)key, sizeof key,
                                 (uint32_t)model->cells.count - 1))
        return NULL;
    *cell = (struct tui_cell){.config = config, .stream = stream, .kernel = kernel, .row = NO_ROW};
    return count_config(model, cell) ? cell : NULL;
}

/* ---- rows ------------------------------------------------------------------------------------ */

struct reading {
    struct tui_model *model;
    size_t at; /* in model->seconds: the first row that may be the next one read */
    int64_t last;
    size_t rows;
};

static void add_to(struct tui_sum *to, const struct prof_live_sum *sum,
                   const struct tui_second *old)
{
    struct tui_sum change = {.count = sum->count - (old ? old->count : 0),
                             .sum_ns = prof_subtract(sum->sum_ns, old ? old->sum_ns : 0)};
    for (int i = 0; i < PROF_LIVE_BUCKETS; i++)
        change.histogram.counts[i] = (uint64_t)sum->histogram[i] - (old ? old->counts[i] : 0);
    if (change.count <= 0)
        return;
    change.min_ns = sum->min_ns;
    change.max_ns = sum->max_ns;
    sum_add(to, &change);
}

static void store_kernel_second(struct tui_second *row, const struct prof_live_sum *sum,
                                uint32_t cell)
{
    *row = (struct tui_second){.id = sum->id,
                               .second = sum->second,
                               .cell = cell,
                               .count = sum->count,
                               .sum_ns = sum->sum_ns,
                               .min_ns = sum->min_ns,
                               .max_ns = sum->max_ns};
    memcpy(row->counts, sum->histogram, sizeof row->counts);
}

/* The cell of a sum that was read; NULL: it cannot be (*failed = false), or no memory. */
static struct tui_cell *cell_of_sum(struct reading *reading, struct prof_live_sum *sum,
                                    bool *failed)
{
    reading->last = sum->id;
    reading->rows++;
    if (sum->second < 0)
        sum->second = 0;
    if (sum->second > TUI_MOST_SECONDS)
        sum->second = TUI_MOST_SECONDS;
    *failed = false;
    if (sum->count <= 0 || sum->sum_ns < 0)
        return NULL;
    struct tui_cell *cell = cell_of(reading->model, sum->config, sum->stream);
    *failed = !cell;
    if (cell && sum->second > reading->model->newest_second)
        reading->model->newest_second = sum->second;
    return cell;
}

static bool add_live_sum(void *context, const struct prof_live_sum *given)
{
    struct reading *reading = context;
    struct tui_model *model = reading->model;
    struct prof_live_sum sum = *given;
    bool failed;
    struct tui_cell *cell = cell_of_sum(reading, &sum, &failed);
    if (!cell)
        return !failed;
    uint32_t number = (uint32_t)(cell - model->cells.data);
    while (reading->at < model->seconds.count && model->seconds.data[reading->at].id < sum.id)
        reading->at++;
    struct tui_second *old =
        reading->at < model->seconds.count && model->seconds.data[reading->at].id == sum.id
            ? &model->seconds.data[reading->at]
            : NULL;
    add_to(&cell->total, &sum, old);
    if (old) {
        store_kernel_second(old, &sum, number);
        return true;
    }
    struct tui_second *row = prof_array_add(&model->seconds);
    if (row)
        store_kernel_second(row, &sum, number);
    reading->at = model->seconds.count;
    return row;
}

/* One kernel, into the row of its second: the youngest of its cell, or a new one. */
static bool take_kernel(void *context, const struct prof_live_sum *given)
{
    struct reading *reading = context;
    struct tui_model *model = reading->model;
    struct prof_live_sum sum = *given;
    bool failed;
    struct tui_cell *cell = cell_of_sum(reading, &sum, &failed);
    if (!cell)
        return !failed;
    add_to(&cell->total, &sum, NULL);
    struct tui_second *row =
        cell->row != NO_ROW && model->seconds.data[cell->row].second == sum.second
            ? &model->seconds.data[cell->row]
            : NULL;
    if (!row) {
        row = prof_array_add(&model->seconds);
        if (!row)
            return false;
        cell->row = (uint32_t)(model->seconds.count - 1);
        store_kernel_second(row, &sum, (uint32_t)(cell - model->cells.data));
        return true;
    }
    row->count++;
    row->sum_ns = prof_add(row->sum_ns, sum.sum_ns);
    row->min_ns = sum.min_ns < row->min_ns ? sum.min_ns : row->min_ns;
    row->max_ns = sum.max_ns > row->max_ns ? sum.max_ns : row->max_ns;
    for (int i = 0; i < PROF_LIVE_BUCKETS; i++)
        row->counts[i] += sum.histogram[i];
    return true;
}

int64_t tui_last_second(const struct tui_model *model)
{
    return model->now_ns != PROF_UNKNOWN && model->now_ns >= 0 ? model->now_ns / 1000000000
                                                               : model->newest_second;
}

int64_t tui_first_second(const struct tui_model *model)
{
    int64_t last = tui_last_second(model);
    return model->window_s && last > (int64_t)model->window_s ? last - (int64_t)model->window_s : 0;
}

/* Rows up to `settled` will not change: none before the first young one. */
static void sort_new_seconds(struct tui_model *model)
{
    size_t from = model->seconds.count;
    while (from > 0 && model->seconds.data[from - 1].id > model->settled)
        from--;
    size_t young = model->seconds.count - from;
    for (; from < model->seconds.count; from++, young--) {
        const struct tui_second *row = &model->seconds.data[from];
        if (row->second >= model->newest_second - PROF_LIVE_YOUNG_SECONDS && young <= MOST_YOUNG)
            break;
        model->settled = row->id;
    }
}

static void drop_old_kernel_seconds(struct tui_model *model)
{
    int64_t oldest = tui_last_second(model) - TUI_RING_SECONDS;
    size_t kept = 0, count = model->seconds.count;
    for (size_t i = 0; i < count; i++) {
        const struct tui_second *row = &model->seconds.data[i];
        bool final = !model->from_rollup || row->id <= model->settled;
        if (final && (row->second < oldest || count - i > MOST_ROWS || model->most_cells))
            continue;
        model->seconds.data[kept++] = *row;
    }
    if (kept == count)
        return;
    model->seconds.count = kept;
    for (size_t i = 0; i < model->cells.count; i++)
        model->cells.data[i].row = NO_ROW;
    for (size_t i = 0; !model->from_rollup && i < kept; i++)
        model->cells.data[model->seconds.data[i].cell].row = (uint32_t)i;
}

bool tui_kernels_feed(struct tui_model *model, int64_t deadline, enum prof_status *status,
                      struct prof_error *err)
{
    struct reading reading = {.model = model};
    int64_t from = model->from_rollup ? model->settled : model->marks.kernels;
    while (reading.at < model->seconds.count && model->seconds.data[reading.at].id <= from)
        reading.at++;
    bool over;
    do {
        reading.rows = 0;
        reading.last = from;
        *status = (model->from_rollup ? prof_live_sums : prof_live_kernels)(
            model->capture, from, CHUNK, model->from_rollup ? add_live_sum : take_kernel, &reading,
            err);
        from = reading.last;
        over = reading.rows < CHUNK;
        if (model->seconds.count > (model->most_cells ? 4 * CHUNK : MOST_ROWS)) {
            sort_new_seconds(model);
            drop_old_kernel_seconds(model);
            reading.at = model->seconds.count;
        }
    } while (!*status && !over && (int64_t)prof_now_ns() < deadline);
    if (model->from_rollup) {
        if (from > model->marks.sums)
            model->marks.sums = from;
        sort_new_seconds(model);
    } else
        model->marks.kernels = from;
    drop_old_kernel_seconds(model);
    return over;
}

/* ---- windows --------------------------------------------------------------------------------- */

static void add_kernel_second(struct tui_sum *to, const struct tui_second *row)
{
    struct tui_sum what = {row->count, row->sum_ns, row->min_ns, row->max_ns, {{0}}};
    for (int i = 0; i < PROF_LIVE_BUCKETS; i++)
        what.histogram.counts[i] = row->counts[i];
    sum_add(to, &what);
}

void tui_spark_add(const struct tui_model *model, uint32_t spark_us[TUI_SPARK], int64_t second,
                   int64_t ns)
{
    int64_t age = tui_last_second(model) - second;
    if (age < 0 || age >= TUI_SPARK)
        return;
    uint32_t *slot = &spark_us[TUI_SPARK - 1 - age];
    int64_t sum = (int64_t)*slot + ns / 1000;
    *slot = sum > UINT32_MAX ? UINT32_MAX : (uint32_t)sum;
}

static void clear(struct tui_model *model)
{
    model->total = model->window = (struct tui_sum){0};
    for (size_t i = 0; i < model->kernels.count; i++) {
        struct tui_kernel *kernel = &model->kernels.data[i];
        kernel->total = kernel->window = (struct tui_sum){0};
        memset(kernel->spark_us, 0, sizeof kernel->spark_us);
    }
    for (size_t i = 0; i < model->streams.count; i++) {
        struct tui_stream *stream = &model->streams.data[i];
        stream->kernels = stream->window_kernels = (struct tui_work){0};
        stream->last_second = PROF_UNKNOWN;
        memset(stream->spark_us, 0, sizeof stream->spark_us);
    }
    for (size_t i = 0; i < model->processes.count; i++) {
        struct tui_process *process = &model->processes.data[i];
        process->kernels = process->window_kernels = (struct tui_work){0};
    }
}

static void add_cell(struct tui_model *model, const struct tui_cell *cell)
{
    struct tui_kernel *kernel = &model->kernels.data[cell->kernel];
    const struct tui_work total = {.count = cell->total.count, .ns = cell->total.sum_ns};
    const struct tui_work window = {.count = cell->window.count, .ns = cell->window.sum_ns};
    struct tui_process *process;
    struct tui_stream *stream = tui_stream_of(model, cell->stream, &process);
    sum_add(&kernel->total, &cell->total);
    sum_add(&kernel->window, &cell->window);
    if (stream) {
        tui_work_add(&stream->kernels, &total);
        tui_work_add(&stream->window_kernels, &window);
    }
    if (process) {
        tui_work_add(&process->kernels, &total);
        tui_work_add(&process->window_kernels, &window);
    }
}

int64_t tui_recorded_ns(const struct tui_model *model, int64_t begin_ns, int64_t end_ns)
{
    int64_t length = end_ns > begin_ns ? prof_subtract(end_ns, begin_ns) : 0;
    for (size_t i = model->unrecorded.count; i-- > 0;) {
        const struct prof_unrecorded *gap = &model->unrecorded.data[i];
        int64_t from = gap->begin_ns > begin_ns ? gap->begin_ns : begin_ns;
        int64_t to = gap->end_ns < end_ns ? gap->end_ns : end_ns;
        if (gap->end_ns <= begin_ns)
            break;
        length -= to > from ? to - from : 0;
    }
    return length;
}

/* The whole seconds of the window and the running one. */
static double window_length(const struct tui_model *model)
{
    if (model->now_ns == PROF_UNKNOWN)
        return NAN;
    double length =
        (double)tui_recorded_ns(model, tui_first_second(model) * 1000000000, model->now_ns) / 1e9;
    return length > 1e-9 ? length : NAN;
}

void tui_model_window(struct tui_model *model, unsigned seconds)
{
    model->window_s = seconds;
    model->window_length_s = window_length(model);
    clear(model);
    int64_t first = tui_first_second(model);
    for (size_t i = 0; i < model->cells.count; i++)
        model->cells.data[i].window = seconds ? (struct tui_sum){0} : model->cells.data[i].total;
    for (size_t i = 0; i < model->seconds.count; i++) {
        const struct tui_second *row = &model->seconds.data[i];
        struct tui_cell *cell = &model->cells.data[row->cell];
        struct tui_stream *stream = (struct tui_stream *)tui_model_stream(model, cell->stream);
        if (seconds && row->second >= first)
            add_kernel_second(&cell->window, row);
        if (stream && (stream->last_second == PROF_UNKNOWN || row->second > stream->last_second))
            stream->last_second = row->second;
        tui_spark_add(model, model->kernels.data[cell->kernel].spark_us, row->second, row->sum_ns);
        if (stream)
            tui_spark_add(model, stream->spark_us, row->second, row->sum_ns);
    }
    for (size_t i = 0; i < model->cells.count; i++)
        add_cell(model, &model->cells.data[i]);
    for (size_t i = 0; i < model->kernels.count; i++) {
        sum_add(&model->total, &model->kernels.data[i].total);
        sum_add(&model->window, &model->kernels.data[i].window);
    }
    tui_copies_window(model);
    tui_memory_window(model);
}
