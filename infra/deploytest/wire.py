"""Judges what Joiner says to AWS, and what the emulator answers, by botocore's models: AWS's own, which the Go SDK checks
required parameters of alone. Arguments: the folder of exchanges that tests wrote with JOINER_WIRE_LOG set. A request must
have parameters that its operation knows, with lengths, patterns, values and numbers that they may have. An answer must
parse as the operation's, with no member and no value that the model does not know. An error must be one that the operation
is documented with: by the model, or in errors.json, whose entries name their source."""

import base64
import io
import json
import os
import re
import sys
from collections import Counter
from datetime import datetime
from urllib.parse import parse_qsl, unquote, urlsplit
from xml.etree import ElementTree

import botocore.parsers
import botocore.session

HERE = os.path.dirname(os.path.abspath(__file__))
NAMES = {"monitoring": "cloudwatch", "servicequotas": "service-quotas"}
SESSION = botocore.session.get_session()
with open(os.path.join(HERE, "errors.json"), encoding="utf-8") as source:
    ERRORS = json.load(source)

# What is found and stays, by service, operation and the beginning of what is said, each with the reason.
ALLOWED = {
    "ec2 DescribeInstanceStatus answered: DescribeInstanceStatus.InstanceStatuses[].Events[].Code: 'something-new'": "contract/ec2 asks what becomes of an event that no model has yet",
    "ec2 DescribeInstanceTypes asked: DescribeInstanceTypes.InstanceTypes[]: 'm5.tiny'": "the emulator is asked for a type that there is not",
    "ec2 DescribeVpcEndpoints answered: DescribeVpcEndpoints.VpcEndpoints[].State: 'available'": "EC2 writes its states small, as its own examples show, and not as the model",
}

# Codes that tests make up to ask what becomes of an error that nobody has heard of.
MADE_UP = {"Broken", "Other"}

# What tests ask to hear a refusal: the services may be told these, and refuse them.
ASKED_FOR_A_REFUSAL = {"ValidationException", "InvalidParameterValue", "InvalidParameterException", "InvalidAction", "UnknownOperationException"}


class Unreadable(Exception):
    """The request is none of the operation."""


def nested(form):
    """The parameters of a query as a tree: Filter.1.Name is {"Filter": {"1": {"Name": …}}}."""
    tree = {}
    for name, value in form:
        at = tree
        *path, last = name.split(".")
        for part in path:
            at = at.setdefault(part, {})
            if not isinstance(at, dict):
                raise Unreadable(f"{name} is below a value")
        at[last] = value
    return tree


def numbered(tree, where):
    want = [str(i + 1) for i in range(len(tree))]
    if sorted(tree, key=lambda n: int(n) if n.isdigit() else -1) != want:
        raise Unreadable(f"{where} counts {sorted(tree)}")
    return [tree[n] for n in want]


def scalar(shape, text, where):
    """What a text stands for, in a query, a path or a header."""
    kind = shape.type_name
    if kind in ("integer", "long"):
        return int(text)
    if kind in ("float", "double"):
        return float(text)
    if kind == "boolean":
        if text not in ("true", "false"):
            raise Unreadable(f"{where} is {text!r}, no boolean")
        return text == "true"
    if kind == "timestamp":
        return datetime.fromisoformat(text.replace("Z", "+00:00"))
    if kind == "blob":
        return base64.b64decode(text, validate=True)
    return text


def from_query(shape, tree, where, ec2):
    """The parameters of a tree that the protocols query and ec2 write."""
    if shape.type_name == "structure":
        out, rest = {}, dict(tree)
        for name, member in shape.members.items():
            key = member.serialization.get("queryName") if ec2 else None
            if not key:
                key = member.serialization.get("name", name)
                key = key[0].upper() + key[1:] if ec2 else key
            if key in rest:
                out[name] = from_query(member, rest.pop(key), f"{where}.{name}", ec2)
        for key in rest:
            raise Unreadable(f"{where} has {key}, which the model does not know")
        return out
    if shape.type_name == "list":
        if not ec2 and not shape.serialization.get("flattened"):
            tree = tree[shape.member.serialization.get("name", "member")]
        return [from_query(shape.member, v, f"{where}[{i}]", ec2) for i, v in enumerate(numbered(tree, where))]
    if shape.type_name == "map":
        entries = numbered(tree["entry"], where)
        return {e["key"]: from_query(shape.value, e["value"], where, ec2) for e in entries}
    return scalar(shape, tree, where)


