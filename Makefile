# The words of daily work; `make` lists them. Everything is built below .build, nothing elsewhere.

SHELL       := /bin/bash
SWIFT       ?= swift
PREFIX      ?= /usr
DESTDIR     ?=
SECONDS     ?= 0
SIZES       ?= S M
ROUNDS      ?= 3
SERIES      ?= all
IMPORTCHECK := --explicit-target-dependency-import-check error
RELEASE     := .build/release
# No other program looks up functions in these two: without their names the loader has less to read at each start.
LINKING     := -Xlinker --no-export-dynamic
# For --version; empty without git.
COMMIT       = $(shell git describe --always --dirty --abbrev=12 --exclude='*' 2>/dev/null)
# hopd and hopctl in one build: both at once, and nothing else.
PROGRAMS     = HOPD_ONLY='hopd hopctl' HOPD_COMMIT='$(COMMIT)' $(SWIFT) build -c release --static-swift-stdlib \
  $(LINKING)
STAGE       := .build/stage
DIST        := .build/dist
READER      := .build-reader
INSTALL     := install -p
# The date of man pages, packages and archives: the same commit gives the same bytes.
ifndef SOURCE_DATE_EPOCH
export SOURCE_DATE_EPOCH := $(shell tools/version --epoch 2>/dev/null)
endif

# Not parallel: SwiftPM locks .build, and the tests want the machine for themselves.
.NOTPARALLEL:
.PHONY: help bootstrap build builds release swiftdata check test test-package test-swift test-e2e test-docs \
  test-faults test-full test-tools coverage simulate sanitize fuzz fuzz-stores soak bench bench-L demo stage install \
  uninstall deb dist dist-check image clean

help:
	@echo 'make demo         build, then watch the daemon take two old stores to the current model'
	@echo 'make test         everything quick: checks, build, unit tests, the programs under a real systemd'
	@echo
	@echo 'make bootstrap    install what is missing (as root), or say what to install'
	@echo 'make build        debug build; imports that Package.swift does not list are errors'
	@echo 'make release      hopd and hopctl as they are shipped'
	@echo 'make swiftdata    the program that reads SwiftData models in Swift source; make install takes it'
	@echo 'make test-docs    the commands of the documents, as written, from this checkout'
	@echo 'make check        formatting, scripts, units, message catalog'
	@echo 'make test-swift   only the unit tests'
	@echo 'make test-package only the package, files of a release, man pages, completions and root of the container image'
	@echo 'make test-e2e     only the end-to-end tests; CASES="03-batch 07-kill" picks some'
	@echo 'make test-faults  only the sample of crashes, power cuts and errors (120 seconds; make soak has all)'
	@echo 'make test-full    test, more random worlds, self-tests of the tools, and ten minutes of make soak'
	@echo 'make coverage     which lines of the replacement and its file calls the tests run; fails below 95 %'
	@echo 'make simulate     every power cut and every failing call of a replacement on the simulated disk'
	@echo 'make sanitize     the unit tests under the address sanitizer, those with threads under the thread sanitizer'
	@echo 'make fuzz         hostile files for every parser, each SECONDS=60 plain and under AddressSanitizer'
	@echo 'make fuzz-stores  hostile stores against hopctl, for SECONDS=60'
	@echo 'make soak         every crash, power cut and error through both programs, and writers at random moments;'
	@echo '                  resumes where it was stopped (hours; SECONDS=600 runs a random part, ONLY=hopd,wal,kill'
	@echo '                  some cells)'
	@echo 'make bench        compares hopctl, SQL by hand and other tools (15 minutes); SIZES="S M" ROUNDS=3 SERIES=all'
	@echo 'make bench-L      10 million objects, 10,000 small stores, 100,000 idle ones (an hour, 25 GB of disk)'
	@echo 'make install      after make release; DESTDIR= and PREFIX=$(PREFIX)'
	@echo 'make deb          a Debian package for this architecture, in .build/deb (installs debhelper and lintian)'
	@echo 'make dist         what a release page has, in $(DIST): package, archives, SBOM, checksums'
	@echo 'make dist-check   installs these on a bare Debian without Swift and runs the README there (as root)'
	@echo 'make image        a container image of hopctl (with podman or buildah; see Containerfile)'
	@echo 'make uninstall    stops and disables hopd, removes what install put there; never configuration or state'
	@echo 'make clean        removes .build and the other folders of builds'

bootstrap:
	@tools/bootstrap

build: bootstrap
	$(SWIFT) build $(IMPORTCHECK)

release: bootstrap
	$(PROGRAMS)
	@tools/check-linkage $(RELEASE)/hopd $(RELEASE)/hopctl

