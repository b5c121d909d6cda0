# SPDX-License-Identifier: ISC
# fish completion: words come from the program itself, so they are always those of the version installed.
function __feedwheel_command
	set -l names (feedwheel help --complete 2>/dev/null | cut -f1 | string match -v -- '-*')
	for word in (commandline -opc)[2..-1]
		if contains -- $word $names
			echo $word
			return
		end
	end
end
function __feedwheel_words
	feedwheel help --complete (__feedwheel_command) 2>/dev/null
end
complete -c feedwheel -f
complete -c feedwheel -n 'test -z (__feedwheel_command)' -a '(__feedwheel_words | string match -v -- "-*")'
complete -c feedwheel -n 'string match -q -- "-*" (commandline -ct)' -a '(__feedwheel_words | string match -- "-*")'
complete -c feedwheel -n 'contains -- (__feedwheel_command) import parse push' -F
complete -c feedwheel -n 'string match -q -- websub (__feedwheel_command)' -a 'list on off'
complete -c feedwheel -n 'string match -q -- token (__feedwheel_command)' -a 'add list remove'
complete -c feedwheel -n 'string match -q -- help (__feedwheel_command)' -a 'settings (feedwheel help --complete 2>/dev/null | string match -v -- "-*")'