def from_json(shape, value, where):
    """The parameters of a JSON body under the names of the model."""
    if shape.type_name == "structure":
        if not isinstance(value, dict):
            raise Unreadable(f"{where} is {type(value).__name__}, no object")
        out, rest = {}, dict(value)
        for name, member in shape.members.items():
            key = member.serialization.get("name", name)
            if rest.get(key) is not None:
                out[name] = from_json(member, rest[key], f"{where}.{name}")
            rest.pop(key, None)
        for key in rest:
            raise Unreadable(f"{where} has {key}, which the model does not know")
        return out
    if shape.type_name == "list":
        return [from_json(shape.member, v, f"{where}[{i}]") for i, v in enumerate(value)]
    if shape.type_name == "map":
        return {k: from_json(shape.value, v, f"{where}.{k}") for k, v in value.items()}
    if shape.type_name == "blob" and isinstance(value, str):
        return base64.b64decode(value, validate=True)
    if shape.type_name == "timestamp":
        return value if isinstance(value, datetime) else datetime.fromtimestamp(value) if isinstance(value, (int, float)) else datetime.fromisoformat(value.replace("Z", "+00:00"))
    return value


def from_rest(operation, exchange, body):
    """The parameters of path, query, headers and body."""
    shape, url = operation.input_shape, urlsplit(exchange["URI"])
    if shape is None:
        return {}
    template, _, fixed = operation.http["requestUri"].partition("?")
    if exchange["Service"] == "s3":  # the emulator is called by path
        template = "/{Bucket}" + template.removeprefix("/{Bucket}")
    pattern = re.sub(r"\\{(\w+)(\\\+)?\\}", lambda m: f"(?P<{m[1]}>.+)" if m[2] else f"(?P<{m[1]}>[^/]+)", re.escape(template))
    path = re.fullmatch(pattern + "/?", url.path)
    if not path:
        raise Unreadable(f"{url.path} is no {template}")
    query, given = {}, dict(parse_qsl(fixed, keep_blank_values=True))
    for name, value in parse_qsl(url.query, keep_blank_values=True):
        if name != "x-id" and name not in given:
            query.setdefault(name, []).append(value)
    out, headers, members = {}, {k.lower(): v[0] for k, v in exchange["Header"].items()}, set()
    for name, member in shape.members.items():
        at, key = member.serialization.get("location"), member.serialization.get("name", name)
        if at == "uri":
            if key in path.groupdict():
                out[name] = scalar(member, unquote(path[key]), name)
        elif at == "querystring" and key in query:
            values = query.pop(key)
            out[name] = [scalar(member.member, v, name) for v in values] if member.type_name == "list" else scalar(member, values[0], name)
        elif at == "header" and key.lower() in headers and member.type_name != "timestamp":
            out[name] = scalar(member, headers[key.lower()], name)
        elif at is None:
            members.add(name)
    for name in query:
        raise Unreadable(f"the query has {name}, which the model does not know")
    payload = shape.serialization.get("payload")
    if payload and body:
        member = shape.members[payload]
        out[payload] = body if member.type_name in ("blob", "string") else from_json(member, json.loads(body), payload)
    elif body and members:
        known = json.loads(body)
        of = {shape.members[n].serialization.get("name", n): n for n in members}
        for key, value in known.items():
            if key not in of:
                raise Unreadable(f"the body has {key}, which the model does not know")
            if value is not None:
                out[of[key]] = from_json(shape.members[of[key]], value, of[key])
    elif body and body != b"{}":
        raise Unreadable(f"a body of {len(body)} bytes where none belongs")
    return out


def parameters(model, operation, exchange, body):
    protocol = model.protocol
    shape = operation.input_shape
    if protocol in ("ec2", "query"):
        form = [(k, v) for k, v in parse_qsl(body.decode(), keep_blank_values=True) if k not in ("Action", "Version")]
        return from_query(shape, nested(form), operation.name, protocol == "ec2") if shape else {}
    if protocol == "json":
        return from_json(shape, json.loads(body or b"{}"), operation.name) if shape else {}
    if protocol == "smithy-rpc-v2-cbor":
        return from_json(shape, botocore.parsers.create_parser(protocol).parse_data_item(io.BufferedReader(io.BytesIO(body))), operation.name)
    return from_rest(operation, exchange, body)


def measure(shape, value):
    return len(value.encode()) if shape.type_name == "blob" and isinstance(value, str) else len(value)


