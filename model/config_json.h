// config_json.h - heads, from the config.json in a checkpoint's folder.

#ifndef MODEL_CONFIG_JSON_H
#define MODEL_CONFIG_JSON_H

// "n_head" of the config.json beside the file `path`, for what tensors do not
// tell; *heads is 0 if there is none. 0, or -1 after fail().
int config_json_heads(const char *path, int *heads);

#endif
