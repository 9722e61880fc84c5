# Completion of pinch for bash. Printed by: pinch completion bash

_pinch_table() {
    case "$1" in
@TABLE@
    esac
}

_pinch() {
    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]}
    local path= word i values
    # The first words are commands; behind an option there are none.
    for ((i = 1; i < COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        [[ $word == -* ]] && break
        [[ -n $(_pinch_table "words:${path:+$path }$word") ]] || break
        path=${path:+$path }$word
    done
    COMPREPLY=()
    # An option with a value that can be anything is in the table too, with an empty line.
    local found
    values=$(_pinch_table "value:$path:$previous"; printf x)
    if [[ $values != x ]]; then
        COMPREPLY=($(compgen -W "${values%x}" -- "$current"))
        found=$(_pinch_table "files:$path:$previous")
    else
        found=$(_pinch_table "files:$path")
        # Commands come first, or not at all.
        if [[ -n $path || $COMP_CWORD -eq 1 || $current == -* ]]; then
            COMPREPLY=($(compgen -W "$(_pinch_table "words:$path") $(_pinch_table "list:$path")" -- "$current"))
        fi
    fi
    if [[ -n $found && $current != -* ]]; then
        local at= file
        if [[ $current == @* ]]; then at=@ current=${current#@}; fi
        while IFS= read -r file; do COMPREPLY+=("$at$file"); done < <(compgen -f -- "$current")
        compopt -o filenames 2>/dev/null
    fi
}

complete -F _pinch pinch
