"""A policy's handle on the migration, after NSMigrationManager, and the objects that it hands out.

Changes are gathered and go out with the reply to the call, or before a question whose answer they could change.
"""

from ._values import ObjectID, PolicyError, literal

_OUTSIDE = "a change was made outside hooks and methods: it cannot reach the store"

_RELATIONSHIPS = ("to-one", "to-many", "ordered to-many")


class _NoCall:
    """Stands for the list of changes between calls, when no message could take a change along."""

    def __init__(self):
        self.was_used = False

    def append(self, change):
        self.was_used = True
        raise PolicyError(_OUTSIDE)

    def __bool__(self):
        return False


class EntityMapping:
    """The entity mapping that a policy belongs to, as the mapping model has it."""

    def __init__(self, introduction):
        self.name = introduction["mapping"]
        self.mapping_type = introduction["mappingType"]
        self.source_entity_name = introduction["source"]
        self.destination_entity_name = introduction["destination"]
        self.user_info = introduction["userInfo"]
        self.source_version = introduction["sourceVersion"]
        self.destination_version = introduction["destinationVersion"]
        self.policy_class_name = introduction["policy"]
        self._expressions = introduction["expressions"]

    def value_expression(self, property_name):
        """Text of a property's value expression; None where it has none."""
        return self._expressions.get(property_name)


class _Entity:
    """An entity of a model: its name, its root, and kind and destination of its properties."""

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

    __slots__ = ("object_id", "_entity", "_manager", "_generation", "_values", "_columns", "_row", "_operation", "_batch")

    def __init__(self, object_id, entity, manager, columns=None, row=None):
        self.object_id = object_id
        self._entity = entity
        self._manager = manager
        self._generation = manager._generation
        self._values = None
        # Values that came as a row stay there: most are never looked at.
        self._columns = columns
        self._row = row
        self._operation = None
        self._batch = -1

    @property
    def entity_name(self):
        return self._entity.name

    @property
    def attribute_names(self):
        """Names of the stored attributes, inherited ones included."""
        return sorted(n for n in self._entity.properties if n not in self._entity.relationships)

    @property
    def relationship_names(self):
        return sorted(self._entity.relationships)

    def __contains__(self, key):
        return key in self._entity.properties

    def __eq__(self, other):
        return isinstance(other, ManagedObject) and self.object_id == other.object_id

    def __hash__(self):
        return hash(self.object_id)

    def __repr__(self):
        return f"<{self.object_id.side} {self.object_id.entity} {self.object_id.key}>"

    def value_for_key(self, key):
        """A value: an object or None for a to-one, a list of objects for a to-many."""
        manager = self._manager
        if self._generation != manager._generation:
            return manager._current(self)._get(key)
        return self._get(key)

    __getitem__ = value_for_key

    def _get(self, key):
        is_relationship = key in self._entity.relationships
        # The other end of a relationship may have been changed through another object: a destination's are asked for.
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
            raise PolicyError(f"{self.entity_name} has no property {key} in the {self.object_id.side} model")
        return self._manager._load(self, key)

    def set_value_for_key(self, value, key):
        """Sets a value of a destination object. The other end of a relationship follows."""
        entity = self._entity
        if self.object_id.side != "destination":
            raise PolicyError(f"{entity.name}.{key} belongs to the source store, which is never changed")
        if key not in entity.properties:
            raise PolicyError(f"{entity.name} has no property {key} in the destination model")
        target = self if self._generation == self._manager._generation else self._manager._current(self)
        if key in entity.relationships:
            if isinstance(value, ManagedObject):
                value = {"$object": value.object_id.wire()}
            elif value is not None:
                if isinstance(value, (str, bytes)) or not hasattr(value, "__iter__"):
                    raise PolicyError(f"{entity.name}.{key} is a relationship: it takes objects")
                value = {"$objects": _wires(value)}
            self._manager._changes.append(["set", self.object_id.wire(), {key: value}])
            return
        if isinstance(value, (ManagedObject, ObjectID)):
            raise PolicyError(f"{entity.name}.{key} is an attribute: it takes no object")
        target._set(key, value)

    def __setitem__(self, key, value):
        self.set_value_for_key(value, key)

    def _set(self, key, value):
        if self._values is None:
            self._values = {}
        self._values[key] = value
        manager = self._manager
        # An attribute is seen by nobody before the changes are sent, so it joins the object's insertion or last setting.
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
        """Adds objects to a to-many relationship."""
        self._to_many("add", objects, key)

    def remove(self, objects, key):
        """Takes objects out of a to-many relationship."""
        self._to_many("remove", objects, key)

    def _to_many(self, what, objects, key):
        if self.object_id.side != "destination" or key not in self._entity.relationships:
            raise PolicyError(f"{self.entity_name}.{key} is no relationship of a destination object")
        self._manager._changes.append([what, self.object_id.wire(), key, _wires(objects)])


def _wires(objects):
    if isinstance(objects, ManagedObject):
        objects = (objects,)
    return [one.object_id.wire() for one in objects]


