# The front door. CMake builds (CMakePresets.json); the scripts say what each job is.
PREFIX ?= /usr/local
SECONDS ?= 600

.PHONY: all demo test bench ordinary fuzz soak install deb wheel clean format docs help
all:
	@scripts/build.sh release product

demo:
	@scripts/setup.sh build
	@$(MAKE) --no-print-directory all
	@scripts/demo.sh

test:
	@scripts/setup.sh test
	@scripts/test.sh $(STAGES)

bench:
	@scripts/setup.sh build
	@scripts/build.sh release product benchmarks
	@bench/run.sh

ordinary:
	@scripts/setup.sh build
	@scripts/build.sh release product
	@bench/ordinary/build.sh
	@python3 bench/ordinary/run.py --csv bench/results/ordinary.csv

fuzz:
	@scripts/setup.sh test
	@scripts/build.sh fuzz all
	@NEAP_FUZZ_SECONDS=$(SECONDS) ctest --test-dir build/fuzz --output-on-failure

soak:
	@scripts/setup.sh test
	@scripts/soak.sh

install: all
	@cmake --install build --prefix $(PREFIX)

deb:
	@scripts/setup.sh deb
	@scripts/deb.sh

wheel:
	@python3 -m pip wheel --quiet --no-deps --wheel-dir build .
	@ls build/neap-*.whl

clean:
	@rm -rf build

format:
	@find include src cli nets examples tests bench -name '*.[ch]' -type f 2>/dev/null | xargs -r clang-format -i

docs: all
	@scripts/docs.sh

help:
	@echo "make            build the command (build/neap) and the libraries"
	@echo "make demo       set up, build, train VGG-16 three ways, draw a plan"
	@echo "make test       set up, then every check and test; STAGES='format release' runs those alone"
	@echo "make bench      the figures of bench/results, measured again"
	@echo "make ordinary   real PyTorch programs on a stand-in for a GPU (bench/ordinary; 3 GB of wheels, half an hour)"
	@echo "make fuzz       each fuzz target for SECONDS=$(SECONDS)"
	@echo "make soak       all tests at length, a million random programs under sanitizers; NEAP_SOAK_FROM=N goes on"
	@echo "make install    into PREFIX=$(PREFIX); DESTDIR is honoured"
	@echo "make deb        Debian packages, into build/"
	@echo "make wheel      a Python wheel with the command and the module, into build/"
	@echo "make format     clang-format over the tree"
	@echo "make docs       the options in docs/cli.md, as the command has them"
	@echo "make clean      remove build/"
