// doctor_tell.c - what the Python package's part of `lockstep doctor` asks.

#include "doctor/doctor.h"

#include "base/base.h"
#include "base/version.h"
#include "launch/hosts.h"
#include "model/cuda/dnn.h"

#include <cjson/cJSON.h>

static int add_host(cJSON *list, struct host *h)
{
    struct argv *a = mem_alloc(1, sizeof *a);
    cJSON *out = cJSON_CreateObject();
    cJSON_AddItemToArray(list, out);
    int rc = !a || hosts_reach(a, h, "probe") ? -1 : 0;
    bool known = !rc && !hosts_look_up(h);
    cJSON_AddStringToObject(out, "name", h->name);
    cJSON_AddNumberToObject(out, "slots", h->slots);
    cJSON_AddStringToObject(out, "address", h->address);
    cJSON_AddStringToObject(out, "why", known ? "" : fail_message());
    if (!rc)
        cJSON_AddItemToObject(
            out, "reach",
            cJSON_CreateStringArray((const char *const *)a->at, a->n));
    mem_free(a);
    return rc;
}

int doctor_hosts(const cJSON *question, cJSON *out)
{
    const char *file = cJSON_GetStringValue(cJSON_GetArrayItem(question, 1));
    struct hosts *h = mem_alloc(1, sizeof *h);
    char own[VERSION_TEXT];
    int rc = h && file ? hosts_parse(h, file) : -1;
    cJSON *list = cJSON_AddArrayToObject(out, "hosts");
    for (int i = 0; !rc && i < h->n; i++)
        rc = add_host(list, &h->at[i]);
    if (!rc) {
        bool loops = hosts_check_loopback(h);
        cJSON_AddStringToObject(out, "loopback", loops ? fail_message() : "");
        cJSON_AddStringToObject(out, "version", version_text(own));
    }
    mem_free(h);
    return rc;
}

// Looks for cuDNN as a training does: by the same paths, with the same checks.
int doctor_cudnn(const cJSON *question, cJSON *out)
{
    struct dnn dnn;
    char text[96];
    (void)question;
    if (dnn_load(&dnn))
        return -1;
    snprintf(text, sizeof text, "%s, for CUDA %zu", dnn.release,
             dnn.GetCudartVersion() / 1000);
    dnn_close(&dnn);
    cJSON_AddStringToObject(out, "version", text);
    return 0;
}
