# Installing. Each line of INSTALLED is mode:source:folder; `make uninstall` removes the files that `make install` installs. The
# folders are set by configure, and DESTDIR is prepended to each.
STAGE = $(BUILD)/install
completionsdir = $(datadir)/bash-completion/completions

# The client modules.
LANGUAGES = python php node go

INSTALLED = \
	755:setlistd:$(sbindir) \
	$(patsubst %, 755:$(STAGE)/%:$(bindir), setlistd-convert setlistd-move setlistd-check) \
	$(patsubst %, 644:%:$(datadir)/setlistd/conversion, $(wildcard scripts/conversion/*.py)) \
	$(patsubst %, 644:%:$(datadir)/setlistd/moving, $(wildcard scripts/moving/*.py)) \
	$(foreach language, $(LANGUAGES), $(patsubst %, 644:%:$(datadir)/setlistd/clients/$(language), $(wildcard conf/clients/$(language)/*.*))) \
	$(foreach n, 1 5 7 8, $(patsubst %, 644:%:$(mandir)/man$(n), $(wildcard man/*.$(n)))) \
	$(patsubst %, 644:%:$(docdir), README.md CHANGES MAINTAINER LICENSE) \
	$(patsubst %, 644:conf/%:$(docdir)/examples, setlistd.conf Dockerfile kubernetes.yaml prometheus-rules.yml grafana.json) \
	$(patsubst %, 644:$(STAGE)/completions/%:$(completionsdir), setlistd setlistd-convert setlistd-move setlistd-check) \
	$(if $(systemdsystemunitdir), $(patsubst %, 644:$(STAGE)/%:$(systemdsystemunitdir), setlistd.service setlistd.socket))

# Folders that only setlistd uses. They are removed when they are empty.
OWN_FOLDERS = $(LANGUAGES:%=$(datadir)/setlistd/clients/%) $(datadir)/setlistd/clients $(datadir)/setlistd/conversion $(datadir)/setlistd/moving $(datadir)/setlistd $(docdir)/examples $(docdir) $(sysconfdir)/setlistd

CONFIGURATION = $(DESTDIR)$(sysconfdir)/setlistd/setlistd.conf

# These files contain the paths of other files.
$(STAGE)/setlistd-%: scripts/% config.mk
	@mkdir -p $(@D)
	sed 's,^PARTS = .*,PARTS = "$(datadir)/setlistd",' $< >$@

$(STAGE)/%.service: conf/%.service config.mk
	@mkdir -p $(@D)
	sed 's,/usr/sbin/,$(sbindir)/,; s,/etc/setlistd/,$(sysconfdir)/setlistd/,' $< >$@

$(STAGE)/%.socket: conf/%.socket
	@mkdir -p $(@D)
	cp $< $@

$(STAGE)/completions/%: conf/setlistd.bash-completion
	@mkdir -p $(@D)
	cp $< $@

# An existing configuration is kept.
install: $(foreach line, $(INSTALLED), $(word 2, $(subst :, ,$(line))))
	@set -e; for line in $(INSTALLED); do \
		IFS=:; set -- $$line; \
		echo "install -D -m $$1 $$2 $(DESTDIR)$$3/$${2##*/}"; \
		install -D -m "$$1" "$$2" "$(DESTDIR)$$3/$${2##*/}"; \
	done
	[ -e $(CONFIGURATION) ] || install -D -m 644 conf/minimal.conf $(CONFIGURATION)

# A modified configuration is kept.
uninstall:
	@set -e; for line in $(INSTALLED); do \
		IFS=:; set -- $$line; \
		echo "rm -f $(DESTDIR)$$3/$${2##*/}"; \
		rm -f "$(DESTDIR)$$3/$${2##*/}"; \
	done
	if cmp -s conf/minimal.conf $(CONFIGURATION); then rm $(CONFIGURATION); fi
	-@rmdir $(addprefix $(DESTDIR), $(OWN_FOLDERS)) 2>/dev/null || true

# The Debian packages, in build/deb.
deb: configure
	scripts/deb

.PHONY: install uninstall deb
