# The tests. The last line that each `check...` target and `lint` prints is its count: "N passed, N failed". scripts/test has the stages
# of its runs.
JOBS := $(shell nproc 2>/dev/null || echo 2)
QUIET_MAKE = $(MAKE) -s --no-print-directory -j$(JOBS)

check:
	@SETLISTD_DEPS=skip scripts/test

# --- units: they link nothing but the pure library, files beside it that do no I/O, Check, and libmemcached to compare with

CHECK_CFLAGS = $(shell $(PKG_CONFIG) --cflags check)
CHECK_LIBS = $(shell $(PKG_CONFIG) --libs check)
UNIT_OBJECTS = $(patsubst %.c, $(BUILD)/%.o, $(UNIT) tests/bench/hist.c)

# What Check's macros come to is not ours to be pedantic about.
$(UNIT_OBJECTS): LIB_CFLAGS = $(CHECK_CFLAGS) $(MEMCACHED_CFLAGS) -Wno-pedantic

# tests/unit/counting.c counts the allocated memory.
COUNTING = -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=free

$(BUILD)/check_unit: $(UNIT_OBJECTS) $(addprefix $(BUILD)/src/, config/users.o measure/notes.o measure/timeline.o upstream/news.o upstream/ring.o upstream/ring_string.o) $(PURE_LIB)
	$(call say,LD,$@)$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) $(COUNTING) -o $@ $^ $(CHECK_LIBS) $(CRYPTO_LIBS) $(MEMCACHED_LIBS)

needs-check:
	@PKG_CONFIG='$(PKG_CONFIG)' scripts/needs test pkg:check

# With the tests of the benchmark, which measure nothing.
check-unit: $(BUILD)/check_unit build/loadgen
	@tests/sum 'CK_TIMEOUT_MULTIPLIER=100 $(BUILD)/check_unit' 'tests/bench/check'

# --- simulation: histories of proxies and servers, from seeds, and bugs put in on purpose that must be found

