# Everything a developer runs. `make` or `make help` lists it. Needs Go, Node 20 or newer, npm and git; all else is installed
# into .local on first use, at the versions below. Recipes run one at a time on purpose: the compilers they start use all
# cores already. What waits for most of its time runs beside them (.ci/beside).

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.NOTPARALLEL:
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

GOLANGCI_LINT_VERSION := v2.15.0
CONTROLLER_GEN_VERSION := v0.21.0
KUBERNETES_VERSION := v1.37.2
# The minor version before has a go.mod of its own beside that of the local control plane.
KUBERNETES_1.36 := v1.36.3
GOVULNCHECK_VERSION := v1.1.4
MOTO_VERSION := 5.2.1
CFN_LINT_VERSION := 1.58.0
AWSCLI_VERSION := 1.46.2
POLICY_SENTRY_VERSION := 0.15.2
PARLIAMENT_VERSION := 1.6.4

FUNCTIONS := provision lifecycle disrupt refresh spotinterruption reservationinterruption rebalance scheduledchange statechange preflight setup wake

BIN := $(CURDIR)/.local/bin
STEP := @.ci/step

# An empty file beside each tool carries its version, so that a new version here installs it.
GOLANGCI_LINT := $(BIN)/.golangci-lint-$(GOLANGCI_LINT_VERSION)
CONTROLLER_GEN := $(BIN)/.controller-gen-$(CONTROLLER_GEN_VERSION)
GOVULNCHECK := $(BIN)/.govulncheck-$(GOVULNCHECK_VERSION)
# moto, the second opinion on what is deployed, the AWS CLI, cfn-lint, the service authorization data of AWS and a linter of policies, in a
# virtual environment of their own.
PYTHON := $(CURDIR)/.local/python
PYTHON_READY := $(PYTHON)/.moto-$(MOTO_VERSION)-awscli-$(AWSCLI_VERSION)-cfn-lint-$(CFN_LINT_VERSION)-sentry-$(POLICY_SENTRY_VERSION)-parliament-$(PARLIAMENT_VERSION)

# The machine's own processor, in Go's words and in Lambda's.
LOCAL_ARCH := $(shell go env GOARCH)
LAMBDA_ARCH := $(if $(filter arm64,$(LOCAL_ARCH)),arm64,x86_64)

# The same binary whatever the state of the work tree is, so that a commit alone does not change what is deployed.
export GOFLAGS := -trimpath -buildvcs=false
# No C compiler is needed, and what is built for the functions, the command line, the local environment and the tests is
# compiled once.
export CGO_ENABLED := 0
# The compiler and the linker collect garbage less often: a sixth of their CPU seconds less, for some hundred MiB more.
COMPILE := env GOGC=400
# Node 20 is past its end for CDK's JavaScript side and works; without these it says so in every run.
export JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION := 20
export NODE_NO_WARNINGS := 1

V := k8s.io/component-base/version
plane_ldflags = -s -w -X $(V).gitVersion=$(1) -X $(V).gitMajor=1 -X $(V).gitMinor=$(word 2,$(subst ., ,$(1))) \
	-X $(V).gitTreeState=clean -X $(V).gitCommit=local

# infra/lab/bench is a module of its own and compares with Karpenter PEER: 1.15 or, with a go.mod of its own, 1.14. Karpenter 1.15 asks for
# a newer Go than this repository does; the go command fetches that one as a module, for the bench alone.
PEER ?= 1.15
PEER_FLAGS_1.14 := -modfile=karpenter-1.14.mod -tags=karpenter_1_14
BENCH_ENV = $(if $(filter 1.14 1.15,$(PEER)),,$(error PEER=$(PEER): 1.14 or 1.15))GOTOOLCHAIN=$(if $(filter 1.14,$(PEER)),local,auto) \
	GOFLAGS='$(strip $(GOFLAGS) $(PEER_FLAGS_$(PEER)))'

CDK := infra/node_modules/.bin/cdk
CDK_FLAGS := --no-notices --no-version-reporting $(if $(CLUSTER),-c clusterName=$(CLUSTER))
# A line that CDK's Go runtime prints by mistake when it ends, and an advertisement.
CDK_QUIET := 2> >(sed -u -e 's/Runtime process exited abnormally: waitid: no child processes//' -e '/feature flags are not configured/d' >&2)

ROOT_PACKAGES := ./events/... ./functions/... ./pkg/...
GO_FILES = $(shell git ls-files -co --exclude-standard -- '*.go' | while read -r f; do [ -f "$$f" ] && echo "$$f"; done)
PLANE_SOURCES = $(shell find infra/local/controlplane -name '*.go' ! -name '*_test.go' -o -name '*.mod' -o -name '*.sum')
LOCAL_SOURCES = $(shell find infra/local -name '*.go' ! -name '*_test.go') infra/local/go.mod infra/local/go.sum
INFRA_SOURCES = $(shell find infra events pkg/settings \( -name node_modules -o -path infra/local -o -path infra/lab \) -prune -o \( -name '*.go' -o -name '*.json' \) -print)

.PHONY: help
help: ## list what can be run
	@awk -F ':.*## ' '/^## /{printf "\n%s\n", substr($$0, 4)} /^[a-z-]+:.*## /{printf "  make %-10s %s\n", $$1, $$2}' Makefile

## The main job

.PHONY: run
run: story ## show the main job on this machine, from an empty cluster to an empty cluster
	$(STEP) 'run the main job' '1 to 2 minutes' $(BIN)/joiner-local run

.PHONY: demo-rollout
demo-rollout: story ## show a NodeRollout on this machine: a bad image and a good one
	$(STEP) 'run a rollout' '2 minutes' $(BIN)/joiner-local rollout

.PHONY: demo-devices
demo-devices: story ## show pods that claim devices of DRA drivers on this machine: published late, in parts, too few or never
	$(STEP) 'run devices' '3 to 4 minutes' $(BIN)/joiner-local devices

.PHONY: up
up: story ## start the environment and leave it running; prints how to use it
	$(BIN)/joiner-local up

