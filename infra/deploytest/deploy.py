"""make deploy-test: bootstraps, deploys, diffs, updates and destroys the stack with the CDK command line against moto, and looks
after each step what is there. Arguments: the CDK command line, the folder for what it writes,
the processor that the functions were built for, in the words of Lambda, and the folder with their binaries."""

import json
import os
import subprocess
import sys
import time

import play
from play import ACCOUNT, REGION, STACK, check

CDK, OUT, ARCHITECTURE, BINARIES = sys.argv[1:5]
# joiner is the command line, and wake is there only with push.
FUNCTIONS = sorted(f for f in os.listdir("functions") if os.path.exists(f"functions/{f}/main.go") and f not in ("joiner", "wake"))
TICKS = {"provision", "lifecycle", "refresh", "disrupt"} & set(FUNCTIONS)
deployment = 1

PORT = play.free_port()
URL = f"http://localhost:{PORT}"  # by name: moto tells the bucket of the template's URL by it
ENV = dict(os.environ, AWS_ENDPOINT_URL=URL, AWS_ACCESS_KEY_ID="test", AWS_SECRET_ACCESS_KEY="test", AWS_REGION=REGION,
           AWS_DEFAULT_REGION=REGION, CDK_DEFAULT_ACCOUNT=ACCOUNT, CDK_DEFAULT_REGION=REGION)


def client(name):
    return play.client(URL, name)