def judge(shape, value, where, answer=False):
    """What of a value the model does not allow. Of answers the model promises no lengths that were not asked for."""
    kind, found = shape.type_name, []
    if kind == "structure":
        if not isinstance(value, dict):
            return [f"{where}: {type(value).__name__}, want a structure"]
        for name in shape.required_members:
            if name not in value and not answer:
                found.append(f"{where}.{name}: missing")
        for name, v in value.items():
            if name not in shape.members:
                if name != "ResponseMetadata":
                    found.append(f"{where}.{name}: not in the model")
            elif v is not None:
                found += judge(shape.members[name], v, f"{where}.{name}", answer)
    elif kind == "list":
        if not isinstance(value, list):
            return [f"{where}: {type(value).__name__}, want a list"]
        for v in value:
            found += judge(shape.member, v, f"{where}[]", answer)
    elif kind == "map":
        for k, v in value.items():
            found += judge(shape.key, k, f"{where} key", answer) + judge(shape.value, v, f"{where}{{}}", answer)
    else:
        want = {"string": str, "integer": int, "long": int, "boolean": bool, "float": (int, float), "double": (int, float), "blob": (bytes, str), "timestamp": datetime}.get(kind)
        if want and (not isinstance(value, want) or kind in ("integer", "long") and isinstance(value, bool)):
            return [f"{where}: {type(value).__name__} {value!r}, want {kind}"]
    return found + limits(shape, value, where, answer)


def limits(shape, value, where, answer):
    found, meta = [], shape.metadata
    if shape.type_name == "string" and getattr(shape, "enum", None) and value not in shape.enum:
        found.append(f"{where}: {value!r} is none of the model's values")
    if answer:
        return found
    if shape.type_name in ("integer", "long", "float", "double"):
        size, what = value, "is"
    elif shape.type_name in ("string", "list", "map", "blob"):
        size, what = measure(shape, value), "has"
    else:
        return found
    if "max" in meta and size > meta["max"]:
        found.append(f"{where}: {what} {size}, at most {meta['max']}")
    if "min" in meta and size < meta["min"]:
        found.append(f"{where}: {what} {size}, at least {meta['min']}")
    if shape.type_name == "string" and "pattern" in meta:
        try:
            if not re.fullmatch(meta["pattern"], value):
                found.append(f"{where}: {value!r} is not as {meta['pattern']}")
        except re.error:
            pass  # one that Java knows and Python does not
    return found


def unknown_elements(shape, node, where):
    """Elements of an XML answer that the model does not know, which botocore passes over."""
    found = []
    if shape.type_name == "structure":
        known = {m.serialization.get("name", n): m for n, m in shape.members.items() if m.serialization.get("location") is None}
        for m in list(known.values()):
            if m.type_name == "list" and m.serialization.get("flattened"):
                known[m.member.serialization.get("name", m.serialization.get("name"))] = m
        for child in node:
            tag = child.tag.rsplit("}", 1)[-1]
            if tag in ("requestId", "ResponseMetadata"):
                continue
            if tag not in known:
                found.append(f"{where}: the element {tag} is not in the model")
            else:
                m = known[tag]
                flat = m.type_name == "list" and m.serialization.get("flattened")
                found += unknown_elements(m.member if flat else m, child, f"{where}.{tag}")
    elif shape.type_name == "list":
        for child in node:
            found += unknown_elements(shape.member, child, where + "[]")
    return found


def unknown_keys(shape, value, where):
    found = []
    if shape.type_name == "structure" and isinstance(value, dict):
        known = {m.serialization.get("name", n): m for n, m in shape.members.items()}
        for key, v in value.items():
            found += unknown_keys(known[key], v, f"{where}.{key}") if key in known else [f"{where}: the key {key} is not in the model"]
    elif shape.type_name == "list" and isinstance(value, list):
        for v in value:
            found += unknown_keys(shape.member, v, where + "[]")
    return found


def judge_answer(model, operation, exchange, answer):
    parser = botocore.parsers.create_parser(model.protocol)
    shape, status = operation.output_shape, exchange["Status"]
    if status == 304:  # what was asked for with a condition has not changed, and there is nothing to say
        return [f"a body of {len(answer)} bytes with 304"] if answer else []
    if status < 300 and shape is not None and "payload" in shape.serialization:  # a body that is handed through
        return []
    headers = {k.lower(): v[0] for k, v in (exchange["AnswerHeader"] or {}).items()}
    parsed = parser.parse({"status_code": status, "headers": headers, "body": answer}, shape)
    if status >= 300:
        code = parsed.get("Error", {}).get("Code", "")
        known = {s.error_code for s in operation.error_shapes} | {s.name for s in operation.error_shapes}
        service = exchange["Service"]
        if code in known or code in MADE_UP or code in ERRORS["*"] or code in ERRORS.get(service, {}):
            return []
        return [f"error {code} ({status}): neither of the model nor of errors.json"]
    if shape is None:
        return []
    parsed.pop("ResponseMetadata", None)
    found = judge(shape, parsed, operation.name, answer=True)
    if model.protocol in ("ec2", "query") and answer:
        root = ElementTree.fromstring(answer)
        if model.protocol == "query":
            root = root[0]
        found += unknown_elements(shape, root, operation.name)
    if model.protocol in ("json", "rest-json") and answer:
        found += unknown_keys(shape, json.loads(answer), operation.name)
    return found


