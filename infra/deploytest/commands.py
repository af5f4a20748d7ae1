"""Judges the commands of the AWS CLI that pages and messages tell a user to run, by botocore's models, of which the CLI
makes its commands. Argument: the root of the repository. Service, operation and options must be there, and a page must
give what the operation requires."""

import os
import re
import subprocess
import sys

import botocore.session
from botocore import xform_name

SESSION = botocore.session.get_session()
GLOBAL = {"region", "profile", "query", "output", "endpoint-url", "no-cli-pager"}
OWN = {"eks update-kubeconfig": {"name", "region", "alias"}}  # of the CLI itself

COMMAND = re.compile(r"\baws ([a-z][a-z0-9-]+) ([a-z]+(?:-[a-z0-9]+)+)\b([^`|\n]*)")
OPTION = re.compile(r"--([a-z][a-z0-9-]*)")


def operations(service):
    model = SESSION.get_service_model(service)
    return {xform_name(name, "-"): model.operation_model(name) for name in model.operation_names}


def judge(service, action, rest, whole):
    """What is wrong with a command; whole is false for a part of one, as messages are put together."""
    options = set(OPTION.findall(rest)) - GLOBAL
    own = OWN.get(f"{service} {action}")
    if own is not None:
        return [f"no option --{o}" for o in sorted(options - own)]
    if service not in SESSION.get_available_services():
        return ["no such service"]
    operation = operations(service).get(action)
    if operation is None:
        return ["no such command"]
    shape = operation.input_shape
    known = {xform_name(m, "-"): m for m in (shape.members if shape else {})}
    # A boolean has its contrary.
    found = [f"no option --{o}" for o in sorted(options) if o not in known and o.removeprefix("no-") not in known]
    if whole:
        required = {name for name, member in known.items() if member in (shape.required_members if shape else [])}
        found += [f"--{o} is missing" for o in sorted(required - options - {o.removeprefix("no-") for o in options})]
    return found


def main(root):
    files = subprocess.run(["git", "-C", root, "ls-files", "*.md", "*.go"], check=True, capture_output=True, text=True).stdout.split()
    seen, wrong = 0, []
    for name in files:
        if name.endswith("_test.go") or "/testdata/" in name or name.startswith("infra/local/"):
            continue
        with open(os.path.join(root, name), encoding="utf-8") as source:
            text = source.read()
        for line, content in enumerate(text.splitlines(), 1):
            for service, action, rest in COMMAND.findall(content):
                seen += 1
                wrong += [f"{name}:{line}: aws {service} {action}: {w}" for w in judge(service, action, rest, name.endswith(".md"))]
    print("\n".join(wrong) or f"{seen} commands of the AWS CLI in pages and messages are as its models have them")
    return 1 if wrong or seen < 20 else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