def cdk(*arguments, fails=False):
    """Runs the CDK command line, with a limit in time: moto may leave a stack in progress for ever. It knows no termination protection."""
    began = time.monotonic()
    done = subprocess.run([CDK, *arguments, "--no-notices", "--no-version-reporting", "-c", "clusterName=demo", "-c", f"architecture={ARCHITECTURE}", "-c", f"deployment={deployment}",
                           "-c", "terminationProtection=false", "-o", os.path.join(OUT, "cdk.out")],
                          env=ENV, timeout=900, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    with open(os.path.join(OUT, "cdk.log"), "a", encoding="utf-8") as f:
        f.write(f"$ cdk {' '.join(arguments)}\n{done.stdout}\n")
    print(f"== cdk {' '.join(arguments)}: exit code {done.returncode} after {time.monotonic() - began:.0f} s", flush=True)
    if (done.returncode != 0) != fails:
        print(done.stdout[-4000:])
        raise SystemExit(1)
    return done.stdout


def deploy(*settings):
    cdk("deploy", "--all", "--require-approval", "never", "--method=direct", *settings)


def resources():
    """What CloudFormation says it has made, by type."""
    found = {}
    for page in client("cloudformation").get_paginator("list_stack_resources").paginate(StackName=STACK):
        for r in page["StackResourceSummaries"]:
            found.setdefault(r["ResourceType"], []).append(r["PhysicalResourceId"])
    return found


def template():
    with open(os.path.join(OUT, "cdk.out", STACK + ".template.json"), encoding="utf-8") as f:
        return json.load(f)["Resources"]


def counts_of_template():
    out = {}
    for r in template().values():
        out[r["Type"]] = out.get(r["Type"], 0) + 1
    return out


def custom_requests():
    with open(os.path.join(OUT, "requests.jsonl"), encoding="utf-8") as f:
        return [json.loads(line) for line in f]


def look_at_what_is_deployed():
    made = resources()
    check("CloudFormation has every resource of the template", {k: len(v) for k, v in made.items()}, counts_of_template())
    lam, events, sqs = client("lambda"), client("events"), client("sqs")
    for f in FUNCTIONS:
        name = f"joiner-demo-{f}"
        c = lam.get_function(FunctionName=name)["Configuration"]
        check(f"{name} runs its binary with its role and settings",
              (c["Runtime"], c["Handler"], c["Environment"]["Variables"]["CLUSTER_NAME"], c["CodeSize"] > 1_000_000),
              ("provided.al2023", "bootstrap", "demo", True))
        if f not in ("preflight", "setup"):
            check(f"{name}:live is a version", lam.get_alias(FunctionName=name, Name="live")["FunctionVersion"], "1")
        if f in TICKS:
            check(f"{name} runs one at a time", lam.get_function_concurrency(FunctionName=name).get("ReservedConcurrentExecutions"), 1)
        if f in ("spotinterruption", "reservationinterruption"):
            check(f"{name} waits for nobody", lam.get_function_concurrency(FunctionName=name).get("ReservedConcurrentExecutions"),
                  100 if f == "spotinterruption" else 10)
    rules = events.list_rules()["Rules"]
    scheduler = client("scheduler")
    scheduled = {}
    for s in scheduler.list_schedules(GroupName="joiner-demo")["Schedules"]:
        s = scheduler.get_schedule(GroupName="joiner-demo", Name=s["Name"])
        scheduled[s["Name"]] = (s["ScheduleExpression"], s["State"], s["Target"]["Arn"].split(":function:")[-1], s["Target"]["RetryPolicy"], s["Target"].get("DeadLetterConfig"))
        role = client("iam").get_role(RoleName=s["Target"]["RoleArn"].split("/")[-1])["Role"]
        check(f"the scheduler may be {role['RoleName']}", [(t["Principal"], t["Condition"]["StringEquals"]["aws:SourceArn"]) for t in role["AssumeRolePolicyDocument"]["Statement"]],
              [({"Service": "scheduler.amazonaws.com"}, scheduler.get_schedule_group(Name="joiner-demo")["Arn"])])
        policy = client("iam").get_role_policy(RoleName=role["RoleName"], PolicyName="joiner")["PolicyDocument"]
        check(f"which may invoke {s['Name']}", ("'lambda:InvokeFunction'" in str(policy), f"'{s['Target']['Arn']}'" in str(policy)), (True, True))
    check("schedules, of which no tick is tried again", scheduled, {f"joiner-demo-{f}": ("rate(5 minutes)" if f == "refresh" else "rate(1 minute)", "ENABLED", f"joiner-demo-{f}:live",
          {"MaximumEventAgeInSeconds": 60, "MaximumRetryAttempts": 0}, None) for f in TICKS})
    check("no rule of the event bus is a schedule", [r["Name"] for r in rules if r.get("ScheduleExpression")], [])
    queue = next(u for u in sqs.list_queues()["QueueUrls"] if "StateChangeEvents" in u)
    attributes = sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["All"])["Attributes"]
    mapping = lam.list_event_source_mappings()["EventSourceMappings"][0]
    check("state changes come in batches of a queue, at most four at a time",
          (mapping["EventSourceArn"], mapping["BatchSize"], mapping["MaximumBatchingWindowInSeconds"], mapping["FunctionResponseTypes"], mapping["ScalingConfig"]["MaximumConcurrency"]),
          (attributes["QueueArn"], 100, 1, ["ReportBatchItemFailures"], 4))
    check("what fails five times goes to the dead letters", ("StateChangeDeadLetters" in json.loads(attributes["RedrivePolicy"])["deadLetterTargetArn"],
          int(json.loads(attributes["RedrivePolicy"])["maxReceiveCount"]), int(attributes["VisibilityTimeout"])), (True, 5, 60))
    for r in rules:
        for t in events.list_targets_by_rule(Rule=r["Name"])["Targets"]:
            if t["Arn"] == attributes["QueueArn"]:
                allowed = any(s["Principal"] == {"Service": "events.amazonaws.com"} and s["Condition"]["ArnEquals"]["aws:SourceArn"] == r["Arn"]
                              for s in json.loads(attributes["Policy"])["Statement"] if s["Effect"] == "Allow")
                check(f"rule {r['Name']} may send to the queue", allowed, True)
                continue
            name = t["Arn"].split(":function:")[-1]
            statements = json.loads(lam.get_policy(FunctionName=name.split(":")[0])["Policy"])["Statement"]
            allowed = any(s["Principal"]["Service"] == "events.amazonaws.com" and s["Condition"]["ArnLike"]["AWS:SourceArn"] == r["Arn"] for s in statements)
            check(f"rule {r['Name']} may invoke {name}", (allowed, name.endswith(":live")), (True, True))
    check("dead-letter queues, and that of state changes", len(sqs.list_queues().get("QueueUrls", [])), len(FUNCTIONS) - len(TICKS))  # the preflight has none
    asked = [f for f in FUNCTIONS if f not in ("preflight", "setup")]
    check("the functions know what the preflight found",
          {f: lam.get_function(FunctionName=f"joiner-demo-{f}")["Configuration"]["Environment"]["Variables"].get("CLUSTER_ENDPOINT") for f in asked},
          {f: f"Endpoint of deployment {deployment}" for f in asked})
    groups = client("logs").describe_log_groups(logGroupNamePrefix="/aws/lambda/joiner-demo-")["logGroups"]
    check("log groups end after 14 days", sorted((g["logGroupName"], g["retentionInDays"]) for g in groups),
          sorted((f"/aws/lambda/joiner-demo-{f}", 14) for f in FUNCTIONS))
    bucket = made["AWS::S3::Bucket"][0]
    s3 = client("s3")
    check("catalog bucket is encrypted",
          s3.get_bucket_encryption(Bucket=bucket)["ServerSideEncryptionConfiguration"]["Rules"][0]["ApplyServerSideEncryptionByDefault"]["SSEAlgorithm"], "AES256")
    iam = client("iam")
    check("instance profile of the nodes", [r["RoleName"] for r in iam.get_instance_profile(InstanceProfileName="KarpenterNodeRole-demo")["InstanceProfile"]["Roles"]],
          ["KarpenterNodeRole-demo"])
    check("every function's role has one inline policy",
          [len(iam.list_role_policies(RoleName=lam.get_function(FunctionName=f"joiner-demo-{f}")["Configuration"]["Role"].split("/")[-1])["PolicyNames"]) for f in FUNCTIONS],
          [1] * len(FUNCTIONS))
    return bucket


