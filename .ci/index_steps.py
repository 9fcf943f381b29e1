"""Print, a file for each, the updates that bring a deployed stack's tables to the indexes of a new template.

DynamoDB makes or removes one index of a table at a time, and CloudFormation refuses an update that asks for two. So the
deployed template is deployed again with one index more (or fewer) each time, which changes nothing else: the functions in
use go on. Then the new template has nothing left to do to the tables.

Runs with the interpreter of .venv-sam. Arguments: --stack NAME, or --deployed FILE, the template that is in use as
CloudFormation has processed it; the new template, .aws-sam/build/template.yaml if left out; --to FOLDER (build/steps).
"""

import argparse
import copy
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

TABLE = "AWS::DynamoDB::Table"
Indexes = dict[str, dict[str, Any]]


def steps(deployed: dict[str, Any], new: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The deployed template with one change more of each table's indexes, until they are those of the new one.

    An index that is another now is removed and then made. An attribute is declared as long as a key uses it. Raises
    ValueError where a table has another key now: CloudFormation would make an empty one in its place.
    """
    current = copy.deepcopy(deployed)
    for name, table in _tables(current, new):
        if _key(table) != _key(new["Resources"][name]):
            raise ValueError(f"{name} has another key in the new template: no update carries its items over")
    while True:
        changed = [_changed(table, new["Resources"][name]) for name, table in _tables(current, new)]
        if not any(changed):
            return
        yield copy.deepcopy(current)


def _tables(current: dict[str, Any], new: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    both = current["Resources"].keys() & new["Resources"].keys()
    return [
        (name, current["Resources"][name])
        for name in sorted(both)
        if current["Resources"][name]["Type"] == TABLE
    ]


def _key(table: dict[str, Any]) -> list[tuple[str, str, str]]:
    properties = table["Properties"]
    types = {each["AttributeName"]: each["AttributeType"] for each in properties["AttributeDefinitions"]}
    return [
        (key["AttributeName"], key["KeyType"], types[key["AttributeName"]]) for key in properties["KeySchema"]
    ]


def _changed(table: dict[str, Any], wanted: dict[str, Any]) -> bool:
    """Whether one index was removed from the table or, when none has to be, made."""
    properties, target = table["Properties"], wanted["Properties"]
    here, there = _indexes(properties), _indexes(target)
    too_many = [name for name, index in here.items() if there.get(name) != index]
    missing = [name for name in there if name not in here]
    if too_many:
        del here[too_many[0]]
    elif missing:
        here[missing[0]] = there[missing[0]]
    else:
        return False
    properties["GlobalSecondaryIndexes"] = list(here.values())
    if not here:
        del properties["GlobalSecondaryIndexes"]
    types = {
        each["AttributeName"]: each
        for each in [*target["AttributeDefinitions"], *properties["AttributeDefinitions"]]
    }
    schemas = [properties["KeySchema"], *(index["KeySchema"] for index in here.values())]
    used = {key["AttributeName"] for schema in schemas for key in schema}
    properties["AttributeDefinitions"] = [types[name] for name in types if name in used]
    return True


def _indexes(properties: dict[str, Any]) -> Indexes:
    return {index["IndexName"]: index for index in properties.get("GlobalSecondaryIndexes", [])}


def main() -> int:
    import boto3
    from samcli.yamlhelper import yaml_parse

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--stack")
    where.add_argument("--deployed", type=Path)
    parser.add_argument("new", nargs="?", type=Path, default=Path(".aws-sam/build/template.yaml"))
    parser.add_argument("--to", type=Path, default=Path("build/steps"))
    given = parser.parse_args()
    if given.stack:
        asked = {"StackName": given.stack, "TemplateStage": "Processed"}
        deployed = boto3.client("cloudformation").get_template(**asked)["TemplateBody"]
        deployed = deployed if isinstance(deployed, dict) else yaml_parse(deployed)
    else:
        deployed = yaml_parse(given.deployed.read_text(encoding="utf-8"))
    given.to.mkdir(parents=True, exist_ok=True)
    for old in given.to.glob("step-*.json"):
        old.unlink()
    number = 0
    for number, template in enumerate(steps(deployed, yaml_parse(given.new.read_text(encoding="utf-8"))), 1):
        path = given.to / f"step-{number}.json"
        path.write_text(json.dumps(template, indent=1), encoding="utf-8")
        print(path)
    if not number:
        print("No index has to change: deploy the new template as it is.", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