# Takes minutes for swift-syntax, which only users of SwiftData need; the packages of hopd and hopctl do not have it.
swiftdata: bootstrap
	$(SWIFT) build --package-path SourceReader --scratch-path $(READER) -c release --static-swift-stdlib

check: test-tools
	@tools/check

test-tools:
	@tools/bootstrap --test

# Tests

test: check builds test-swift test-package test-e2e test-docs test-faults

# The builds of the tests and of the programs at once: for much of the time each has work for one processor.
builds: test-tools
	@mkdir -p .build; $(MAKE) --no-print-directory release >.build/release.log 2>&1 & release=$$!; \
	  SWIFT=$(SWIFT) tools/swift-tests --build-only; tests=$$?; \
	  wait $$release || { cat .build/release.log; exit 1; }; exit $$tests

test-swift: test-tools
	@SWIFT=$(SWIFT) tools/swift-tests --build

test-e2e: test-tools stage
	@Tests/EndToEndTests/run --stage $(STAGE) $(CASES)

# Package, man pages, completions and the container's constraints, of the stage that the end-to-end tests use.
# A machine that lacks debhelper or lintian, and may not install them, says so (exit status 77).
test-package: test-tools stage
	@rm -rf .build/deb
	@tools/package --stage $(STAGE) --output .build/deb && tools/package --check --stage $(STAGE) && \
	  $(MAKE_DIST) --output $(DIST) >/dev/null && $(MAKE_DIST) --check $(DIST) || [ $$? = 77 ]
	@tools/manpages --check $(STAGE)/usr/share/man
	@tools/completions --stage $(STAGE)
	@tools/container --stage $(STAGE)

test-docs: test-tools stage
	@tools/doc-commands --programs $(STAGE)/usr/bin

# A sample of make soak, with printed seeds, and the control that must fail. Where the kernel does not let a program
# trace another one (exit status 2), that is said and nothing is proved.
test-faults: test-tools stage
	@tools/soak --stage $(STAGE) --sample || [ $$? = 2 ]
	@tools/exchanges --stage $(STAGE) --points 2 || [ $$? = 2 ]
	@tools/writers --stage $(STAGE) --migrations 40
	@tools/writers --stage $(STAGE) --migrations 200 --program naive
	@tools/fleet-workers --hopctl $(STAGE)/usr/bin/hopctl --stores 30 --shards 3 --seeds 1..2
	@tools/fleet-s3 --hopctl $(STAGE)/usr/bin/hopctl --schedules 12 --aws-every 0 --rclone-every 6 || [ $$? = 2 ]

test-full: swiftdata test
	@tools/dist-check --dist $(DIST) || [ $$? = 77 ]
	@tools/report-judges
	@tools/swift-tests HopctlTests
	@tools/report-pictures --hopctl $(STAGE)/usr/bin/hopctl || [ $$? = 2 ]
	@HOPD_TESTS=full HOPD_SEEDS=60 tools/swift-tests ConformanceTests StoreReplacementTests
	@tools/exchanges --stage $(STAGE) --lives 60 || [ $$? = 2 ]
	tools/selftest $$(tools/systemd-sandbox check >/dev/null 2>&1 || echo --no-sandbox) \
	  $$(tools/faultlib.py check >/dev/null 2>&1 || echo --no-mount)
	@Benchmarks/bench --hopctl $(RELEASE)/hopctl --self-check
	@tools/coverage
	@tools/simulate
	@tools/fleet-workers --hopctl $(STAGE)/usr/bin/hopctl --stores 250 --shards 8 --seeds 1..20
	@tools/fleet-workers --hopctl $(STAGE)/usr/bin/hopctl --stores 100 --shards 4 --seeds 1..5 --lose-state
	@tools/fleet-s3 --hopctl $(STAGE)/usr/bin/hopctl --schedules 500 --aws-every 25 --rclone-every 10 || [ $$? = 2 ]
	@tools/fleet-s3 --hopctl $(STAGE)/usr/bin/hopctl --schedules 20 --aws-every 0 --naive || [ $$? = 2 ]
	@tools/kubernetes-check || [ $$? = 2 ]
	@tools/exchange-readers --hopctl $(STAGE)/usr/bin/hopctl || [ $$? = 2 ]
	@tools/exchange-trips --hopctl $(STAGE)/usr/bin/hopctl || [ $$? = 2 ]
	@tools/fleet-slurm --hopctl $(STAGE)/usr/bin/hopctl --stores 2000 --shards 8 || [ $$? = 2 ]
	@tools/soak --stage $(STAGE) --seconds 600