def look_at_what_is_left(bucket):
    check("the stack is gone", STACK in [s["StackName"] for s in play.live_stacks(URL)], False)
    check("no schedule is left", ([g["Name"] for g in client("scheduler").list_schedule_groups()["ScheduleGroups"]], client("scheduler").list_schedules()["Schedules"]), (["default"], []))
    check("no function, rule, queue or log group is left",
          (client("lambda").list_functions()["Functions"], client("events").list_rules()["Rules"], client("sqs").list_queues().get("QueueUrls", []),
           client("logs").describe_log_groups(logGroupNamePrefix="/aws/lambda/joiner-demo-")["logGroups"]), ([], [], [], []))
    check("no role of ours is left", [r["RoleName"] for r in client("iam").list_roles()["Roles"] if "oiner" in r["RoleName"] or "Karpenter" in r["RoleName"]], [])
    kept = [b["Name"] for b in client("s3").list_buckets()["Buckets"]]
    check("the catalog bucket stays, by its deletion policy", template()[next(k for k, r in template().items() if r["Type"] == "AWS::S3::Bucket")]["DeletionPolicy"], "RetainExceptOnCreate")
    # moto knows no RetainExceptOnCreate: that the node role stays is tested in infra/local/cloudformation.
    check("so does the node role", {r.get("DeletionPolicy") for r in template().values() if r["Type"] == "AWS::IAM::InstanceProfile"}, {"RetainExceptOnCreate"})
    print(f"   (moto {'kept' if bucket in kept else 'deleted'} it)")


