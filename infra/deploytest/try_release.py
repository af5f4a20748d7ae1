"""make try-release: a new user's way, played against moto. It unpacks a release, and gives it an empty home, a PATH with Node
and a few tools of the system, no network but loopback, and neither this repository nor Go: both are covered. There it deploys,
diffs, updates and destroys with the CDK of npm; then it makes the stack again from the plain template, which no CDK touches, and
updates by each road what the other one made. Arguments: the archive, the folder node_modules with the CDK, a folder to work in,
the root of Go."""

import fcntl
import json
import os
import shutil
import socket
import struct
import subprocess
import sys
import tarfile
import time
import urllib.request
import zipfile

import boto3

ARCHIVE, NODE_MODULES, OUT, GOROOT = (os.path.abspath(a) for a in sys.argv[1:5])
HERE = os.path.dirname(os.path.abspath(__file__))
REPOSITORY = os.path.dirname(os.path.dirname(HERE))
GOARCH, ARCHITECTURE = {"x86_64": ("amd64", "x86_64"), "aarch64": ("arm64", "arm64")}[os.uname().machine]
ACCOUNT, REGION, STACK, BUCKET = "123456789012", "us-east-1", "joiner-demo", "pipeline"
TOOLS = ["node", "npx", "npm", "sh", "env", "sha256sum", "tar", "uname"]
failures, checks, began = [], 0, time.monotonic()


def check(what, got, want):
    global checks
    checks += 1
    ok = got == want
    print(f"   {'ok ' if ok else 'NOT'} {what}" + ("" if ok else f": got {got!r}, want {want!r}"), flush=True)
    if not ok:
        failures.append(what)


def raise_loopback():
    """In a namespace of its own the loopback interface is down."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        fcntl.ioctl(s, 0x8914, struct.pack("16sh22x", b"lo", 0x1 | 0x40))  # SIOCSIFFLAGS: up and running


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def make_machine():
    """The user's machine: an unpacked release, the CDK where npx finds it without a network, an empty home."""
    shutil.rmtree(OUT, ignore_errors=True)
    for name in ("bin", "home", "tmp"):
        os.makedirs(os.path.join(OUT, name))
    for tool in TOOLS:
        os.symlink(os.path.realpath(shutil.which(tool)) if tool in ("npx", "npm") else shutil.which(tool), os.path.join(OUT, "bin", tool))
    shutil.copytree(NODE_MODULES, os.path.join(OUT, "node_modules"), symlinks=True)
    with tarfile.open(ARCHIVE) as t:
        t.extractall(OUT, filter="data")
    return os.path.join(OUT, os.path.basename(ARCHIVE).removesuffix(".tar.gz"))


