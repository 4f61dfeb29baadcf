"""Tables of the hop, which all its policies share."""

from datetime import datetime
from decimal import Decimal

from ._objects import ManagedObject, wires
from ._values import Date, ObjectID, PolicyError, attribute_value


class PolicyTable:
    """A table that lives as long as the hop: `table[key]`, `table[key] = value`. All policies of the hop share it.

    Keys and values are values of attributes; a value may also be an object or a list.
    """

    def __init__(self, name, manager):
        self.name = name
        self._manager = manager
        self._known = {}
        self._unsent = {}

    def __getitem__(self, key):
        return self.get(key)

    def get(self, key, default=None):
        """Returns the value or object under a key; `default` if there is none."""
        key = _sendable(key)
        place = _place(key)
        if place in self._known:
            value = self._known[place]
        else:
            answer = self._manager._ask({"request": "lookup", "table": self.name, "key": key})
            value = self._known[place] = answer["value"]
        return default if value is None else self._manager._resolved(value)

    def setdefault(self, key, value):
        """Returns the value under a key; if there is none, stores and returns `value`."""
        found = self.get(key)
        if found is not None:
            return found
        self[key] = value
        return self.get(key)

    def __setitem__(self, key, value):
        self._manager._require_call()
        key, value = _sendable(key), _sendable(value)
        place = _place(key)
        self._known[place] = value
        self._unsent[place] = (key, value)

    def __delitem__(self, key):
        self[key] = None

    def __contains__(self, key):
        return self.get(key) is not None

    def __iter__(self):
        raise PolicyError("a table is asked key by key: it may be larger than memory")

    def _flush(self):
        for key, value in self._unsent.values():
            self._manager._send({"request": "remember", "table": self.name, "key": key, "value": _wire(value)})
        self._unsent.clear()

    def _forget(self):
        self._known.clear()
        self._unsent.clear()


def _sendable(value):
    """Returns a key or a value in the form that a table keeps: without objects, immutable, and fit to be sent."""
    if isinstance(value, ManagedObject):
        return value.object_id
    if isinstance(value, ObjectID):
        return value
    if isinstance(value, datetime):
        return Date(value)
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_sendable(one) for one in value]
    if isinstance(value, dict):
        raise PolicyError("a table keeps values, objects and lists: instead of a dictionary take another table")
    return attribute_value(value)


def _wire(value):
    if isinstance(value, list) and value and all(isinstance(one, ObjectID) for one in value):
        return {"$objects": [one.wire() for one in value]}
    return value


def _place(key):
    """Returns a key that is distinct where hopd's are: 1, 1.0 and True are one key of a dict, and three of a table."""
    if isinstance(key, list):
        return (list, tuple(_place(one) for one in key))
    if isinstance(key, Decimal):
        return (Decimal, str(key))
    return (type(key), key)
