#!/bin/sh
# SPDX-License-Identifier: ISC
# tools/make-deb.sh [FOLDER]: build the Debian packages into FOLDER (build/deb), and check them with lintian.
#
# dpkg-buildpackage writes beside the tree that it builds, so it builds a copy: the files that git tracks, and new files
# that it does not ignore. DEB_BUILD_OPTIONS=nocheck skips the tests.
set -eu
cd "$(dirname "$0")/.."
out=${1:-build/deb}
version=$(dpkg-parsechangelog -S Version)
project=$(sed -n "s/^  version: '\(.*\)',$/\1/p" meson.build)
case $version in
"$project" | "$project"[+~-]*) ;;
*)
	echo "make-deb: debian/changelog has version $version, meson.build has $project: make them the same" >&2
	exit 1
	;;
esac
rm -rf "$out"
mkdir -p "$out"
out=$(cd "$out" && pwd)
tree=$out/feedwheel-$version
mkdir "$tree"
if [ -e .git ] && git rev-parse >/dev/null 2>&1; then
	git ls-files -z --cached --others --exclude-standard | tar --create --null --files-from=- --file=-
else
	tar --create --exclude=./build --exclude='./build-*' --exclude=./.git --file=- .
fi | tar --extract --directory="$tree" --file=-
tools/version.sh >"$tree/tools/commit"
(cd "$tree" && DEB_BUILD_OPTIONS="${DEB_BUILD_OPTIONS:+$DEB_BUILD_OPTIONS }terse" dpkg-buildpackage -us -uc -b)
rm -rf "$tree"
echo "== lintian"
lintian --fail-on error "$out"/*.changes
echo
ls "$out"/*.deb