def judge_exchange(exchange):
    body, answer = base64.b64decode(exchange["Body"] or ""), base64.b64decode(exchange["Answer"] or "")
    model = SESSION.get_service_model(NAMES.get(exchange["Service"], exchange["Service"]))
    if exchange["Action"] not in model.operation_names:
        return [f"{exchange['Service']} has no operation {exchange['Action']}"]
    operation = model.operation_model(exchange["Action"])
    found = []
    if exchange["Code"] not in ASKED_FOR_A_REFUSAL:
        try:
            asked = parameters(model, operation, exchange, body)
            found += ["asked: " + f for f in judge(operation.input_shape, asked, operation.name)] if operation.input_shape else []
        except (Unreadable, ValueError, KeyError) as problem:
            found.append(f"asked: {problem!r}")
    if exchange["Status"]:
        try:
            found += ["answered: " + f for f in judge_answer(model, operation, exchange, answer)]
        except (botocore.parsers.ResponseParserError, ElementTree.ParseError, ValueError, KeyError) as problem:
            found.append(f"answered: {problem!r}")
    return [f"{exchange['Service']} {exchange['Action']} {f}" for f in found]


# Exchanges that must be found wrong: service, operation, body, answer.
WRONG = {
    "51 launch template configurations": ("ec2", "CreateFleet", "TargetCapacitySpecification.TotalTargetCapacity=1" + "".join(f"&LaunchTemplateConfigs.{i}.LaunchTemplateSpecification.Version=1" for i in range(1, 52)), ""),
    "a strategy that there is not": ("ec2", "CreateFleet", "TargetCapacitySpecification.TotalTargetCapacity=1&LaunchTemplateConfigs.1.LaunchTemplateSpecification.Version=1&OnDemandOptions.AllocationStrategy=cheapest", ""),
    "a parameter that there is not": ("ec2", "TerminateInstances", "InstanceId.1=i-1&Force=true&Gently=true", ""),
    "a list that begins at 0": ("ec2", "TerminateInstances", "InstanceId.0=i-1", ""),
    "a required parameter": ("ec2", "CreateLaunchTemplate", "LaunchTemplateName=abc", ""),
    "a name that is too long": ("iam", "GetInstanceProfile", "InstanceProfileName=" + 129 * "a", ""),
    "a path that is none": ("iam", "CreateInstanceProfile", "InstanceProfileName=a&Path=no", ""),
    "a member of another protocol": ("ssm", "GetParameter", '{"name": "a"}', ""),
    "an element that there is not": ("ec2", "TerminateInstances", "InstanceId.1=i-1", "<R><instancesSet><item><id>i-1</id></item></instancesSet></R>"),
    "a state that there is not": ("ec2", "TerminateInstances", "InstanceId.1=i-1", "<R><instancesSet><item><currentState><name>gone</name></currentState></item></instancesSet></R>"),
    "a key that there is not": ("ssm", "GetParameter", '{"Name": "a"}', '{"Parameter": {"Nom": "a"}}'),
    "an error that there is not": ("ec2", "TerminateInstances", "InstanceId.1=i-1", "<Response><Errors><Error><Code>InvalidInstanceId</Code></Error></Errors></Response>"),
}


def prove():
    """A judge that finds nothing wrong with these has no say."""
    for what, (service, action, body, answer) in WRONG.items():
        wrong = {"Service": service, "Action": action, "Body": base64.b64encode(body.encode()), "Answer": base64.b64encode(answer.encode()), "AnswerHeader": {}, "Code": "",
                 "Status": 400 if "<Errors>" in answer else 200 if answer else 0, "URI": "/", "Header": {}}
        if len(judge_exchange(wrong)) != 1:
            raise SystemExit(f"{what}: found {judge_exchange(wrong)}, want one fault")


def main():
    prove()
    faults, kinds, total = Counter(), set(), 0
    # The emulator's own tests ask it what the product never asks.
    for name in sorted(n for n in os.listdir(sys.argv[1]) if not n.startswith("awsemulator.")):
        with open(os.path.join(sys.argv[1], name), encoding="utf-8") as lines:
            for line in lines:
                exchange = json.loads(line)
                if exchange["Action"] == "" or exchange["Service"] == "s3" and exchange["Action"] == "PostPolicy":
                    continue
                total += 1
                kinds.add((exchange["Service"], exchange["Action"]))
                for fault in judge_exchange(exchange):
                    if not any(fault.startswith(allowed) for allowed in ALLOWED):
                        faults[fault] += 1
    for fault, n in sorted(faults.items()):
        print(f"{n:5} {fault[:600]}")
    print(f"{total} exchanges of {len(kinds)} operations, {len(faults)} faults")
    if faults or total == 0:
        sys.exit(1)


main()
