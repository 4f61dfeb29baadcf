"""The objects of policies, and the descriptions of the entity mapping, the stage and the entities."""

from types import MappingProxyType

from ._values import ObjectID, PolicyError, attribute_value

_RELATIONSHIPS = ("to-one", "to-many", "ordered to-many")


class ReadObjects(list):
    """A list read from a to-many or a table. It is a copy: a change would not reach the store, so it is an error."""

    __slots__ = ()

    def _refuse(self, *_, **__):
        raise PolicyError(
            "this list is a copy, and a change of it would be lost: use add, remove, or set the key again; "
            "list(…) makes a list of your own"
        )

    append = extend = insert = remove = pop = clear = sort = reverse = _refuse
    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse


class EntityMapping:
    """The entity mapping that a policy belongs to, as the mapping model describes it."""

    def __init__(self, introduction):
        self.name = introduction["mapping"]
        self.mapping_type = introduction["mappingType"]
        self.source_entity_name = introduction["source"]
        self.destination_entity_name = introduction["destination"]
        self.user_info = MappingProxyType(introduction["userInfo"])
        self.source_version = introduction["sourceVersion"]
        self.destination_version = introduction["destinationVersion"]
        self.policy_class_name = introduction["policy"]
        self._expressions = introduction["expressions"]

    def value_expression(self, property_name):
        """Returns the text of a property's value expression; None if it has none."""
        return self._expressions.get(property_name)


class StageDescription:
    """The stage that is running: its hook, "willMigrate" or "didMigrate", and the versions of its hop."""

    def __init__(self, introduction):
        self.hook = introduction["stage"]
        self.source_version = introduction["sourceVersion"]
        self.destination_version = introduction["destinationVersion"]


class Entity:
    """An entity of a model: its name, its root, and the kind and destination of its properties."""

    __slots__ = ("name", "root", "is_abstract", "properties", "relationships", "to_many")

    def __init__(self, description):
        self.name = description["name"]
        self.root = description["root"]
        self.is_abstract = description["abstract"]
        self.properties = description["properties"]
        self.relationships = frozenset(n for n, p in self.properties.items() if p[0] in _RELATIONSHIPS)
        self.to_many = frozenset(n for n in self.relationships if self.properties[n][0] != "to-one")