.PHONY: down
down: $(BIN)/joiner-local ## end the environment that make up started
	$(BIN)/joiner-local down

## Checks

.PHONY: quick
quick: $(GOLANGCI_LINT) ## what a commit needs, of what the work tree changes: format, vet, lint, purity, short unit tests; since a commit: BASE=main
	@.ci/quick $(GOLANGCI_LINT_RUN)

# Times of steps, for make budget.
TIMES = STEP_TIMES=$(CURDIR)/.local/times/$@.tsv

.PHONY: test
test: ## what a push needs, ending with the main job
	@mkdir -p .local/times && rm -f .local/times/$@.tsv
	@$(TIMES) $(MAKE) --no-print-directory format rules
	@$(TIMES) $(MAKE) --no-print-directory local
	@# Tests of the local environment wait for most of their time, so that unit tests and linters run meanwhile.
	@$(TIMES) .ci/beside test-units test-local
	@$(TIMES) .ci/step 'run the main job' '1 to 2 minutes' $(BIN)/joiner-local run
	@printf '\n== make test passed. It proved that\n'
	@printf '   - the code is formatted, vetted, linted, and the decisions are pure;\n'
	@printf '   - decisions, adapters, events and settings behave as their tests say, random cases at short length;\n'
	@printf '   - the stack synthesizes, and each function may do what testdata lists and nothing more;\n'
	@printf '   - the local control plane, the emulated AWS and the Lambda host behave as their tests say;\n'
	@printf '   - plans are judged by a checker of their own;\n'
	@printf '   - the deployed binaries, wired by the synthesized template, do the main job from no node to no node, disruption included.\n'

.PHONY: test-all
test-all: ## everything that a page calls a proof, in the parts of .ci/parts: PART=1 runs the first alone
	@.ci/test-all $(PART)

.PHONY: budget
budget: ## write what make test and make test-all took when they last ran, as CPU seconds, into pkg/testing/budget.md
	@.ci/budget write

.PHONY: format
format:
	@bad=$$(gofmt -l $(GO_FILES)); if [ -n "$$bad" ]; then printf 'not formatted (make fmt):\n%s\n' "$$bad"; exit 1; fi

.PHONY: rules
rules:
	$(STEP) 'purity, shape, rules and pages' '5 s, 2 minutes the first time' go test -vet=off ./pkg ./pkg/testing/readme

# The linters contain go vet's checks: vet runs here and nowhere else.
GOLANGCI_LINT_RUN := $(BIN)/golangci-lint
UNIT_PACKAGES := $(ROOT_PACKAGES) ./infra/release ./infra/archive ./infra/zip ./infra/lab/mutants ./infra/lab/count ./infra/lab/ablation
STACK_PACKAGES = \$$(go list ./infra/... | grep -v -E '/infra/(release|archive|zip|lab/mutants|lab/count|lab/ablation)\$$')

.PHONY: test-units
test-units: $(GOLANGCI_LINT) $(CONTROLLER_GEN)
	$(STEP) 'short unit tests' '4 minutes' $(COMPILE) go test -short -vet=off -timeout 20m $(UNIT_PACKAGES)
	$(STEP) 'short tests of the stack' '2 minutes' $(SHELL) -c "$(COMPILE) go test -short -vet=off -timeout 20m $(STACK_PACKAGES)"
	$(STEP) 'vet and lint' '20 s, 3 minutes the first time' $(GOLANGCI_LINT_RUN) run ./...
	$(STEP) 'vet and lint the local environment' '20 s, 3 minutes the first time' $(SHELL) -c "cd infra/local && $(GOLANGCI_LINT_RUN) run -c ../../.golangci.yml ./... ./controlplane/..."

# The folders of infra/local whose tests take minutes each.
LONG_TESTS := demo lab/scale
LOCAL_TESTS_BUT = \$$(go -C infra/local list ./... ./controlplane/... | grep -v $(patsubst %,-e '/%$$',$(1)))

.PHONY: test-local
test-local:
	@# e2e takes longest by far, so it begins first.
	$(STEP) 'short tests of the local environment' '10 minutes' $(SHELL) -c \
		"$(COMPILE) go -C infra/local test -short -vet=off -count=1 -p 2 -timeout 30m -exec 'env -u GOGC' ./e2e $(call LOCAL_TESTS_BUT,$(LONG_TESTS))"

# The parts of make test-all, as .ci/parts lists them. A test that runs there runs at full length, and in a process whose
# CPU seconds are noted.
FULL_TEST := test -vet=off -count=1 -timeout 60m -exec $(CURDIR)/.ci/note-cpu

.PHONY: all-units
all-units: $(CONTROLLER_GEN) $(GOVULNCHECK)
	$(STEP) 'unit tests' '9 minutes' $(COMPILE) go $(FULL_TEST) $(UNIT_PACKAGES)
	$(STEP) 'a planted vulnerability is found' '30 s' go test -vet=off -count=1 ./infra/release -run Vulnerabilit -args -govulncheck $(BIN)/govulncheck

.PHONY: all-fuzz
all-fuzz:
	@for f in 'pkg/model/requirements FuzzModel' 'pkg/model/requirements FuzzAlgebra' 'pkg/model/compact FuzzReadValue' \
		'pkg/providers/kube FuzzDecodeCheckpoint' 'pkg/workload FuzzParse' 'pkg/workload/manifest FuzzParse' \
		'pkg/model/instancetypes FuzzDecodeCatalog' 'events FuzzDecode' 'pkg/providers/kube FuzzListBody' 'pkg/cli FuzzControls' \
		'pkg/nodeclaim/bootstrap FuzzUserData' 'pkg/testing/sim FuzzTenant' 'pkg/nodeclass/translate FuzzPod' \
		'pkg/nodeclass/translate FuzzNode' 'pkg/nodeclass/translate FuzzOverlay' 'pkg/nodeclass/translate FuzzBuffer' \
		'pkg/controllers/webhook FuzzPush' 'pkg/providers/kube FuzzTotals' 'pkg/providers/kube FuzzRevision' \
		'pkg/providers/store FuzzData' 'pkg/providers/invoke FuzzReason' \
		'pkg/decisionlog FuzzDecodePass' 'pkg/nodeclass FuzzLearned'; do \
		set -- $$f; .ci/step "fuzz $$2 of $$1" '35 s' go test -vet=off ./$$1 -run XXX -fuzz "^$$2$$" -fuzztime 30s -fuzzminimizetime 1s; done

