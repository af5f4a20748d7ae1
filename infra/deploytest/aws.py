"""The AWS that make deploy-test deploys to: moto, with what its CloudFormation would silently not make.

Aliases, function URLs, policies of queues, schedules and generated secrets are made in moto, and dynamic references to secrets resolved. Every other type that moto does not know is kept as it is written in the template, so that the
resources of the stack can be asked for. The preflight is answered by its own binary, which asks moto; setup's requests are answered here, as it would: what it really
does is tested in infra/local/contract/setup. Each request to one is a line in the file of the first argument. The second argument is the port, the third the folder of
binaries for this machine."""

import http.server
import json
import os
import subprocess
import sys
import threading

import boto3
import moto

WANTED = "5.2.1"  # the classes below lean on this version's inside
if moto.__version__ != WANTED:
    sys.exit(f"moto is {moto.__version__}, this file is written for {WANTED}: install that version, or look through this file and change it")

import moto.server  # noqa: E402
from moto.awslambda.models import LambdaVersion, lambda_backends  # noqa: E402
from moto.cloudformation import custom_model, parsing, responses  # noqa: E402
from moto.cloudformation.exceptions import ValidationError  # noqa: E402
from moto.cloudformation.models import ChangeSet, CloudFormationBackend  # noqa: E402
from moto.core.common_models import CloudFormationModel  # noqa: E402
from moto.eks import models as eks_models  # noqa: E402
from moto.iam.models import InstanceProfile  # noqa: E402
from moto.logs.models import LogGroup, logs_backends  # noqa: E402
from moto.scheduler.models import scheduler_backends  # noqa: E402
from moto.secretsmanager.models import secretsmanager_backends  # noqa: E402
from moto.sqs.models import sqs_backends  # noqa: E402

__name__ = "joiner.aws"  # moto files classes by the second part of their module's name

requests_file, port, binaries = sys.argv[1], sys.argv[2], sys.argv[3]


def note(kind, logical_id, properties):
    with open(requests_file, "a", encoding="utf-8") as f:
        f.write(json.dumps({"request": kind, "id": logical_id, "properties": properties}) + "\n")


class Kept(CloudFormationModel):
    """A resource that is only remembered."""

    def __init__(self, name, properties):
        self.name, self.properties = name, properties

    @property
    def physical_resource_id(self):
        return self.name

    @staticmethod
    def cloudformation_name_type():
        return ""

    @staticmethod
    def cloudformation_type():
        return "Joiner::Kept"

    @classmethod
    def has_cfn_attr(cls, attr):
        return True

    def get_cfn_attribute(self, attribute_name):
        return f"{self.name}.{attribute_name}"

    @classmethod
    def create_from_cloudformation_json(cls, resource_name, cloudformation_json, account_id, region_name, **kwargs):
        return cls(resource_name, cloudformation_json["Properties"])

    @classmethod
    def update_from_cloudformation_json(cls, original_resource, new_resource_name, cloudformation_json, account_id, region_name):
        original_resource.properties = cloudformation_json["Properties"]
        return original_resource

    @classmethod
    def delete_from_cloudformation_json(cls, resource_name, cloudformation_json, account_id, region_name):
        pass


class Alias(CloudFormationModel):
    """AWS::Lambda::Alias."""

    def __init__(self, alias, function):
        self.alias, self.function = alias, function

    @property
    def physical_resource_id(self):
        return self.alias.arn

    @staticmethod
    def cloudformation_name_type():
        return ""

    @staticmethod
    def cloudformation_type():
        return "AWS::Lambda::Alias"

    @classmethod
    def create_from_cloudformation_json(cls, resource_name, cloudformation_json, account_id, region_name, **kwargs):
        p = cloudformation_json["Properties"]
        backend = lambda_backends[account_id][region_name]
        return cls(backend.create_alias(p["Name"], p["FunctionName"], p["FunctionVersion"], p.get("Description", ""), None), p["FunctionName"])

    @classmethod
    def update_from_cloudformation_json(cls, original_resource, new_resource_name, cloudformation_json, account_id, region_name):
        p = cloudformation_json["Properties"]
        backend = lambda_backends[account_id][region_name]
        # moto makes the new version before it changes the function, and then there is nothing new to publish; so it is published here.
        version = str(backend.publish_version(p["FunctionName"]).version)
        original_resource.alias = backend.update_alias(p["Name"], p["FunctionName"], version, p.get("Description", ""), None)
        return original_resource

    @classmethod
    def delete_from_cloudformation_json(cls, resource_name, cloudformation_json, account_id, region_name):
        p = cloudformation_json["Properties"]
        try:
            lambda_backends[account_id][region_name].delete_alias(p["Name"], p["FunctionName"])
        except Exception:  # noqa: BLE001 - the function went first, and its aliases with it
            pass


