"""Reads files with Python's YAML and JSON readers and prints one line of JSON per file and reader.

read.py FILE…: PyYAML and ruamel for all files, jq for JSON. The documents of yamllint are the problems that it reports.
"""
import json
import sys

import jq
import yaml
from ruamel.yaml import YAML
from yamllint import linter
from yamllint.config import YamlLintConfig

RELAXED = YamlLintConfig("extends: relaxed")


def plain(value):
    """Makes keys strings and other types text, which JSON requires."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, float) and value != value or value in (float("inf"), float("-inf")):
        return str(value)
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return str(value)


def lint(text):
    problems = linter.run(text, RELAXED)
    return sorted(f"{problem.rule}: {problem.desc}" for problem in problems if problem.level == "error")


READERS = {
    "pyyaml": lambda text: list(yaml.safe_load_all(text)),
    "ruamel": lambda text: list(YAML(typ="safe", pure=True).load_all(text)),
    "ruamel-round-trip": lambda text: list(YAML().load_all(text)),
    "yamllint": lint,
}


def main(files):
    for file in files:
        with open(file, encoding="utf-8", newline="") as source:
            text = source.read()
        readers = dict(READERS)
        if file.endswith(".json"):
            readers["jq"] = lambda text: jq.compile(".").input_text(text).all()
        for name, read in readers.items():
            result = {"file": file, "reader": name, "documents": []}
            try:
                result["documents"] = plain(read(text))
            except Exception as error:
                result["error"] = f"{type(error).__name__}: {error}"
            print(json.dumps(result))


main(sys.argv[1:])