.PHONY: all-templates
all-templates: $(CONTROLLER_GEN)
	$(STEP) 'tests of the stack' '4 minutes' $(SHELL) -c "$(COMPILE) go $(FULL_TEST) $(STACK_PACKAGES)"

SIM := go test -vet=off -count=1 -timeout 30m ./pkg/testing/sim

.PHONY: all-seeds
all-seeds:
	$(STEP) '260 more seeds, 300 in all' '2 minutes' $(SIM) -run 'TestSeeds$$' -args -first 41 -seeds 260 -progress
	$(STEP) '2,000 clusters with hostile tenants, 100 over time' '4 minutes' $(SIM) -run 'TestHostileTenants' -args -hostile 2000 -hostile-time 100
	$(STEP) '200 rollouts' '2 minutes' $(SIM) -run 'TestRollouts$$' -args -first 21 -trials 200
	$(STEP) '100 buffers of stopped capacity' '2 minutes' $(SIM) -run 'TestStoppedCapacity$$|TestAStoppedNodeIsNoDelay$$' -args -first 9 -buffers 100
	$(STEP) 'a day of 24 hours' '2 minutes' $(SIM) -run 'TestDay$$' -args -hours 24 -from 0 -days 1

# What tests of the local environment said to AWS and what it answered, for make wire.
WIRE := $(CURDIR)/.local/wire

.PHONY: all-local
all-local: local
	@rm -rf $(WIRE)
	$(STEP) 'tests of the local environment' '12 minutes' $(SHELL) -c \
		"JOINER_WIRE_LOG=$(WIRE) go -C infra/local $(FULL_TEST) -p 2 ./e2e $(call LOCAL_TESTS_BUT,$(LONG_TESTS) cloudformation)"

.PHONY: all-player
all-player: local
	$(STEP) 'updates of all forms of the stack' '12 minutes' go -C infra/local $(FULL_TEST) ./cloudformation

.PHONY: all-clusters
all-clusters: local
	$(STEP) 'a rollout, devices, and a cluster of 200 nodes' '11 minutes' go -C infra/local $(FULL_TEST) -p 1 $(LONG_TESTS:%=./%/...)
	$(STEP) 'bursts of 1,000 claims' '2 minutes' go -C infra/local $(FULL_TEST) ./lab/loadtest -args -claims 1000

.PHONY: all-bench
all-bench:
	@$(MAKE) --no-print-directory test-bench PEER=1.15
	$(STEP) '150 more random clusters, 200 in all' '3 minutes' $(SHELL) -c \
		"export $(BENCH_ENV) GOTOOLCHAIN=auto; go -C infra/lab/bench/compare test -vet=off -count=1 -timeout 30m . -args -seeds 150 -first-seed 50"

.PHONY: all-bench-1.14
all-bench-1.14:
	@$(MAKE) --no-print-directory test-bench PEER=1.14

.PHONY: all-plans
all-plans:
	@rm -rf .local/all-plans
	@$(MAKE) --no-print-directory verify-plan compare-disruption SEEDS=200 DISRUPTION_STATE=.local/all-plans

.PHONY: all-filters
all-filters: $(BIN)/joiner-filter $(BIN)/joiner-filter-1.36
	$(STEP) 'filters of kube-scheduler judge 20,000 clusters' '15 minutes' go -C infra/local $(FULL_TEST) ./lab/verify/filter -args -draws 20000 -other 1.36
	$(STEP) 'those of Kubernetes 1.36 do' '6 minutes' \
		env JOINER_KUBERNETES=1.36 go -C infra/local $(FULL_TEST) ./lab/verify/filter -args -draws 20000

# Tests of the local environment that say most about a version of Kubernetes, with the plane of the one before.
.PHONY: all-kubernetes-1.36
all-kubernetes-1.36: local $(BIN)/joiner-plane-1.36
	$(STEP) 'contracts, and nodes that come and go, with Kubernetes 1.36' '6 minutes' $(SHELL) -c \
		"JOINER_KUBERNETES=1.36 go -C infra/local $(FULL_TEST) -short -p 2 ./e2e ./contract/kube ./contract/api ./contract/setup ./controlplane/..."

.PHONY: all-stack
all-stack:
	@$(MAKE) --no-print-directory deploy-test conformance wire

.PHONY: all-metrics
all-metrics: $(GOLANGCI_LINT)
	$(STEP) 'test what Prometheus receives' '20 s, 2 minutes the first time' go -C infra/lab/prometheus test -vet=off ./...
	$(STEP) 'vet and lint that' '10 s, 2 minutes the first time' $(SHELL) -c "cd infra/lab/prometheus && $(GOLANGCI_LINT_RUN) run -c ../../../.golangci.yml ./..."

.PHONY: all-gitops
all-gitops: $(GOLANGCI_LINT)
	$(STEP) 'what Argo CD and Flux see' '10 s, 2 minutes the first time' go -C infra/gitops test -vet=off ./...
	$(STEP) 'vet and lint that' '10 s, 1 minute the first time' $(SHELL) -c "cd infra/gitops && $(GOLANGCI_LINT_RUN) run -c ../../.golangci.yml ./..."

.PHONY: all-moves
all-moves:
	@$(MAKE) --no-print-directory round-trip CLASSES=20

.PHONY: all-release
all-release:
	@RELEASE_FLAGS='-functions -arch arm64' $(MAKE) --no-print-directory reproduce

.PHONY: all-try
all-try:
	@$(MAKE) --no-print-directory try-release upgrade

