"""A policy's access to the migration, modelled on NSMigrationManager.

The manager collects changes and sends them with the reply to the call, or before a request whose answer depends on
them.
"""

from ._objects import Entity, EntityMapping, ManagedObject, ReadObjects, StageDescription, wires
from ._predicate import order, predicate
from ._tables import PolicyTable
from ._values import ObjectID, PolicyError

# The number of objects that `each` fetches at a time.
_PAGE = 500

_OUTSIDE = "a change was made outside hooks and methods: it cannot reach the store"

class _NoCall:
    """Replaces the list of changes between calls, when no message could carry a change."""

    def __init__(self):
        self.was_used = False

    def append(self, change):
        self.was_used = True
        raise PolicyError(_OUTSIDE)

    def __bool__(self):
        return False


class MigrationManager:
    """The migration, as a policy sees it: inserts, changes, fetches and associates objects."""

    def __init__(self, introduction, exchange):
        self.mapping = EntityMapping(introduction)
        self._exchange = exchange
        store = introduction.get("store") or {}
        self._store_path = store.get("path")
        self._store_metadata = store.get("metadata", {})
        self.stage = StageDescription(introduction) if introduction.get("stage") else None
        self._entities = {
            "source": {e["name"]: Entity(e) for e in introduction["sourceEntities"]},
            "destination": {e["name"]: Entity(e) for e in introduction["destinationEntities"]},
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
        # The reason why changes could not be sent: the call then fails, even if the policy catches the exception.
        self._lost = None

    # Objects

    def insert_new_object(self, entity_name):
        """Inserts an object of the destination model; its attributes have the model's defaults until they are set."""
        entity = self._entity(entity_name, "destination")
        if entity.is_abstract:
            raise PolicyError(f"{entity_name} is abstract: no object can be of it")
        key = self._keys.get(entity.root)
        if key is None:
            raise PolicyError(f"no next key for {entity_name}")
        self._keys[entity.root] = key + 1
        object_id = ObjectID("destination", entity_name, key)
        return self._insert(object_id, entity, None, None, ["insert", object_id.wire(), {}])

    def insert_standard_instance(self, source):
        """Default creation: inserts the object that the mapping's attribute expressions make of a source object, and
        associates the two. Only for the source of the running `create_destination_instances`, and only once."""
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
        """Deletes a destination object. References to it become None."""
        if object.object_id.side != "destination":
            raise PolicyError("the source store is never changed")
        self._changes.append(["delete", object.object_id.wire()])
        # Later changes must not be merged with earlier ones of the deleted object.
        self._batch += 1
        self._objects.pop(object.object_id, None)

    def object(self, object_id):
        """Returns the object with an id, without a request to hopd."""
        known = self._objects.get(object_id)
        if known is None:
            known = ManagedObject(object_id, self._entity(object_id.entity, object_id.side), self)
            self._objects[object_id] = known
        return known

    def fetch(self, entity_name, where=None, *arguments, side="destination", limit=None, offset=0, sort=()):
        """Fetches the objects of an entity and its subentities.

        In the predicate %@ stands for a value or an object, %K for a key path. `sort` is "name" or ["name", "-date"];
        without it the order is by primary key. The first `offset` objects are skipped.
        """
        request = self._fetch_request(entity_name, where, arguments, side, limit, sort)
        if offset:
            request["offset"] = offset
        return self._found(request, side == "destination")

    def each(self, entity_name, where=None, *arguments, side="destination"):
        """Yields every object of an entity and its subentities, by primary key; the loop may change and delete them.

        It fetches a few hundred at a time and then releases them, so it serves any number of objects.
        """
        request = self._fetch_request(entity_name, where, arguments, side, _PAGE, ())
        while True:
            page = self._found(request, side == "destination")
            last = page[-1].object_id.key if page else None
            yield from page
            if len(page) < _PAGE:
                return
            request["after"] = last
            del page
            self._let_go()

    def _let_go(self):
        """Sends the changes and releases all objects. An object that is used again is fetched again."""
        self._flush()
        self._objects.clear()
        self._generation += 1

    def _fetch_request(self, entity_name, where, arguments, side, limit, sort):
        self._entity(entity_name, side)
        request = {"request": "fetch", "side": side, "entity": entity_name}
        if where is not None:
            objects = {}
            request["predicate"] = predicate(where, arguments, objects)
            if objects:
                request["objects"] = objects
        if limit is not None:
            request["limit"] = limit
        if sort:
            request["sort"] = order(sort)
        return request

    # Associations

    def associate(self, source_instance, destination_instance, mapping=None):
        """associateSourceInstance:withDestinationInstance:forEntityMapping:, for the entity mapping that is running."""
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
        """destinationInstancesForEntityMappingNamed:sourceInstances:, the objects that an entity mapping made of these
        sources, or of all sources."""
        if isinstance(source_instances, ManagedObject):
            source_instances = [source_instances]
        request = {"request": "destinationInstances", "mapping": mapping_name}
        if source_instances is not None:
            sources = [one.object_id for one in source_instances]
            associations = self._associations
            # Associations that the running mapping made of this call's sources are at hand, unless sources were
            # associated outside their turn.
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
            request["objects"] = wires(destination_instances)
        return self._found(request, True)

    # The store

    @property
    def root_entity_names(self):
        """The names of the entities without a parent, of the destination or of the stage's one store. Fetching each of
        them, subentities included, covers every object."""
        return sorted(name for name, entity in self._entities["destination"].items() if entity.root == name)

    @property
    def store_path(self):
        """The path of the database that is migrated; None if hopd does not pass it."""
        return self._store_path

    @property
    def store_metadata(self):
        """The store's metadata before the migration: texts, numbers, dates, data, and lists of these."""
        return dict(self._store_metadata)

    # Tables and journal

    @property
    def user_info(self):
        """Core Data's userInfo of the manager: a table that all policies of the hop share."""
        return self.table("userInfo")

    def table(self, name):
        """Returns a table that lives as long as the hop. All policies of the hop share it."""
        table = self._tables.get(name)
        if table is None:
            table = self._tables[name] = PolicyTable(name, self)
        return table

    def log(self, line):
        """Writes a line to the journal. Write keys and counts: people's data does not belong in the journal."""
        self._ask({"request": "log", "line": str(line)})

    # Requests

    def _entity(self, name, side):
        entity = self._entities[side].get(name)
        if entity is None:
            raise PolicyError(f"the {side} model has no entity {name}")
        return entity

    def _resolved(self, value):
        kind = type(value)
        if kind is ObjectID:
            return self.object(value)
        if kind is list:
            return ReadObjects(self._resolved(one) for one in value)
        return value

    def _current(self, kept):
        """The one instance for this id in this call. A kept destination object loses its values, because the store has
        changed since."""
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
        """Side, entity, and the position of each column in a row."""
        return [
            (side, self._entity(entity, side), {name: index + 2 for index, name in enumerate(columns)})
            for side, entity, columns in message["shapes"]
        ]

    def _flush(self):
        if self._changes:
            changes, self._changes = self._changes, []
            self._batch += 1
            self._send({"request": "apply", "operations": changes})

    def _send(self, changes):
        """Sends changes. If that fails, the changes are lost and the call fails."""
        try:
            self._ask(changes)
        except BaseException as error:
            self._lost = self._lost or PolicyError(f"changes could not be sent: {error}")
            raise

    def _ask(self, request):
        if self._lost is not None:
            raise self._lost
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
        """Raises if a change was made between calls or could not be sent, even if the policy caught the exception."""
        if self._lost is not None:
            raise self._lost
        if self._no_call.was_used:
            raise PolicyError(_OUTSIDE)

    def _end_call(self):
        """Returns the changes that were not sent yet, and releases everything else of the call."""
        try:
            for table in self._tables.values():
                table._flush()
            self._check_end()
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
