/* What products of matrices reach: the best that cuBLAS does, over several shapes and over all ways
 * that it has for each. It lies below the ceiling of the pipe, since a product also moves its
 * matrices, and is what a program's own products can be held against.
 *
 * The matrices hold what the ceilings' kernels multiply: random signs and mantissas, 0.5 to 1,
 * since power, and with it the clock, depends on the numbers. */
#include <stdio.h>
#include <stdlib.h>

#include "kernels/ceiling/ceiling.h"
#include "kernels/ceiling/library.h"
#include "kernels/ceiling/sustain.h"
#include "kernels/device/clock.h"

#define ROUNDS 9
#define SHAPES 6
#define TURN_NS 5000000u    /* what is timed at once: products in a row */
#define SLOW_NS 250000000.0 /* a product that takes longer is not tried */
#define REST_MS 100         /* before each shape: the clock follows the power of what went before */
#define SEARCH_NS 150000000u /* for the ways of one shape, after the first one */
#define PATTERN_BYTES ((size_t)64 << 20)

struct search {
    struct dev *dev;
    struct dev_queue *queue;
    const struct ceiling_plan *plan;
    struct library_product product;
    struct library_shape shapes[SHAPES];
    uint32_t shape_count;
    double rate; /* FLOP/s, the best so far; 0 = none */
    struct library_shape best;
    uint32_t best_way;
};

/* ---- shapes ---------------------------------------------------------------------------------- */

/* A small one, which tells which are too slow to try; squares; rows of many tokens by square
 * weights; and, of 128 rows a compute unit, a shape whose tiles come out even however many units
 * there are. A matrix takes an eighth of the memory at most. */
static void choose_shapes(struct search *s)
{
    const struct dev_info *info = dev_info(s->dev);
    const struct library_shape all[SHAPES] = {
        {2048, 2048, 2048, false},  {8192, 8192, 8192, false},
        {4096, 4096, 4096, false},  {info->compute_units * 128, 8192, 8192, false},
        {32768, 4096, 4096, false}, {16384, 16384, 16384, false}};

    s->shape_count = 0;
    if (s->plan->quick) {
        s->shapes[s->shape_count++] = (struct library_shape){512, 512, 512, false};
        return;
    }
    for (size_t i = 0; i < SHAPES; i++) {
        size_t elements[3], largest = 0;

        library_elements(&all[i], elements);
        for (int j = 0; j < 3; j++)
            largest = elements[j] > largest ? elements[j] : largest;
        if (largest * s->product.type->bytes <= info->global_bytes / 8)
            s->shapes[s->shape_count++] = all[i];
    }
}

static double flop_of(const struct library_shape *shape)
{
    return 2.0 * shape->m * shape->n * shape->k;
}

/* ---- operands -------------------------------------------------------------------------------- */

static void fill_pattern(uint32_t *words, size_t count, const struct library_type *type,
                         uint32_t seed)
{
    for (size_t i = 0; i < count; i++) {
        seed ^= seed << 13;
        seed ^= seed >> 17;
        seed ^= seed << 5;
        /* of a double the high half decides; its low half may be anything */
        words[i] = type->bytes == 8 && i % 2 == 0 ? seed : (seed & type->mask) | type->bits;
    }
}

/* A pattern from the host, and copies of it. */
static int fill(struct search *s, struct dev_buffer *buffer, size_t bytes, uint32_t seed)
{
    size_t done = bytes < PATTERN_BYTES ? bytes : PATTERN_BYTES;
    uint32_t *words = malloc(done);
    int status;

    if (!words)
        return dev_fail(s->dev, s->product.type->name, "out of memory");
    fill_pattern(words, done / 4, s->product.type, seed);
    status = dev_write(s->queue, buffer, 0, words, done, DEV_BLOCKING, NULL);
    free(words);
    for (; done < bytes && status == 0; done *= 2)
        status = dev_copy(s->queue, buffer, 0, buffer, done,
                          done < bytes - done ? done : bytes - done, NULL);
    return status;
}

static int make_operands(struct search *s)
{
    struct library_product *p = &s->product;
    size_t most[3] = {0};
    int status;

    for (uint32_t i = 0; i < s->shape_count; i++) {
        size_t elements[3];

        library_elements(&s->shapes[i], elements);
        for (int j = 0; j < 3; j++)
            most[j] = elements[j] > most[j] ? elements[j] : most[j];
    }
    status = dev_alloc(s->dev, most[0] * p->type->bytes, &p->a);
    if (status == 0)
        status = dev_alloc(s->dev, most[1] * p->type->bytes, &p->b);
    if (status == 0)
        status = dev_alloc(s->dev, most[2] * p->type->bytes_out, &p->c);
    if (status == 0)
        status = dev_alloc(s->dev, LIBRARY_WORKSPACE_BYTES, &p->workspace);
    if (status == 0)
        status = fill(s, p->a, most[0] * p->type->bytes, 12345);
    if (status == 0)
        status = fill(s, p->b, most[1] * p->type->bytes, 54321);
    return status;
}

static void free_operands(struct library_product *p)
{
    dev_free(p->workspace);
    dev_free(p->c);
    dev_free(p->b);
    dev_free(p->a);
}

/* ---- searching ------------------------------------------------------------------------------- */

