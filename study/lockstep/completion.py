"""The command completion: scripts with which bash and zsh complete commands, keys, values
of keys and names of figures. They contain all of these words, so that completing starts
no program.
"""

from . import figures
from .core import Core
from .files import Error, visible

PROGRAMS = "lockstep trainer ps_server"
# Keys that only some commands read.
MORE = "figure", "figures", "repeat", "baseline", "target_loss"

HELP = """\
lockstep completion bash|zsh

Prints a script that completes commands, keys and their values.

  source <(lockstep completion bash)
"""

BASH = """\
# Completion of Lockstep's programs for bash.
_lockstep() {
  local cur=${COMP_WORDS[COMP_CWORD]} key='' words='' files=0
  local at=$COMP_CWORD
  # readline cuts key=value into three words
  if [[ $cur == = ]]; then key=${COMP_WORDS[at - 1]} cur=''
  elif ((at > 1)) && [[ ${COMP_WORDS[at - 1]} == = ]]; then
    key=${COMP_WORDS[at - 2]}
  elif [[ $cur == *=* ]]; then key=${cur%%=*}
  fi
  case $key in
    '') ;;
@VALUES@
  esac
  if [[ $cur == *=* ]]; then # readline kept key=value whole
    cur=${cur#*=}
    COMPREPLY=($(compgen -P "$key=" -W "$words" -- "$cur"))
    ((files)) &&
      COMPREPLY=($(compgen -P "$key=" -f -- "$cur"))
    return
  fi
  if [[ $key ]]; then
    COMPREPLY=($(compgen -W "$words" -- "$cur"))
    ((files)) && COMPREPLY=($(compgen -f -- "$cur"))
    return
  fi
  if ((at == 1)) && [[ ${COMP_WORDS[0]##*/} == lockstep ]]; then
    COMPREPLY=($(compgen -W '@COMMANDS@ help' -- "$cur"))
    return
  fi
  COMPREPLY=($(compgen -S = -W '@KEYS@' -- "$cur"))
  ((${#COMPREPLY[@]})) && compopt -o nospace 2>/dev/null
  COMPREPLY+=($(compgen -f -- "$cur"))
}
complete -F _lockstep @PROGRAMS@
"""

ZSH = """\
#compdef @PROGRAMS@
# Completion of Lockstep's programs for zsh.
_lockstep() {
  local -a commands keys
  local words=''
  commands=(
@COMMANDS@
  )
  keys=(
@KEYS@
  )
  if [[ $service == lockstep ]] && ((CURRENT == 2)); then
    _describe command commands
    return
  fi
  if [[ $PREFIX == *=* ]]; then
    local key=${PREFIX%%=*}
    compset -P '*='
    case $key in
@VALUES@
    esac
    [[ -n $words ]] && compadd -- ${=words}
    return
  fi
  _describe setting keys -S = -q
  _files
}
if [[ $funcstack[1] == _lockstep ]]; then
  _lockstep "$@"
else
  compdef _lockstep @PROGRAMS@
fi
"""


def explain():
    """What --help says."""
    return HELP


def _values(table, files):
    """A line "sync) words='local sps ..' ;;" for every key with known values."""
    def words(key, values):
        return f"    {key}) words='{' '.join(values)}' ;;"
    lines = [words("model", table["presets"])]
    for row in table["keys"]:
        if row["unit"] == "path":
            lines.append(f"    {row['name']}) {files} ;;")
        elif row["words"] or row["allowed"] == "0|1":
            lines.append(words(row["name"], row["words"] or ["0", "1"]))
    return "\n".join([*lines, words("figure | figures",
                                    ["none", *(n for n, _ in figures.names())])])


def _described(rows):
    """'NAME:TEXT' for each, as a quoted word of zsh."""
    return "\n".join("    '{}:{}'".format(name, text.replace("'", "'\\''"))
                     for name, text in rows)


def _fill(script, **parts):
    for name, text in parts.items():
        script = script.replace(f"@{name.upper()}@", text)
    return script


def completion(words):
    """lockstep completion."""
    with Core() as core:
        table = core.table()
    keys = [(row["name"], row["help"]) for row in table["keys"]]
    if words == ["bash"]:
        print(_fill(BASH, values=_values(table, "files=1"), programs=PROGRAMS,
                    commands=" ".join(table["commands"]),
                    keys=" ".join([*(name for name, _ in keys), *MORE])), end="")
    elif words == ["zsh"]:
        keys += [(name, "for experiments and reports") for name in MORE]
        print(_fill(ZSH, values=_values(table, "_files"), programs=PROGRAMS,
                    commands=_described(table["commands"].items()),
                    keys=_described(keys)), end="")
    else:
        raise Error(f"completion {visible(words[-1])[:60]}: no such shell; try: bash, zsh")
    return 0