def story():
    cdk("bootstrap", f"aws://{ACCOUNT}/{REGION}")
    check("CDK's own stack", [s["StackStatus"] for s in client("cloudformation").describe_stacks(StackName="CDKToolkit")["Stacks"]], ["CREATE_COMPLETE"])

    play.make_cluster(URL)
    beside_karpenter()
    deploy()
    bucket = look_at_what_is_deployed()
    check("setup was asked to check and to install, in this order", [(r["request"], r["id"]) for r in custom_requests()],
          [("Create", "PreflightResource"), ("Create", "SetupResource")])

    check("nothing differs after a deployment", "no differences" in cdk("diff", "--all").lower(), True)
    out = cdk("diff", "--all", "-c", "logRetentionDays=30", "-c", "batchIdle=2s")
    check("a changed setting is a difference", ("BATCH_IDLE_DURATION" in out, "RetentionInDays" in out), (True, True))

    global deployment
    deployment = 2
    deploy("-c", "logRetentionDays=30", "-c", "batchIdle=2s", "-c", "onDelete=drain")
    lam = client("lambda")
    check("the functions have the new setting",
          {lam.get_function(FunctionName=f"joiner-demo-{f}")["Configuration"]["Environment"]["Variables"].get("BATCH_IDLE_DURATION") for f in FUNCTIONS}, {"2s"})
    check("the functions have what the preflight finds now",
          {lam.get_function(FunctionName=f"joiner-demo-{f}")["Configuration"]["Environment"]["Variables"]["CLUSTER_CA_BUNDLE"] for f in FUNCTIONS if f not in ("preflight", "setup")},
          {"CABundle of deployment 2"})
    check("the aliases moved on", {lam.get_alias(FunctionName=f"joiner-demo-{f}", Name="live")["FunctionVersion"] for f in FUNCTIONS if f not in ("preflight", "setup")}, {"2"})
    check("log groups end after 30 days",
          {g["retentionInDays"] for g in client("logs").describe_log_groups(logGroupNamePrefix="/aws/lambda/joiner-demo-")["logGroups"]}, {30})
    check("setup was told of onDelete", [(r["request"], r["properties"]["OnDelete"]) for r in custom_requests() if r["id"] == "SetupResource"],
          [("Create", "keep"), ("Update", "drain")])
    lam.update_alias(FunctionName="joiner-demo-provision", Name="live", FunctionVersion="1")
    check("an alias moves back", lam.get_alias(FunctionName="joiner-demo-provision", Name="live")["FunctionVersion"], "1")

    into_the_network_and_back()

    cdk("destroy", "--all", "--force")
    look_at_what_is_left(bucket)


def beside_karpenter():
    """Karpenter's own guide made the role that the stack would make: that is told before anything is made, and how it is used."""
    iam, role = client("iam"), "KarpenterNodeRole-demo"
    iam.create_role(RoleName=role, AssumeRolePolicyDocument="{}")
    out = cdk("deploy", "--all", "--require-approval", "never", "--method=direct", fails=True)
    check("the deployment fails in the preflight, with what to do", ("PreflightResource" in out, f"nodeRole: {role}" in out), (True, True))
    for stack in play.live_stacks(URL):
        if stack["StackName"] == STACK:
            client("cloudformation").delete_stack(StackName=STACK)
    check("no function but the one that answered was made", [f["FunctionName"] for f in client("lambda").list_functions()["Functions"] if f["FunctionName"].split("-")[-1] in TICKS], [])
    deploy("-c", f"nodeRole={role}")
    check("with nodeRole it is deployed", client("cloudformation").describe_stacks(StackName=STACK)["Stacks"][0]["StackStatus"], "CREATE_COMPLETE")
    check("the role is Karpenter's, as it was", [r["RoleName"] for r in iam.list_roles()["Roles"] if r["RoleName"].startswith("Karpenter")], [role])
    cdk("destroy", "--all", "--force")
    check("and outlives the stack", [r["RoleName"] for r in iam.list_roles()["Roles"] if r["RoleName"].startswith("Karpenter")], [role])
    iam.delete_role(RoleName=role)
    open(os.path.join(OUT, "requests.jsonl"), "w", encoding="utf-8").close()


