"""Tables of the hop, which all its policies share."""

from datetime import datetime
from decimal import Decimal

from ._objects import ManagedObject, wires
from ._values import Date, ObjectID, PolicyError, attribute_value


class PolicyTable:
    """A table that lives as long as the hop and is shared by all its policies: `table[key]`, `table[key] = value`.

    Keys and values are what attributes hold; values may also be an object or a list.
    """

    def __init__(self, name, manager):
        self.name = name
        self._manager = manager
        self._known = {}
        self._unsent = {}

    def __getitem__(self, key):
        return self.get(key)

    def get(self, key, default=None):
        """The value or object under a key; `default` where there is none."""
        key = _sendable(key)
        place = _place(key)
        if place in self._known:
            value = self._known[place]
        else:
            answer = self._manager._ask({"request": "lookup", "table": self.name, "key": key})
            value = self._known[place] = answer["value"]
        return default if value is None else self._manager._resolved(value)

    def setdefault(self, key, value):
        """The value under a key; where there is none, `value`, which is kept from then on."""
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
    """A key or a value as it is kept here: no object, nothing that changes afterwards, nothing that cannot be sent."""
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
    """What tells keys apart as hopd does: 1, 1.0 and True are one key to a dict, and three to a table."""
    if isinstance(key, list):
        return (list, tuple(_place(one) for one in key))
    if isinstance(key, Decimal):
        return (Decimal, str(key))
    return (type(key), key)
