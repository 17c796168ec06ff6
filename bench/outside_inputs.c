/* Inputs of the programs of bench/outside_pairs, which has theirs left out: as large as the
 * published ones and of their kind, from a fixed seed, so that two forms of a program read the
 * same.
 *
 *     outside_inputs graph|tree|mesh|matrix|symbols|film|image FILE [SIZE]
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t state = 7;

static uint32_t draw(uint32_t below)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((state >> 33) % below);
}

static void *allocate(size_t count, size_t bytes)
{
    void *memory = calloc(count, bytes);
    if (!memory)
        exit(1);
    return memory;
}

/* Of `nodes` nodes with two to four edges of their own, each of which leads back too: six on
 * average. */
static void write_graph(FILE *out, uint32_t nodes)
{
    uint32_t count = 0, *from = allocate((size_t)nodes * 4, sizeof *from),
             *to = allocate((size_t)nodes * 4, sizeof *to);
    uint32_t *starts = allocate((size_t)nodes + 1, sizeof *starts),
             *next = allocate(nodes, sizeof *next);
    for (uint32_t i = 0; i < nodes; i++) {
        for (uint32_t edges = 2 + draw(3); edges; edges--) {
            from[count] = i;
            to[count] = draw(nodes);
            starts[from[count] + 1]++;
            starts[to[count] + 1]++;
            count++;
        }
    }
    for (uint32_t i = 0; i < nodes; i++) {
        starts[i + 1] += starts[i];
        next[i] = starts[i];
    }
    uint32_t *edges = allocate((size_t)count * 2, sizeof *edges);
    for (uint32_t i = 0; i < count; i++) {
        edges[next[from[i]]++] = to[i];
        edges[next[to[i]]++] = from[i];
    }
    fprintf(out, "%u\n", nodes);
    for (uint32_t i = 0; i < nodes; i++)
        fprintf(out, "%u %u\n", starts[i], starts[i + 1] - starts[i]);
    fprintf(out, "\n0\n\n%u\n", count * 2);
    for (uint32_t i = 0; i < count * 2; i++)
        fprintf(out, "%u 1\n", edges[i]);
}

static void write_tree(FILE *out, uint32_t keys)
{
    fprintf(out, "%u\n", keys);
    for (uint32_t i = 1; i <= keys; i++)
        fprintf(out, "%u\n", i);
}

/* A square grid in which neighbours are near each other, but not next to each other: numbers are
 * drawn anew within 512 of them. The normals of an element add up to nothing, so that the flow
 * stays as it begins. */
static void write_mesh(FILE *out, uint32_t elements)
{
    enum { NEAR = 512 };
    static const int sides[4][2] = {{1, 0}, {-1, 0}, {0, 1}, {0, -1}};
    int wide = 1;
    while ((uint32_t)(wide * wide) < elements)
        wide++;
    uint32_t *place = allocate(elements, sizeof *place), *at = allocate(elements, sizeof *at);
    for (uint32_t i = 0; i < elements; i++)
        at[i] = i;
    for (uint32_t i = 0; i < elements; i++) {
        uint32_t first = i / NEAR * NEAR, last = first + NEAR < elements ? first + NEAR : elements;
        uint32_t other = first + draw(last - first), held = at[i];
        at[i] = at[other];
        at[other] = held;
    }
    for (uint32_t i = 0; i < elements; i++)
        place[at[i]] = i;
    fprintf(out, "%u\n", elements);
    for (uint32_t i = 0; i < elements; i++) {
        int x = (int)at[i] % wide, y = (int)at[i] / wide;
        fprintf(out, "0.001");
        for (int side = 0; side < 4; side++) {
            int to_x = x + sides[side][0], to_y = y + sides[side][1];
            int64_t to = (int64_t)to_y * wide + to_x;
            int is_inside = to_x >= 0 && to_x < wide && to_y >= 0 && to < (int64_t)elements;
            fprintf(out, " %d %f %f 0.0", is_inside ? (int)place[to] + 1 : -2,
                    0.03 * sides[side][0], 0.03 * sides[side][1]);
        }
        fprintf(out, "\n");
    }
}

static void write_matrix(FILE *out, uint32_t values)
{
    for (uint32_t i = 0; i < values; i++)
        fprintf(out, "%f\n", 320 + draw(1000) / 100.0);
}

