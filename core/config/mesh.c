// mesh.c - a rank's coordinates: the digits of a mixed-radix number.
//
//     rank = (a0 n1 + a1) n2 + a2
//
// a0, a1, a2 are the coordinates of the words of mesh=, n1 and n2 the sizes of
// the second and the third word. The first word's coordinate changes slowest.

#include "config/mesh.h"

#include "base/base.h"

#include <stdlib.h>
#include <string.h>

enum { MOST = 4096 }; // ranks: the limit of workers=

static const char *const names[MESH_AXES] = {[MESH_DP] = "dp",
                                             [MESH_PP] = "pp",
                                             [MESH_TP] = "tp",
                                             [MESH_CP] = "cp",
                                             [MESH_UP] = "up"};

const char *mesh_axis_name(enum mesh_axis axis)
{
    return names[axis];
}

// ---- text

// Reads one word, "dp4". Returns how many characters it has, 0 if it is none.
static size_t read_word(struct mesh *m, const char *word)
{
    enum mesh_axis axis = 0;
    while (axis < MESH_AXES && strncmp(word, names[axis], 2))
        axis++;
    size_t digits = axis < MESH_AXES ? strspn(word + 2, "0123456789") : 0;
    int size = digits > 0 && digits <= 4 ? atoi(word + 2) : 0;
    if (size < 1 || size > MOST || m->n == MESH_AXES)
        return 0;
    for (int i = 0; i < m->n; i++)
        if (m->axis[i] == axis)
            return 0;
    m->axis[m->n] = axis;
    m->size[m->n++] = size;
    return 2 + digits;
}

int mesh_read(void *at, const char *key, const char *value)
{
    struct mesh m = {.n = 0};
    const char *p = value;
    bool good = true;
    while (good && *p) {
        size_t used = read_word(&m, p);
        p += used;
        good = used && (!*p || (*p == ',' && p[1]));
        p += *p == ',';
    }
    if (!good)
        return fail(
            "%s=%s: want dp, pp, tp, cp and up, each at most once and with "
            "its size; try: dp4, tp2 or dp2,pp2",
            key, value);
    if (mesh_ranks(&m) > MOST)
        return fail("%s=%s: more than %d ranks", key, value, MOST);
    *(struct mesh *)at = m;
    return 0;
}

void mesh_show(const void *at, char text[CONFIG_PATH])
{
    const struct mesh *m = at;
    size_t used = 0;
    text[0] = '\0';
    for (int i = 0; i < m->n; i++)
        used += (size_t)snprintf(text + used, CONFIG_PATH - used, "%s%s%d",
                                 i ? "," : "", names[m->axis[i]], m->size[i]);
}

// ---- ranks and coordinates

int mesh_ranks(const struct mesh *m)
{
    int ranks = 1;
    for (int i = 0; i < m->n; i++)
        ranks = ranks > MOST ? ranks : ranks * m->size[i];
    return ranks;
}

int mesh_size(const struct mesh *m, enum mesh_axis axis)
{
    for (int i = 0; i < m->n; i++)
        if (m->axis[i] == axis)
            return m->size[i];
    return 1;
}

int mesh_parts(const struct mesh *m)
{
    return mesh_ranks(m) / mesh_size(m, MESH_DP);
}

int mesh_pieces(const struct mesh *m)
{
    return mesh_size(m, MESH_CP) * mesh_size(m, MESH_UP);
}

int mesh_piece(const struct mesh *m, int rank)
{
    return mesh_at(m, rank, MESH_CP) * mesh_size(m, MESH_UP) +
           mesh_at(m, rank, MESH_UP);
}

int mesh_at(const struct mesh *m, int rank, enum mesh_axis axis)
{
    for (int i = m->n - 1; i >= 0; i--) {
        if (m->axis[i] == axis)
            return rank % m->size[i];
        rank /= m->size[i];
    }
    return 0;
}

char *mesh_place(const struct mesh *m, int rank, char text[MESH_TEXT])
{
    size_t used = 0;
    text[0] = '\0';
    for (int i = 0; i < m->n; i++)
        used += (size_t)snprintf(text + used, MESH_TEXT - used, "%s%s %d",
                                 i ? ", " : " (", names[m->axis[i]],
                                 mesh_at(m, rank, m->axis[i]));
    if (used)
        snprintf(text + used, MESH_TEXT - used, ")");
    return text;
}

char *mesh_say(const struct mesh *m, const char *text, char out[MESH_SENTENCE])
{
    size_t used = 0;
    char place[MESH_TEXT];
    for (const char *p = text; *p && used + MESH_TEXT + 16 < MESH_SENTENCE;) {
        int rank, n = 0;
        if (sscanf(p, "rank %d%n", &rank, &n) == 1 && rank >= 0 &&
            rank < mesh_ranks(m)) {
            used +=
                (size_t)snprintf(out + used, MESH_SENTENCE - used, "rank %d%s",
                                 rank, mesh_place(m, rank, place));
            p += n;
        } else {
            out[used++] = *p++;
        }
    }
    out[used] = '\0';
    return out;
}
