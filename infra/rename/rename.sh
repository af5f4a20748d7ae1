#!/bin/bash
# rename.sh TREE: moves packages, renames symbols and files, and rewrites paths and words in texts, in one go.
# 1. (cd tool && go build -o ../renamer .)   2. ./rename.sh TREE   3. git apply leaks-and-floors.patch (purity rules, the two leaks)
# 4. python3 annots.py TREE; python3 rules2tsv.py TREE; python3 decite.py TREE; goimports; make golden
# Modules infra/local (GOFLAGS=-trimpath) and infra/bench are loaded by type too when MODS names them; that takes minutes.
# Read first: apply.err lists names that were not found or have two new names, apply.txt those that would be shadowed.
set -eu
t=$(realpath "$1"); here=$(cd "$(dirname "$0")" && pwd)
cat "$here"/{pack,disrupt,control,kube,others,others2,others3,others4,fields}.tsv > "$here"/symbols.tsv
"$here"/renamer -root "$t" -modules "${MODS:-.}" -moves "$here"/moves.tsv -symbols "$here"/symbols.tsv -files "$here"/files.tsv > "$here"/apply.txt 2> "$here"/apply.err
cd "$t"
sed -i 's/settings, err := c.GetAccountSettings/account, err := c.GetAccountSettings/; s/settings\.AccountLimit/account.AccountLimit/g' pkg/cli/account.go
sed -i 's/interruption := controllers.Interruption{/handler := controllers.Interruption{/; s/err := interruption.HandleNotices(/err := handler.HandleNotices(/' pkg/controllers/dryrun/gate_test.go
sed -i 's/store.NewNotes(/store.NewDisruptionMemory[disruption.Memory](/' pkg/cli/explain.go pkg/cli/status.go
git add -A
python3 "$here"/paths.py . && python3 "$here"/texts.py .
gofmt -l -w $(git ls-files -co --exclude-standard -- '*.go' | while read -r f; do [ -f "$f" ] && echo "$f"; done) > /dev/null
git add -A
