"""Reading a SAM template: YAML with CloudFormation's short tags, parameters, conditions and intrinsic functions.

A value is resolved once its resources exist, because a stream's ARN or a key's id is known only then.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

NO_VALUE = object()
"""What `AWS::NoValue` resolves to: the property is left out."""
_PLACEHOLDER = re.compile(r"\$\{([^}]+)\}")
_WHOLE = re.compile("-?[0-9]{1,15}", re.ASCII)
_LIST = "CommaDelimitedList"
_SHOWN = 60
"""Characters of a refused value that a message shows."""


class TemplateError(Exception):
    """The template says something local mode cannot do; the message says where and what."""


class _Loader(yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader):  # type: ignore[misc]  # one or the other
    """SafeLoader, in C where there is one, that knows `!Ref`, `!GetAtt`, `!Sub` and the other short forms."""


def _short_form(loader: Any, suffix: str, node: yaml.Node) -> Any:
    value: Any
    if isinstance(node, yaml.ScalarNode):
        value = loader.construct_scalar(node)
    elif isinstance(node, yaml.SequenceNode):
        value = loader.construct_sequence(node, deep=True)
    else:
        assert isinstance(node, yaml.MappingNode)
        value = loader.construct_mapping(node, deep=True)
    if suffix == "GetAtt" and isinstance(value, str):
        value = value.split(".", 1)
    return {suffix if suffix == "Ref" else f"Fn::{suffix}": value}


_Loader.add_multi_constructor("!", _short_form)


class Template:
    """A parsed template. `physical`: logical id → attribute → value, where `Ref` is an attribute like the others."""

    def __init__(
        self, path: Path, pseudo: Mapping[str, str], parameters: Mapping[str, str] | None = None
    ) -> None:
        try:
            document = yaml.load(path.read_text(encoding="utf-8"), Loader=_Loader)  # noqa: S506 - a SafeLoader
        except (OSError, yaml.YAMLError) as error:
            raise TemplateError(f"{path}: {error}") from error
        if not isinstance(document, dict) or not isinstance(document.get("Resources"), dict):
            raise TemplateError(f"{path}: no Resources")
        self.folder = path.resolve().parent
        self.physical: dict[str, dict[str, str]] = {}
        self._pseudo = dict(pseudo)
        self._globals: dict[str, Any] = document.get("Globals") or {}
        self._conditions: dict[str, Any] = document.get("Conditions") or {}
        declared = document.get("Parameters") or {}
        self._lists = {name for name, spec in declared.items() if spec.get("Type") == _LIST}
        self._parameters = {
            name: str(spec["Default"]) for name, spec in declared.items() if "Default" in spec
        }
        for name, value in (parameters or {}).items():
            if name not in declared:
                raise TemplateError(_no_parameter(name, list(declared)))
            _check_parameter(name, value, declared[name])
            self._parameters[name] = value
        self.resources: dict[str, dict[str, Any]] = {
            name: resource
            for name, resource in document["Resources"].items()
            if "Condition" not in resource or self._holds(resource["Condition"])
        }
        for rule in (document.get("Rules") or {}).values():
            self._keep_to(rule)

    def _keep_to(self, rule: Mapping[str, Any]) -> None:
        """Refuse what CloudFormation would refuse to deploy."""
        if self.resolve(rule.get("RuleCondition", True)):
            for assertion in rule["Assertions"]:
                if not self.resolve(assertion["Assert"]):
                    raise TemplateError(
                        assertion.get("AssertDescription", "a rule of the template is broken")
                    )

    def of_type(self, *types: str) -> dict[str, dict[str, Any]]:
        """Logical id → unresolved properties, with SAM's Globals merged in."""
        return {
            name: self._with_globals(resource)
            for name, resource in self.resources.items()
            if resource["Type"] in types
        }

    def _with_globals(self, resource: dict[str, Any]) -> dict[str, Any]:
        section = resource["Type"].removeprefix("AWS::Serverless::")
        merged: dict[str, Any] = _merged(self._globals.get(section, {}), resource.get("Properties") or {})
        return merged

    def resolve(self, value: Any) -> Any:
        """The value with every intrinsic function carried out."""
        if isinstance(value, dict):
            if len(value) == 1:
                ((name, argument),) = value.items()
                if name == "Ref" or name.startswith("Fn::"):
                    return self._call(name, argument)
            resolved = {key: self.resolve(part) for key, part in value.items()}
            return {key: part for key, part in resolved.items() if part is not NO_VALUE}
        if isinstance(value, list):
            return [part for part in map(self.resolve, value) if part is not NO_VALUE]
        return value

    def _call(self, name: str, argument: Any) -> Any:
        match name:
            case "Ref":
                return self._ref(argument)
            case "Fn::GetAtt":
                return self._attribute(argument[0], self.resolve(argument[1]))
            case "Fn::Sub":
                return self._substitute(argument)
            case "Fn::If":
                return self.resolve(argument[1] if self._holds(argument[0]) else argument[2])
            case "Fn::Join":
                between, parts = self.resolve(argument)
                return str(between).join(map(str, parts))
        return self._judged(name, self.resolve(argument))

    def _judged(self, name: str, argument: Any) -> bool:
        """What a function of conditions and rules says of what is resolved."""
        match name:
            case "Fn::Equals":
                return str(argument[0]) == str(argument[1])
            case "Fn::EachMemberEquals":
                return all(member == argument[1] for member in argument[0])
            case "Fn::Not":
                return not argument[0]
            case "Fn::And":
                return all(argument)
            case "Fn::Or":
                return any(argument)
        raise TemplateError(f"local mode does not know {name}")

    def _holds(self, condition: str) -> bool:
        return bool(self.resolve(self._conditions[condition]))

    def _ref(self, name: str) -> Any:
        if name == "AWS::NoValue":
            return NO_VALUE
        if name in self._pseudo:
            return self._pseudo[name]
        if name in self._parameters:
            value = self._parameters[name]
            return _members(value) if name in self._lists else value
        return self._attribute(name, "Ref")

    def _attribute(self, resource: str, attribute: str) -> str:
        found = self.physical.get(resource, {}).get(attribute)
        if found is not None:
            return found
        if resource not in self.resources:
            raise TemplateError(f"no resource or parameter is called {resource}")
        # Roles, policies, log groups: nothing local asks for them, a name is enough.
        return (
            f"{self._pseudo['AWS::StackName']}-{resource}"
            if attribute == "Ref"
            else f"{resource}.{attribute}"
        )

    def _substitute(self, text: str) -> str:
        def value(match: re.Match[str]) -> str:
            name = match[1].strip()
            return str(self._attribute(*name.split(".", 1)) if "." in name else self._ref(name))

        return _PLACEHOLDER.sub(value, text)


