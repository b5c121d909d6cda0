# SPDX-License-Identifier: ISC
# fish completion: what may follow comes from the program itself, so it is always that of the version installed.
function __feedwheel_line
	set -l words (commandline -opc)
	set -l current (commandline -ct)
	test (count $current) -gt 0; or set current ''
	feedwheel help --complete-line -- $words[2..-1] $current 2>/dev/null
end
complete -c feedwheel -f
complete -c feedwheel -a '(__feedwheel_line | string match -v -- ":files")'
complete -c feedwheel -n 'contains -- :files (__feedwheel_line)' -F