coverage: bootstrap
	@tools/coverage

simulate: bootstrap
	@tools/simulate

sanitize: bootstrap
	@tools/sanitize address
	@tools/sanitize thread

fuzz: SECONDS = 60
fuzz:
	@tools/fuzz --seconds $(SECONDS)

fuzz-stores: SECONDS = 60
fuzz-stores: stage
	@tools/fuzz-stores --hopctl $(STAGE)/usr/bin/hopctl --seconds $(SECONDS)

soak: stage
	@tools/soak --stage $(STAGE) --seconds $(SECONDS) $(if $(ONLY),--only "$(ONLY)")
	@tools/exchanges --stage $(STAGE)
	@tools/exchanges --stage $(STAGE) --lives 500
	@tools/writers --stage $(STAGE) --json .build/soak/writers-hopctl.json
	@tools/writers --stage $(STAGE) --program hopd --json .build/soak/writers-hopd.json
	@tools/writers --stage $(STAGE) --program naive

# Speed; tables on standard output, and with the raw figures in Benchmarks/results

bench: release
	@Benchmarks/bench --hopctl $(RELEASE)/hopctl --sizes "$(SIZES)" --rounds $(ROUNDS) --series "$(SERIES)"

bench-L: release
	@Benchmarks/bench --hopctl $(RELEASE)/hopctl --sizes L --series "sizes small idle" --small-stores 10000 \
	  --idle-stores "0 1000 100000"

# Without optimization, which is most of a release build.
demo: DEMO := .build-demo
demo: bootstrap
	HOPD_DEMO_BUILD=1 $(PROGRAMS) --scratch-path $(DEMO)
	@rm -rf $(DEMO)/stage
	@$(MAKE) --no-print-directory -s install RELEASE=$(DEMO)/release DESTDIR=$(abspath $(DEMO)/stage) PREFIX=/usr
	@tools/demo --stage $(DEMO)/stage

# Installing. Programs and documents go below PREFIX; what systemd and hopd read lies in fixed places below /usr/lib.

BINDIR  = $(DESTDIR)$(PREFIX)/bin
DOCDIR  = $(DESTDIR)$(PREFIX)/share/doc/hopd
LIBDIR  = $(DESTDIR)/usr/lib
# Where the system's Python looks for modules, as on Debian; policies in Python import hopd_policy from there.
PYTHONDIR ?= /usr/lib/python3/dist-packages
PYTHON  = $(DESTDIR)$(PYTHONDIR)/hopd_policy

MANDIR  = $(DESTDIR)$(PREFIX)/share/man

# A throwaway root for tests and demo.
stage: release
	@rm -rf $(STAGE)
	@$(MAKE) --no-print-directory -s install DESTDIR=$(abspath $(STAGE)) PREFIX=/usr

# A package for Debian and its kin, from the stage.
deb: stage
	@rm -rf .build/deb
	@tools/package --stage $(STAGE) --output .build/deb

# The reader of SwiftData models is an archive of its own, where it was built.
MAKE_DIST = tools/dist --stage $(STAGE) --deb .build/deb \
  $(addprefix --reader ,$(wildcard $(READER)/release/hopctl-swiftdata-reader))

dist: swiftdata deb
	@$(MAKE_DIST) --output $(DIST)

dist-check: dist
	@tools/dist-check --dist $(DIST)

image: stage
	@tools/container --stage $(STAGE) --build

