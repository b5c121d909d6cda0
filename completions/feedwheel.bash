# SPDX-License-Identifier: ISC
# bash completion: what may follow comes from the program itself, so it is always that of the version installed.
_feedwheel() {
	local line=() word raw=${COMP_WORDS[COMP_CWORD]} quote='' i found
	# readline ends words at : and =, but an address and --name=value are one
	for ((i = 1; i <= COMP_CWORD; i++)); do
		word=${COMP_WORDS[i]}
		((i < COMP_CWORD)) || [[ $word != [\"\']* ]] || quote=${word:0:1}
		if ((${#line[@]})) && [[ $word =~ ^[:=]+$ || ${COMP_WORDS[i - 1]} =~ ^[:=]+$ ]]; then
			line[-1]+=$word
		else
			line+=("$word")
		fi
	done
	((${#line[@]})) || line=('')
	line=("${line[@]//[\"\'\\]/}")
	mapfile -t found < <("${COMP_WORDS[0]}" help --complete-line -- "${line[@]}" 2>/dev/null | cut -f1)
	if [[ ${found[0]-} == :files ]]; then
		[[ $raw =~ ^[:=]+$ ]] && raw=''
		mapfile -t COMPREPLY < <(compgen -f -- "${raw#"$quote"}")
		compopt -o filenames 2>/dev/null
		return
	fi
	# of the whole word only what readline takes for it is to be replaced
	word=${line[-1]}
	[[ $raw =~ ^[:=]+$ ]] && raw=''
	raw=${raw//[\"\'\\]/}
	COMPREPLY=("${found[@]#"${word%"$raw"}"}")
	[[ $quote ]] || for i in "${!COMPREPLY[@]}"; do
		printf -v "COMPREPLY[i]" %q "${COMPREPLY[i]}"
	done
}
complete -o bashdefault -F _feedwheel feedwheel