class QueuePolicy(CloudFormationModel):
    """AWS::SQS::QueuePolicy, which moto's SQS knows and its CloudFormation does not."""

    def __init__(self, name, queues):
        self.name, self.queues = name, queues

    @property
    def physical_resource_id(self):
        return self.name

    @staticmethod
    def cloudformation_type():
        return "AWS::SQS::QueuePolicy"

    def put(self, policy, account_id, region_name):
        for url in self.queues:
            sqs_backends[account_id][region_name].set_queue_attributes(url.split("/")[-1], {"Policy": policy})

    @classmethod
    def create_from_cloudformation_json(cls, resource_name, cloudformation_json, account_id, region_name, **kwargs):
        p = cloudformation_json["Properties"]
        made = cls(resource_name, p["Queues"])
        made.put(json.dumps(p["PolicyDocument"]), account_id, region_name)
        return made

    @classmethod
    def update_from_cloudformation_json(cls, original_resource, new_resource_name, cloudformation_json, account_id, region_name):
        p = cloudformation_json["Properties"]
        original_resource.queues = p["Queues"]
        original_resource.put(json.dumps(p["PolicyDocument"]), account_id, region_name)
        return original_resource

    @classmethod
    def delete_from_cloudformation_json(cls, resource_name, cloudformation_json, account_id, region_name):
        pass  # with its queues


class ScheduleGroup(CloudFormationModel):
    """AWS::Scheduler::ScheduleGroup, which moto's scheduler knows and its CloudFormation does not."""

    def __init__(self, name):
        self.name = name

    @property
    def physical_resource_id(self):
        return self.name

    @staticmethod
    def cloudformation_type():
        return "AWS::Scheduler::ScheduleGroup"

    @classmethod
    def create_from_cloudformation_json(cls, resource_name, cloudformation_json, account_id, region_name, **kwargs):
        p = cloudformation_json["Properties"]
        scheduler_backends[account_id][region_name].create_schedule_group(p["Name"], p.get("Tags", []))
        return cls(p["Name"])

    @classmethod
    def update_from_cloudformation_json(cls, original_resource, new_resource_name, cloudformation_json, account_id, region_name):
        return original_resource

    @classmethod
    def delete_from_cloudformation_json(cls, resource_name, cloudformation_json, account_id, region_name):
        scheduler_backends[account_id][region_name].schedule_groups.pop(resource_name, None)


class Schedule(CloudFormationModel):
    """AWS::Scheduler::Schedule, which moto's scheduler knows and its CloudFormation does not."""

    def __init__(self, group, name):
        self.group, self.name = group, name

    @property
    def physical_resource_id(self):
        return self.name

    @staticmethod
    def cloudformation_type():
        return "AWS::Scheduler::Schedule"

    @staticmethod
    def values(p):
        return dict(description=p.get("Description"), end_date=None, flexible_time_window=p["FlexibleTimeWindow"], group_name=p["GroupName"], kms_key_arn=None, name=p["Name"],
                    schedule_expression=p["ScheduleExpression"], schedule_expression_timezone=None, start_date=None, state=p.get("State"), target=p["Target"])

    @classmethod
    def create_from_cloudformation_json(cls, resource_name, cloudformation_json, account_id, region_name, **kwargs):
        p = cloudformation_json["Properties"]
        scheduler_backends[account_id][region_name].create_schedule(action_after_completion=None, **cls.values(p))
        return cls(p["GroupName"], p["Name"])

    @classmethod
    def update_from_cloudformation_json(cls, original_resource, new_resource_name, cloudformation_json, account_id, region_name):
        scheduler_backends[account_id][region_name].update_schedule(**cls.values(cloudformation_json["Properties"]))
        return original_resource

    @classmethod
    def delete_from_cloudformation_json(cls, resource_name, cloudformation_json, account_id, region_name):
        for group in scheduler_backends[account_id][region_name].schedule_groups.values():
            group.schedules.pop(resource_name, None)


