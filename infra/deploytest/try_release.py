"""make try-release: a new user's way, played against moto. It unpacks a release, and gives it an empty home, a PATH with Node
and a few tools of the system, no network but loopback, and neither this repository nor Go: both are covered. There it deploys,
diffs, updates and destroys with the CDK of npm; then it makes the stack again from the plain template, which no CDK touches, as
a pipeline with the AWS CLI does, and updates by each road what the other one made. Last the local environment runs the zips as
that template says, until a pod runs on a node of the release's own NodePool. Arguments: the archive, the folder node_modules
with the CDK, a folder to work in, the root of Go, the local environment's program."""

import contextlib
import fcntl
import http.client
import http.server
import json
import os
import shutil
import socket
import struct
import subprocess
import sys
import tarfile
import threading
import time
import zipfile

import play
from play import STACK, check

ARCHIVE, NODE_MODULES, OUT, GOROOT, LOCAL = (os.path.abspath(a) for a in sys.argv[1:6])
REPOSITORY = os.path.dirname(os.path.dirname(play.HERE))
GOARCH, ARCHITECTURE = {"x86_64": ("amd64", "x86_64"), "aarch64": ("arm64", "arm64")}[os.uname().machine]
BUCKET, FAR_BUCKET = "pipeline", "pipeline-elsewhere"
TOOLS = ["node", "npx", "npm", "sh", "env", "sha256sum", "tar", "uname"]
minutes = {}  # of a new user's steps


def raise_loopback():
    """In a namespace of its own the loopback interface is down."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        fcntl.ioctl(s, 0x8914, struct.pack("16sh22x", b"lo", 0x1 | 0x40))  # SIOCSIFFLAGS: up and running


def make_machine():
    """The user's machine: an unpacked release, the CDK where npx finds it without a network, an empty home."""
    shutil.rmtree(OUT, ignore_errors=True)
    for name in ("bin", "home", "tmp"):
        os.makedirs(os.path.join(OUT, name))
    for tool in TOOLS:
        os.symlink(os.path.realpath(shutil.which(tool)) if tool in ("npx", "npm") else shutil.which(tool), os.path.join(OUT, "bin", tool))
    shutil.copytree(NODE_MODULES, os.path.join(OUT, "node_modules"), symlinks=True)
    with counted("tar xzf joiner-VERSION-OS-ARCH.tar.gz && cd joiner-VERSION-OS-ARCH"), tarfile.open(ARCHIVE) as t:
        t.extractall(OUT, filter="data")
    return os.path.join(OUT, os.path.basename(ARCHIVE).removesuffix(".tar.gz"))


