"""The base classes of policies and stages, and the main loop: frames of JSON over standard input and output."""

import atexit
import gc
import os
import re
import struct
import sys
import traceback

from ._manager import MigrationManager
from ._objects import ManagedObject, wires
from ._values import ObjectID, PolicyError, Variable, attribute_value, dumps, loads

PROTOCOL = 1
_FOLDER = os.path.dirname(os.path.abspath(__file__))


class _Serving:
    """Whether run() was called: a program that only defines its policies ends at once, so it prints the reason."""

    def __init__(self):
        self.has_begun = False
        self.expected = None

    def expect(self, policy):
        # hopd sets the variable; a test that imports a policy has none.
        if self.expected is None and "HOPD_PROTOCOL" in os.environ:
            atexit.register(self.tell)
        self.expected = policy.__name__

    def tell(self):
        if not self.has_begun and not hasattr(sys, "last_type"):
            print(f"the program ended without run({self.expected}), which serves its policy", file=sys.stderr)


_serving = _Serving()


class EntityMigrationPolicy:
    """The hooks of one entity mapping, modelled on NSEntityMigrationPolicy; the defaults do what Core Data's do.

    Each migration makes one instance per entity mapping; it may keep state between hooks.
    """

    def __init_subclass__(cls, **arguments):
        super().__init_subclass__(**arguments)
        _serving.expect(cls)

    def begin(self, mapping, manager):
        """Called before every other hook."""

    def create_destination_instances(self, source, mapping, manager):
        """Creates the destination objects of a source object; the default inserts one and associates it."""
        manager.insert_standard_instance(source)

    def end_instance_creation(self, mapping, manager):
        """Called after the last source object."""

    def create_relationships(self, destination, mapping, manager):
        """Called for each destination object, after hopd has set the relationships with expressions in the mapping."""

    def end_relationship_creation(self, mapping, manager):
        """Called after the relationships of the last object."""

    def perform_custom_validation(self, mapping, manager):
        """Raise to reject the result. The user's store then stays unchanged."""

    def end(self, mapping, manager):
        """Called after every other hook."""

    def method(self, selector, arguments, manager):
        """Runs a method that an expression calls: FUNCTION($entityPolicy, "hexFor:with:", a, b) calls
        `hexFor_with(a, b)`, which returns an attribute's value, or the object or objects of a relationship."""
        name = selector.rstrip(":").replace(":", "_")
        function = None if name.startswith("_") else getattr(self, name, None)
        if function is None:
            raise PolicyError(f"the policy does not implement {selector} (a method {name})")
        return function(*arguments)


class CustomMigrationStage:
    """The hooks of one hop, modelled on NSCustomMigrationStage and SwiftData's MigrationStage.custom.

    The program runs once for each hook: keep state between hooks in the manager's tables.
    """

    def __init_subclass__(cls, **arguments):
        super().__init_subclass__(**arguments)
        _serving.expect(cls)

    def will_migrate(self, stage, manager):
        """Called before the hop: the manager fetches and changes the objects of the old version."""
        raise PolicyError(f"{type(self).__name__} has no will_migrate, which the stage names it for")

    def did_migrate(self, stage, manager):
        """Called after the hop: the manager fetches and changes the objects of the new version."""
        raise PolicyError(f"{type(self).__name__} has no did_migrate, which the stage names it for")


def run(*policies, named=None):
    """Serves hopd until the input ends. Policies and stages have the names of their classes, or those in `named`."""
    classes = {policy.__name__: policy for policy in policies}
    classes.update(named or {})
    _serving.has_begun = True
    # Standard output belongs to the protocol: a policy's prints go to standard error, and so to the journal.
    output = os.dup(1)
    os.dup2(2, 1)
    # Objects made at the start live as long as the program; reference counts free those of a call when it ends.
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 20, 20)
    _Session(classes, sys.stdin.buffer, output).serve()


# Core Data's names of the hooks, and names that are written by mistake, in lower case without underscores.
_HOOKS = {
    "begin": ["beginentitymapping"],
    "create_destination_instances": ["createdestinationinstancesforsourceinstance", "createdestinationinstance"],
    "end_instance_creation": ["endinstancecreationforentitymapping"],
    "create_relationships": ["createrelationshipsfordestinationinstance", "createrelationship"],
    "end_relationship_creation": ["endrelationshipcreationforentitymapping"],
    "perform_custom_validation": ["performcustomvalidationforentitymapping"],
    "end": ["endentitymapping"],
}
_STAGE_HOOKS = {"will_migrate": ["willmigratehandler"], "did_migrate": ["didmigratehandler"]}


