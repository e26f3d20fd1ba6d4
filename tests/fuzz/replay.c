// replay.c - runs a fuzz target without libFuzzer, once on each file of a
// corpus folder.

#include "tests/fuzz/fuzz.h"

#include <dirent.h>
#include <stdlib.h>

static void replay(const char *path)
{
    FILE *f = fopen(path, "rb");
    CHECK(f != NULL);
    CHECK(fseek(f, 0, SEEK_END) == 0);
    long size = ftell(f);
    CHECK(size >= 0);
    rewind(f);
    // Exactly as large as the input, so that a sanitizer finds reads beyond it.
    uint8_t *data = malloc(size > 0 ? (size_t)size : 1);
    CHECK(data != NULL);
    CHECK(fread(data, 1, (size_t)size, f) == (size_t)size);
    fclose(f);
    (void)LLVMFuzzerTestOneInput(data, (size_t)size);
    free(data);
}

int main(int argc, char **argv)
{
    if (argc != 2)
        die("usage: %s CORPUS_FOLDER", argv[0]);
    DIR *d = opendir(argv[1]);
    if (!d)
        die("cannot open the corpus %s", argv[1]);
    int count = 0;
    for (struct dirent *e; (e = readdir(d)) != NULL;) {
        if (e->d_name[0] == '.')
            continue;
        char path[1024];
        if (text_into(path, sizeof path, "%s/%s", argv[1], e->d_name))
            die("%s", fail_message());
        replay(path);
        count++;
    }
    closedir(d);
    printf("%d inputs replayed\n", count);
    return count > 0 ? 0 : 1;
}