.PHONY: test-bench
test-bench: bench-go $(GOLANGCI_LINT) $(BIN)/joiner-plane ## the part of make test-all that compares with Karpenter: PEER=1.14 or, without it, 1.15
	$(STEP) 'test the bench beside Karpenter $(PEER)' '4 minutes, 10 the first time' \
		$(SHELL) -c "export $(BENCH_ENV); go -C infra/lab/bench test -vet=off -timeout 30m ./..."
	$(STEP) 'test the comparison of random clusters' '20 s, 6 minutes the first time' \
		$(SHELL) -c "export $(BENCH_ENV) GOTOOLCHAIN=auto; go -C infra/lab/bench/compare test -vet=off ./..."
	@# The linter loads packages without go.mod of its own choice, so it sees the newer Karpenter only; go vet sees the older.
	$(if $(filter 1.14,$(PEER)),$(STEP) 'vet the bench' '1 minute' \
		$(SHELL) -c "export $(BENCH_ENV) GOTOOLCHAIN=auto; go -C infra/lab/bench vet ./... && go -C infra/lab/bench/compare vet ./...")
	$(if $(filter 1.14,$(PEER)),,$(STEP) 'vet and lint the bench' '10 s, 2 minutes the first time' $(SHELL) -c "export $(BENCH_ENV); \
		cd infra/lab/bench && $(GOLANGCI_LINT_RUN) run -c ../../../.golangci.yml ./... && cd compare && $(GOLANGCI_LINT_RUN) run -c ../../../../.golangci.yml ./...")

.PHONY: bench-go
bench-go:
	@env $(BENCH_ENV) go -C infra/lab/bench version || { printf '%s\n' >&2 \
		"infra/lab/bench needs Go $$(sed -n 's/^go //p' infra/lab/bench/go.mod), which the go command fetches from the module proxy (GOPROXY) and could not." \
		'Install it, or compare with the older Karpenter, which does without: PEER=1.14'; exit 1; }

.PHONY: golden
golden: ## rewrite the expected outputs of scenarios; read the diff as if it were code
	@packages=$$(grep -rl --include='*_test.go' cockroachdb/datadriven events functions infra/stack pkg | xargs -n1 dirname | sort -u | sed 's|^|./|'); \
	go test $$packages -rewrite; git status --short -- '*testdata*'

.PHONY: sim
sim: ## simulate seeds on all cores, each with its own disasters: SEEDS=n FIRST_SEED=s (one seed prints its whole story; AIM='a crash point')
	@go test ./pkg/testing/sim -run 'TestSeeds$$' -v -count=1 -timeout 0 -args -progress -seeds $(or $(SEEDS),1000) -first $(or $(FIRST_SEED),1) \
		$(if $(filter 1,$(SEEDS)),-story) $(if $(AIM),-aim '$(AIM)')

.PHONY: rollouts
rollouts: ## simulate NodeRollouts with good and bad images while invocations die: SEEDS=n FIRST_SEED=s
	@go test ./pkg/testing/sim -run 'TestRollouts$$' -v -count=1 -timeout 0 -args -trials $(or $(SEEDS),200) -first $(or $(FIRST_SEED),1)

.PHONY: buffers
buffers: ## simulate buffers of stopped capacity while starts are refused, people end what waits and invocations die: SEEDS=n FIRST_SEED=s
	@go test ./pkg/testing/sim -run 'TestStoppedCapacity$$|TestAStoppedNodeIsNoDelay$$' -v -count=1 -timeout 0 -args -buffers $(or $(SEEDS),400) -first $(or $(FIRST_SEED),1)

.PHONY: hostile
hostile: ## draw clusters with hostile tenants beside others, who get what they would get without, and play some over time: SEEDS=n FIRST_SEED=s
	@go test ./pkg/testing/sim -run 'TestHostileTenants$$' -v -count=1 -timeout 0 -args -hostile $(or $(SEEDS),2000) -first $(or $(FIRST_SEED),1)
	@go test ./pkg/testing/sim -run 'TestHostileTenantsOverTime$$' -v -count=1 -timeout 0 -args -hostile-time $(or $(SEEDS),100) -first $(or $(FIRST_SEED),1)

.PHONY: day
day: ## 24 simulated hours of work that breathes, with disruption: what they cost, and that nothing goes to and fro: SEEDS=n FIRST_SEED=s
	@go test ./pkg/testing/sim -run 'TestDay$$' -v -count=1 -timeout 0 -args -hours 24 -from 0 -days $(or $(SEEDS),4) -first $(or $(FIRST_SEED),1)

.PHONY: count
count: ## count code lines of the product and numeric literals of scheduling and disruption, beside a commit: BASE=41241a61
	@.ci/count $(BASE)

.PHONY: mutants
mutants: ## change the product in small ways, one at a time, and count what the tests notice: SEED=1 SAMPLE=400; goes on where it was; MUTANTS_FLAGS=-short tries what make test runs, '-kinds slips -whole' adapters and controllers
	go run ./infra/lab/mutants -seed $(or $(SEED),1) -sample $(or $(SAMPLE),400) $(MUTANTS_FLAGS)

# The NodePools of the large workloads, as seen from where those are.
POOLS := ../../infra/lab/bench/workloads/nodepools/mixed.yaml
ACCELERATED := $(dir $(POOLS))accelerated.yaml
# Of clusters with nodes that are 30 to 70 % full.
HALF_EMPTY_SEEDS ?= 1 2 3 4 5 6
comma := ,
space := $() $()

