#compdef pinch
# Completion of pinch for zsh. Printed by: pinch completion zsh

_pinch_table() {
    case "$1" in
@TABLE@
    esac
}

_pinch() {
    local here= word file_place i
    local -a values
    for ((i = 2; i < CURRENT; i++)); do
        word=$words[i]
        [[ $word == -* ]] && break
        [[ -n "$(_pinch_table "words:${here:+$here }$word")" ]] || break
        here=${here:+$here }$word
    done
    local before=$words[CURRENT-1] value
    if value=$(_pinch_table "value:$here:$before"; print x) && [[ $value != x ]]; then
        values=(${=${value%x}})
        (( $#values )) && compadd -a values
        file_place="files:$here:$before"
    else
        if [[ -n $here || $CURRENT -eq 2 || $words[CURRENT] == -* ]]; then
            values=("${(@f)$(_pinch_table "words:$here")}")
            _describe pinch values
            values=(${=$(_pinch_table "list:$here")})
            (( $#values )) && compadd -a values
        fi
        file_place="files:$here"
    fi
    if [[ -n "$(_pinch_table $file_place)" ]]; then
        compset -P '@'
        _files
    fi
}

compdef _pinch pinch
