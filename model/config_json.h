// config_json.h - heads, from the config.json in a checkpoint's folder.

#pragma once

// *heads = "n_head" of the config.json beside the file `path`, since the
// tensors do not show the number of heads. It is 0 if there is no such file or
// number. Returns 0, or -1 after fail().
int config_json_heads(const char *path, int *heads);