.PHONY: bench
bench: bench-go ## pack the sample workloads beside Karpenter and write infra/lab/bench/results.md; another folder: WORKLOADS=folder; other half-empty clusters: HALF_EMPTY_SEEDS='7 8'
	$(STEP) 'build the bench' '10 s, 3 minutes the first time' env $(BENCH_ENV) go -C infra/lab/bench build -o $(BIN)/joiner-bench .
	@mkdir -p .local/bench
	$(STEP) 'make the large workloads' '10 s' $(SHELL) -c "export $(BENCH_ENV); cd infra/lab/bench && \
		go run ./generate -pods 50000 -seed 7 -name services-50k -nodepools $(POOLS) -out ../../../.local/bench/services-50k.json.gz && \
		go run ./generate -pods 50000 -grow workloads/w3.json.gz -name w3-50k -nodepools $(POOLS) -out ../../../.local/bench/w3-50k.json.gz && \
		go run ./generate -pods 25000 -nodes 5000 -bound 130000 -full 90 -seed 9 -name cluster-150k -nodepools $(POOLS) -out ../../../.local/bench/cluster-150k.json.gz && \
		go run ./generate -pods 500 -jobs 300 -seed 3 -name gpu-batch -nodepools $(ACCELERATED) -out ../../../.local/bench/gpu-batch.json.gz \
		$(foreach s,$(HALF_EMPTY_SEEDS),&& go run ./generate -half-empty -pods 3000 -nodes 425 -seed $(s) -name half-empty-$(s) -nodepools $(POOLS) \
			-out ../../../.local/bench/half-empty-$(s).json.gz)"
	cd infra/lab/bench && $(BIN)/joiner-bench -out results.md $(if $(WORKLOADS),-workloads $(abspath $(WORKLOADS))) \
		-large ../../../.local/bench/w3-50k.json.gz,../../../.local/bench/cluster-150k.json.gz,../../../.local/bench/services-50k.json.gz,../../../.local/bench/gpu-batch.json.gz$(subst $(space),,$(foreach s,$(HALF_EMPTY_SEEDS),$(comma)../../../.local/bench/half-empty-$(s).json.gz))

# Workloads of families that were fixed before anything was taken out.
ABLATION := .local/ablation/workloads
ABLATION_POOLS := ../../../infra/lab/bench/workloads/nodepools/mixed.yaml

