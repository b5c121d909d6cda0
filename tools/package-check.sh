#!/bin/sh
# SPDX-License-Identifier: ISC
# tools/package-check.sh: build the Debian packages (make deb), install, use, upgrade, remove and purge them.
#
# It changes the system that it runs in, so it only runs in a system that tools/release-check.sh created, which has a
# file /made. PACKAGE_CHECK=here allows another system, without feedwheel and its data. Needs root. Exits 1 if a check
# failed.
set -u
cd "$(dirname "$0")/.." || exit 1
[ "$(id -u)" = 0 ] || { echo "package-check: only root can install packages" >&2; exit 2; }
if [ ! -e /made ]; then
	if [ "${PACKAGE_CHECK:-}" != here ]; then
		echo "package-check: this is no scratch system: run it with tools/release-check.sh" >&2
		exit 2
	elif [ -e /var/lib/feedwheel ] || [ -e /etc/feedwheel.conf ]; then
		echo "package-check: refused: feedwheel is in use here (/var/lib/feedwheel, /etc/feedwheel.conf)" >&2
		exit 2
	fi
fi
export LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive
unset XDG_CONFIG_HOME XDG_DATA_HOME FEEDWHEEL_STORE
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
chmod 755 "$work" # apt's own user reads packages
arch=$(dpkg --print-architecture)
store=/var/lib/feedwheel/.local/share/feedwheel/feedwheel.db
passed=0 failed=0

check() { # what, command...: it passes when the command does; what a failing one says is shown
	what=$1
	shift
	if "$@" </dev/null >"$work/said" 2>&1; then
		passed=$((passed + 1))
		echo "ok - $what"
	else
		failed=$((failed + 1))
		echo "not ok - $what"
		sed 's/^/# /' "$work/said"
	fi
}
same() { # got, want
	[ "$1" = "$2" ] || { printf 'got:  %s\nwant: %s\n' "$1" "$2"; return 1; }
}
finish() {
	echo "$passed passed, $failed failed"
	[ $failed = 0 ]
	exit
}
apt() { apt-get -y -qq --no-install-recommends "$@"; }
quiet() { # a command that must ask nothing
	"$@" >"$work/apt" 2>&1 || { cat "$work/apt"; return 1; }
	! grep -E '\(Y/I/N/O/D/Z\)|\[default=' "$work/apt"
}
as_service() { su -s /bin/sh - feedwheel -c "$1"; } # as in README.Debian

# ---- what is there after an installation ---------------------------------------------------------