SEEDS ?= 10000
FIRST_SEED ?= 1
SIM_OBJECTS = $(patsubst %.c, $(BUILD)/%.o, $(wildcard tests/sim/*.c))

$(SIM_OBJECTS): LIB_CFLAGS = -Itests -Itests/sim

$(BUILD)/sim: $(SIM_OBJECTS) $(BUILD)/tests/unit/memcached.o $(PURE_LIB)
	$(call say,LD,$@)$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $^

sim: $(BUILD)/sim
	@$(BUILD)/sim -n $(SEEDS) -s $(FIRST_SEED)

SIM_ENCODINGS = signed csv tombstone paired flip flip-mark indexed

SIM_MORE = taking holding fresh
SIM_WORLDS = moving $(SIM_MORE) $(SIM_ENCODINGS)

check-sim: $(BUILD)/sim
	@tests/sum -j $(JOBS) '$(BUILD)/sim -n 10000' '$(BUILD)/sim -n 10000 -s 10001' '$(BUILD)/sim -m -n 10000' \
		'$(BUILD)/sim -c -n 10' '$(BUILD)/sim -c -m -n 3' '$(BUILD)/sim -e moving -n 2000' \
		'$(BUILD)/sim -e copies -n 20000' '$(BUILD)/sim -e copies -m -n 30000' '$(BUILD)/sim -e pairs -n 10000' '$(BUILD)/sim -e pairs -m -n 20000' \
		$(foreach w, $(SIM_MORE), '$(BUILD)/sim -e $(w) -n 3000') \
		$(foreach e, $(SIM_ENCODINGS), '$(BUILD)/sim -e $(e) -n 2000') \
		$(foreach w, $(SIM_WORLDS), '$(BUILD)/sim -e $(w) -m -n 10000')

# Some histories of each world. Each mutation must be found in as few; bugs of the guards of moving need a rare coincidence.
check-worlds: $(BUILD)/sim
	@tests/sum -j $(JOBS) '$(BUILD)/sim -n 500' '$(BUILD)/sim -m -n 200' '$(BUILD)/sim -c -n 2' '$(BUILD)/sim -c -m -n 1' \
		'$(BUILD)/sim -e moving -n 200' '$(BUILD)/sim -e copies -n 1000' '$(BUILD)/sim -e pairs -n 300' $(foreach w, $(SIM_MORE), '$(BUILD)/sim -e $(w) -n 200') \
		$(foreach e, $(SIM_ENCODINGS), '$(BUILD)/sim -e $(e) -n 50') \
		'$(BUILD)/sim -e moving -m -n 3000' $(foreach w, $(SIM_MORE) $(SIM_ENCODINGS), '$(BUILD)/sim -e $(w) -m -n 200')

# --- fuzzers: clang's, over the pure library; each also runs its corpus

# The check runs the same inputs however fast the machine is.
FUZZ_RUNS = 20000

FUZZ_BUILD = build/fuzzers
FUZZ_OBJECTS = $(patsubst %, $(BUILD)/tests/fuzz/%.o, $(FUZZERS))
FUZZ_HELPERS = $(patsubst %, $(BUILD)/tests/unit/%.o, fake memcached model list_model table_model set_model cupboard box)

# The other files of tests/unit need Check.
$(filter-out $(FUZZ_HELPERS), $(UNIT_OBJECTS)): | needs-check

FUZZ_MAKE = $(QUIET_MAKE) BUILD=$(FUZZ_BUILD) CC=clang CFLAGS='-O1 -g' \
	SANITIZE='-fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all'

$(FUZZ_OBJECTS) $(BUILD)/tests/fuzz/replay.o: LIB_CFLAGS = -Itests/unit

# A fuzzer looks for new paths through the code under test, not through its models, which are slow when they are watched.
$(FUZZ_HELPERS): override SANITIZE := $(subst fuzzer-no-link$(comma),,$(SANITIZE))

$(BUILD)/fuzz_%: $(BUILD)/tests/fuzz/fuzz_%.o $(FUZZ_HELPERS) $(PURE_LIB)
	$(call say,LD,$@)$(CC) $(ALL_CFLAGS) -fsanitize=fuzzer $(ALL_LDFLAGS) -o $@ $(filter %.o, $^) $(PURE_LIB) $(FUZZ_LIBS)

# Any compiler builds this: it runs a corpus and nothing else.
REPLAYS = $(patsubst fuzz_%, replay_%, $(FUZZERS))

$(BUILD)/replay_%: $(BUILD)/tests/fuzz/fuzz_%.o $(BUILD)/tests/fuzz/replay.o $(FUZZ_HELPERS) $(PURE_LIB)
	$(call say,LD,$@)$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $(filter %.o, $^) $(PURE_LIB) $(FUZZ_LIBS)

# The configuration is no part of the pure library: libconfuse reads files, and libmemcached strings.
CONFIGURATION_TESTS = $(addprefix $(BUILD)/, fuzz_configuration replay_configuration)
$(CONFIGURATION_TESTS): $(patsubst %.c, $(BUILD)/%.o, $(addprefix src/, config/config.c config/file.c config/users.c upstream/ring.c upstream/ring_string.c))
$(CONFIGURATION_TESTS): FUZZ_LIBS = $(LIBS)

fuzzers: $(addprefix $(BUILD)/, $(FUZZERS))

replays: $(addprefix $(BUILD)/, $(REPLAYS))

check-corpus: replays
	@tests/sum -j $(JOBS) $(foreach f, $(FUZZERS), '$(BUILD)/$(f:fuzz_%=replay_%) tests/fuzz/corpus/$(f)')

build-fuzzers:
	@scripts/needs test clang
	@$(FUZZ_MAKE) fuzzers

check-fuzz: build-fuzzers
	@rm -rf build/fuzz-check
	@tests/fuzz/run $(FUZZ_BUILD) -runs=$(FUZZ_RUNS) build/fuzz-check $(FUZZERS)

# --- wire: the daemon with real servers, a scripted one, and real clients

# Enters the sandbox, and tries what is forbidden there.
$(BUILD)/sandboxed: $(BUILD)/tests/wire/sandboxed.o $(BUILD)/src/process/sandbox.o $(BUILD)/src/util/log.o $(PURE_LIB)
	$(call say,LD,$@)$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $^ $(LIBS) -lpthread

# The same in a build without seccomp.
$(BUILD)/unboxed: $(BUILD)/tests/wire/sandboxed.o $(BUILD)/src/process/no_sandbox.o $(BUILD)/src/util/log.o $(PURE_LIB)
	$(call say,LD,$@)$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $^ $(LIBS) -lpthread

check-wire: setlistd $(BUILD)/sandboxed $(BUILD)/unboxed
	@tests/wire/run --setlistd ./setlistd

# A test that asserts at once what a compaction does fails here, and not on a busy machine by chance. Not a part of `make check`.
SLOW_BUILD = build/slow

check-slow:
	@$(QUIET_MAKE) BUILD=$(SLOW_BUILD) CPPFLAGS='-DBACKGROUND_PAUSE=100' $(SLOW_BUILD)/setlistd
	@tests/wire/run --setlistd $(SLOW_BUILD)/setlistd

# --- instructions: what a request costs, on a machine however busy. Not for a program that was made with `make LTO=`

check-instructions: setlistd build/loadgen
	@scripts/bench --instructions

# --- another compiler, other ways to compile

check-clang:
	@scripts/needs test clang
	@$(QUIET_MAKE) WERROR=-Werror CC=clang BUILD=build/clang build/clang/setlistd build/clang/check_unit
	@echo clang compiles all without a warning
	@echo 1 passed, 0 failed

SAN_BUILD = $(QUIET_MAKE) BUILD=build/san CFLAGS='-O1 -g' \
	SANITIZE='-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer'

# Tests of time, of memory and of the sandbox mean nothing with sanitizers.
check-san:
	@$(SAN_BUILD) build/san/setlistd build/san/check_unit
	@tests/sum -j 2 'CK_TIMEOUT_MULTIPLIER=100 build/san/check_unit' 'tests/wire/run --no-plain --setlistd build/san/setlistd'

# Not a part of `make check`. See tests/wire/tsan.supp for what is no fault.
TSAN_BUILD = $(QUIET_MAKE) BUILD=build/tsan CFLAGS='-O1 -g' SANITIZE='-fsanitize=thread -fno-omit-frame-pointer'
TSAN_SUPP = TSAN_OPTIONS=suppressions=$(CURDIR)/tests/wire/tsan.supp
TSAN_TESTS = test_sidecar test_concurrency test_shared_replies test_bounds test_memory test_daemon test_reload test_handover test_tls.Moved test_tls_servers test_measures test_log.Servers test_moving test_waiting test_many_waiting

check-tsan:
	@$(TSAN_BUILD) build/tsan/setlistd
	@$(TSAN_SUPP) tests/wire/run --setlistd build/tsan/setlistd $(TSAN_TESTS)

# --- costs: all combinations of check_costs.c; and some of them in a build that counts the basic blocks between two pauses, except for
# those of the tests' own code

$(UNIT_OBJECTS): override SANITIZE := $(filter-out -fsanitize-coverage=%, $(SANITIZE))

check-costs: $(BUILD)/check_unit
	@$(QUIET_MAKE) BUILD=build/costs CFLAGS='-O1 -g' SANITIZE=-fsanitize-coverage=trace-pc build/costs/check_unit
	@export CK_TIMEOUT_MULTIPLIER=100 CK_RUN_SUITE=tests/unit/check_costs.c; \
		tests/sum -j 2 'build/costs/check_unit' 'COSTS_ALL=1 $(BUILD)/check_unit'

# --- soak: everything at once, for SECONDS; CALM=1 without faults. SETLISTD=build/san/setlistd takes a binary with sanitizers

SECONDS ?= 60
SETLISTD ?= ./setlistd

soak: $(if $(filter ./setlistd, $(SETLISTD)), setlistd)
	@$(TSAN_SUPP) tests/wire/soak.py --seconds $(SECONDS) $(if $(CALM),--calm) --setlistd $(SETLISTD)

# --- coverage: the lines and branches that units and the simulation run. gcov comes with gcc

COVER_BUILD = build/cover
COVER_RUNS = 'CK_TIMEOUT_MULTIPLIER=100 $(COVER_BUILD)/check_unit' '$(COVER_BUILD)/sim -n 500' '$(COVER_BUILD)/sim -e moving -n 500' '$(COVER_BUILD)/sim -e copies -n 500' \
	$(foreach w, $(SIM_MORE), '$(COVER_BUILD)/sim -e $(w) -n 300') \
	$(foreach e, $(SIM_ENCODINGS), '$(COVER_BUILD)/sim -e $(e) -n 200')

cover:
	@$(QUIET_MAKE) BUILD=$(COVER_BUILD) CC=gcc CFLAGS='-O0 -g' SANITIZE=--coverage $(COVER_BUILD)/check_unit $(COVER_BUILD)/sim
	@find $(COVER_BUILD) -name '*.gcda' -delete
	@tests/sum -j $(JOBS) $(COVER_RUNS)
	@tests/cover $(COVER_BUILD)

# --- the source itself

lint: needs-python $(PURE_LIB)
	@PURE='$(PURE)' PURE_LIB='$(PURE_LIB)' scripts/lint/run

needs-python:
	@scripts/needs lint python3

format:
	clang-format -i $$(find src tests -name '*.[ch]')

# --- speed

build/loadgen: $(wildcard tests/bench/*.[ch])
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) -std=c11 -D_GNU_SOURCE $(WARNINGS) $(WERROR) $(CPPFLAGS) $(CFLAGS) $(LDFLAGS) -Itests/bench -o $@ \
		$(filter %.c, $^) -lssl -lcrypto -lpthread -lm

# All rows, in about sixteen minutes. `make bench-quick` compares a few with tests/bench/baseline.json.
bench: setlistd build/loadgen
	@scripts/bench $(BENCH)

bench-quick: setlistd build/loadgen
	@scripts/bench --quick $(BENCH)

-include $(BUILD)/tests/wire/sandboxed.d $(patsubst %, $(BUILD)/tests/fuzz/%.d, $(FUZZERS) replay) $(SIM_OBJECTS:.o=.d)

.PHONY: needs-check needs-python check sim check-sim check-worlds check-unit check-corpus check-fuzz check-wire check-instructions check-slow check-clang check-san check-tsan check-costs soak cover fuzzers replays build-fuzzers lint format bench bench-quick
