# One Makefile for all. `make` leaves ./setlistd; what it needs to know of the machine is in config.mk, made by configure.
include config.mk

BUILD ?= build
VERSION := $(shell scripts/version)
WARNINGS = -Wall -Wextra -Wpedantic -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith -Wwrite-strings \
	-Wundef -Wformat=2 -Wvla
WERROR ?=
SANITIZE ?=

# What makes an error in memory harder to exploit, as far as the compiler knows it. The user's own flags come behind and override
# it. _FORTIFY_SOURCE needs optimisation, and hides calls from sanitizers; some compilers define it themselves.
known = $(foreach flag, $(1), $(shell $(CC) -Werror $(flag) -c -x c /dev/null -o /dev/null 2>/dev/null && echo $(flag)))
HARD_CFLAGS := $(call known, -fstack-protector-strong -fstack-clash-protection -fPIE)
HARD_LDFLAGS = -pie -Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack
UNFORTIFIED = $(filter-out -O1 -O2 -O3 -Os -Oz -Ofast -O -Og, $(or $(lastword $(filter -O%, $(CFLAGS))), -O0)) $(SANITIZE) \
	$(findstring -fsanitize, $(CFLAGS)) $(findstring _FORTIFY_SOURCE, $(CPPFLAGS) $(CFLAGS))
HARD_CPPFLAGS = $(if $(strip $(UNFORTIFIED)),, -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2)

# GCC clears and copies structures of some hundred bytes with string instructions, which take long to start.
comma := ,
by_vectors = vector_loop:512:noalign$(comma)libcall:-1:noalign
COPY_CFLAGS := $(call known, -mmemset-strategy=$(by_vectors) -mmemcpy-strategy=$(by_vectors))

# The daemon is optimised as a whole, if the compiler can keep ordinary code in the objects too, which tests and lint use.
# `make LTO=` links faster. By default gcc stops inlining once the program has grown by 40 %. A change anywhere would then decide which
# functions on the path of each request are inlined.
LTO_FLAGS := -flto=auto -ffat-lto-objects --param=inline-unit-growth=100
LTO := $(shell $(CC) -Werror $(LTO_FLAGS) -c -x c /dev/null -o /dev/null 2>/dev/null && echo $(LTO_FLAGS))
LTO_CFLAGS = $(if $(strip $(UNFORTIFIED)),, $(LTO))

ALL_CPPFLAGS = -Isrc -D_GNU_SOURCE $(HARD_CPPFLAGS) $(CPPFLAGS)
ALL_CFLAGS = -std=c11 $(WARNINGS) $(WERROR) $(HARD_CFLAGS) $(COPY_CFLAGS) $(CFLAGS) $(SANITIZE)
ALL_LDFLAGS = $(HARD_LDFLAGS) $(LDFLAGS) $(LINK_LTO)
LINK_LTO = $(if $(LTO_CFLAGS), -fno-lto)

# The layers. What is pure does no I/O, reads no clock and keeps no state of its own, and links without libevent and
# libmemcached: tests, fuzzers and the simulation are made from it alone. Only the fuzzer of the configuration and the test of rings
# need more.
PURE = $(wildcard src/protocol/*.c src/collection/*.c src/collection/*/*.c src/collection/*/*/*.c src/waiting/*.c src/command/*.c) src/upstream/lookup.c src/upstream/pipeline.c src/upstream/call_turns.c \
	src/upstream/greeting.c src/upstream/server_clock.c src/util/alloc.c src/util/buf.c src/util/escape.c src/util/glob.c src/util/histogram.c src/util/near.c src/util/num.c src/util/pool.c src/util/shared.c src/util/topk.c src/util/turns.c src/config/address.c src/config/text.c
# One of the two is built.
UNUSED = src/process/$(if $(NO_SANDBOX),sandbox,no_sandbox).c
REST = $(filter-out $(PURE) $(UNUSED), $(wildcard src/*.c src/*/*.c src/*/*/*.c src/*/*/*/*.c))
UNIT = $(wildcard tests/unit/*.c)
# The slowest first, so that none of them is left alone at the end.
SLOW_FUZZERS = fuzz_view fuzz_table fuzz_connection
FUZZERS = $(SLOW_FUZZERS) $(filter-out $(SLOW_FUZZERS), $(patsubst tests/fuzz/%.c, %, $(wildcard tests/fuzz/fuzz_*.c)))
OBJECTS = $(patsubst %.c, $(BUILD)/%.o, $(PURE) $(REST))
PURE_LIB = $(BUILD)/libpure.a

# One short line for each step; V=1 shows the commands.
V ?= 0
ifeq ($(V),0)
say = @printf '  %-4s %s\n' $(1) $(2);
endif

all: setlistd

setlistd: $(BUILD)/setlistd
	@cp -f --remove-destination $< $@

$(BUILD)/setlistd: LINK_LTO = $(LTO_CFLAGS)
$(BUILD)/setlistd: $(OBJECTS)
	$(call say,LD,$@)$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $(OBJECTS) $(LIBS) -lpthread

$(PURE_LIB): $(patsubst %.c, $(BUILD)/%.o, $(PURE))
	@rm -f $@
	$(call say,AR,$@)$(AR) rcs $@ $^
	$(if $(LTO_CFLAGS),@objcopy -R '.gnu.lto_*' $@)

$(BUILD)/%.o: %.c config.mk
	@mkdir -p $(@D)
	$(call say,CC,$<)$(CC) $(ALL_CPPFLAGS) $(LIB_CFLAGS) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<

# Its file is a part of it, by way of the assembler, which is not optimised.
$(BUILD)/src/process/admin_port.o: src/process/page.html

# Only this file is compiled again when a commit has another version.
$(BUILD)/src/util/version.o: ALL_CPPFLAGS += -DSETLISTD_VERSION='"$(VERSION)"'
$(BUILD)/src/util/version.o: $(BUILD)/version

$(BUILD)/version: FORCE
	@mkdir -p $(@D)
	@echo '$(VERSION)' | cmp -s - $@ || echo '$(VERSION)' >$@

$(filter-out %/admin_port.o, $(OBJECTS)): ALL_CFLAGS += $(LTO_CFLAGS)

# The pure ones are compiled without the libraries' include paths.
$(patsubst %.c, $(BUILD)/%.o, $(PURE)): LIB_CFLAGS =

# With the options that configure had.
config.mk: configure config.mk.in
	if [ -x config.status ]; then ./config.status --recheck && ./config.status; else ./configure; fi

configure: configure.ac
	@scripts/needs build autoconf
	autoconf

-include $(patsubst %.c, $(BUILD)/%.d, $(PURE) $(REST) $(UNIT))

include tests/tests.mk
include scripts/install.mk

dist:
	@scripts/dist

html:
	@mkdir -p $(BUILD)
	$(call say,HTML,$(BUILD)/setlistd.html)scripts/html $(VERSION) >$(BUILD)/setlistd.html

clean:
	rm -rf build setlistd

distclean: clean
	rm -rf config.mk config.log config.status configure autom4te.cache

.PHONY: all dist html clean distclean FORCE