def _check_hooks(policy):
    """Raises if a method has a name like a hook but is not one: it would never be called."""
    hooks = _STAGE_HOOKS if issubclass(policy, CustomMigrationStage) else _HOOKS
    misnamed = {other: hook for hook, others in hooks.items() for other in [hook.replace("_", ""), *others]}
    for name in dir(policy):
        plain = name.replace("_", "").lower()
        hook = misnamed.get(plain)
        if hook is None:
            hook = next((h for other, h in misnamed.items() if len(other) > 24 and plain.startswith(other)), None)
        if hook is not None and name != hook and not name.startswith("_") and name not in hooks:
            raise PolicyError(f"{policy.__name__}.{name} is never called: the hook's name is {hook}")


def _check_returned(result, hook):
    """Raises if a hook returned False, or has not run at all."""
    if result is False:
        raise PolicyError(f"{hook} returned False")
    if hasattr(result, "__await__") or hasattr(result, "send") or hasattr(result, "asend"):
        raise PolicyError(f"{hook} did nothing: a hook is a plain function, without async and yield")


def _result(value, selector):
    """Returns a method's result in the form in which it is sent: a value, an object, or a collection of objects."""
    if isinstance(value, ManagedObject):
        return value.object_id
    if hasattr(value, "__await__"):
        raise PolicyError(f"{selector} did nothing: a method is a plain function, without async")
    if hasattr(value, "__iter__") and not isinstance(value, (str, bytes, bytearray, memoryview, dict)):
        return {"$objects": wires(value)}
    return attribute_value(value)


def _bare(name):
    return name.rsplit(".", 1)[-1]


class _Session:
    def __init__(self, classes, input, output):
        self.classes = classes
        self.input = input
        self.output = output

    def read(self):
        head = self.input.read(4)
        if not head:
            return None
        if len(head) == 4:
            (length,) = struct.unpack(">I", head)
            body = self.input.read(length)
            if len(body) == length:
                return loads(body.decode("utf-8"))
        raise PolicyError("the input ends within a message")

    def write(self, message):
        self.send(dumps(message))

    def send(self, body):
        frame = memoryview(struct.pack(">I", len(body)) + body)
        while frame:
            frame = frame[os.write(self.output, frame) :]

    def ask(self, request):
        self.write(request)
        answer = self.read()
        if answer is None:
            raise PolicyError("hopd has gone")
        return answer

    def policy(self, name, is_stage):
        found = self.classes.get(name) or self.classes.get(_bare(name))
        if found is None:
            found = next((c for n, c in self.classes.items() if _bare(n) == name), None)
        if found is None:
            has = ", ".join(sorted(self.classes)) or "none"
            raise PolicyError(f"this program has no {'stage' if is_stage else 'policy'} {name}; it has {has}")
        if is_stage != issubclass(found, CustomMigrationStage):
            base = "CustomMigrationStage" if is_stage else "EntityMigrationPolicy"
            raise PolicyError(f"{found.__name__} is no {base}, which it is named for")
        _check_hooks(found)
        return found()

    def serve(self):
        first = self.read()
        if first is None:
            return
        try:
            if first.get("hello") != PROTOCOL:
                raise PolicyError(f"hopd speaks version {first.get('hello')} of the protocol, this library {PROTOCOL}")
            introduction = first["introduction"]
            policy = self.policy(introduction["policy"], introduction.get("stage") is not None)
        except Exception as error:
            self.write({"reply": "failed", "reason": _text(error)})
            return
        manager = MigrationManager(introduction, self.ask)
        # Threads of the policy may outlive the last call; the exit status tells hopd that a change was lost.
        atexit.register(_end, manager)
        self.write({"hello": PROTOCOL})
        while True:
            message = self.read()
            if message is None:
                return
            try:
                reply = dumps(_call(policy, manager, message))
            except Exception as error:
                manager._abandon_call()
                if not isinstance(error, PolicyError):
                    _print(error)
                reply = dumps({"reply": "failed", "reason": _text(error)})
            self.send(reply)


def _end(manager):
    try:
        manager._check_end()
    except PolicyError as error:
        print(error, file=sys.stderr, flush=True)
        os._exit(1)


def _own(steps):
    return [step for step in steps if os.path.dirname(os.path.abspath(step.filename)) != _FOLDER]