user() {
	entry=$(getent passwd feedwheel) || { echo "no user"; return 1; }
	same "$(echo "$entry" | cut -d: -f6)" /var/lib/feedwheel &&
		same "$(echo "$entry" | cut -d: -f7)" /usr/sbin/nologin &&
		[ "$(id -u feedwheel)" -lt 1000 ] && same "$(id -gn feedwheel)" feedwheel
}
folder() { same "$(stat -c '%a %U:%G' /var/lib/feedwheel)" "700 feedwheel:feedwheel"; }
unit_file() { dpkg -L feedwheel | grep '/systemd/system/feedwheel\.service$'; }
unit() {
	grep -q '^ExecStart=/usr/bin/feedwheel run$' "$(unit_file)" || { echo "ExecStart"; return 1; }
	systemd-analyze verify "$(unit_file)" >"$work/verify" 2>&1 || { cat "$work/verify"; return 1; }
	! grep feedwheel "$work/verify"
}
enabled() { same "$(systemctl is-enabled feedwheel.service)" "$1"; }
configuration() { # the file that the service reads is the one that dpkg keeps
	same "$(dpkg-query -W -f '${Conffiles}' feedwheel | awk 'NF { print $1 }')" /etc/feedwheel.conf &&
		same "$(stat -c '%a %U:%G' /etc/feedwheel.conf)" "644 root:root" || return 1
	as_service "feedwheel doctor" >"$work/doctor" 2>&1
	grep -q /etc/feedwheel.conf "$work/doctor" || { cat "$work/doctor"; return 1; }
}
idles() { # the service's command, without a feed: it stays until SIGTERM, and leaves in good order
	setpriv --reuid=feedwheel --regid=feedwheel --clear-groups env -i HOME=/var/lib/feedwheel feedwheel run &
	master=$!
	sleep 3
	kill -TERM $master || return 1
	wait $master
}
complete() { feedwheel version && ! feedwheel version | grep 'not built in'; }
completions() {
	for f in bash-completion/completions/feedwheel zsh/vendor-completions/_feedwheel \
		fish/vendor_completions.d/feedwheel.fish; do
		[ -s "/usr/share/$f" ] || { echo "no $f"; return 1; }
	done
	bash -c '. /usr/share/bash-completion/completions/feedwheel && complete -p feedwheel'
}
manuals() {
	for page in "1 feedwheel" "3 libfeedwheel" "5 feedwheel.conf" "7 feedwheel-store"; do
		# shellcheck disable=SC2086 # section and name
		man -w $page && man -P cat $page >"$work/page" && grep -q NAME "$work/page" || {
			echo "no $page"
			return 1
		}
	done
}
papers() {
	for p in feedwheel libfeedwheel0 libfeedwheel-dev; do
		[ -s "/usr/share/doc/$p/copyright" ] && [ -s "/usr/share/doc/$p/changelog.gz" ] || {
			echo "$p"
			return 1
		}
	done
	[ -s /usr/share/doc/feedwheel/README.Debian ] || [ -s /usr/share/doc/feedwheel/README.Debian.gz ]
}

# ---- the library ---------------------------------------------------------------------------------