def into_the_network_and_back():
    """Moves the functions into subnets with endpoints, with push, and out again without."""
    ec2 = client("ec2")
    vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    subnets = sorted(ec2.create_subnet(VpcId=vpc, CidrBlock=f"10.0.{i}.0/24")["Subnet"]["SubnetId"] for i in range(2))
    group = ec2.create_security_group(GroupName="cluster", Description="of the cluster", VpcId=vpc)["GroupId"]
    network = ("-c", f"vpcID={vpc}", "-c", "subnetIDs=" + ",".join(subnets), "-c", f"clusterSecurityGroupID={group}", "-c", "vpcEndpoints=true")
    out = cdk("diff", "--all", *network, "-c", "trigger=push")
    check("network and push are differences", all(w in out for w in ("AWS::EC2::VPCEndpoint", "VpcConfig", "AWS::Lambda::Url", "AWS::SecretsManager::Secret")), True)
    check("the synthesis says what the endpoints cost", "cost about 58.40 USD a month" in out, True)

    deploy(*network, "-c", "trigger=push")
    made = resources()
    check("CloudFormation has every resource of the template, with network and push", {k: len(v) for k, v in made.items()}, counts_of_template())
    lam = client("lambda")
    configs = {f: lam.get_function(FunctionName=f"joiner-demo-{f}")["Configuration"] for f in [*FUNCTIONS, "wake"]}
    check("the functions are in the subnets, but for wake and preflight", {f: sorted(c.get("VpcConfig", {}).get("SubnetIds", [])) for f, c in configs.items()},
          {**{f: subnets for f in FUNCTIONS}, "preflight": [], "wake": []})
    own = {g for c in configs.values() for g in c.get("VpcConfig", {}).get("SecurityGroupIds", [])}
    rules = [p for p in ec2.describe_security_groups(GroupIds=[group])["SecurityGroups"][0]["IpPermissions"]]
    check("their security group may enter the cluster's on port 443", [(p["FromPort"], p["ToPort"], {u["GroupId"] for u in p["UserIdGroupPairs"]}) for p in rules], [(443, 443, own)])
    check("endpoints", sorted(e["ServiceName"].split(".")[-1] for e in ec2.describe_vpc_endpoints()["VpcEndpoints"] if e["State"] != "deleted"), ["ec2", "eks", "lambda", "ssm"])
    check("the functions know that no way leads to IAM and prices", {configs[f]["Environment"]["Variables"].get("ISOLATED_VPC") for f in FUNCTIONS}, {"true"})

    secrets = client("secretsmanager")
    path = secrets.get_secret_value(SecretId=made["AWS::SecretsManager::Secret"][0])["SecretString"]
    check("the secret path has 48 letters and digits", (len(path), path.isalnum()), (48, True))
    check("wake and setup have it, and nobody else", sorted(f for f, c in configs.items() if c["Environment"]["Variables"].get("PUSH_PATH") == path), ["setup", "wake"])
    with open(os.path.join(OUT, "cdk.out", STACK + ".template.json"), encoding="utf-8") as f:
        check("it is not in the template", path in f.read(), False)
    url = lam.get_function_url_config(FunctionName="joiner-demo-wake")
    check("wake has a URL for anybody", url["AuthType"], "NONE")
    check("wake runs one call at a time", lam.get_function_concurrency(FunctionName="joiner-demo-wake").get("ReservedConcurrentExecutions"), 1)
    public = sorted((s["Action"], s.get("FunctionUrlAuthType"), s.get("InvokedViaFunctionUrl")) for s in json.loads(lam.get_policy(FunctionName="joiner-demo-wake")["Policy"])["Statement"])
    check("anybody may use the URL, and nothing but it", public, [("lambda:InvokeFunction", None, True), ("lambda:InvokeFunctionUrl", "NONE", None)])
    check("setup was told of the URL and of the network", [(r["request"], r["properties"].get("PushURL"), r["properties"]["Inside"]) for r in custom_requests() if r["id"] == "SetupResource"][-1],
          ("Update", url["FunctionUrl"] + "/", "true"))
    check("the path is no property, which CloudFormation would show", any(path in json.dumps(r) for r in custom_requests()), False)

    deploy("-c", "trigger=schedule")
    check("wake is gone", [f["FunctionName"] for f in lam.list_functions()["Functions"] if f["FunctionName"].endswith("-wake")], [])
    check("its secret is gone", secrets.list_secrets()["SecretList"], [])
    # moto keeps what an update leaves out, so only the template can be asked.
    check("the functions are out of the network", any("VpcConfig" in r["Properties"] for r in template().values() if r["Type"] == "AWS::Lambda::Function"), False)
    check("setup was told to take the webhook away", [(r["request"], "PushURL" in r["properties"]) for r in custom_requests() if r["id"] == "SetupResource"][-1], ("Update", False))


def main():
    os.makedirs(OUT, exist_ok=True)
    for name in ("requests.jsonl", "cdk.log"):
        open(os.path.join(OUT, name), "w", encoding="utf-8").close()
    with play.moto(OUT, PORT, BINARIES):
        story()
    play.end("bootstrap, deploy, diff, update and destroy did what they should")


main()
