// plan_lines.c - `lockstep plan [hash=1]` says what runs would be, and starts
// none.
//
// Each line of standard input is a JSON array of the words of one `lockstep
// train`. For each it prints one line: the objects that the run's run.json
// would have (train/about.h), as far as they are known before the data are
// read, or {"error": what train would say}. With hash=1 it also adds the
// machine and the environment, reads the data and other files, and adds their
// hashes (train/about.h). Experiments ask it about their cells.

#include "lockstep/commands.h"

#include "base/base.h"
#include "config/backends.h"
#include "config/config.h"
#include "config/mesh.h"
#include "launch/launch.h"
#include "launch/settle.h"
#include "model/part.h"
#include "netns/netns.h"
#include "pipeline/timetable.h"
#include "sync/derive.h"
#include "telemetry/manifest.h"
#include "train/about.h"
#include "train/shape.h"

#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WORDS = 512 };

// Takes the words out of one line. Returns how many there are, or -1 after
// fail(). They belong to *line.
static int read_words(const char *text, cJSON **line, char *words[WORDS])
{
    int n = 0;
    const cJSON *item;
    *line = cJSON_Parse(text);
    if (!cJSON_IsArray(*line) || cJSON_GetArraySize(*line) > WORDS)
        return fail("plan: not an array of at most %d words: %.60s", WORDS,
                    text);
    cJSON_ArrayForEach(item, *line)
    {
        words[n] = cJSON_GetStringValue(item);
        if (!words[n++])
            return fail("plan: not an array of words: %.60s", text);
    }
    return n;
}

// Derives what the launcher and worker 0 would. The vocabulary may come from
// the data; then it is not known, nor are sizes that depend on it.
static int derive(struct run *r, struct model_config *whole)
{
    struct pipeline p;
    struct model_config part; // what worker 0 holds of the model
    int slices = mesh_size(&r->mesh, MESH_TP);
    int parts = mesh_parts(&r->mesh);
    int members = r->workers / parts * mesh_pieces(&r->mesh);
    if (config_settle_batch(r, r->workers / parts) || shape_pipeline(r, &p) ||
        shape_model(r, whole))
        return -1;
    struct model_config sized = *whole;
    if (!sized.vocab)
        sized.vocab = 256; // for the checks alone
    if (model_check(&sized) || shape_cut(r, &p, 0, &sized, &part) ||
        (slices > 1 && part_slice(&part, slices, 0, &part)))
        return -1;
    sync_derive(&r->settings, backend_find(r->sync), members,
                whole->vocab ? model_nparams(&part) : 0);
    return 0;
}

static int plan_line(const char *text, bool hashes)
{
    struct run asked = {0}, effective;
    struct model_config whole;
    char *words[WORDS];
    cJSON *line = NULL;
    int n = read_words(text, &line, words);
    int rc = n < 0 || settle_words(&asked, n, words) || settle_check(&asked);
    cJSON_Delete(line);
    effective = asked;
    rc = rc || derive(&effective, &whole) ? -1 : 0;
    strcpy(effective.net, launch_net(&asked, netns_allowed()));
    struct manifest *m = manifest_open();
    if (!m)
        return -1;
    if (!rc && hashes) {
        manifest_machine(m);
        rc = about_inputs(m, &asked) || about_data(m, &asked);
    }
    if (rc)
        manifest_text(m, "error", fail_message());
    else
        about_write(m, &(struct about){.asked = &asked,
                                       .effective = &effective,
                                       .model = &whole,
                                       .world = asked.workers});
    return manifest_print(&m, stdout);
}

static int plan(int nwords, char **words)
{
    char *text = NULL;
    size_t size = 0;
    int rc = 0;
    bool hashes = nwords == 1 && !strcmp(words[0], "hash=1");
    if (nwords && !hashes)
        return fail("plan %.60s: takes only hash=1; try: lockstep plan --help",
                    words[0]);
    if (isatty(STDIN_FILENO))
        log_line("plan: reads lines like [\"model=nano\", \"steps=5\"] from "
                 "the terminal; Ctrl-D ends");
    while (!rc && getline(&text, &size, stdin) > 0) {
        text[strcspn(text, "\n")] = '\0';
        rc = plan_line(text, hashes);
    }
    free(text);
    return rc;
}

static void explain(FILE *f)
{
    fprintf(f, "lockstep plan [hash=1] < LINES\n\nSays what runs would be, and "
               "starts none. A line is a JSON array of the words of\none "
               "`lockstep train`, as [\"model=nano\", \"sync=ring\", "
               "\"workers=2\"]. The answer\nis a line with the objects of its "
               "run.json, or {\"error\": \"why not\"}. With hash=1\nit has the "
               "hashes of the data and of other files, too.\n");
}

const struct command command_plan = {
    .name = "plan",
    .words = "[hash=1] < LINES",
    .help = "say what runs would be, a line of words each, and start none",
    .explain = explain,
    .run = plan,
};
