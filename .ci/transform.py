"""Print template.yaml as CloudFormation has it after its two transforms, with the code of functions and layers at an address.

Runs with the interpreter of .venv-sam, where the translator is. Arguments: the template, then the address, s3://bucket/key.
"""

import json
import sys
from pathlib import Path
from typing import Any

from samcli.yamlhelper import yaml_parse
from samtranslator.parser.parser import Parser
from samtranslator.translator.translator import Translator

CODE = {
    "AWS::Serverless::Function": "CodeUri",
    "AWS::Serverless::LayerVersion": "ContentUri",
}


def main() -> int:
    template: dict[str, Any] = yaml_parse(Path(sys.argv[1]).read_text(encoding="utf-8"))
    for resource in template["Resources"].values():
        if resource["Type"] in CODE:
            resource["Properties"][CODE[resource["Type"]]] = sys.argv[2]
            resource.pop("Metadata", None)
    translated = Translator({}, Parser()).translate(template, {})
    for resource in translated[
        "Resources"
    ].values():  # what the language extensions make of a reference to a parameter
        policy = resource.get("DeletionPolicy")
        if isinstance(policy, dict):
            resource["DeletionPolicy"] = template["Parameters"][policy["Ref"]]["Default"]
    json.dump(translated, sys.stdout, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