class Url(CloudFormationModel):
    """AWS::Lambda::Url."""

    def __init__(self, url, function):
        self.url, self.function = url, function

    @property
    def physical_resource_id(self):
        return self.function

    @staticmethod
    def cloudformation_type():
        return "AWS::Lambda::Url"

    @classmethod
    def has_cfn_attr(cls, attr):
        return attr == "FunctionUrl"

    def get_cfn_attribute(self, attribute_name):
        return self.url + "/"

    @classmethod
    def create_from_cloudformation_json(cls, resource_name, cloudformation_json, account_id, region_name, **kwargs):
        p = cloudformation_json["Properties"]
        made = lambda_backends[account_id][region_name].create_function_url_config(p["TargetFunctionArn"], {"AuthType": p["AuthType"]})
        return cls(made.url, p["TargetFunctionArn"])

    @classmethod
    def update_from_cloudformation_json(cls, original_resource, new_resource_name, cloudformation_json, account_id, region_name):
        return original_resource

    @classmethod
    def delete_from_cloudformation_json(cls, resource_name, cloudformation_json, account_id, region_name):
        pass  # with its function


class Secret(CloudFormationModel):
    """AWS::SecretsManager::Secret with a generated value."""

    def __init__(self, arn):
        self.arn = arn

    @property
    def physical_resource_id(self):
        return self.arn

    @staticmethod
    def cloudformation_type():
        return "AWS::SecretsManager::Secret"

    @classmethod
    def create_from_cloudformation_json(cls, resource_name, cloudformation_json, account_id, region_name, **kwargs):
        how = cloudformation_json["Properties"]["GenerateSecretString"]
        client = boto3.client("secretsmanager", region_name=region_name, endpoint_url=f"http://127.0.0.1:{port}", aws_access_key_id="test", aws_secret_access_key="test")
        value = client.get_random_password(PasswordLength=how["PasswordLength"], ExcludePunctuation=how["ExcludePunctuation"])["RandomPassword"]
        return cls(client.create_secret(Name=resource_name, SecretString=value)["ARN"])

    @classmethod
    def update_from_cloudformation_json(cls, original_resource, new_resource_name, cloudformation_json, account_id, region_name):
        return original_resource

    @classmethod
    def delete_from_cloudformation_json(cls, resource_name, cloudformation_json, account_id, region_name):
        secretsmanager_backends[account_id][region_name].delete_secret(resource_name, None, True)


def answered(name, environment, event):
    """Runs the binary of a function for one event, as Lambda would, and returns what it puts to the event's ResponseURL."""
    got, asked, done = {}, threading.Event(), threading.Event()

    class Runtime(http.server.BaseHTTPRequestHandler):
        def log_message(self, *_):
            pass

        def reply(self, status, body=b"", headers=()):
            self.send_response(status)
            for header in headers:
                self.send_header(*header)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_GET(self):  # noqa: N802 - the name is http.server's
            if asked.is_set():
                done.wait(120)  # there is no second event
                return
            asked.set()
            self.reply(200, json.dumps(event).encode(), [("Lambda-Runtime-Aws-Request-Id", "1"), ("Lambda-Runtime-Deadline-Ms", "9999999999999"),
                                                         ("Lambda-Runtime-Invoked-Function-Arn", event["ResourceProperties"]["ServiceToken"])])

        def take(self):
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self.reply(200)
            if self.path == "/answer":
                got.update(json.loads(body))
            elif not got:
                got.update({"Status": "FAILED", "Reason": body.decode()})
            if self.path != "/answer":
                done.set()

        do_PUT = do_POST = take  # noqa: N815

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Runtime)
    server.daemon_threads = True
    here = f"127.0.0.1:{server.server_address[1]}"
    event["ResponseURL"] = f"http://{here}/answer"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    process = subprocess.Popen([os.path.join(binaries, name, "bootstrap")], stderr=subprocess.STDOUT,
                               env={**environment, "AWS_LAMBDA_RUNTIME_API": here, "AWS_LAMBDA_FUNCTION_NAME": name, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}", "AWS_REGION": "us-east-1",
                                    "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"})
    try:
        if not done.wait(100):
            return {"Status": "FAILED", "Reason": f"{name} does not answer"}
    finally:
        process.terminate()
        process.wait(60)
        server.shutdown()
    return got


# moto's EKS knows no authentication modes.
eks_init = eks_models.Cluster.__init__


def eks_cluster(self, *args, **kwargs):
    eks_init(self, *args, **kwargs)
    self.access_config = {"authenticationMode": "API"}


eks_models.Cluster.__init__ = eks_cluster