def user(*command, fails=False, **environment):
    """Runs a command as the user does, in the folder of the release, and returns what it says."""
    start = time.monotonic()
    cover = " && ".join(f"mount -t tmpfs none {folder}" for folder in (REPOSITORY, GOROOT) if os.path.isdir(folder))
    done = subprocess.run(["unshare", "--mount", "sh", "-c", f"{cover} && cd {FOLDER} && exec env -i \"$@\"", "sh", *(f"{k}={v}" for k, v in {**USER, **environment}.items()), *command],
                          cwd="/", timeout=900, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    with open(os.path.join(OUT, "user.log"), "a", encoding="utf-8") as f:
        f.write(f"$ {' '.join(command)}\n{done.stdout}\n")
    print(f"$ {' '.join(command)}\n   exit code {done.returncode} after {time.monotonic() - start:.0f} s", flush=True)
    if (done.returncode != 0) != fails:
        print(done.stdout[-4000:])
        raise SystemExit(1)
    return done.stdout


def pipeline(program, *arguments):
    """Runs a program of Python's, as a pipeline without the CDK does, beside the generated files. The AWS CLI 1 knows no AWS_REGION."""
    start = time.monotonic()
    done = subprocess.run([os.path.join(os.path.dirname(sys.executable), program), *arguments], cwd=os.path.join(OUT, "generated"), env={**USER, "AWS_DEFAULT_REGION": play.REGION}, timeout=900,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    print(f"$ {program} {' '.join(arguments)}\n   exit code {done.returncode} after {time.monotonic() - start:.0f} s", flush=True)
    if done.returncode != 0:
        print(done.stdout[-4000:])
        raise SystemExit(1)
    return done.stdout


@contextlib.contextmanager
def counted(step):
    start = time.monotonic()
    yield
    minutes[step] = (time.monotonic() - start) / 60


def client(name):
    return play.client(URL, name)


def physical_ids():
    """What CloudFormation has made, by logical id. moto gives a version no id of its own."""
    out = {}
    for page in client("cloudformation").get_paginator("list_stack_resources").paginate(StackName=STACK):
        for r in page["StackResourceSummaries"]:
            if r["ResourceType"] != "AWS::Lambda::Version":
                out[r["LogicalResourceId"]] = r["PhysicalResourceId"]
    return out


def stack_names():
    return [s["StackName"] for s in play.live_stacks(URL)]


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
    os.rename(zipped, zipped + ".away")
    check("joiner deploy misses a zip", f"functions/{GOARCH}/provision.zip is missing" in user("./joiner", "deploy", "--cluster", "demo", fails=True), True)
    os.rename(zipped + ".away", zipped)
    user("sha256sum", "-c", "--quiet", "SHA256SUMS")
    write_settings(tracesURL="https://example.com", logRetentionDay=3)
    said = user("./joiner", "deploy", "--settings", "../joiner.json", fails=True)
    check("settings of another version and misspelt ones are refused", ("there is no such setting any more" in said, "did you mean logRetentionDays?" in said), (True, True))
    check("nothing was made meanwhile", stack_names(), [])


def cdk_road():
    with counted("./joiner deploy"):
        said = deploy(deployment="1")
    check("joiner deploy bootstraps, and says so", ("npx aws-cdk@2 bootstrap" in said, sorted(stack_names())), (True, ["CDKToolkit", STACK]))
    check("the function is that of the release", client("lambda").get_function(FunctionName="joiner-demo-provision")["Configuration"]["CodeSize"],
          os.path.getsize(os.path.join(FOLDER, "functions", GOARCH, "provision.zip")))
    check("diff finds nothing", "no differences" in user("npx", "aws-cdk@2", "diff", *app()).lower(), True)
    before = physical_ids()
    said = deploy(deployment="2", logRetentionDays=30)
    check("an update does not bootstrap again", "npx aws-cdk@2 bootstrap" in said, False)
    check("the update arrived", retention(), {30})
    check("nothing was replaced", {k: v for k, v in physical_ids().items() if before.get(k) != v}, {})


def retention():
    return {g["retentionInDays"] for g in client("logs").describe_log_groups(logGroupNamePrefix="/aws/lambda/joiner-demo-")["logGroups"]}


def keys_in(bucket):
    return sorted(o["Key"] for o in client("s3").list_objects_v2(Bucket=bucket).get("Contents", []))


@contextlib.contextmanager
def breaking(puts):
    """An address at which AWS takes so many uploads into the pipeline's bucket, and refuses the next."""
    left, lock = [puts], threading.Lock()

    class Between(http.server.BaseHTTPRequestHandler):
        def log_message(self, *_):
            pass

        def pass_on(self):
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            status, headers, answer = 403, [], b"<Error><Code>AccessDenied</Code><Message>not any more</Message></Error>"
            with lock:
                upload = self.command == "PUT" and self.path.startswith(f"/{BUCKET}/")
                left[0] -= upload
                refused = upload and left[0] < 0
            if not refused:
                there = http.client.HTTPConnection("localhost", PORT, timeout=300)
                there.request(self.command, self.path, body, dict(self.headers))
                got = there.getresponse()
                status, headers, answer = got.status, [h for h in got.getheaders() if h[0].lower() not in ("content-length", "transfer-encoding", "connection")], got.read()
                there.close()
            self.send_response(status)
            for header in headers:
                self.send_header(*header)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(answer)

        do_GET = do_PUT = do_POST = do_HEAD = pass_on  # noqa: N815 - the names are http.server's

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Between)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://localhost:{server.server_address[1]}"
    server.shutdown()


def uploads_that_fail():
    client("s3").create_bucket(Bucket=BUCKET)
    play.client(URL, "s3").create_bucket(Bucket=FAR_BUCKET, CreateBucketConfiguration={"LocationConstraint": "eu-west-1"})
    write_settings()
    said = user("./joiner", "template", "--settings", "../joiner.json", "--assets", f"s3://{FAR_BUCKET}/joiner", "--out", "../generated", "--upload", fails=True)
    check("a bucket of another region is refused", ("is in region eu-west-1 and the stack in us-east-1" in said, keys_in(FAR_BUCKET)), (True, []))
    with breaking(puts=3) as url:
        said = user("./joiner", "template", "--settings", "../joiner.json", "--assets", f"s3://{BUCKET}/joiner", "--out", "../generated", "--upload", fails=True, AWS_ENDPOINT_URL=url)
    check("an upload that stops says how to go on", ("nothing was deployed; the same command goes on from here" in said, len(keys_in(BUCKET))), (True, 3))
    check("it leaves no template to deploy", ([k for k in keys_in(BUCKET) if k.endswith(".json")], os.path.exists(os.path.join(OUT, "generated", STACK + ".template.json"))), ([], False))


def template_road():
    uploads_that_fail()
    before = physical_ids()
    listed, stack = template(deployment="3", logRetentionDays=60)
    check("every zip is in the bucket", keys_in(BUCKET), sorted([f["key"] for f in listed["files"]] + [listed["templateKey"]]))
    with open(os.path.join(OUT, "generated", STACK + ".template.json"), encoding="utf-8") as f:
        text = f.read()
    check("the template needs nothing of the CDK", ("cdk-hnb659fds" in text, "Parameters" in json.loads(text), "Rules" in json.loads(text)), (False, False, False))
    # W3005, a dependency that a reference implies: CDK itself writes one from every function to its role.
    pipeline("cfn-lint", "--ignore-checks", "W3005", "--", f"{STACK}.template.json")
    pipeline("aws", "cloudformation", "update-stack", "--stack-name", STACK, "--template-url", stack["TemplateURL"], "--capabilities", "CAPABILITY_NAMED_IAM")
    check("it updates what the CDK made and replaces nothing", ({k: v for k, v in physical_ids().items() if before.get(k) != v}, sorted(set(before) - set(physical_ids()))), ({}, []))
    check("the update arrived", retention(), {60})
    user("npx", "aws-cdk@2", "destroy", "--force", *app())
    check("the stack is gone", STACK in stack_names(), False)
    stack_set(stack["TemplateURL"], json.loads(text)["Resources"])

    pipeline("aws", "cloudformation", "deploy", "--template-file", f"{STACK}.template.json", "--s3-bucket", BUCKET, "--stack-name", STACK, "--capabilities", "CAPABILITY_NAMED_IAM")
    check("the template alone makes the stack", client("cloudformation").describe_stacks(StackName=STACK)["Stacks"][0]["StackStatus"], "CREATE_COMPLETE")
    before = physical_ids()
    check("it makes what the CDK makes", sorted(before), sorted(k for k, r in json.loads(text)["Resources"].items() if r["Type"] != "AWS::Lambda::Version"))
    said = deploy(deployment="4", logRetentionDays=60)
    check("the CDK updates what the template made and replaces nothing", {k: v for k, v in physical_ids().items() if before.get(k) != v}, {})
    check("it did not bootstrap again", "npx aws-cdk@2 bootstrap" in said, False)
    another_version(listed)
    user("npx", "aws-cdk@2", "destroy", "--force", *app())
    check("the stack is gone again", STACK in stack_names(), False)
    check("no function is left", client("lambda").list_functions()["Functions"], [])
    return listed


def stack_set(url, resources):
    """A stack set makes the same resources, in a stack that CloudFormation names, and deletes them. moto updates none."""
    where = ("--stack-set-name", "joiner", "--accounts", play.ACCOUNT, "--regions", play.REGION)
    pipeline("aws", "cloudformation", "create-stack-set", "--stack-set-name", "joiner", "--template-url", url, "--capabilities", "CAPABILITY_NAMED_IAM")
    pipeline("aws", "cloudformation", "create-stack-instances", *where)
    (name,) = set(stack_names()) - {"CDKToolkit"}
    made = client("cloudformation").describe_stack_resources(StackName=name)["StackResources"]
    check("a stack set makes every resource", (name, sorted(r["LogicalResourceId"] for r in made)), ("StackSet-joiner", sorted(resources)))
    pipeline("aws", "cloudformation", "delete-stack-instances", *where, "--no-retain-stacks")
    pipeline("aws", "cloudformation", "delete-stack-set", "--stack-set-name", "joiner")
    check("and deletes them", (set(stack_names()), client("lambda").list_functions()["Functions"]), ({"CDKToolkit"}, []))


def another_version(listed):
    """A stack that another version made is told of, and updated."""
    with open(os.path.join(OUT, "generated", STACK + ".template.json"), encoding="utf-8") as f:
        older = json.load(f)
    older["Outputs"]["Version"]["Value"] = "0.9.0"
    client("s3").put_object(Bucket=BUCKET, Key="older.json", Body=json.dumps(older))
    client("cloudformation").update_stack(StackName=STACK, TemplateURL=f"{URL}/{BUCKET}/older.json", Capabilities=["CAPABILITY_NAMED_IAM"])
    said = deploy(deployment="5")
    check("a stack of another version is told of", f"stack {STACK} is of version 0.9.0 and becomes {listed['version']}" in said, True)
    outputs = {o["OutputKey"]: o["OutputValue"] for o in client("cloudformation").describe_stacks(StackName=STACK)["Stacks"][0]["Outputs"]}
    check("and becomes this one", outputs["Version"], listed["version"])


def local_environment(listed):
    """The emulated AWS and a real control plane run the zips of the folder as the plain template says. The manifest and the list
    of assets are what the CDK would write beside that template."""
    assembly = os.path.join(OUT, "assembly")
    os.makedirs(assembly)
    shutil.copy(os.path.join(OUT, "generated", STACK + ".template.json"), assembly)
    files = {f["key"]: {"source": {"path": os.path.join(FOLDER, f["path"])}, "destinations": {"bucket": {"objectKey": f["key"]}}} for f in listed["files"]}
    for name, content in {"manifest.json": {"artifacts": {STACK: {"type": "aws:cloudformation:stack", "environment": "aws://unknown-account/unknown-region",
                                                                  "properties": {"templateFile": STACK + ".template.json"}}}},
                          STACK + ".assets.json": {"files": files}}.items():
        with open(os.path.join(assembly, name), "w", encoding="utf-8") as f:
            json.dump(content, f)
    with counted("kubectl apply -f nodepool.yaml"):
        done = subprocess.run([LOCAL, "try", assembly, os.path.join(FOLDER, "nodepool.yaml")], cwd=REPOSITORY, timeout=900, check=False)
    check("a pod runs on a node of the release's NodePool", done.returncode, 0)


def unzip_preflight():
    """moto runs the preflight's own program, for this machine."""
    folder = os.path.join(OUT, "binaries", "preflight")
    with zipfile.ZipFile(os.path.join(FOLDER, "functions", GOARCH, "preflight.zip")) as z:
        z.extract("bootstrap", folder)
    os.chmod(os.path.join(folder, "bootstrap"), 0o755)
    return os.path.dirname(folder)


raise_loopback()
FOLDER = make_machine()
PORT = play.free_port()
URL = f"http://localhost:{PORT}"  # by name: moto tells the bucket of the template's URL by it
USER = {"PATH": os.path.join(OUT, "bin"), "HOME": os.path.join(OUT, "home"), "TMPDIR": os.path.join(OUT, "tmp"), "AWS_ENDPOINT_URL": URL, "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_REGION": play.REGION, "CDK_DISABLE_CLI_TELEMETRY": "true", "JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION": "20", "NODE_NO_WARNINGS": "1"}
with play.moto(OUT, PORT, unzip_preflight()):
    play.make_cluster(URL)
    look_at_the_machine()
    refusals()
    cdk_road()
    zips = template_road()
local_environment(zips)
print("== three commands to a NodePool that launches, with AWS's own time not counted", flush=True)
for step, took in minutes.items():
    print(f"   {took:4.1f} minutes: {step}", flush=True)
play.end("the release deploys itself by both roads, and its zips launch nodes")
