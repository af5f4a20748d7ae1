"""What the plays against moto share: checks that are counted, and moto itself."""

import contextlib
import os
import socket
import subprocess
import sys
import time
import urllib.request

import boto3

ACCOUNT, REGION, STACK = "123456789012", "us-east-1", "joiner-demo"
HERE = os.path.dirname(os.path.abspath(__file__))
failures, checks = [], 0


def check(what, got, want):
    global checks
    checks += 1
    ok = got == want
    print(f"   {'ok ' if ok else 'NOT'} {what}" + ("" if ok else f": got {got!r}, want {want!r}"), flush=True)
    if not ok:
        failures.append(what)


def end(what):
    """Says how many checks there were, and fails if one did."""
    if failures:
        raise SystemExit(f"{len(failures)} checks failed: " + "; ".join(failures))
    print(f"== {what}: {checks} checks")


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def client(url, name):
    return boto3.client(name, region_name=REGION, endpoint_url=url, aws_access_key_id="test", aws_secret_access_key="test")


def live_stacks(url):
    return [s for s in client(url, "cloudformation").list_stacks()["StackSummaries"] if s["StackStatus"] != "DELETE_COMPLETE"]


@contextlib.contextmanager
def moto(out, port, binaries):
    """Runs moto on the port, with its log in the folder, until the block ends. The preflight's program is below binaries."""
    name, url = os.path.join(out, "moto.log"), f"http://localhost:{port}"
    with open(name, "w", encoding="utf-8") as log:
        process = subprocess.Popen([sys.executable, os.path.join(HERE, "aws.py"), os.path.join(out, "requests.jsonl"), str(port), binaries], stdout=log, stderr=subprocess.STDOUT)
    try:
        for _ in range(1800):  # three minutes, for a busy machine
            try:
                urllib.request.urlopen(url + "/moto-api/data.json", timeout=1).close()
                break
            except OSError:
                if process.poll() is not None:
                    with open(name, encoding="utf-8") as log:
                        raise SystemExit("moto ended: " + log.read()[-2000:]) from None
                time.sleep(0.1)
        else:
            raise SystemExit(f"moto does not answer; its log is {name}")
        yield url
    finally:
        process.terminate()
        process.wait(120)


def make_cluster(url):
    client(url, "eks").create_cluster(name="demo", roleArn=f"arn:aws:iam::{ACCOUNT}:role/cluster",
                                      resourcesVpcConfig={"subnetIds": [], "endpointPublicAccess": True, "publicAccessCidrs": ["0.0.0.0/0"]})
