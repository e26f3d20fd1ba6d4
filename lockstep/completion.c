// completion.c - prints the completion scripts for bash and zsh. They complete
// commands, keys, values of keys and names of figures. The scripts contain all
// of these words, so that completing starts no program.

#include "lockstep/man.h"

#include "base/base.h"
#include "config/keys.h"
#include "lockstep/study.h"

#include <stdlib.h>
#include <string.h>

static const char programs[] = "lockstep trainer ps_server";

// Keys that only some commands read.
static const char *const more[] = {"figure", "figures", "repeat", "baseline",
                                   "target_loss"};

enum { MORE = sizeof more / sizeof *more };

static bool is_path(const struct key *k)
{
    return k->unit && strcmp(k->unit, "path") == 0;
}

static bool is_flag(const struct key *k)
{
    return k->type == KEY_INT && k->min == 0 && k->max == 1;
}

// Prints "sync) words='local sps ..';;" for every key with known values.
static void put_values(FILE *f, const char *files)
{
    for (int i = 0; i < run_keys.n; i++) {
        const struct key *k = &run_keys.rows[i];
        if (!k->words && !is_path(k) && !is_flag(k))
            continue;
        fprintf(f, "    %s) ", k->name);
        if (is_path(k))
            fputs(files, f);
        else
            fputs("words='", f);
        for (int w = 0; k->words && k->words[w]; w++)
            fprintf(f, w ? " %s" : "%s", k->words[w]);
        fputs(is_flag(k) ? "0 1'" : is_path(k) ? "" : "'", f);
        fputs(" ;;\n", f);
    }
    fputs("    figure | figures) words='none", f);
    if (study_call(f, "figures", NULL, NULL))
        log_line("%s", fail_message());
    fputs("' ;;\n", f);
}

// ---- bash

static void print_bash(FILE *f, const struct command *const *all, int n)
{
    fputs("# Completion of Lockstep's programs for bash.\n"
          "_lockstep() {\n"
          "  local cur=${COMP_WORDS[COMP_CWORD]} key='' words='' files=0\n"
          "  local at=$COMP_CWORD\n"
          "  # readline cuts key=value into three words\n"
          "  if [[ $cur == = ]]; then key=${COMP_WORDS[at - 1]} cur=''\n"
          "  elif ((at > 1)) && [[ ${COMP_WORDS[at - 1]} == = ]]; then\n"
          "    key=${COMP_WORDS[at - 2]}\n"
          "  elif [[ $cur == *=* ]]; then key=${cur%%=*}\n"
          "  fi\n"
          "  case $key in\n"
          "    '') ;;\n",
          f);
    put_values(f, "files=1");
    fputs("  esac\n"
          "  if [[ $cur == *=* ]]; then # readline kept key=value whole\n"
          "    cur=${cur#*=}\n"
          "    COMPREPLY=($(compgen -P \"$key=\" -W \"$words\" -- \"$cur\"))\n"
          "    ((files)) &&\n"
          "      COMPREPLY=($(compgen -P \"$key=\" -f -- \"$cur\"))\n"
          "    return\n"
          "  fi\n"
          "  if [[ $key ]]; then\n"
          "    COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
          "    ((files)) && COMPREPLY=($(compgen -f -- \"$cur\"))\n"
          "    return\n"
          "  fi\n"
          "  if ((at == 1)) && [[ ${COMP_WORDS[0]##*/} == lockstep ]]; then\n"
          "    COMPREPLY=($(compgen -W '",
          f);
    for (int i = 0; i < n; i++)
        if (all[i]->help)
            fprintf(f, "%s ", all[i]->name);
    fputs("help' -- \"$cur\"))\n"
          "    return\n"
          "  fi\n"
          "  COMPREPLY=($(compgen -S = -W '",
          f);
    for (int i = 0; i < run_keys.n; i++)
        fprintf(f, "%s ", run_keys.rows[i].name);
    for (int i = 0; i < MORE; i++)
        fprintf(f, i ? " %s" : "%s", more[i]);
    fprintf(f,
            "' -- \"$cur\"))\n"
            "  ((${#COMPREPLY[@]})) && compopt -o nospace 2>/dev/null\n"
            "  COMPREPLY+=($(compgen -f -- \"$cur\"))\n"
            "}\n"
            "complete -F _lockstep %s\n",
            programs);
}

// ---- zsh

// Prints 'NAME:TEXT' as one quoted word of zsh.
static void put_described(FILE *f, const char *name, const char *text)
{
    fprintf(f, "    '%s:", name);
    for (; *text; text++)
        fputs(*text == '\'' ? "'\\''" : (char[]){*text, '\0'}, f);
    fputs("'\n", f);
}

static void print_zsh(FILE *f, const struct command *const *all, int n)
{
    fprintf(f,
            "#compdef %s\n# Completion of Lockstep's programs for zsh.\n"
            "_lockstep() {\n"
            "  local -a commands keys\n  local words=''\n  commands=(\n",
            programs);
    for (int i = 0; i < n; i++)
        if (all[i]->help)
            put_described(f, all[i]->name, all[i]->help);
    fputs("  )\n  keys=(\n", f);
    for (int i = 0; i < run_keys.n; i++)
        put_described(f, run_keys.rows[i].name, run_keys.rows[i].help);
    for (int i = 0; i < MORE; i++)
        put_described(f, more[i], "for experiments and reports");
    fputs("  )\n"
          "  if [[ $service == lockstep ]] && ((CURRENT == 2)); then\n"
          "    _describe command commands\n    return\n  fi\n"
          "  if [[ $PREFIX == *=* ]]; then\n"
          "    local key=${PREFIX%%=*}\n    compset -P '*='\n"
          "    case $key in\n",
          f);
    put_values(f, "_files");
    fputs("    esac\n    [[ -n $words ]] && compadd -- ${=words}\n"
          "    return\n  fi\n"
          "  _describe setting keys -S = -q\n  _files\n}\n"
          "if [[ $funcstack[1] == _lockstep ]]; then\n  _lockstep \"$@\"\n"
          "else\n  compdef _lockstep ",
          f);
    fprintf(f, "%s\nfi\n", programs);
}

int completion_print(FILE *f, const char *shell,
                     const struct command *const *all, int n)
{
    if (!strcmp(shell, "bash"))
        print_bash(f, all, n);
    else if (!strcmp(shell, "zsh"))
        print_zsh(f, all, n);
    else
        return fail("completion %.60s: no such shell; try: bash, zsh", shell);
    return 0;
}