dependencies() { # a package for each module that feedwheel.pc needs is named in libfeedwheel-dev's Depends
	depends=$(dpkg-query -W -f '${Depends}' libfeedwheel-dev | tr ',' '\n' | awk '{ print $1 }')
	for module in $(pkg-config --print-requires-private feedwheel | awk '{ print $1 }'); do
		file=$(find /usr/lib/*/pkgconfig /usr/lib/pkgconfig /usr/share/pkgconfig -name "$module.pc" \
			2>/dev/null | head -n 1)
		package=$(dpkg -S "$file" | sed 's/[:,].*//')
		echo "$depends" | grep -qx "$package" || { echo "Depends does not name $package ($module)"; return 1; }
	done
}
shared() {
	cp examples/titles.c "$work/p.c"
	# shellcheck disable=SC2046 # flags, here and below
	cc -Wall -Wextra -Werror -o "$work/p" "$work/p.c" $(pkg-config --cflags --libs feedwheel) || return 1
	same "$(ldd "$work/p" | awk '/libfeedwheel/ { print $1 }')" libfeedwheel.so.0 &&
		"$work/p" examples/titles.xml | diff examples/titles.expect -
}
static() {
	# shellcheck disable=SC2046
	cc -o "$work/s" examples/titles.c "$(pkg-config --variable=libdir feedwheel)/libfeedwheel.a" \
		$(pkg-config --libs $(pkg-config --print-requires-private feedwheel | awk '{ print $1 }')) \
		-lm -pthread || return 1
	! ldd "$work/s" | grep libfeedwheel && "$work/s" examples/titles.xml | diff examples/titles.expect -
}

# ---- upgrades ------------------------------------------------------------------------------------

next_version() { # the same sources under a higher version, in another folder
	mkdir "$work/next"
	tar -c --exclude=./build --exclude='./build-*' --exclude=./.git . | tar -x -C "$work/next" || return 1
	sed -i "1s/($version)/($version+next)/" "$work/next/debian/changelog"
	tools/version.sh >"$work/next/tools/commit"
	(cd "$work/next" && DEB_BUILD_OPTIONS="${DEB_BUILD_OPTIONS:+$DEB_BUILD_OPTIONS }nocheck" tools/make-deb.sh)
}
reproducible() { # the versions differ in their changelogs only, the sources' folder does not show
	for p in feedwheel libfeedwheel0 libfeedwheel-dev; do
		for v in "$version" "$version+next"; do
			dpkg-deb -x "$(find build/deb "$work/next/build/deb" -name "${p}_${v}_$arch.deb")" \
				"$work/x-$v" || return 1
		done
		diff -r --exclude='changelog*' --no-dereference "$work/x-$version" "$work/x-$version+next" || return 1
	done
}
packages() { # folder, version
	echo "$1/feedwheel_$2_$arch.deb" "$1/libfeedwheel0_$2_$arch.deb" "$1/libfeedwheel-dev_$2_$arch.deb"
}
# shellcheck disable=SC2046 # three files
install_version() { quiet apt install "$@" $(packages "$debs" "$version"); }
# shellcheck disable=SC2046
install_next() {
	quiet apt install $(packages "$work/next/build/deb" "$version+next") &&
		same "$(dpkg-query -W -f '${Version}' feedwheel)" "$version+next"
}
removed() { [ ! -e /usr/bin/feedwheel ] && ! find /usr/lib/systemd /lib/systemd -name feedwheel.service | grep .; }
has_feed() { as_service "feedwheel list" | grep -F https://example.org/feed.xml; }
edited() { same "$(tail -n 1 /etc/feedwheel.conf)" "concurrency = 100"; }
data() { folder && [ -s $store ]; }
purged() { ! find /etc /var/lib/systemd /var/lib/dpkg/info -name '*feedwheel*' | grep .; }

dpkg --purge feedwheel libfeedwheel-dev libfeedwheel0 >/dev/null 2>&1 # of a run before
rm -rf /var/lib/feedwheel
make deb || { failed=1; echo "not ok - make deb"; finish; }
version=$(dpkg-parsechangelog -S Version)
debs=$PWD/build/deb
check "make deb: packages, and lintian finds no errors" ls "$debs/feedwheel_${version}_$arch.changes"
apt install man-db bash >/dev/null 2>&1
check "install" install_version
check "user: the home is /var/lib/feedwheel, nobody logs in" user
check "folder: /var/lib/feedwheel is the user's, mode 700" folder
check "unit: systemd finds nothing wrong" unit
check "unit: enabled" enabled enabled
check "configuration: /etc/feedwheel.conf, and the service's user reads it" configuration
check "the service's command: it waits for feeds, and stops" idles
check "command: all stores and the HTTP server are built in" complete
check "completions: bash, zsh, fish" completions
check "manual pages" manuals
check "papers: copyright, changelog, README.Debian" papers
check "libfeedwheel-dev needs what feedwheel.pc needs" dependencies
check "libfeedwheel: a program links it by pkg-config, and runs" shared
check "libfeedwheel: a program links the static one, and runs" static
check "debian/tests/collect" debian/tests/collect
check "a feed for the service" as_service "feedwheel add https://example.org/feed.xml"
echo "concurrency = 100" >>/etc/feedwheel.conf
check "reinstall" install_version --reinstall
check "reinstall: the data is kept" has_feed
check "reinstall: the edited configuration is kept" edited
check "a higher version is built" next_version
check "built twice, the packages have the same contents" reproducible
systemctl disable --quiet feedwheel.service
check "upgrade" install_next
check "upgrade: the data is kept" has_feed
check "upgrade: the edited configuration is kept" edited
check "upgrade: a disabled service stays disabled" enabled disabled
check "upgrade: the folder is as it was" folder
check "remove" quiet apt remove feedwheel libfeedwheel0 libfeedwheel-dev
check "remove: command and unit are gone" removed
check "remove: the edited configuration is kept" edited
check "remove: the data is kept" data
check "purge, without a question" quiet apt purge feedwheel
check "purge: no configuration is left" purged
check "purge: the data is kept" data
check "install again" install_version
check "install again: the data is found" has_feed
check "install again: the configuration is the sample" \
	sh -c 'feedwheel help --sample-config | cmp - /etc/feedwheel.conf'
check "install again: enabled" enabled enabled
apt purge feedwheel libfeedwheel0 libfeedwheel-dev >/dev/null 2>&1
finish