class ManagedObject:
    """An object of the source or the destination store: `object["title"]`, `object["title"] = "…"`."""

    __slots__ = ("object_id", "_entity", "_manager", "_generation", "_values", "_columns", "_row", "_operation",
                 "_batch")

    def __init__(self, object_id, entity, manager, columns=None, row=None):
        self.object_id = object_id
        self._entity = entity
        self._manager = manager
        self._generation = manager._generation
        self._values = None
        # Values that arrived in a row stay there: most are never read.
        self._columns = columns
        self._row = row
        self._operation = None
        self._batch = -1

    @property
    def entity_name(self):
        return self._entity.name

    @property
    def attribute_names(self):
        """The names of the stored attributes, inherited ones included."""
        return sorted(n for n in self._entity.properties if n not in self._entity.relationships)

    @property
    def relationship_names(self):
        """The names of the relationships."""
        return sorted(self._entity.relationships)

    def destination_entity_name(self, relationship):
        """Returns the destination entity of a relationship. The objects may also be of its subentities."""
        if relationship not in self._entity.relationships:
            raise PolicyError(f"{self.entity_name} has no relationship {relationship}")
        return self._entity.properties[relationship][1]

    def __contains__(self, key):
        return key in self._entity.properties

    def __iter__(self):
        """The names of the properties, the same as for `in`."""
        return iter(sorted(self._entity.properties))

    def __eq__(self, other):
        return isinstance(other, ManagedObject) and self.object_id == other.object_id

    def __hash__(self):
        return hash(self.object_id)

    def __repr__(self):
        return f"<{self.object_id.side} {self.object_id.entity} {self.object_id.key}>"

    def value_for_key(self, key):
        """Returns a value: an object or None for a to-one, a list of objects for a to-many."""
        manager = self._manager
        if self._generation != manager._generation:
            return manager._current(self)._get(key)
        return self._get(key)

    __getitem__ = value_for_key

    def _get(self, key):
        is_relationship = key in self._entity.relationships
        # A change of another object may have changed the inverse here: a destination object's are always fetched.
        if not (is_relationship and self.object_id.side == "destination"):
            values = self._values
            if values is not None and key in values:
                return self._manager._resolved(values[key])
            columns = self._columns
            if columns is not None:
                index = columns.get(key)
                if index is not None:
                    value = self._row[index]
                    return self._manager._resolved(value) if is_relationship else value
        if key not in self._entity.properties:
            raise PolicyError(
                f"{self.entity_name} has no property {key} in the {self.object_id.side} model{_step(key, self._entity)}"
            )
        return self._manager._load(self, key)

    def set_value_for_key(self, value, key):
        """Sets a value of a destination object. hopd updates the inverse relationship."""
        entity = self._entity
        if self.object_id.side != "destination":
            raise PolicyError(f"{entity.name}.{key} belongs to the source store, which is never changed")
        if key not in entity.properties:
            raise PolicyError(f"{entity.name} has no property {key} in the destination model{_step(key, entity)}")
        target = self if self._generation == self._manager._generation else self._manager._current(self)
        if key in entity.relationships:
            if isinstance(value, ManagedObject):
                value = {"$object": value.object_id.wire()}
            elif value is not None:
                if isinstance(value, (str, bytes, dict)) or not hasattr(value, "__iter__"):
                    raise PolicyError(f"{entity.name}.{key} is a relationship: it takes objects")
                value = {"$objects": wires(value)}
            self._manager._changes.append(["set", self.object_id.wire(), {key: value}])
            return
        if isinstance(value, (ManagedObject, ObjectID)):
            raise PolicyError(f"{entity.name}.{key} is an attribute: it takes no object")
        # A value that cannot be sent raises here, where it is set, and not with a later message.
        target._set(key, attribute_value(value))

    def __setitem__(self, key, value):
        self.set_value_for_key(value, key)

    def _set(self, key, value):
        manager = self._manager
        manager._require_call()
        if self._values is None:
            self._values = {}
        self._values[key] = value
        # No other code reads an attribute before the changes are sent, so it is merged into the object's insertion or
        # last setting.
        operation = self._operation
        if operation is not None and self._batch == manager._batch:
            if len(operation) == 2:
                operation.append({key: value})
            else:
                operation[2][key] = value
            return
        operation = ["set", self.object_id.wire(), {key: value}]
        manager._changes.append(operation)
        self._operation = operation
        self._batch = manager._batch

    def add(self, objects, key):
        """Adds objects to a to-many relationship of a destination object."""
        self._to_many("add", objects, key)

    def remove(self, objects, key):
        """Removes objects from a to-many relationship of a destination object."""
        self._to_many("remove", objects, key)

    def _to_many(self, what, objects, key):
        if self.object_id.side != "destination" or key not in self._entity.relationships:
            raise PolicyError(f"{self.entity_name}.{key} is no relationship of a destination object")
        self._manager._changes.append([what, self.object_id.wire(), key, wires(objects)])


def _step(key, entity):
    """The next step for an author who passed a key path where a single key is needed: read the objects key by key."""
    first, _, rest = key.partition(".") if isinstance(key, str) else ("", "", "")
    if not rest or first not in entity.relationships:
        return ""
    if first in entity.to_many:
        return f': ask each object of "{first}" for "{rest}"'
    return f': write object["{first}"]["{rest}"], and mind None'


def wires(objects):
    """Returns objects in the form in which they are sent: one, or any collection of them."""
    if isinstance(objects, ManagedObject):
        objects = (objects,)
    if isinstance(objects, (str, bytes, dict)) or not hasattr(objects, "__iter__"):
        raise PolicyError(f"objects are wanted, and this is of type {type(objects).__name__}")
    found = list(objects)
    for one in found:
        if not isinstance(one, ManagedObject):
            raise PolicyError(f"objects are wanted, and one is of type {type(one).__name__}")
    return [one.object_id.wire() for one in found]
