#!/bin/sh
# SPDX-License-Identifier: ISC
# tools/release-check.sh SUITE [ARCH [COMMAND...]]: test the committed tree on another release of Debian.
#
# Creates a minimal system of that suite (bookworm, trixie, sid, ...) in a scratch folder with debootstrap, from the
# package source of this machine. Clones the tree into it and runs the commands there (by default "make demo", "make
# check", "make check-deep" and tools/package-check.sh), in namespaces for mounts, processes and names, with its own
# /dev. All of it is gone when the check ends. Prints the output of each command and a summary; exits 1 if one failed.
# Needs root and debootstrap.
#
# KEEP=folder keeps the system there and uses it again; otherwise SCRATCH=folder holds it (/var/tmp).
set -eu
usage() { sed -n '3,10s/^# \{0,1\}//p' "$0" >&2; exit 2; }
die() { echo "release-check: $1" >&2; exit 1; }

inside() { # in namespaces of its own: root, and the commands; each is reported to fd 3
	root=$1
	shift
	mount --make-rprivate /
	mount --bind "$root" "$root" # from here on a mount of its own, as / is
	mount -t proc proc "$root/proc"
	mount --rbind /sys "$root/sys"
	mount -t tmpfs -o mode=755 dev "$root/dev"
	for d in null zero full random urandom tty; do
		: >"$root/dev/$d"
		mount --bind "/dev/$d" "$root/dev/$d"
	done
	mkdir "$root/dev/pts" "$root/dev/shm"
	mount -t devpts -o newinstance,ptmxmode=0666,mode=620,gid=5 devpts "$root/dev/pts"
	mount -t tmpfs -o mode=1777 shm "$root/dev/shm"
	mount -t tmpfs -o mode=755 run "$root/run"
	mkdir -m 1777 "$root/run/lock"
	ln -s pts/ptmx "$root/dev/ptmx"
	ln -s /proc/self/fd "$root/dev/fd"
	for n in 0:stdin 1:stdout 2:stderr; do
		ln -s "/proc/self/fd/${n%:*}" "$root/dev/${n#*:}"
	done
	cd "$root"
	pivot_root . .
	umount -l . # this machine's files are out of reach
	cd /
	failed=0
	for command; do
		echo "== $suite $arch: $command"
		begun=$(date +%s)
		if env -i HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 \
			CI="${CI:-}" sh -c "cd /root/feedwheel && $command" </dev/null; then
			how=passed
		else
			how=failed failed=1
		fi
		echo "$command: $how after $(($(date +%s) - begun)) s" >>/root/summary
	done
	return $failed
}

if [ "${1:-}" = --inside ]; then
	suite=$2 arch=$3
	shift 3
	inside "$@"
	exit
fi

[ $# -ge 1 ] || usage
suite=$1
arch=${2:-$(dpkg --print-architecture)}
[ $# -ge 2 ] && shift 2 || shift
[ $# -ge 1 ] || set -- "make demo" "make check" "make check-deep" "tools/package-check.sh"
case $suite in -*) usage ;; esac
[ "$(id -u)" = 0 ] || die "only root can make a system: run it with sudo"
command -v debootstrap >/dev/null || die "there is no debootstrap here: apt-get install debootstrap"
here=$(cd "$(dirname "$0")/.." && pwd)
mirror=$(apt-get indextargets --format '$(ORIGIN) $(REPO_URI)' 'Identifier: Packages' |
	awk '$1 == "Debian" { print $2; exit }')
[ -n "$mirror" ] || die "apt knows no source of Debian's packages: run apt-get update"
if [ -n "${KEEP:-}" ]; then
	mkdir -p "$KEEP"
	root=$(cd "$KEEP" && pwd)
else
	root=$(mktemp -d "${SCRATCH:-/var/tmp}/feedwheel-release.XXXXXX")
	chmod 755 "$root" # it is / to all who are in there
	# Mounts exist in the namespace only, so the folder holds nothing of this machine.
	trap 'rm -rf --one-file-system "$root"' EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM
fi

if [ ! -e "$root/made" ]; then
	echo "== $suite $arch: a minimal system from $mirror"
	debootstrap --variant=minbase --include=git,make --arch="$arch" "$suite" "$root" "$mirror" \
		>"$root.log" 2>&1 || {
		cat "$root.log"
		rm -f "$root.log"
		die "debootstrap failed"
	}
	rm -f "$root.log"
	# As in a container: packages do not start their services, and a mirror may be behind.
	printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
	chmod 755 "$root/usr/sbin/policy-rc.d"
	echo 'Acquire::Check-Valid-Until "false";' >"$root/etc/apt/apt.conf.d/90release-check"
	: >"$root/made"
fi
cp -L /etc/resolv.conf "$root/etc/resolv.conf"
printf '127.0.0.1 localhost\n::1 localhost\n127.0.1.1 release-check\n' >"$root/etc/hosts"
rm -rf "$root/root/feedwheel" "$root/root/shared" "$root/root/summary"
git clone -q --no-local "$here" "$root/root/feedwheel"
[ ! -d "$here/../shared" ] || cp -r "$here/../shared" "$root/root/shared"

status=0
# A machine's name of its own, and no process outlives the first.
unshare --mount --pid --fork --kill-child --uts sh -c 'hostname release-check && exec "$@"' sh \
	sh "$0" --inside "$suite" "$arch" "$root" "$@" || status=1
echo
echo "$suite ($(cat "$root/etc/debian_version"), $arch), $(git -C "$root/root/feedwheel" rev-parse --short HEAD):"
sed 's/^/  /' "$root/root/summary"
exit $status
