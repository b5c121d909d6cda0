# SPDX-License-Identifier: ISC
# A front door: meson does the work (meson.build). Everything lands in build/.
.PHONY: all deps check check-deep demo bench install deb clean small clang asan tsan fuzz nightly interface
all: ; @tools/build.sh
deps: ; @tools/deps.sh
check: deps ; @tools/check.sh
demo: ; @tools/deps.sh build && tools/demo.sh
bench bench-collect bench-parse bench-store bench-ingest bench-plan bench-websub bench-orders bench-read bench-clients bench-page bench-before: all ; @bench/run.sh $@
install: all ; @meson install -C build
deb: ; @tools/deps.sh deb && tools/make-deb.sh
check-deep: deps ; @tools/check.sh deep
small clang asan tsan fuzz nightly: deps ; @tools/check.sh $@
interface: all ; @python3 tools/interface.py write
clean: ; rm -rf build build-*
