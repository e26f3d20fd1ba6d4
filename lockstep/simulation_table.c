// simulation_table.c - runs simulations and prints a table of them.

#include "lockstep/simulation_table.h"

#include "base/base.h"
#include "base/file.h"
#include "sync/link.h"

#include <errno.h>
#include <string.h>

const char *const simulation_networks[] = {"ideal", "smpi", NULL};

int simulation_read(const struct simulation_words *w, struct simulation *s,
                    struct list *workers)
{
    static struct links links;
    const struct link_fit *fit;
    if (list_workers(workers, w->workers) ||
        links_read(&links, w->link, w->alpha_us * 1e-6) ||
        !(fit = links_find(&links, "tcp")))
        return -1;
    s->link = fit->link;
    s->folder = w->out;
    s->payload = w->payload;
    s->default_network = w->network;
    s->timeout_s = w->timeout_s;
    for (int i = 0; i < workers->n; i++)
        if (s->n < (size_t)workers->at[i])
            return fail("simulate: %zu gradients are less than %d workers; "
                        "try: mb=1",
                        s->n, workers->at[i]);
    return 0;
}

int simulation_table_open(struct simulation_table *t,
                          const struct simulation *s, const char *name,
                          const char *columns)
{
    if (file_make_folder(s->folder) < 0 ||
        text_into(t->path, sizeof t->path, "%s/%s", s->folder, name))
        return -1;
    t->f = fopen(t->path, "we");
    if (!t->f)
        return fail("%s: %s", t->path, strerror(errno));
    fprintf(t->f, "workers,%s,mb,simulated_s,law_s,ratio,wall_s,memory_mb\n",
            columns);
    printf("%.4g MB; links of %.4g Gbit/s of payload, %g us\n\n"
           "%7s  %-20s %13s %12s %8s %9s %12s\n",
           (double)s->n * sizeof(float) * 1e-6, s->link.bytes_per_s * 8e-9,
           s->link.alpha_s * 1e6, "workers", columns, "simulated (s)",
           "law (s)", "ratio", "took (s)", "memory (MB)");
    return 0;
}

double simulation_law(const struct simulation *s, const struct law *law)
{
    return law_seconds(law, &s->link, (double)s->n * sizeof(float));
}

int simulation_table_row(const struct simulation_table *t,
                         const struct simulation *s, const char *names,
                         double seconds)
{
    struct simulated r;
    double bytes = (double)s->n * sizeof(float);
    if (simulation_run(s, &r))
        return -1;
    printf("%7d  %-20s %13.6g %12.6g %8.4f %9.1f %12.0f\n", s->workers, names,
           r.seconds, seconds, r.seconds / seconds, r.wall_s, r.memory_mb);
    fflush(stdout);
    fprintf(t->f, "%d,%s,%.9g,%.9g,%.9g,%.6f,%.2f,%.0f\n", s->workers, names,
            bytes * 1e-6, r.seconds, seconds, r.seconds / seconds, r.wall_s,
            r.memory_mb);
    return fflush(t->f) ? fail("%s: %s", t->path, strerror(errno)) : 0;
}

int simulation_table_close(struct simulation_table *t, int rc)
{
    if (fclose(t->f) && !rc)
        rc = fail("%s: %s", t->path, strerror(errno));
    if (!rc)
        printf("\n%s\n", t->path);
    return rc;
}