/* Bytes of some 2.2 bits of entropy. */
static void write_symbols(FILE *out, uint32_t bytes)
{
    for (uint32_t i = 0; i < bytes; i++) {
        int symbol = 0;
        while (symbol < 15 && draw(100) < 55)
            symbol++;
        fputc(symbol, out);
    }
}

static void put_word(FILE *out, uint32_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        fputc((int)(value >> 8 * i & 255), out);
}

/* An AVI file of uncompressed grey frames, 656 x 744 as in the published film. */
static void write_film(FILE *out, uint32_t frames)
{
    enum { HIGH = 656, WIDE = 744, HEADER = 4 + 8 + 56 + 8 + 4 + 8 + 56 + 8 + 40 };
    uint32_t size = HIGH * WIDE, movie = 4 + frames * (8 + size);
    unsigned char *frame = allocate(HIGH, WIDE);
    fputs("RIFF", out);
    put_word(out, 4 + 8 + HEADER + 8 + movie + 8 + 16 * frames, 4);
    fputs("AVI LIST", out);
    put_word(out, HEADER, 4);
    fputs("hdrlavih", out);
    uint32_t main_header[15] = {56, 40000, size * 25, 0, 0x10, frames, 0, 1, size, WIDE, HIGH};
    for (int i = 0; i < 15; i++)
        put_word(out, main_header[i], 4);
    fputs("LIST", out);
    put_word(out, 4 + 8 + 56 + 8 + 40, 4);
    fputs("strlstrh", out);
    put_word(out, 56, 4);
    fputs("vids", out);
    uint32_t stream_header[12] = {0, 0, 0, 0, 1, 25, 0, frames, size, 10000, 0, 0};
    put_word(out, 0, 4);
    for (int i = 1; i < 12; i++)
        put_word(out, stream_header[i], 4);
    put_word(out, WIDE | HIGH << 16, 4);
    fputs("strf", out);
    uint32_t format[11] = {40, 40, WIDE, HIGH, 1 | 8 << 16, 0, size};
    for (int i = 0; i < 11; i++)
        put_word(out, format[i], 4);
    fputs("LIST", out);
    put_word(out, movie, 4);
    fputs("movi", out);
    for (uint32_t n = 0; n < frames; n++) {
        for (uint32_t i = 0; i < size; i++)
            frame[i] = (unsigned char)(i < WIDE || draw(4) == 0 ? draw(256) : frame[i - WIDE]);
        fputs("00db", out);
        put_word(out, size, 4);
        fwrite(frame, 1, size, out);
    }
    fputs("idx1", out);
    put_word(out, 16 * frames, 4);
    for (uint32_t n = 0; n < frames; n++) {
        fputs("00db", out);
        put_word(out, 0x10, 4);
        put_word(out, 4 + n * (8 + size), 4);
        put_word(out, size, 4);
    }
}

/* A grey image as text (PGM), 458 x 502. */
static void write_image(FILE *out, uint32_t level)
{
    fprintf(out, "P2\n458 502\n255\n");
    for (int row = 0; row < 502; row++) {
        for (int column = 0; column < 458; column++)
            fprintf(out, "%u ", level / 2 + draw(level / 2));
        fprintf(out, "\n");
    }
}

static const struct {
    const char *name;
    uint32_t size;
    void (*write)(FILE *out, uint32_t size);
} kinds[] = {
    {"graph", 1000000, write_graph},     {"tree", 1000000, write_tree},
    {"mesh", 97046, write_mesh},         {"matrix", 512 * 512, write_matrix},
    {"symbols", 1 << 20, write_symbols}, {"film", 21, write_film},
    {"image", 250, write_image},
};

int main(int argc, char **argv)
{
    for (size_t i = 0; argc >= 3 && i < sizeof kinds / sizeof *kinds; i++) {
        if (strcmp(argv[1], kinds[i].name))
            continue;
        FILE *out = fopen(argv[2], "wb");
        if (!out)
            break;
        kinds[i].write(out, argc > 3 ? (uint32_t)atoi(argv[3]) : kinds[i].size);
        return fclose(out) ? 1 : 0;
    }
    fprintf(stderr,
            "usage: outside_inputs graph|tree|mesh|matrix|symbols|film|image FILE [SIZE]\n");
    return 2;
}
