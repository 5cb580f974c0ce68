SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

FUZZTIME ?= 15s
ROUNDS ?= 100
DELIVERY_ROUNDS ?= 20
COMMIT_ROUNDS ?= 20
PAIRS ?= 105
MUTANTS ?= 7

.PHONY: help run test lint bench gobench crash faults fuzz mutate docs

help: ## say what can be made
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-7s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: ## start two engines on loopback that federate with each other
	packages=$$(command -v npm >/dev/null && docs/examples/client/install) || packages=; \
	.ci/bootstrap go run . serve --demo $${packages:+--ts-mls "$$packages"}

test: ## run all tests on a private PostgreSQL (lint vets them)
	GOGC=400 .ci/bootstrap go test -vet=off -timeout 45m ./...

lint: ## vet and lint
	go vet ./...
	.ci/lint

bench: ## measure everything that has a target, and write docs/benchmarks.md (some ten minutes)
	.ci/bootstrap go build -o .lightweb/lightweb .
	.lightweb/lightweb bench all --markdown docs/benchmarks.md

gobench: ## run the benchmarks of single packages
	.ci/bootstrap go test -run '^$$' -bench . -benchmem ./...

crash: ## kill engine and PostgreSQL under load, ROUNDS times (100), the sender in DELIVERY_ROUNDS rounds (20), and commits in COMMIT_ROUNDS (20)
	LIGHTWEB_CRASH_ROUNDS=$(ROUNDS) LIGHTWEB_CRASH_DELIVERY_ROUNDS=$(DELIVERY_ROUNDS) LIGHTWEB_CRASH_COMMIT_ROUNDS=$(COMMIT_ROUNDS) .ci/bootstrap go test ./engine -count 1 -timeout 2h -v -run Killed

faults: ## break two things at once under load, each of 21 pairs in turn until PAIRS (105) were played
	LIGHTWEB_FAULT_PAIRS=$(PAIRS) .ci/bootstrap go test ./engine -count 1 -timeout 2h -v -run WhateverTwoThingsFail

fuzz: ## fuzz each target for FUZZTIME (15s)
	.ci/bootstrap .ci/fuzz $(FUZZTIME)

mutate: ## put mistakes into the code, and count those that no test sees (an hour; PACKAGES, MUTANTS each, SEED)
	.ci/bootstrap go run ./cmd/mutate $(if $(SEED),-seed $(SEED)) -n $(MUTANTS) $(PACKAGES)

docs: ## write manual pages and shell completions to .lightweb/docs
	mkdir -p .lightweb/docs/man .lightweb/docs/completion
	go run . man .lightweb/docs/man
	for shell in bash fish zsh; do go run . completion $$shell >.lightweb/docs/completion/lightweb.$$shell; done
