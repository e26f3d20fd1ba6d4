// key_parts.h - values of several parts: "ssp:3", "1:2.5", "delay:5:100".

#pragma once

#include "config/settings.h"

// read sets the key's struct `at` from text: 0, or -1 after fail() that says
// what is allowed. show writes the struct as text.
int straggler_read(void *at, const char *key, const char *value);
void straggler_show(const void *at, char text[CONFIG_PATH]);
int pace_read(void *at, const char *key, const char *value);
void pace_show(const void *at, char text[CONFIG_PATH]);
int mistake_read(void *at, const char *key, const char *value);
void mistake_show(const void *at, char text[CONFIG_PATH]);
int profile_read(void *at, const char *key, const char *value);
void profile_show(const void *at, char text[CONFIG_PATH]);
int consistency_read(void *at, const char *key, const char *value);
void consistency_show(const void *at, char text[CONFIG_PATH]);
int servers_read(void *at, const char *key, const char *value);
void servers_show(const void *at, char text[CONFIG_PATH]);
int fault_read(void *at, const char *key, const char *value);
void fault_show(const void *at, char text[CONFIG_PATH]);
int stages_read(void *at, const char *key, const char *value);
void stages_show(const void *at, char text[CONFIG_PATH]);

// Returns what a mistake does, a sentence without its end.
const char *mistake_says(const struct sync_mistake *m);

// Counts the endpoints of a list that commas divide. 0, or -1 after fail() if
// one is no URL, or has a TCP port that does not exist.
int endpoints_check(const char *key, const char *list, int *count);
