# SPDX-License-Identifier: ISC
# bash completion: words come from the program itself, so they are always those of the version installed.
_feedwheel() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} program=${COMP_WORDS[0]} command='' i words
	COMPREPLY=()
	case $prev in
	--color) mapfile -t COMPREPLY < <(compgen -W 'auto always never' -- "$cur"); return ;;
	--status) mapfile -t COMPREPLY < <(compgen -W 'active paused gone quarantined' -- "$cur"); return ;;
	--scope) mapfile -t COMPREPLY < <(compgen -W 'push read admin' -- "$cur"); return ;;
	--log-level) mapfile -t COMPREPLY < <(compgen -W 'error warn info debug' -- "$cur"); return ;;
	--config | --ca-file) mapfile -t COMPREPLY < <(compgen -f -- "$cur"); return ;;
	esac
	for ((i = 1; i < COMP_CWORD; i++)); do
		if "$program" help --complete 2>/dev/null | cut -f1 | grep -qxF -e "${COMP_WORDS[i]}" && [[ ${COMP_WORDS[i]} != -* ]]; then
			command=${COMP_WORDS[i]}
			break
		fi
	done
	if [[ $cur == -* || -z $command ]]; then
		words=$("$program" help --complete ${command:+"$command"} 2>/dev/null | cut -f1)
		[[ $cur == -* ]] || words=$(printf '%s\n' "$words" | grep -v '^-')
	elif [[ $command == help ]]; then
		words="settings $("$program" help --complete 2>/dev/null | cut -f1 | grep -v '^-')"
	elif [[ $command == token ]]; then
		words='add list remove'
	elif [[ $command == websub ]]; then
		words='list on off'
	elif [[ $command == import || $command == parse || $command == push ]]; then
		mapfile -t COMPREPLY < <(compgen -f -- "$cur")
		return
	else
		words=''
	fi
	mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
}
complete -o bashdefault -F _feedwheel feedwheel