class PolicyTable:
    """A table that lives as long as the hop and is shared by all its policies: `table[key]`, `table[key] = value`."""

    def __init__(self, name, manager):
        self.name = name
        self._manager = manager
        self._known = {}
        self._unsent = {}

    def __getitem__(self, key):
        return self.get(key)

    def get(self, key, default=None):
        """The value or object under a key; `default` where there is none."""
        # 1, 1.0 and True are one key to a dict, and three to the table.
        place = (type(key), key)
        if place in self._known:
            value = self._known[place]
        else:
            answer = self._manager._ask({"request": "lookup", "table": self.name, "key": _sendable(key)})
            value = self._known[place] = answer["value"]
        return default if value is None else self._manager._resolved(value)

    def __setitem__(self, key, value):
        self._manager._require_call()
        value = _sendable(value)
        place = (type(key), key)
        self._known[place] = value
        self._unsent[place] = (key, value)

    def _flush(self):
        for key, value in self._unsent.values():
            self._manager._ask({"request": "remember", "table": self.name, "key": _sendable(key), "value": value})
        self._unsent.clear()

    def _forget(self):
        self._known.clear()
        self._unsent.clear()


def _sendable(value):
    return value.object_id if isinstance(value, ManagedObject) else value


class MigrationManager:
    """The migration, as a policy sees it."""

    def __init__(self, introduction, exchange):
        self.mapping = EntityMapping(introduction)
        # For the policy's own use while the mapping is at work; table() is shared by all policies of the hop.
        self.user_info = {}
        self._exchange = exchange
        self._entities = {
            "source": {e["name"]: _Entity(e) for e in introduction["sourceEntities"]},
            "destination": {e["name"]: _Entity(e) for e in introduction["destinationEntities"]},
        }
        self._generation = 0
        self._batch = 0
        self._no_call = _NoCall()
        self._changes = self._no_call
        self._objects = {}
        self._keys = {}
        self._standards = {}
        self._associations = {}
        self._has_foreign_associations = False
        self._tables = {}

    # Objects

    def insert_new_object(self, entity_name):
        """Inserts a new object of the destination model; attributes have the model's defaults until they are set."""
        entity = self._entity(entity_name, "destination")
        if entity.is_abstract:
            raise PolicyError(f"{entity_name} is abstract: no object can be of it")
        key = self._keys.get(entity.root)
        if key is None:
            raise PolicyError(f"there is no next key for {entity_name}")
        self._keys[entity.root] = key + 1
        object_id = ObjectID("destination", entity_name, key)
        return self._insert(object_id, entity, None, None, ["insert", object_id.wire(), {}])

    def insert_standard_instance(self, source):
        """Default creation: the object that the mapping's attribute expressions make of a source, associated with it."""
        standard = self._standards.pop(source.object_id, None)
        if standard is None:
            raise PolicyError("default creation is for a source that was just offered, and only once")
        index, entity, columns, row, object_id = standard
        self._associations.setdefault(source.object_id, []).append(object_id)
        return self._insert(object_id, entity, columns, row, ["standard", index])

    def _insert(self, object_id, entity, columns, row, operation):
        new = ManagedObject(object_id, entity, self, columns, row)
        new._operation = operation
        new._batch = self._batch
        self._objects[object_id] = new
        self._changes.append(operation)
        return new

    def delete(self, object):
        """Deletes an object of the destination; what points to it becomes None."""
        if object.object_id.side != "destination":
            raise PolicyError("the source store is never changed")
        object._operation = None
        self._objects.pop(object.object_id, None)
        self._changes.append(["delete", object.object_id.wire()])

    def object(self, object_id):
        """An object by its id; no question is asked."""
        known = self._objects.get(object_id)
        if known is None:
            known = ManagedObject(object_id, self._entity(object_id.entity, object_id.side), self)
            self._objects[object_id] = known
        return known

    def fetch(self, entity_name, where=None, *arguments, side="destination", limit=None):
        """Objects of an entity and below, by primary key; every %@ of the predicate stands for an argument."""
        self._entity(entity_name, side)
        request = {"request": "fetch", "side": side, "entity": entity_name}
        if where is not None:
            parts = where.split("%@") if arguments else [where]
            if len(parts) != len(arguments) + 1:
                raise PolicyError("as many arguments as %@ are needed in the predicate")
            request["predicate"] = parts[0] + "".join(
                literal(argument) + part for argument, part in zip(arguments, parts[1:])
            )
        if limit is not None:
            request["limit"] = limit
        return self._found(request, side == "destination")

    # Associations

    def associate(self, source_instance, destination_instance, mapping=None):
        """associateSourceInstance:withDestinationInstance:forEntityMapping: for the mapping at work."""
        if mapping is not None and mapping.name != self.mapping.name:
            raise PolicyError(f"a policy associates for its own mapping, {self.mapping.name}")
        source, destination = source_instance.object_id, destination_instance.object_id
        if source.side != "source" or destination.side != "destination":
            raise PolicyError("an association leads from a source object to a destination object")
        if source not in self._standards and source not in self._associations:
            self._has_foreign_associations = True
        self._associations.setdefault(source, []).append(destination)
        self._changes.append(["associate", source.wire(), destination.wire()])

    def destination_instances(self, mapping_name, source_instances=None):
        """destinationInstancesForEntityMappingNamed:sourceInstances: finds what a mapping made of these sources, or of all."""
        if isinstance(source_instances, ManagedObject):
            source_instances = [source_instances]
        request = {"request": "destinationInstances", "mapping": mapping_name}
        if source_instances is not None:
            sources = [one.object_id for one in source_instances]
            associations = self._associations
            # What the mapping at work has just made of this call's sources is known here, unless sources were associated
            # out of turn.
            if (
                mapping_name == self.mapping.name
                and not self._has_foreign_associations
                and all(one in associations for one in sources)
            ):
                made = dict.fromkeys(d for one in sources for d in associations[one])
                return [self.object(one) for one in made]
            request["objects"] = [one.wire() for one in sources]
        return self._found(request, True)

    def source_instances(self, mapping_name, destination_instances=None):
        """sourceInstancesForEntityMappingNamed:destinationInstances:"""
        request = {"request": "sourceInstances", "mapping": mapping_name}
        if destination_instances is not None:
            request["objects"] = _wires(destination_instances)
        return self._found(request, True)

    # Tables and journal

    def table(self, name):
        """A table that lives as long as the hop and is shared by all its policies."""
        table = self._tables.get(name)
        if table is None:
            table = self._tables[name] = PolicyTable(name, self)
        return table

    def log(self, line):
        """A line for the journal. Keys and counts, please: the journal is no place for people's data."""
        self._ask({"request": "log", "line": str(line)})

    # Questions

    def _entity(self, name, side):
        entity = self._entities[side].get(name)
        if entity is None:
            raise PolicyError(f"the {side} model has no entity {name}")
        return entity

    def _resolved(self, value):
        kind = type(value)
        if kind is ObjectID:
            return self.object(value)
        if kind is list and value and type(value[0]) is ObjectID:
            return [self.object(one) for one in value]
        return value

    def _current(self, kept):
        """The one object of this id in this call: a kept one, without what it knew of a store that has changed since."""
        other = self._objects.get(kept.object_id)
        if other is not None:
            return other
        if kept.object_id.side == "destination":
            kept._values = kept._columns = kept._row = None
        kept._generation = self._generation
        self._objects[kept.object_id] = kept
        return kept

    def _load(self, object, key):
        properties = [key] if key in object._entity.to_many else []
        request = {"request": "values", "objects": [object.object_id.wire()], "properties": properties}
        if object.object_id.side == "destination":
            self._flush()
        for shape, row in self._rows(self._ask(request)):
            if key in shape[2]:
                if object._values is None:
                    object._values = {}
                for name, index in shape[2].items():
                    object._values[name] = row[index]
                return self._resolved(object._values[key])
        raise PolicyError(f"{object.entity_name} {object.object_id.key} is not in the {object.object_id.side} store")

    def _found(self, request, depends_on_changes):
        if depends_on_changes:
            self._flush()
        found = []
        for (side, entity, columns), row in self._rows(self._ask(request)):
            object_id = ObjectID(side, entity.name, row[1])
            known = self._objects.get(object_id)
            if known is None:
                known = ManagedObject(object_id, entity, self, columns, row)
                self._objects[object_id] = known
            elif len(row) > 2:
                values = known._values = known._values or {}
                for name, index in columns.items():
                    values[name] = row[index]
            found.append(known)
        return found

    def _rows(self, message):
        shapes = self._shapes(message)
        for row in message["rows"]:
            yield shapes[row[0]], row

    def _shapes(self, message):
        """Side, entity, and where in a row each column stands."""
        return [
            (side, self._entity(entity, side), {name: index + 2 for index, name in enumerate(columns)})
            for side, entity, columns in message["shapes"]
        ]

    def _flush(self):
        if self._changes:
            changes, self._changes = self._changes, []
            self._batch += 1
            self._ask({"request": "apply", "operations": changes})

    def _ask(self, request):
        answer = self._exchange(request)
        if answer["answer"] == "refused":
            raise PolicyError(answer["reason"])
        return answer

    # Calls

    def _require_call(self):
        if self._changes is self._no_call:
            self._changes.append(None)

    def _begin_call(self, keys):
        self._check_end()
        self._generation += 1
        self._keys = keys
        self._changes = []

    def _check_end(self):
        """Raises where a change was made between calls, also where the policy let the exception pass."""
        if self._no_call.was_used:
            raise PolicyError(_OUTSIDE)

    def _end_call(self):
        """The changes that were not sent yet; nothing else of the call is kept."""
        try:
            for table in self._tables.values():
                table._flush()
            return self._changes
        finally:
            self._abandon_call()

    def _abandon_call(self):
        for table in self._tables.values():
            table._forget()
        self._changes = self._no_call
        self._batch += 1
        self._objects.clear()
        self._standards.clear()
        self._associations.clear()