.PHONY: ablation
ablation: ## take layers out of the search, halve and double its constants, and write infra/lab/ablation/results.md, two hours: ONLY=expression WORK=milliseconds of a plan
	@mkdir -p $(ABLATION)
	$(STEP) 'make the workloads' '10 s' $(SHELL) -c "export $(BENCH_ENV); cd infra/lab/bench && \
		go run ./generate -pods 8000 -seed 107 -name services-8k -nodepools $(ABLATION_POOLS) -out ../../../$(ABLATION)/services-8k.json.gz && \
		go run ./generate -pods 8000 -grow workloads/w3.json.gz -name w3-8k -nodepools $(ABLATION_POOLS) -out ../../../$(ABLATION)/w3-8k.json.gz && \
		go run ./generate -pods 200 -jobs 100 -seed 33 -name gpu-batch -nodepools $(dir $(ABLATION_POOLS))accelerated.yaml -out ../../../$(ABLATION)/gpu-batch.json.gz && \
		go run ./generate -pods 3000 -nodes 600 -bound 12000 -full 90 -seed 29 -name cluster-15k -nodepools $(ABLATION_POOLS) -out ../../../$(ABLATION)/cluster-15k.json.gz \
		$(foreach s,301 302 303,&& go run ./generate -pods 700 -seed $(s) -name services-$(s) -nodepools $(ABLATION_POOLS) -out ../../../$(ABLATION)/services-$(s).json.gz) \
		$(foreach s,21 22 23 24 25 26 27 28,&& go run ./generate -half-empty -pods 1200 -nodes 170 -seed $(s) -name half-empty-$(s) -nodepools $(ABLATION_POOLS) -out ../../../$(ABLATION)/half-empty-$(s).json.gz) \
		$(foreach s,31 32 33 34,&& go run ./generate -pods 1500 -nodes 120 -bound 3000 -full 97 -seed $(s) -name nearly-full-$(s) -nodepools $(ABLATION_POOLS) -out ../../../$(ABLATION)/nearly-full-$(s).json.gz)"
	go run ./infra/lab/ablation -only '$(ONLY)' -milliseconds $(or $(WORK),0) $(addprefix infra/lab/bench/workloads/,w1-od.json w1.json w2-500.json.gz w2-2000.json.gz) $(ABLATION)/*.json.gz

.PHONY: bench-disruption
bench-disruption: bench-go ## disruption beside Karpenter's own, on clusters of 50, 500 and 2,000 nodes, and write infra/lab/bench/disruption.md; fewer: BENCH_FLAGS='-sizes 50'
	$(STEP) 'build the bench' '10 s, 3 minutes the first time' env $(BENCH_ENV) go -C infra/lab/bench build -o $(BIN)/joiner-bench-disruption ./disruption
	cd infra/lab/bench && $(BIN)/joiner-bench-disruption -out disruption.md $(BENCH_FLAGS)

.PHONY: compare
compare: bench-go ## random clusters for the packer beside Karpenter's provisioner, judged by kube-scheduler's plugins: SEEDS=n FIRST_SEED=s; a run that ended goes on
	$(STEP) 'build compare' '10 s, 5 minutes the first time' env $(BENCH_ENV) GOTOOLCHAIN=auto go -C infra/lab/bench/compare build -o $(BIN)/joiner-compare .
	@$(BIN)/joiner-compare -seeds $(or $(SEEDS),1000) -first-seed $(or $(FIRST_SEED),0) -workers $(or $(WORKERS),2) -state .local/compare-$(PEER) $(COMPARE_FLAGS)

.PHONY: compare-disruption
compare-disruption: bench-go ## which nodes Karpenter would disrupt beside ours, and whether it would let our commands pass, on random clusters: SEEDS=5000 FIRST_SEED=1; goes on where it was cut short
	$(STEP) 'build the comparison' '10 s, 3 minutes the first time' env $(BENCH_ENV) go -C infra/lab/bench build -o $(BIN)/joiner-compare-disruption ./disruption/compare
	$(BIN)/joiner-compare-disruption -seeds $(or $(SEEDS),5000) -first-seed $(or $(FIRST_SEED),1) -state $(or $(DISRUPTION_STATE),.local/compare-disruption)

.PHONY: round-trip
round-trip: bench-go local ## Karpenter's own controllers make nodes, Joiner takes them over, Karpenter takes them back: CLASSES=50 SEED=1 PEER=1.15
	$(STEP) 'build Karpenter $(PEER)' '10 s, 10 minutes the first time' env $(BENCH_ENV) go -C infra/lab/bench build -o $(BIN)/karpenter-$(PEER) \
		github.com/aws/karpenter-provider-aws/cmd/controller
	go -C infra/local test -count=1 -timeout 30m -v ./lab/roundtrip -args -karpenter $(BIN)/karpenter-$(PEER) -classes $(or $(CLASSES),50) -seed $(or $(SEED),1)

.PHONY: verify-plan
verify-plan: $(BIN)/joiner-plane ## the real scheduler places plans of up to 3,000 pods; others: WORKLOADS='files folders' VERIFY_FLAGS=-help
	$(STEP) 'build verify-plan' '10 s, 3 minutes the first time' \
		go -C infra/local build -o $(BIN)/verify-plan ./lab/verify/program
	$(BIN)/verify-plan -most 3000 $(VERIFY_FLAGS) $(or $(WORKLOADS),infra/local/lab/verify/testdata/small.yaml infra/local/lab/verify/testdata/services-1000.json.gz infra/lab/bench/workloads)

.PHONY: vuln
vuln: $(GOVULNCHECK) ## look for known vulnerabilities in what the functions call; needs vuln.go.dev, or VULNDB=file:///folder of a copy
	@$(BIN)/govulncheck $(if $(VULNDB),-db $(VULNDB)) ./functions/... || { code=$$?; [ $$code = 3 ] || printf '%s\n' >&2 \
		'Nothing was looked at: see above why. If the database of vulnerabilities could not be read, unpack https://vuln.go.dev/vulndb.zip' \
		'where there is a network, and run make vuln VULNDB=file:///folder'; exit $$code; }

.PHONY: vuln-test
vuln-test: $(GOVULNCHECK) ## that make vuln finds a planted vulnerability; needs no network once govulncheck is there
	@go test -count=1 -v ./infra/release -run Vulnerabilit -args -govulncheck $(BIN)/govulncheck

.PHONY: load
load: ## 1,000 NodeClaims in one burst against the emulated EC2 at its documented rates; other numbers: CLAIMS=n
	@go -C infra/local test ./lab/loadtest -count=1 -v -args -claims $(or $(CLAIMS),1000)

.PHONY: storm
storm: local ## 300 spot notices in a minute, and the latencies of single ones; other numbers: NODES=1000, more: STORM_FLAGS=-help
	$(STEP) 'build the storm' '10 s, 3 minutes the first time' go -C infra/local build -o $(BIN)/storm ./lab/storm
	$(STEP) 'the storm' '10 to 20 minutes' $(BIN)/storm -nodes $(or $(NODES),300) $(STORM_FLAGS)

.PHONY: scale
scale: local ## what clusters of many nodes cost, measured as Lambda limits functions, into infra/lab/bench/scale.md: NODES=500 PODS=15000 MEMORY=512; SCALE_FLAGS=-help
	$(STEP) 'build the measurement' '10 s, 3 minutes the first time' go -C infra/local build -o $(BIN)/joiner-scale ./lab/scale
	$(STEP) 'measure' '15 minutes' $(BIN)/joiner-scale -nodes $(or $(NODES),500) -pods $(or $(PODS),15000) -memory $(or $(MEMORY),0) $(SCALE_FLAGS)

.PHONY: alarms
alarms: local ## cause each fault that an alarm is for, and record what CloudWatch would be told, for the test of the alarms
	$(STEP) 'record the faults' '10 minutes' go -C infra/local test ./e2e -count=1 -timeout 40m -run TestRecordFaults -args \
		-recordings $(CURDIR)/infra/lab/alarms/testdata

.PHONY: fmt
fmt: ## format all Go files
	@gofmt -l -w $(GO_FILES)

## Building

.PHONY: build
build: functions ## build the functions and the local programs for this machine
	$(STEP) -q 'build the command line' '5 s, 1 minute the first time' $(COMPILE) go build -v -o $(BIN)/joiner ./functions/joiner
	@$(MAKE) --no-print-directory $(BIN)/joiner-local

.PHONY: functions
functions:
	$(STEP) -q 'build the functions for $(LOCAL_ARCH)' '10 s, 3 minutes the first time' $(COMPILE) .ci/build-functions $(LOCAL_ARCH) $(FUNCTIONS)

.PHONY: package
package: ## build the functions as they are deployed (arm64), and a zip of each that is the same for the same code
	$(STEP) 'build the functions for arm64' '5 s, 2 minutes the first time' .ci/build-functions arm64 $(FUNCTIONS)
	@go run ./infra/zip $(addprefix .local/dist/arm64/,$(FUNCTIONS))

.PHONY: release
release: ## build everything that is handed out into .local/release: folders that deploy themselves, functions, command line, SBOM, licenses, checksums
	$(STEP) 'build the release' '3 minutes, 10 the first time' go run ./infra/release -out .local/release

.PHONY: sign
sign: ## sign the checksums of the release as minisign does, and check them: KEY=joiner.key, with its public key in joiner.key.pub; PASSWORD=file
	@[ -n '$(KEY)' ] || { echo 'KEY=file: a secret key; go -C infra/local run ./sign -generate FILE makes one' >&2; exit 2; }
	go -C infra/local run ./sign -key $(abspath $(KEY)) $(if $(PASSWORD),-password $(abspath $(PASSWORD))) $(CURDIR)/.local/release/SHA256SUMS
	go -C infra/local run ./sign -public $(abspath $(KEY)).pub $(CURDIR)/.local/release/SHA256SUMS

.PHONY: try-release
try-release: $(PYTHON_READY) $(CDK) $(BIN)/joiner-plane $(BIN)/joiner-local ## play a new user's way: from a release folder alone, without Go, make or this repository, deploy, diff, update and destroy against moto, by both roads, and launch nodes; another archive: RELEASE=joiner-VERSION-OS-ARCH.tar.gz. Needs Linux and Python 3
	$(if $(RELEASE),,$(STEP) 'build the release folder for this machine' '3 minutes, 10 the first time' \
		go run ./infra/release -platforms linux/$(LOCAL_ARCH) -arch $(LOCAL_ARCH) -out .local/try/release)
	$(STEP) 'try the release' '5 minutes' unshare --map-root-user --net $(PYTHON)/bin/python infra/deploytest/try_release.py \
		$(or $(RELEASE),.local/try/release/joiner-*-linux-$(LOCAL_ARCH).tar.gz) infra/node_modules $${TMPDIR:-/tmp}/joiner-try $$(go env GOROOT) $(BIN)/joiner-local

# The first release that a stack may be of: infra/local/cloudformation keeps its template.
RELEASE_BEFORE := 91542843

.PHONY: upgrade
upgrade: local ## from the functions of the release before to those of today and back, with nodes and commands in flight. Needs the history of the repository
	$(STEP) 'build the release before' '2 minutes, 6 the first time' .ci/release-before $(RELEASE_BEFORE) $(LOCAL_ARCH) $(FUNCTIONS)
	$(STEP) 'upgrade and go back' '2 minutes' go -C infra/local test -count=1 -vet=off -timeout 30m ./e2e -run 'TestUpgradeAndBack' \
		-args -before $(CURDIR)/.local/before/$(RELEASE_BEFORE)/cdk.out

.PHONY: reproduce
reproduce: ## build the release from two clones of the last commit, with empty caches, and compare every byte
	$(STEP) 'build two releases' '20 minutes' .ci/reproduce

.PHONY: licenses
licenses: ## list the licenses of all dependencies; one that may not be used fails
	@go run ./infra/release -licenses

.PHONY: plane
plane: $(if $(MINOR),$(BIN)/joiner-plane-$(MINOR) $(BIN)/joiner-filter-$(MINOR),$(BIN)/joiner-plane $(BIN)/joiner-filter) ## build the local Kubernetes control plane and kube-scheduler's filters; of the minor version before: MINOR=1.36

.PHONY: crds
crds: $(CONTROLLER_GEN) ## generate the CRDs and the deep copies from the Go types
	$(BIN)/controller-gen object paths=./pkg/api/...
	go run ./infra/crdgen

.PHONY: clean
clean: ## remove what was built, not what is running (make down) nor what Go cached
	rm -rf .local/bin .local/dist .local/cdk.out .local/cdk.vpc .local/cdk.drain cdk.out infra/node_modules

## Deploying (settings: context of cdk.json, listed in infra/settings.md; another cluster: CLUSTER=name)

.PHONY: synth
synth: package $(CDK) ## write the CloudFormation template to cdk.out
	@rm -rf cdk.out
	$(STEP) 'synthesize the stack' '8 s, 2 minutes the first time' $(SHELL) -c "$(CDK) synth --quiet $(CDK_FLAGS) $(CDK_QUIET)"
	@ls cdk.out/*.template.json

.PHONY: diff
diff: package $(CDK) ## show what a deployment would change
	$(CDK) diff --all $(CDK_FLAGS)

.PHONY: deploy
deploy: package $(CDK) ## create or update the stack in the AWS account of the credentials
	$(CDK) deploy --all $(CDK_FLAGS)

.PHONY: destroy
destroy: package $(CDK) ## delete the stack, once terminationProtection is off; what becomes of nodes onDelete says
	$(CDK) destroy --all $(CDK_FLAGS)

.PHONY: deploy-test
deploy-test: $(PYTHON_READY) $(CDK) ## bootstrap, deploy, diff, update and destroy with the CDK against moto; cfn-lint; the policies linted. Needs Python 3
	$(STEP) 'build the functions for $(LOCAL_ARCH)' '5 s, 2 minutes the first time' .ci/build-functions $(LOCAL_ARCH) $(FUNCTIONS)
	$(STEP) 'deploy against moto' '1 to 2 minutes' $(PYTHON)/bin/python infra/deploytest/deploy.py $(CDK) .local/deploytest $(LAMBDA_ARCH) .local/dist/$(LOCAL_ARCH)
	@# W3005, a dependency that a reference implies: CDK itself writes one from every function to its role.
	$(STEP) 'cfn-lint' '10 s' $(PYTHON)/bin/cfn-lint --ignore-checks W3005 -- .local/deploytest/cdk.out/joiner-demo.template.json
	$(STEP) 'lint the policies' '1 minute' $(PYTHON)/bin/python infra/deploytest/policies.py $(CDK) .local/deploytest $(LAMBDA_ARCH)
	$(STEP) 'judge the commands that users are told' '10 s' $(PYTHON)/bin/python infra/deploytest/commands.py .

.PHONY: authorization
authorization: build $(PYTHON_READY) $(CDK) ## write anew what AWS publishes about the actions that the policies name. Needs Python 3
	$(PYTHON)/bin/python infra/deploytest/policies.py $(CDK) .local/deploytest $(LAMBDA_ARCH) --write

.PHONY: conformance
conformance: $(PYTHON_READY) ## the calls that Joiner makes, answered by the emulator and by moto; REWRITE=1 writes the answers anew; RECORDED=folder lists where the emulator differs from a recorded account. Needs Python 3
	$(STEP) 'the emulator and moto answer' '1 minute, 4 the first time' \
		go -C infra/local test -count=1 -v ./lab/conformance -args -moto $(PYTHON)/bin/python $(if $(REWRITE),-rewrite) \
		$(if $(RECORDED),-recorded $(abspath $(RECORDED)))

.PHONY: wire
wire: $(PYTHON_READY) local ## what the contract tests, and make all-local if it ran, say to AWS and hear, judged by the models of botocore. Needs Python 3
	$(STEP) 'write down what is said to AWS' '3 minutes' $(SHELL) -c "JOINER_WIRE_LOG=$(WIRE) go -C infra/local test -short -vet=off -count=1 -p 2 -timeout 30m ./contract/... ./lab/conformance"
	$(STEP) 'judge it' '20 s' $(PYTHON)/bin/python infra/deploytest/wire.py $(WIRE)

# What follows is made by the targets above.

# What the main job needs, and no more: it is all that make run builds on a fresh machine.
.PHONY: story
story: functions $(BIN)/joiner-plane $(BIN)/joiner-local .local/cdk.out/manifest.json

# What the tests of the local environment need.
.PHONY: local
local: story build $(BIN)/joiner-filter .local/cdk.vpc/manifest.json .local/cdk.drain/manifest.json

STACK_SOURCES = $(foreach f,$(FUNCTIONS),.local/dist/$(LOCAL_ARCH)/$(f)/bootstrap) $(INFRA_SOURCES) cdk.json $(CDK)
# synthesize WHAT,CONTEXT writes the stack for this machine's processor, from which the local Lambda host runs the functions.
define synthesize
@rm -rf $(@D)
$(STEP) 'synthesize the stack$(1)' '8 s, 2 minutes the first time' $(SHELL) -c \
	"$(COMPILE) $(CDK) synth --quiet --no-notices --no-version-reporting -c clusterName=demo -c trigger=push -c architecture=$(LAMBDA_ARCH) $(2) -o $(@D) $(CDK_QUIET)"
@touch $@
endef

.local/cdk.out/manifest.json: $(STACK_SOURCES)
	$(call synthesize, for the local environment,-c commitments=true -c zonalShift=true)

.local/cdk.vpc/manifest.json: $(STACK_SOURCES)
	$(call synthesize, in a VPC$(comma) for the tests of its permissions,-c vpcID=vpc-0123456789abcdef0 \
		-c subnetIDs=subnet-0123456789abcdef0 -c securityGroupIDs=sg-0123456789abcdef0)

.local/cdk.drain/manifest.json: $(STACK_SOURCES)
	$(call synthesize, so that its removal drains nodes$(comma) for the tests of setup,-c onDelete=drain)

.local/dist/$(LOCAL_ARCH)/%/bootstrap:
	@.ci/build-functions $(LOCAL_ARCH) $*

# Programs of Kubernetes: the control plane, and the filters of kube-scheduler. Those of the minor version before end in its name.
$(BIN)/joiner-plane: $(PLANE_SOURCES)
	@mkdir -p $(@D)
	$(STEP) -q 'compile the Kubernetes control plane' '20 s, 5 to 8 minutes the first time' \
		$(COMPILE) go -C infra/local build -v -ldflags '$(call plane_ldflags,$(KUBERNETES_VERSION))' -o $@ ./controlplane
	@touch $@

$(BIN)/joiner-filter: $(PLANE_SOURCES)
	@mkdir -p $(@D)
	$(STEP) -q 'build the filters of kube-scheduler' '5 s, 4 minutes the first time' \
		$(COMPILE) go -C infra/local build -v -ldflags '-s -w' -o $@ ./controlplane/filter/program
	@touch $@

OLDER = $(COMPILE) GOWORK=off go -C infra/local/controlplane build -modfile kubernetes-1.36.mod

$(BIN)/joiner-plane-1.36: $(PLANE_SOURCES)
	@mkdir -p $(@D)
	$(STEP) -q 'compile the control plane of Kubernetes 1.36' '20 s, 5 to 8 minutes the first time' \
		$(OLDER) -v -ldflags '$(call plane_ldflags,$(KUBERNETES_1.36))' -o $@ .
	@touch $@

$(BIN)/joiner-filter-1.36: $(PLANE_SOURCES)
	@mkdir -p $(@D)
	$(STEP) -q 'build the filters of kube-scheduler 1.36' '5 s, 4 minutes the first time' \
		$(OLDER) -v -ldflags '-s -w' -o $@ ./filter/program
	@touch $@

$(BIN)/joiner-local: $(LOCAL_SOURCES)
	@mkdir -p $(@D)
	$(STEP) -q 'build the local environment' '10 s, 3 minutes the first time' \
		$(COMPILE) go -C infra/local build -v -ldflags '-s -w' -o $@ ./demo
	@touch $@

$(CDK): infra/package.json infra/package-lock.json
	$(STEP) 'install the CDK command line' '5 s' npm --prefix infra ci --no-audit --no-fund --loglevel=error
	@touch $@

$(GOLANGCI_LINT):
	@mkdir -p $(@D)
	$(STEP) 'install golangci-lint $(GOLANGCI_LINT_VERSION)' '1 to 3 minutes, once' \
		$(COMPILE) GOBIN=$(BIN) go install -trimpath -ldflags '-s -w' github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_LINT_VERSION)
	@touch $@

$(CONTROLLER_GEN):
	@mkdir -p $(@D)
	$(STEP) 'install controller-gen $(CONTROLLER_GEN_VERSION)' '30 s, once' \
		$(COMPILE) GOBIN=$(BIN) go install -trimpath -ldflags '-s -w' sigs.k8s.io/controller-tools/cmd/controller-gen@$(CONTROLLER_GEN_VERSION)
	@touch $@

$(GOVULNCHECK):
	@mkdir -p $(@D)
	$(STEP) 'install govulncheck $(GOVULNCHECK_VERSION)' '1 minute, once' \
		$(COMPILE) GOBIN=$(BIN) go install -trimpath -ldflags '-s -w' golang.org/x/vuln/cmd/govulncheck@$(GOVULNCHECK_VERSION)
	@touch $@

$(PYTHON_READY):
	$(STEP) 'install moto $(MOTO_VERSION), the AWS CLI, cfn-lint $(CFN_LINT_VERSION) and linters of policies' '1 to 2 minutes, once' $(SHELL) -c "python3 -m venv $(PYTHON) && \
		$(PYTHON)/bin/pip install --quiet --disable-pip-version-check 'moto[server,all]==$(MOTO_VERSION)' 'awscli==$(AWSCLI_VERSION)' 'cfn-lint==$(CFN_LINT_VERSION)' \
		'policy_sentry==$(POLICY_SENTRY_VERSION)' 'parliament==$(PARLIAMENT_VERSION)'"
	@touch $@
