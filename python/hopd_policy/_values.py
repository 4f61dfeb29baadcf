"""Values as JSON and back: a value without a form in JSON is an object with one key that begins with "$"."""

import base64
import json
import math
import uuid
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal

_EPOCH = datetime(2001, 1, 1, tzinfo=timezone.utc)


class PolicyError(Exception):
    """An error of a policy: what it did wrong, or could not do. Operators see the text: it should contain no values of
    users."""


class Variable:
    """A method's argument that only the program can supply: the manager, the mapping or the policy."""

    __slots__ = ("name",)

    def __init__(self, name):
        self.name = name


class Date:
    """A date as Core Data stores it: seconds since 2001-01-01 UTC, which a datetime would round."""

    __slots__ = ("seconds",)

    def __init__(self, seconds):
        if isinstance(seconds, datetime):
            if seconds.tzinfo is None:
                raise PolicyError("a datetime without time zone is no moment")
            seconds = (seconds - _EPOCH) / timedelta(seconds=1)
        self.seconds = float(seconds)

    @property
    def datetime(self):
        """The date with a precision of microseconds, in UTC."""
        return _EPOCH + timedelta(seconds=self.seconds)

    def __eq__(self, other):
        return isinstance(other, Date) and self.seconds == other.seconds

    def __lt__(self, other):
        return self.seconds < other.seconds

    def __hash__(self):
        return hash(("Date", self.seconds))

    def __repr__(self):
        return f"Date({self.seconds!r})"


class _Wrapped:
    __slots__ = ("value",)

    def __init__(self, value):
        self.value = value

    def __eq__(self, other):
        return type(other) is type(self) and self.value == other.value

    def __hash__(self):
        return hash((type(self).__name__, self.value))

    def __repr__(self):
        return f"{type(self).__name__}({self.value!r})"


class URI(_Wrapped):
    """A URI; `value` is its text."""

    __slots__ = ()

    def __str__(self):
        return self.value


class Transformable(_Wrapped):
    """The archived bytes of a Transformable attribute, in `value`."""

    __slots__ = ()


class ObjectID:
    """The store ("source" or "destination"), entity and primary key of an object."""

    __slots__ = ("side", "entity", "key")

    def __init__(self, side, entity, key):
        self.side = side
        self.entity = entity
        self.key = key

    def __eq__(self, other):
        return (
            isinstance(other, ObjectID)
            and self.key == other.key
            and self.entity == other.entity
            and self.side == other.side
        )

    def __hash__(self):
        return hash((self.side, self.entity, self.key))

    def __repr__(self):
        return f"ObjectID({self.side!r}, {self.entity!r}, {self.key!r})"

    def wire(self):
        return [self.side, self.entity, self.key]


def _double(value):
    return float(value)  # a number, or "nan", "inf", "-inf"


_TAGS = {
    "$object": lambda v: ObjectID(*v),
    "$objects": lambda v: [ObjectID(*one) for one in v],
    "$date": lambda v: Date(_double(v)),
    "$double": _double,
    "$data": lambda v: base64.b64decode(v, validate=True),
    "$transformable": lambda v: Transformable(base64.b64decode(v, validate=True)),
    "$uuid": uuid.UUID,
    "$decimal": Decimal,
    "$uri": URI,
    "$variable": Variable,
}


def _untag(members):
    if len(members) == 1:
        for name in members:
            read = _TAGS.get(name)
            if read is not None:
                return read(members[name])
    return members


loads = json.JSONDecoder(object_hook=_untag).decode


def _number(value):
    if math.isfinite(value):
        return value
    return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"


def _tag(value):
    """Returns the form of a value that the JSON encoder cannot encode."""
    if isinstance(value, ObjectID):
        return {"$object": value.wire()}
    if isinstance(value, Date):
        return {"$date": _number(value.seconds)}
    if isinstance(value, (bytes, bytearray, memoryview)):
        return {"$data": base64.b64encode(value).decode("ascii")}
    if isinstance(value, uuid.UUID):
        return {"$uuid": str(value).upper()}
    if isinstance(value, Decimal):
        return {"$decimal": str(value)}
    if isinstance(value, datetime):
        return {"$date": Date(value).seconds}
    if isinstance(value, URI):
        return {"$uri": value.value}
    if isinstance(value, Transformable):
        return {"$transformable": base64.b64encode(value.value).decode("ascii")}
    raise _unfit(value)


_KINDS = (type(None), bool, int, float, str, bytes, Decimal, Date, uuid.UUID, URI, Transformable, datetime)
_EXACT = frozenset(_KINDS)


def attribute_value(value):
    """Returns an attribute's value in a form that can be sent now and later; raises if no attribute accepts it."""
    kind = type(value)
    if kind is int and not -(2**63) <= value < 2**63:
        raise PolicyError("a whole number beyond 64 bits fits no attribute")
    if kind is datetime and value.tzinfo is None:
        raise PolicyError("a datetime without time zone is no moment")
    if kind in _EXACT or isinstance(value, _KINDS):
        return value
    if isinstance(value, (bytearray, memoryview)):
        return bytes(value)
    raise _unfit(value)


def _unfit(value):
    """Returns the error for a value that no attribute accepts, with the value to use instead."""
    if isinstance(value, date):
        instead = ": give a datetime with time zone, or Date(seconds since 2001-01-01 UTC)"
    elif isinstance(value, (dict, list, tuple, set, frozenset)):
        instead = ": an attribute holds one value; Transformable(archive) holds the bytes of an archive"
    else:
        instead = ""
    return PolicyError(f"no attribute takes a value of type {type(value).__name__}{instead}")


_encoder = json.JSONEncoder(default=_tag, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def _finite(value):
    """Returns the value with numbers that JSON does not have in their tagged form."""
    if isinstance(value, float):
        return value if math.isfinite(value) else {"$double": _number(value)}
    if isinstance(value, dict):
        return {name: _finite(member) for name, member in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(member) for member in value]
    return value


def dumps(message):
    try:
        text = _encoder.encode(message)
    except ValueError:
        text = _encoder.encode(_finite(message))
    return text.encode("utf-8")