class Custom(CloudFormationModel):
    """Every Custom:: type. The preflight is answered by its binary, setup as it would."""

    def __init__(self, logical_id, properties):
        self.logical_id, self.properties = logical_id, properties

    @property
    def physical_resource_id(self):
        return "joiner-" + self.logical_id

    @staticmethod
    def cloudformation_type():
        return "Joiner::Custom"

    @classmethod
    def has_cfn_attr(cls, attr):
        return True

    def get_cfn_attribute(self, attribute_name):
        if attribute_name == "FunctionMemory":  # a number, which Lambda checks
            return "512"
        return f"{attribute_name} of deployment {self.properties.get('Deployment')}"

    @classmethod
    def create_from_cloudformation_json(cls, resource_name, cloudformation_json, account_id, region_name, **kwargs):
        properties = cloudformation_json["Properties"]
        function = lambda_backends[account_id][region_name].get_function(properties["ServiceToken"])  # whoever answers must be there
        note("Create", kwargs["LogicalId"], properties)
        if kwargs["LogicalId"] == "PreflightResource":
            answer = answered(function.function_name.split("-")[-1], function.environment_vars,
                              {"RequestType": "Create", "RequestId": "1", "StackId": function.environment_vars["STACK_ID"], "LogicalResourceId": kwargs["LogicalId"],
                               "ResourceType": cloudformation_json["Type"], "ResourceProperties": {**properties}})
            if answer.get("Status") != "SUCCESS":
                raise ValidationError(message=f"{kwargs['LogicalId']}: {answer.get('Reason')}")
        return cls(kwargs["LogicalId"], properties)

    @classmethod
    def update_from_cloudformation_json(cls, original_resource, new_resource_name, cloudformation_json, account_id, region_name):
        note("Update", original_resource.logical_id, cloudformation_json["Properties"])
        original_resource.properties = cloudformation_json["Properties"]
        return original_resource

    @classmethod
    def delete_from_cloudformation_json(cls, resource_name, cloudformation_json, account_id, region_name):
        note("Delete", resource_name, cloudformation_json["Properties"])


known = parsing.resource_class_from_type


def class_of(resource_type):
    if resource_type.startswith("Custom::"):
        return Custom
    if resource_type in parsing.get_model_map():
        return known(resource_type)
    return Kept


cleaned = parsing.clean_json


def clean_json(resource_json, resources_map):
    """CloudFormation puts the value of a secret where {{resolve:secretsmanager:ARN:SecretString:::}} stands."""
    out = cleaned(resource_json, resources_map)
    begin, end = "{{resolve:secretsmanager:", ":SecretString:::}}"
    if isinstance(out, str) and out.startswith(begin) and out.endswith(end):
        arn = out[len(begin):-len(end)]
        _, _, _, region_name, account_id, *_ = arn.split(":")
        return secretsmanager_backends[account_id][region_name].get_secret_value(arn, "", "")["SecretString"]
    return out


parsing.clean_json = clean_json
parsing.resource_class_from_type = class_of
custom_model.CustomModel = Custom


# A function's version is a snapshot of it; moto gives the template no way to ask for its number.
LambdaVersion.has_cfn_attr = classmethod(lambda cls, attr: attr == "Version")
LambdaVersion.get_cfn_attribute = lambda self, attribute_name: str(self.version)

def update_log_group(original_resource, new_resource_name, cloudformation_json, account_id, region_name):
    logs_backends[account_id][region_name].put_retention_policy(original_resource.name, cloudformation_json["Properties"]["RetentionInDays"])
    return original_resource


# moto can make a log group and delete it, and forgets one that is updated.
LogGroup.update_from_cloudformation_json = staticmethod(update_log_group)


def keep_instance_profile(original_resource, new_resource_name, cloudformation_json, account_id, region_name):
    return original_resource


# It forgets an instance profile as well, of which only the deletion policy changes here.
InstanceProfile.update_from_cloudformation_json = staticmethod(keep_instance_profile)


def apply_change_set(self):
    resources = self.stack.resource_map
    if self.change_set_type != "CREATE":
        return resources.update(self.template_dict, self.parameters)
    resources._template, resources._resource_json_map = self.template_dict, self.template_dict["Resources"]
    resources.load()
    return resources.create(self.template_dict)


made = CloudFormationBackend.create_stack


def create_stack(self, name, *args, **kwargs):
    return made(self, name.replace("StackSet:", "StackSet-"), *args, **kwargs)


# No stack may have a colon in its name, and moto gives one to those of stack sets.
CloudFormationBackend.create_stack = create_stack
# moto makes what a change set for a new stack has in the order of the template, CloudFormation what others depend on first.
ChangeSet.apply = apply_change_set
summarized = responses.get_template_summary_response_from_template


def summarize(body):
    if "AWSTemplateFormatVersion" not in body:  # which moto wants, and CloudFormation does not
        body = json.dumps({"AWSTemplateFormatVersion": "2010-09-09", **json.loads(body)})
    return summarized(body)


responses.get_template_summary_response_from_template = summarize

moto.server.main(["-H", "127.0.0.1", "-p", port])
