# Targets: all examples web-api wide-net check check-long asan tsan fuzz bench lint format install clean.
# V=1 shows commands. CONFIG: release (default), asan, tsan, cov. WERROR=1 makes warnings errors. CC=clang works too. LIBDW=0: without libdw.

CONFIG ?= release
CC = gcc
PKG_CONFIG ?= pkg-config
PREFIX ?= /usr/local
DESTDIR ?=

ifeq ($(CONFIG),release)
B := build
else
B := build/$(CONFIG)
endif

WARN := -Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion -Wstrict-prototypes -Wmissing-prototypes -Wvla \
	-Wcast-qual -Wformat=2 -Wundef -Wnull-dereference
ifeq ($(WERROR),1)
WARN += -Werror
endif

# LIBDW=0 leaves libdw out. Then stacks of 32-bit programs and of other architectures are not unwound.
LIBDW ?= 1
PKGS := libelf $(if $(filter 0,$(LIBDW)),,libdw) libunwind-generic zlib libzstd liblzma libarchive
ifneq ($(filter asan tsan,$(CONFIG)),)
CFLAGS ?= -O1 -g1
else
CFLAGS ?= -O3 -g
endif
CPPFLAGS += -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -I. -I$(B)/gen $(shell $(PKG_CONFIG) --cflags $(PKGS) libcurl)
OURFLAGS := -std=gnu17 $(WARN) -fno-common -fno-omit-frame-pointer -fno-strict-aliasing -MMD -MP
LDLIBS += $(shell $(PKG_CONFIG) --libs $(PKGS)) -liberty -lpthread -lm

ifeq ($(CONFIG),asan)
SAN := -fsanitize=address,undefined -fno-sanitize-recover=all
else ifeq ($(CONFIG),tsan)
SAN := -fsanitize=thread
else ifeq ($(CONFIG),cov)
SAN := --coverage -O0
else ifeq ($(CONFIG),fuzz)
SAN := -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all
CC := clang
else ifeq ($(CONFIG),fuzzcov)
SAN := -fsanitize=fuzzer-no-link -fprofile-instr-generate -fcoverage-mapping
CC := clang
endif

FOLDERS := base container dotnet elf flamegraph profcpu profile recording sampler symbols unwind
SRCS := $(filter-out $(if $(filter 0,$(LIBDW)),unwind/libdw_child.c unwind/libdw_walk.c,unwind/libdw_child_none.c), \
	$(shell find $(FOLDERS) -name '*.c' | LC_ALL=C sort))
