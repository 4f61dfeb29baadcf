"""Predicates of fetches: the text with its arguments, and the sort order."""

import math
import re
import uuid
from datetime import datetime
from decimal import Decimal

from ._objects import ManagedObject
from ._values import URI, Date, PolicyError, Transformable

# Quoted parts are text; elsewhere a % begins a placeholder for an argument.
_PLACES = re.compile(r"""('(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*")|%(@|K|l{0,2}[dDiuUfF])|%(.?)""", re.DOTALL)
_PATH = re.compile(r"[^\W\d]\w*(\.@?[^\W\d]\w*)*")


def predicate(text, arguments, objects):
    """Returns the text with every argument inserted: %@ is a value, %K a key path, %d and %f a number.

    An object becomes a variable in the text; `objects` has its id under the variable's name.
    """
    if not arguments:
        return text
    rest = list(arguments)

    def place(match):
        quoted, kind, other = match.groups()
        if quoted is not None:
            return quoted
        if kind is None:
            raise PolicyError(f"%{other} has no meaning in a predicate: %@ stands for a value, %K for a key path")
        if not rest:
            raise PolicyError("as many arguments as %@ are needed in the predicate, and there are fewer")
        value = rest.pop(0)
        if kind == "K":
            return key_path(value)
        if kind != "@" and not isinstance(value, (int, float, Decimal)):
            raise PolicyError(f"%{kind} in a predicate takes a number, and the argument is a {type(value).__name__}")
        return literal(value, objects)

    result = _PLACES.sub(place, text)
    if rest:
        raise PolicyError("as many arguments as %@ are needed in the predicate, and there are more")
    return result


def key_path(path):
    """Returns a key path for a predicate, with every key marked as a name, so that none is read as a keyword."""
    if not isinstance(path, str) or not _PATH.fullmatch(path):
        raise PolicyError("%K takes a key path, as name or author.name")
    return ".".join(key if key.startswith("@") else "#" + key for key in path.split("."))


def order(sort):
    """Returns the sort order of a fetch, from `"name"`, `"-date"`, or a list of these."""
    if isinstance(sort, str):
        sort = [sort]
    result = []
    for item in sort:
        descends = isinstance(item, str) and item.startswith("-")
        path = item[1:] if descends else item
        if not isinstance(path, str) or not _PATH.fullmatch(path):
            raise PolicyError('an order is a list of key paths, "name" ascending or "-name" descending')
        result.append([path, not descends])
    return result


def literal(value, objects):
    """Returns a value in the syntax of predicates."""
    if value is None:
        return "NULL"
    if isinstance(value, ManagedObject):
        wire = value.object_id.wire()
        name = next((name for name, known in objects.items() if known == wire), None)
        if name is None:
            name = f"object{len(objects)}"
            objects[name] = wire
        return "$" + name
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int):
        return "(-9223372036854775807 - 1)" if value == -(2**63) else f"({value})" if value < 0 else str(value)
    if isinstance(value, float) and math.isfinite(value):
        return f"({float(value)!r})"
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, Decimal) and value.is_finite():
        return f"CAST('{value:f}', 'NSDecimalNumber')"
    if isinstance(value, (Date, datetime)):
        seconds = value.seconds if isinstance(value, Date) else Date(value).seconds
        return f"CAST({seconds!r}, 'NSDate')"
    if isinstance(value, uuid.UUID):
        return f"CAST('{str(value).upper()}', 'NSUUID')"
    if isinstance(value, (bytes, bytearray, memoryview)):
        return f"CAST('{bytes(value).hex().upper()}', 'NSData')"
    if isinstance(value, (list, tuple, set, frozenset)):
        return "{" + ", ".join(literal(one, objects) for one in value) + "}"
    if isinstance(value, (URI, Transformable)):
        raise PolicyError(f"a {type(value).__name__} has no form in a predicate: compare it in the policy")
    raise PolicyError(f"a value of type {type(value).__name__} has no form in a predicate's text")


def _quoted(text):
    for character, escape in (("\\", "\\\\"), ("'", "\\'"), ("\n", "\\n"), ("\r", "\\r"), ("\t", "\\t")):
        text = text.replace(character, escape)
    return f"'{text}'"