def _members(value: str) -> list[str]:
    return [member.strip() for member in value.split(",")]


def _check_parameter(name: str, value: str, declared: Mapping[str, Any]) -> None:
    """Raises TemplateError for a value that CloudFormation would refuse, or a number that is not whole."""
    allowed = [str(each) for each in declared.get("AllowedValues", [value])]
    pattern = declared.get("AllowedPattern", ".*")
    number = declared.get("Type") == "Number"
    members = _members(value) if declared.get("Type") == _LIST else [value]
    if number and _WHOLE.fullmatch(value) is None:
        wrong = "must be a whole number"
    elif number and int(value) < declared.get("MinValue", int(value)):
        wrong = f"must be {declared['MinValue']} or more"
    elif number and int(value) > declared.get("MaxValue", int(value)):
        wrong = f"must be {declared['MaxValue']} or less"
    elif value not in allowed:
        wrong = f"must be one of {', '.join(each or '(empty)' for each in allowed)}"
    elif len(value) > declared.get("MaxLength", len(value)):
        wrong = f"must have {declared['MaxLength']} characters or fewer"
    elif not all(re.fullmatch(pattern, member, re.DOTALL) for member in members):
        wrong = declared.get("ConstraintDescription", f"must match {pattern}")
    else:
        return
    shown = value if len(value) <= _SHOWN else value[:_SHOWN] + "…"
    raise TemplateError(f"the parameter {name} {wrong}, not {shown!r}")


def _no_parameter(name: str, declared: list[str]) -> str:
    meant = next((each for each in declared if each.lower() == name.lower()), None)
    said = f"the template has no parameter {name!r}"
    return f"{said}: is it {meant!r}?" if meant else f"{said}; it has {', '.join(declared) or 'none'}"


def _merged(common: Any, own: Any) -> Any:
    """SAM's rule for Globals: maps merge, lists are appended, anything else is overridden."""
    if (
        isinstance(common, dict)
        and isinstance(own, dict)
        and not _is_intrinsic(common)
        and not _is_intrinsic(own)
    ):
        return {
            **common,
            **{key: _merged(common[key], value) if key in common else value for key, value in own.items()},
        }
    if isinstance(common, list) and isinstance(own, list):
        return common + own
    return own


def _is_intrinsic(value: dict[str, Any]) -> bool:
    return len(value) == 1 and next(iter(value)).startswith(("Ref", "Fn::"))