def user(*command, fails=False, quiet=True):
    """Runs a command as the user does, in the folder of the release, and returns what it says."""
    start = time.monotonic()
    cover = " && ".join(f"mount -t tmpfs none {folder}" for folder in (REPOSITORY, GOROOT) if os.path.isdir(folder))
    done = subprocess.run(["unshare", "--mount", "sh", "-c", f"{cover} && cd {FOLDER} && exec env -i \"$@\"", "sh", *(f"{k}={v}" for k, v in USER.items()), *command],
                          cwd="/", timeout=900, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    with open(os.path.join(OUT, "user.log"), "a", encoding="utf-8") as f:
        f.write(f"$ {' '.join(command)}\n{done.stdout}\n")
    print(f"$ {' '.join(command)}\n   exit code {done.returncode} after {time.monotonic() - start:.0f} s", flush=True)
    if (done.returncode != 0) != fails:
        print(done.stdout[-4000:])
        raise SystemExit(1)
    return done.stdout


def client(name):
    return boto3.client(name, region_name=REGION, endpoint_url=URL, aws_access_key_id="test", aws_secret_access_key="test")


def physical_ids():
    """What CloudFormation has made, by logical id. moto gives a version no id of its own."""
    out = {}
    for page in client("cloudformation").get_paginator("list_stack_resources").paginate(StackName=STACK):
        for r in page["StackResourceSummaries"]:
            if r["ResourceType"] != "AWS::Lambda::Version":
                out[r["LogicalResourceId"]] = r["PhysicalResourceId"]
    return out


def stack_names():
    return [s["StackName"] for s in client("cloudformation").list_stacks()["StackSummaries"] if s["StackStatus"] != "DELETE_COMPLETE"]


def write_settings(**settings):
    with open(os.path.join(OUT, "joiner.json"), "w", encoding="utf-8") as f:
        json.dump({"clusterName": "demo", "terminationProtection": False, "architecture": ARCHITECTURE, **settings}, f)


def deploy(*more, **settings):
    write_settings(**settings)
    return user("./joiner", "deploy", "--settings", "../joiner.json", "--yes", *more, "--", "--method=direct")


def app():
    return ("--app", "./joiner-cdk -functions functions -settings ../joiner.json")


def template(**settings):
    write_settings(**settings)
    user("./joiner", "template", "--settings", "../joiner.json", "--assets", f"s3://{BUCKET}/joiner", "--out", "../generated", "--upload")
    with open(os.path.join(OUT, "generated", STACK + ".assets.json"), encoding="utf-8") as f:
        listed = json.load(f)
    return listed, {"StackName": STACK, "TemplateURL": f"{URL}/{BUCKET}/{listed['templateKey']}", "Capabilities": ["CAPABILITY_NAMED_IAM"]}


def look_at_the_machine():
    for program in ("go", "make", "git", "aws", "cdk"):
        check(f"there is no {program}", shutil.which(program, path=USER["PATH"]), None)
    check("the repository and Go are covered", user("sh", "-c", f"ls {REPOSITORY} {GOROOT} | grep -v : | grep . || echo nothing").strip().splitlines()[-1], "nothing")


def refusals():
    zipped = os.path.join(FOLDER, "functions", GOARCH, "provision.zip")
    with open(zipped, "r+b") as f:
        f.seek(100)
        byte = f.read(1)
        f.seek(100)
        f.write(bytes([byte[0] ^ 1]))
    check("sha256sum finds a changed byte", f"functions/{GOARCH}/provision.zip: FAILED" in user("sha256sum", "-c", "SHA256SUMS", fails=True), True)
    write_settings()
    check("joiner deploy refuses it", f"functions/{GOARCH}/provision.zip is not the file of the release" in user("./joiner", "deploy", "--cluster", "demo", fails=True), True)
    with open(zipped, "r+b") as f:
        f.seek(100)
        f.write(byte)
    user("sha256sum", "-c", "--quiet", "SHA256SUMS")
    write_settings(tracesURL="https://example.com", logRetentionDay=3)
    said = user("./joiner", "deploy", "--settings", "../joiner.json", fails=True)
    check("settings of another version and misspelt ones are refused", ("there is no such setting any more" in said, "did you mean logRetentionDays?" in said), (True, True))
    check("nothing was made meanwhile", stack_names(), [])


def cdk_road():
    said = deploy(deployment="1")
    check("joiner deploy bootstraps, and says so", ("npx aws-cdk@2 bootstrap" in said, sorted(stack_names())), (True, ["CDKToolkit", STACK]))
    minutes = (time.monotonic() - began) / 60
    print(f"== three commands to a stack (tar xzf, cd, ./joiner deploy): {minutes:.1f} minutes of this machine, AWS's own time not counted", flush=True)
    check("the function is that of the release", client("lambda").get_function(FunctionName="joiner-demo-provision")["Configuration"]["CodeSize"],
          os.path.getsize(os.path.join(FOLDER, "functions", GOARCH, "provision.zip")))
    check("diff finds nothing", "no differences" in user("npx", "aws-cdk@2", "diff", *app()).lower(), True)
    before = physical_ids()
    said = deploy(deployment="2", logRetentionDays=30)
    check("an update does not bootstrap again", "npx aws-cdk@2 bootstrap" in said, False)
    check("the update arrived", {g["retentionInDays"] for g in client("logs").describe_log_groups(logGroupNamePrefix="/aws/lambda/joiner-demo-")["logGroups"]}, {30})
    check("nothing was replaced", {k: v for k, v in physical_ids().items() if before.get(k) != v}, {})


def template_road():
    client("s3").create_bucket(Bucket=BUCKET)
    before = physical_ids()
    listed, stack = template(deployment="3", logRetentionDays=60)
    check("every zip is in the bucket", sorted(o["Key"] for o in client("s3").list_objects_v2(Bucket=BUCKET)["Contents"]), sorted([f["key"] for f in listed["files"]] + [listed["templateKey"]]))
    with open(os.path.join(OUT, "generated", STACK + ".template.json"), encoding="utf-8") as f:
        text = f.read()
    check("the template needs nothing of the CDK", ("cdk-hnb659fds" in text, "Parameters" in json.loads(text), "Rules" in json.loads(text)), (False, False, False))
    client("cloudformation").update_stack(**stack)
    check("it updates what the CDK made and replaces nothing", ({k: v for k, v in physical_ids().items() if before.get(k) != v}, sorted(set(before) - set(physical_ids()))), ({}, []))
    check("the update arrived", {g["retentionInDays"] for g in client("logs").describe_log_groups(logGroupNamePrefix="/aws/lambda/joiner-demo-")["logGroups"]}, {60})
    user("npx", "aws-cdk@2", "destroy", "--force", *app())
    check("the stack is gone", STACK in stack_names(), False)

    client("cloudformation").create_stack(**stack)
    check("the template alone makes the stack", client("cloudformation").describe_stacks(StackName=STACK)["Stacks"][0]["StackStatus"], "CREATE_COMPLETE")
    before = physical_ids()
    check("it makes what the CDK makes", sorted(before), sorted(k for k, r in json.loads(text)["Resources"].items() if r["Type"] != "AWS::Lambda::Version"))
    said = deploy(deployment="4", logRetentionDays=60)
    check("the CDK updates what the template made and replaces nothing", {k: v for k, v in physical_ids().items() if before.get(k) != v}, {})
    check("it did not bootstrap again", "npx aws-cdk@2 bootstrap" in said, False)
    user("npx", "aws-cdk@2", "destroy", "--force", *app())
    check("the stack is gone again", STACK in stack_names(), False)
    check("no function is left", client("lambda").list_functions()["Functions"], [])


def unzip_preflight():
    """moto runs the preflight's own program, for this machine."""
    folder = os.path.join(OUT, "binaries", "preflight")
    with zipfile.ZipFile(os.path.join(FOLDER, "functions", GOARCH, "preflight.zip")) as z:
        z.extract("bootstrap", folder)
    os.chmod(os.path.join(folder, "bootstrap"), 0o755)
    return os.path.dirname(folder)


raise_loopback()
FOLDER = make_machine()
PORT = free_port()
URL = f"http://localhost:{PORT}"  # by name: moto tells the bucket of the template's URL by it
USER = {"PATH": os.path.join(OUT, "bin"), "HOME": os.path.join(OUT, "home"), "TMPDIR": os.path.join(OUT, "tmp"), "AWS_ENDPOINT_URL": URL, "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_REGION": REGION, "CDK_DISABLE_CLI_TELEMETRY": "true", "JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION": "20", "NODE_NO_WARNINGS": "1"}
with open(os.path.join(OUT, "moto.log"), "w", encoding="utf-8") as log:
    moto = subprocess.Popen([sys.executable, os.path.join(HERE, "aws.py"), os.path.join(OUT, "requests.jsonl"), str(PORT), unzip_preflight()], stdout=log, stderr=subprocess.STDOUT)
    try:
        for _ in range(300):
            try:
                urllib.request.urlopen(URL + "/moto-api/data.json", timeout=1).close()
                break
            except OSError:
                if moto.poll() is not None:
                    raise SystemExit("moto ended: " + open(os.path.join(OUT, "moto.log"), encoding="utf-8").read()[-2000:]) from None
                time.sleep(0.1)
        client("eks").create_cluster(name="demo", roleArn=f"arn:aws:iam::{ACCOUNT}:role/cluster",
                                     resourcesVpcConfig={"subnetIds": [], "endpointPublicAccess": True, "publicAccessCidrs": ["0.0.0.0/0"]})
        look_at_the_machine()
        refusals()
        began = time.monotonic()
        cdk_road()
        template_road()
    finally:
        moto.terminate()
        moto.wait(120)
if failures:
    raise SystemExit(f"{len(failures)} checks failed: " + "; ".join(failures))
print(f"== the release deploys itself by both roads: {checks} checks")