static int timed(struct search *s, uint64_t *ns)
{
    struct dev_event *event = NULL;
    int status = dev_call(s->queue, library_multiply, &s->product, &event);

    if (status == 0)
        status = dev_event_wait(event);
    if (status == 0)
        status = dev_event_duration_ns(event, ns);
    dev_event_release(event);
    return status == 0 && *ns > 0 ? 0 : -1;
}

/* The best of `rounds` turns; the first call of a way loads its kernels and is not counted. */
static int try_way(struct search *s, uint32_t way, int rounds)
{
    struct library_product *p = &s->product;
    uint64_t ns = 0;

    p->way = way;
    p->repeat = 1;
    if (timed(s, &ns) != 0 || timed(s, &ns) != 0)
        return -1;
    p->repeat = ns < TURN_NS ? (uint32_t)(TURN_NS / ns) + 1 : 1;
    for (int i = 0; i < rounds; i++) {
        if (timed(s, &ns) != 0)
            return -1;
        double rate = flop_of(&p->shape) * p->repeat / ((double)ns * 1e-9);
        if (rate > s->rate) {
            s->rate = rate;
            s->best = p->shape;
            s->best_way = way;
        }
    }
    return 0;
}

static void rest(const struct search *s)
{
    if (!s->plan->quick)
        sustain_rest(REST_MS);
}

/* Ways that fail (cuBLAS names some that the operands do not allow) are passed over. */
static void try_shape(struct search *s, struct library_shape shape, bool transposed)
{
    if (s->rate > 0 && flop_of(&shape) / s->rate * 1e9 > SLOW_NS)
        return;
    rest(s);
    uint64_t start = now_ns();
    s->product.shape = shape;
    s->product.shape.transposed = transposed;
    if (library_product_open(&s->product) == 0)
        for (uint32_t way = 0; way < s->product.way_count; way++)
            if (way == 0 || now_ns() - start < SEARCH_NS)
                try_way(s, way, 2);
    library_product_close(&s->product);
}

static int enqueue(void *context, struct dev_queue *queue, struct dev_event **event)
{
    return dev_call(queue, library_multiply, context, event);
}

/* The best one again, and then for a second. */
static int run_best(struct search *s, struct ceiling_result *result)
{
    struct library_product *p = &s->product;
    char way[48] = "its own choice";
    double mean_ns = 0;
    int status;

    p->shape = s->best;
    status = library_product_open(p);
    uint32_t best_way = s->best_way;
    rest(s);
    if (status == 0)
        status = try_way(s, best_way, ROUNDS);
    uint64_t once_ns = (uint64_t)(flop_of(&p->shape) * p->repeat / s->rate * 1e9);
    if (status == 0 && !s->plan->quick)
        status = sustain(s->queue, enqueue, p, once_ns, &mean_ns);
    if (mean_ns > 0)
        result->sustained = flop_of(&p->shape) * p->repeat / (mean_ns * 1e-9);
    bool own = p->ways[0].own_choice;
    if (!own || best_way > 0)
        snprintf(way, sizeof way, "algorithm %u of %u", best_way + !own, p->way_count - own);
    result->value = s->rate;
    snprintf(result->how, sizeof result->how, "cuBLAS %d, %u x %u x %u%s, %s",
             library_version(p->library), p->shape.m, p->shape.n, p->shape.k,
             p->shape.transposed ? ", the first transposed" : "", way);
    library_product_close(p);
    return status;
}

/* ---- all of them ----------------------------------------------------------------------------- */

static int measure(struct search *s, struct ceiling_result *result)
{
    int status;

    dev_clear_error(s->dev);
    choose_shapes(s);
    status = make_operands(s);
    for (uint32_t i = 0; i < 2 * s->shape_count && status == 0; i++)
        try_shape(s, s->shapes[i / 2], i % 2 == 0);
    if (status == 0)
        status = s->rate > 0 ? run_best(s, result) : -1;
    free_operands(&s->product);
    return status;
}

int ceiling_matmul(struct dev *dev, void *object, const struct ceiling_plan *plan,
                   ceiling_seen *seen, void *user, char *why, size_t why_bytes)
{
    struct dev_queue *queue = NULL;
    struct library *library = library_open(dev, object, why, why_bytes);

    if (!library)
        return -1;
    if (dev_queue_create(dev, &queue) != 0) {
        snprintf(why, why_bytes, "%s", dev_error_text(dev));
        library_close(library);
        return -1;
    }
    for (size_t i = 0; i < library_type_count; i++) {
        const struct library_type *type = &library_types[i];
        struct search search = {.dev = dev,
                                .queue = queue,
                                .plan = plan,
                                .product = {.library = library, .type = type}};
        struct ceiling_result result = {.name = type->name, .pipe = type->pipe};

        if (!ceiling_wanted(plan, type->name) || dev_info(dev)->arch < type->least_arch)
            continue;
        result.ok = measure(&search, &result) == 0;
        if (!result.ok)
            snprintf(result.how, sizeof result.how, "%.*s", (int)sizeof result.how - 1,
                     dev_error_text(dev));
        seen(user, &result);
    }
    dev_queue_destroy(queue);
    library_close(library);
    return 0;
}

bool ceiling_matmul_wanted(const struct ceiling_plan *plan)
{
    for (size_t i = 0; i < library_type_count; i++)
        if (ceiling_wanted(plan, library_types[i].name))
            return true;
    return false;
}