def _where(error):
    """The line of the policy that called this library, for an error that the library raised; else nothing."""
    steps = traceback.extract_tb(error.__traceback__)
    own = _own(steps)
    return f" ({os.path.basename(own[-1].filename)}, line {own[-1].lineno})" if own and own[-1] != steps[-1] else ""


def _print(error):
    """Prints the traceback of an error without this library's own frames: hopd quotes the last ten lines."""
    own = _own(traceback.extract_tb(error.__traceback__))
    lines = ["Traceback (most recent call last):\n", *traceback.format_list(own)] if own else []
    print("".join(lines + traceback.format_exception_only(type(error), error)), end="", file=sys.stderr, flush=True)


_NO_ATTRIBUTE = re.compile(r"'ManagedObject' object has no attribute '(\w+)'")


def _text(error):
    place = getattr(error, "_hopd_place", "")
    if isinstance(error, PolicyError):
        return f"{place}{error}{_where(error)}"
    text = f"{place}{type(error).__name__}: {error}"
    missing = _NO_ATTRIBUTE.fullmatch(str(error)) if isinstance(error, AttributeError) else None
    return f'{text}; a property stands in brackets: object["{missing[1]}"]' if missing else text


def _call(policy, manager, message):
    call = message["call"]
    mapping = manager.mapping
    manager._begin_call(message["keys"])
    if call == "createDestinationInstances":
        _create(policy, manager, message)
    elif call == "createRelationships":
        for shape, row in manager._rows(message):
            destination = manager.object(ObjectID(shape[0], shape[1].name, row[1]))
            try:
                returned = policy.create_relationships(destination, mapping, manager)
                if returned is not None:
                    _check_returned(returned, call)
            except Exception as error:
                error._hopd_place = f"{destination.entity_name} {row[1]}: "
                raise
    elif call == "method":
        selector = message["selector"]
        own = {"manager": manager, "entityMapping": mapping, "entityPolicy": policy}
        arguments = [[_argument(one, manager, own) for one in some] for some in message["arguments"]]
        results = [_result(policy.method(selector, some, manager), selector) for some in arguments]
        return {"reply": "results", "results": results, "operations": manager._end_call()}
    elif call in _STAGE_CALLS:
        hook = _STAGE_CALLS[call]
        _check_returned(getattr(policy, hook)(manager.stage, manager), hook)
    else:
        hook = _PLAIN_CALLS.get(call)
        if hook is None:
            raise PolicyError(f"the protocol of this library has no call {call}")
        _check_returned(getattr(policy, hook)(mapping, manager), hook)
    return {"reply": "done", "operations": manager._end_call()}


_PLAIN_CALLS = {
    "begin": "begin",
    "endInstanceCreation": "end_instance_creation",
    "endRelationshipCreation": "end_relationship_creation",
    "performCustomValidation": "perform_custom_validation",
    "end": "end",
}


_STAGE_CALLS = {"willMigrate": "will_migrate", "didMigrate": "did_migrate"}


def _argument(value, manager, own):
    if type(value) is Variable:
        if value.name not in own:
            raise PolicyError(f"${value.name} is no argument that this library knows")
        return own[value.name]
    value = manager._resolved(value)
    return list(value) if isinstance(value, list) else value


def _create(policy, manager, message):
    # The hot loop: rows are pairs of a source object and its standard object.
    mapping = manager.mapping
    shapes = manager._shapes(message)
    rows = message["rows"]
    create = policy.create_destination_instances
    is_default = getattr(create, "__func__", None) is EntityMigrationPolicy.create_destination_instances
    if is_default:
        manager._changes.extend(["standard", index] for index in range(len(rows) // 2))
        return
    objects, standards, associations = manager._objects, manager._standards, manager._associations
    for index in range(len(rows) // 2):
        row, standard = rows[2 * index], rows[2 * index + 1]
        side, entity, columns = shapes[row[0]]
        source_id = ObjectID(side, entity.name, row[1])
        source = objects.get(source_id)
        if source is None or source._row is None:
            source = ManagedObject(source_id, entity, manager, columns, row)
            objects[source_id] = source
        standard_side, standard_entity, standard_columns = shapes[standard[0]]
        standards[source_id] = (
            index,
            standard_entity,
            standard_columns,
            standard,
            ObjectID(standard_side, standard_entity.name, standard[1]),
        )
        try:
            returned = create(source, mapping, manager)
            if returned is not None:
                _check_returned(returned, "create_destination_instances")
        except Exception as error:
            error._hopd_place = f"{source.entity_name} {row[1]}: "
            raise
        standards.pop(source_id, None)
        associations.setdefault(source_id, [])