LIB_OBJS := $(patsubst %.c,$(B)/obj/%.o,$(filter-out profcpu/main.c,$(SRCS)))
UNIT_BINS := $(patsubst tests/unit/%.c,$(B)/unit/%,$(shell find tests/unit -name 'test_*.c' | LC_ALL=C sort))
FUZZ_NAMES := $(patsubst tests/fuzz/fuzz_%.c,%,$(wildcard tests/fuzz/fuzz_*.c))
FUZZ_BINS := $(addprefix $(B)/fuzz/,$(FUZZ_NAMES))
REPLAY_BINS := $(addprefix $(B)/replay/,$(FUZZ_NAMES))
HELPER_BINS := $(patsubst tests/helpers/%.c,$(B)/helpers/%,$(wildcard tests/helpers/*.c))

comma := ,
# V=1 shows the commands, -s shows nothing.
ifeq ($(V)$(findstring s,$(firstword -$(MAKEFLAGS))),)
say = @printf '  %-7s %s\n' '$(1)' '$(2)';
endif

.PHONY: all check check-long asan tsan fuzz bench lint format install clean unit replay helpers examples objects
.SECONDARY:
all: $(B)/profcpu

# Changed flags cause a rebuild: everything in C depends on the file of flags.
FLAGS_NOW := $(CC) $(CPPFLAGS) $(OURFLAGS) $(CFLAGS) $(SAN) $(LDLIBS)
ifneq ($(filter-out web-api wide-net prepare lint format clean,$(or $(MAKECMDGOALS),all)),)
$(shell mkdir -p $(B) && { [ "$$(cat $(B)/flags 2>/dev/null)" = '$(FLAGS_NOW)' ] || printf '%s\n' '$(FLAGS_NOW)' >$(B)/flags; })
endif

$(B)/obj/%.o: %.c $(B)/flags
	@mkdir -p $(@D)
	$(call say,CC,$<)$(CC) $(CPPFLAGS) $(OURFLAGS) $(CFLAGS) $(SAN) -c -o $@ $<

# Text files embedded in the program: build/gen/NAME.inc contains the bytes as a C array initialiser.
$(B)/gen/%.inc: %
	@mkdir -p $(@D)
	$(call say,EMBED,$<)od -An -v -tx1 $< | sed 's/ \([0-9a-f][0-9a-f]\)/0x\1,/g' >$@

$(B)/obj/flamegraph/svg.o: $(addprefix $(B)/gen/flamegraph/,svg_tree.js.inc svg_draw.js.inc svg_control.js.inc svg.css.inc svg_dark.css.inc)

# The system calls of the target's architecture, as rows SYSCALL(name). Other architectures skip those that they lack.
$(B)/gen/profcpu/stacks/syscalls.inc:
	@mkdir -p $(@D)
	$(call say,GEN,$@)echo '#include <sys/syscall.h>' | $(CC) $(CPPFLAGS) -E -dM -x c - | \
		sed -n 's/^#define __NR_\([a-z][a-z0-9_]*\) .*/\1/p' | grep -v syscall | LC_ALL=C sort | \
		sed 's/.*/#ifdef __NR_&\nSYSCALL(&)\n#endif/' >$@.new && mv $@.new $@

$(B)/obj/profcpu/stacks/syscall_name.o: $(B)/gen/profcpu/stacks/syscalls.inc

$(B)/libprofcpu.a: $(LIB_OBJS)
	$(call say,AR,$@)rm -f $@ && ar rcs $@ $^

# Its allocations fail before the memory ends (container/memory_guard.h).
$(B)/profcpu $(B)/unit/container/test_memory_guard: \
	override LDFLAGS += $(addprefix -Wl$(comma)--wrap=,malloc calloc realloc reallocarray aligned_alloc)

$(B)/profcpu: $(B)/obj/profcpu/main.o $(B)/libprofcpu.a
	$(call say,LD,$@)$(CC) $(SAN) $(LDFLAGS) -o $@ $^ $(LDLIBS)

# Their clock stands still or moves as they say (tests/unit/fake_clock.h).
$(addprefix $(B)/unit/,dotnet/coreclr/test_jit_code unwind/test_clr_code symbols/test_r2r_image): \
	override LDFLAGS += -Wl,--wrap=clock_monotonic_ns

# The tests set the memory that is left (tests/unit/fake_memory.h).
$(addprefix $(B)/unit/,recording/test_archive_input recording/test_perfdata_merge symbols/test_r2r_image unwind/test_r2r_unwind \
	container/test_memory_guard dotnet/test_pe elf/test_budget): \
	override LDFLAGS += -Wl,--wrap=memory_left -Wl,--wrap=memory_taken

# The test lets the rights of a process be unreadable.
$(B)/unit/container/test_opener_nobody: override LDFLAGS += -Wl,--wrap=rights_read

# In these tests, a process or a file does not answer.
$(B)/unit/symbols/jit/test_perfmap: override LDFLAGS += -Wl,--wrap=holes_next_data -Wl,--wrap=holes_data_bytes
$(B)/unit/container/test_process_list: override LDFLAGS += -Wl,--wrap=proc_status
$(B)/unit/sampler/test_start: override LDFLAGS += -Wl,--wrap=targets_threads

# The test lets reads of ELF files find no memory, and lookups of paths not end.
$(B)/unit/symbols/test_images_room: override LDFLAGS += $(addprefix -Wl$(comma)--wrap=,elf_file_read opener_our_file opener_own_file)

# A fake runtime answers the reader, and the test counts the answers.
$(B)/unit/profcpu/record/test_code_reader: override LDFLAGS += $(addprefix -Wl$(comma)--wrap=,clr_runtime_locate \
	clr_contract_load clr_code_reader_new clr_code_reader_free clr_code_read unwinder_add_code)

# Probes take no time, and the test counts them.
$(B)/unit/profcpu/jit/test_capture_cost: override LDFLAGS += -Wl,--wrap=jit_process_probe

# The test lets the list of a directory not end.
$(B)/unit/symbols/jit/test_pids: override LDFLAGS += -Wl,--wrap=getdents64

# The test counts the passes over the samples and the readings of the header.
$(B)/unit/profcpu/post/test_postprocess: override LDFLAGS += -Wl,--wrap=samples_each -Wl,--wrap=perfdata_open

# The test searches for a symbol of its own program.
$(B)/unit/profcpu/jit/test_stubs: override LDFLAGS += -rdynamic

$(B)/obj/tests/unit/%.o: override CFLAGS += -O0
# A frame of the stack is smaller than the first copies of stacks (24 KiB), so profcpu's own stacks are whole.
ifeq ($(SAN),)
$(LIB_OBJS): override CFLAGS += -Wframe-larger-than=20480
endif
# gold links all tests in a quarter of the time.
$(B)/unit/% $(B)/helpers/% $(B)/replay/%: override LDFLAGS += $(if $(shell command -v ld.gold),-fuse-ld=gold)

$(B)/unit/%: $(B)/obj/tests/unit/%.o $(B)/libprofcpu.a
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(SAN) $(LDFLAGS) -o $@ $^ $(LDLIBS) -lcmocka

$(B)/helpers/%: $(B)/obj/tests/helpers/%.o $(B)/libprofcpu.a
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(SAN) $(LDFLAGS) -o $@ $^ $(LDLIBS)

# A fuzz target is LLVMFuzzerTestOneInput in tests/fuzz/fuzz_NAME.c with seeds in tests/fuzz/corpus/NAME/.
$(B)/fuzz/%: $(B)/obj/tests/fuzz/fuzz_%.o $(B)/libprofcpu.a
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) -fsanitize=fuzzer $(SAN) $(LDFLAGS) -o $@ $^ $(LDLIBS)

$(B)/replay/%: $(B)/obj/tests/fuzz/fuzz_%.o $(B)/obj/tests/fuzz/replay.o $(B)/libprofcpu.a
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(SAN) $(LDFLAGS) -o $@ $^ $(LDLIBS)

# Programs with a known profile and their load generator; all with frame pointers also in leaves, and nothing inlined.
EXAMPLE_FLAGS := -O2 -g -fno-omit-frame-pointer -mno-omit-leaf-frame-pointer -fno-optimize-sibling-calls
$(B)/examples/shares: examples/native/shares.c $(B)/flags
	@mkdir -p $(@D)
	$(call say,CC,$<)$(CC) -D_GNU_SOURCE -std=gnu17 $(WARN) $(EXAMPLE_FLAGS) -o $@ $< -lpthread

$(B)/examples/load: examples/web-api/load.c $(B)/flags
	@mkdir -p $(@D)
	$(call say,CC,$<)$(CC) -D_GNU_SOURCE -std=gnu17 $(WARN) $(EXAMPLE_FLAGS) -o $@ $<

# The library that tests/dotnet/stacks calls: no frame pointers, and names only in its symbol table.
$(B)/examples/libburn.so: tests/dotnet/stacks/burn.c $(B)/flags
	@mkdir -p $(@D)
	$(call say,CC,$<)$(CC) -std=gnu17 $(WARN) -O2 -fomit-frame-pointer -fPIC -shared -fvisibility=hidden -o $@ $< -lm

# The .NET examples; they need the .NET 10 SDK and nothing from the network.
define DOTNET_EXAMPLE
.PHONY: $(1)
$(1): build/examples/$(1)/$(1).dll
build/examples/$(1)/$(1).dll: $(wildcard examples/$(1)/*.cs examples/$(1)/*.csproj examples/$(1)/*.props)
	dotnet build -nologo -v quiet -c Release -o build/examples/$(1) examples/$(1)/$(1).csproj
endef
$(foreach name,web-api wide-net,$(eval $(call DOTNET_EXAMPLE,$(name))))

# A program that makes a .NET process report its precompiled methods, for the test of their names.
prepare: build/dotnet/prepare/prepare.dll
build/dotnet/prepare/prepare.dll: $(wildcard tests/dotnet/prepare/*)
	dotnet build -nologo -v quiet -c Release -o $(@D) tests/dotnet/prepare/prepare.csproj

examples: $(B)/examples/shares $(B)/examples/load $(B)/examples/libburn.so
unit: $(UNIT_BINS)
replay: $(REPLAY_BINS)
helpers: $(HELPER_BINS)
# Compiles everything and links nothing, to see the warnings of another compiler.
objects: $(patsubst %.c,$(B)/obj/%.o,$(SRCS) $(shell find tests/unit tests/helpers tests/fuzz -name '*.c')) examples

check: all unit replay helpers examples
	tests/run $(B)

check-long: all unit replay helpers examples
	tests/run --long $(B)

asan:
	$(MAKE) CONFIG=asan check

tsan:
	$(MAKE) CONFIG=tsan check

# Runs every fuzz target for FUZZ_SECONDS; new inputs are kept in build/fuzz/found/NAME.
FUZZ_SECONDS ?= 60
fuzz:
	$(MAKE) CONFIG=fuzz fuzz-bins
	scripts/fuzz-run build/fuzz $(FUZZ_SECONDS) $(FUZZ_NAMES)

# Mutates seeds, MUTATIONS of each kind, and runs the corpus replays and the commands with sanitizers. Findings are kept
# in build/asan/mutate.
MUTATIONS ?= 1000
mutate:
	$(MAKE) CONFIG=asan all replay
	tests/fuzz/mutate build/asan $(MUTATIONS)
.PHONY: fuzz-bins mutate
fuzz-bins: $(FUZZ_BINS)

bench: all examples helpers
	tests/bench/run $(B)

lint:
	scripts/check-deps
	scripts/lint

format:
	clang-format -i $$(find $(FOLDERS) tests examples -name '*.[ch]')

install: all
	install -D -m 0755 $(B)/profcpu $(DESTDIR)$(PREFIX)/bin/profcpu
	install -D -m 0644 profcpu/profcpu.1 $(DESTDIR)$(PREFIX)/share/man/man1/profcpu.1

clean:
	rm -rf build

-include $(shell find $(B) -name '*.d' 2>/dev/null)