install:
	@test -x $(RELEASE)/hopd -a -x $(RELEASE)/hopctl || \
	  { echo 'install: nothing to install; run make release first' >&2; exit 1; }
	$(INSTALL) -d $(BINDIR) $(DOCDIR)/docs/decisions $(DOCDIR)/docs/formats $(PYTHON)
	$(INSTALL) -d $(LIBDIR)/hopd/hopd.toml.d $(LIBDIR)/systemd/system $(LIBDIR)/systemd/catalog
	$(INSTALL) -d $(LIBDIR)/sysusers.d $(LIBDIR)/tmpfiles.d
	$(INSTALL) -m 755 -s $(RELEASE)/hopd $(RELEASE)/hopctl $(BINDIR)/
	test ! -x $(READER)/release/hopctl-swiftdata-reader || \
	  $(INSTALL) -m 755 -s $(READER)/release/hopctl-swiftdata-reader $(LIBDIR)/hopd/
	sed 's#/usr/bin/hopd#$(PREFIX)/bin/hopd#g' systemd/hopd.service > $(LIBDIR)/systemd/system/hopd.service
	chmod 644 $(LIBDIR)/systemd/system/hopd.service
	for unit in hopd@ hopd-batch@; do installed=$(LIBDIR)/systemd/system/$$unit.service; \
	  sed 's#/usr/bin/hop#$(PREFIX)/bin/hop#g' systemd/$$unit.service > $$installed || exit 1; \
	  chmod 644 $$installed; done
	$(INSTALL) -m 644 systemd/hopd.socket $(LIBDIR)/systemd/system/hopd.socket
	$(INSTALL) -m 644 systemd/hopd.sysusers $(LIBDIR)/sysusers.d/hopd.conf
	$(INSTALL) -m 644 systemd/hopd.tmpfiles $(LIBDIR)/tmpfiles.d/hopd.conf
	$(INSTALL) -m 644 systemd/hopd.catalog $(LIBDIR)/systemd/catalog/hopd.catalog
	$(INSTALL) -m 644 config/hopd.toml $(LIBDIR)/hopd/hopd.toml
	$(INSTALL) -m 644 config/hopd.toml.d/README $(LIBDIR)/hopd/hopd.toml.d/README
	$(INSTALL) -m 644 python/hopd_policy/*.py $(PYTHON)/
	$(INSTALL) -m 644 README.md CHANGELOG.md CONTRIBUTING.md LICENSE systemd/stores.conf.example $(DOCDIR)/
	$(INSTALL) -m 644 docs/*.md $(DOCDIR)/docs/
	$(INSTALL) -m 644 docs/decisions/*.md $(DOCDIR)/docs/decisions/
	$(INSTALL) -m 644 docs/formats/*.md $(DOCDIR)/docs/formats/
	rm -rf $(DOCDIR)/Examples && cp -R --preserve=mode,timestamps Examples $(DOCDIR)/Examples
	find $(DOCDIR)/Examples -name __pycache__ -prune -exec rm -rf {} +
	tools/manpages --programs $(RELEASE) --output $(DESTDIR)$(PREFIX)
	@test -n '$(DESTDIR)' || printf '%s\n' 'installed. Next, as root:' \
	  '  systemd-sysusers && systemd-tmpfiles --create hopd.conf && journalctl --update-catalog' \
	  '  systemctl daemon-reload' \
	  '  then write /etc/hopd/hopd.toml ($(DOCDIR)/Examples/hopd.toml) and: systemctl enable --now hopd'

uninstall:
	@test -n '$(DESTDIR)' || ! command -v systemctl >/dev/null || ! systemctl cat hopd.service >/dev/null 2>&1 || \
	  { systemctl disable --now hopd.service hopd.socket; systemctl stop 'hopd@*.service' 'hopd-batch@*.service'; \
	    find /etc/systemd/system -path '*.wants/hopd@*' -printf '%f\n' | xargs -r systemctl disable; }
	rm -f $(BINDIR)/hopd $(BINDIR)/hopctl
	rm -f $(addprefix $(LIBDIR)/systemd/system/,hopd.service hopd@.service hopd-batch@.service hopd.socket)
	rm -f $(LIBDIR)/systemd/catalog/hopd.catalog $(MANDIR)/man1/hopctl.1 $(MANDIR)/man1/hopctl-*.1 $(MANDIR)/man8/hopd.8
	rm -f $(MANDIR)/man5/hopd.toml.5 $(MANDIR)/man5/hopd-report.5 $(MANDIR)/man5/hop.lock.5 $(MANDIR)/man7/hopd-policies.7
	rm -f $(DESTDIR)$(PREFIX)/share/bash-completion/completions/hopctl
	rm -f $(DESTDIR)$(PREFIX)/share/zsh/vendor-completions/_hopctl
	rm -f $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/hopctl.fish
	rm -f $(LIBDIR)/sysusers.d/hopd.conf $(LIBDIR)/tmpfiles.d/hopd.conf $(LIBDIR)/hopd/hopd.toml
	rm -rf $(DOCDIR) $(PYTHON)
	rm -f $(LIBDIR)/hopd/hopd.toml.d/README $(LIBDIR)/hopd/hopctl-swiftdata-reader
	-rmdir $(LIBDIR)/hopd/hopd.toml.d $(LIBDIR)/hopd
	@test -n '$(DESTDIR)' || ! command -v systemctl >/dev/null || systemctl daemon-reload 2>/dev/null || true
	@test -n '$(DESTDIR)' || echo 'left alone: /etc/hopd, /var/lib/hopd, the user hopd, every store and every backup'

clean:
	rm -rf .build .build-demo .build-reader .build-tests .build-fuzz .build-grdb .build-cov .build-sim .build-asan \
	  .build-tsan
