"""JSON as CONFIG.json may have it: with // and /* */ comments and trailing commas."""
import json
import pathlib
import re


def without_comments(text):
    """Neither comments nor trailing commas, none of which count in a string."""
    string = r'"(?:\\.|[^"\\])*"'
    text = re.sub(rf"({string})|//[^\n]*|/\*.*?\*/", lambda found: found.group(1) or " ", text, flags=re.DOTALL)
    return re.sub(rf"({string})|,(?=\s*[}}\]])", lambda found: found.group(1) or "", text)


def read(path):
    """@raises OSError, ValueError"""
    return json.loads(without_comments(pathlib.Path(path).read_text(encoding="utf-8")))
