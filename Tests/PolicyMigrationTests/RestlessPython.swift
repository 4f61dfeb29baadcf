/// The policy that acts at random, in Python: its arguments are the seed and the file for its record.
enum RestlessPython {
  static let program = #"""
    import random
    from hopd_policy import EntityMigrationPolicy, PolicyError, run

    class P(EntityMigrationPolicy):
        def __init__(self):
            self.random = random.Random(int(sys.argv[1]))
            self.book, self.items, self.count, self.kept, self.associated = {}, [], 0, {}, {}

        def note(self, tag, manager):
            kept = self.book[tag]["note"]
            return kept if self.random.random() < 0.5 else manager.object(kept.object_id)

        def act(self, manager, source=None):
            for _ in range(self.random.randrange(5)):
                if not self.book or self.random.randrange(4) == 0:
                    self.insert(manager)
                    continue
                tag, other = self.random.choice(sorted(self.book)), self.random.choice(sorted(self.book))
                note, entry = self.note(tag, manager), self.book[tag]
                item = self.random.choice(self.items) if self.items else None
                what = self.random.randrange(12)
                if what < 2:
                    entry["text"] = note["text"] = str(self.random.randrange(100))
                elif what == 2:
                    manager.delete(note)
                    del self.book[tag]
                    for one in self.book.values(): one["peers"].discard(tag)
                    for one in self.associated.values(): one.discard(note)
                elif what == 3:
                    assert note["text"] == entry["text"]
                    assert [o["text"] for o in manager.fetch("Note", "%K == %@", "tag", tag)] == [entry["text"]]
                elif what == 4:
                    for mistake in (lambda: manager.fetch("Note", "no sense =="), lambda: note["peers"].append(note),
                                    lambda: note.set_value_for_key(object(), "text")):
                        try: mistake()
                        except PolicyError: pass
                        else: raise AssertionError("no error")
                elif what == 5 and item:
                    note["item"] = item
                    entry["item"] = item
                elif what == 6 and item:
                    item.add(note, "notes")
                    entry["item"] = item
                elif what == 7 and item:
                    item.remove([note], "notes")
                    if entry["item"] == item: entry["item"] = None
                elif what == 8:
                    note.add([self.note(other, manager)], "peers")
                    entry["peers"].add(other)
                elif what == 9:
                    self.note(other, manager)["peersOf"] = {note}
                    for one in self.book.values(): one["peers"].discard(other)
                    entry["peers"].add(other)
                elif what == 10:
                    key = self.random.choice([1, 1.0, True, "1", "e\u0301", "\u00e9"])
                    manager.table("t")[key] = self.kept[type(key), key] = self.random.randrange(100)
                elif source is not None:
                    manager.associate(source, note)
                    self.associated.setdefault(source.object_id.key, set()).add(note)

        def insert(self, manager):
            note = manager.insert_new_object("Note")
            self.count += 1
            tag = str(1000 + self.count)
            note["tag"], note["text"] = tag, "new"
            self.book[tag] = {"note": note, "text": "new", "item": None, "peers": set()}

        def create_destination_instances(self, source, mapping, manager):
            self.act(manager, source)
            item = manager.insert_standard_instance(source)
            self.items.append(item)
            self.associated.setdefault(source.object_id.key, set()).add(item)
            self.act(manager, source)

        def method(self, selector, arguments, manager):
            self.act(manager)
            return [] if selector == "next:" else arguments[0]

        def begin(self, mapping, manager): self.act(manager)
        def end_instance_creation(self, mapping, manager): self.act(manager)
        def create_relationships(self, destination, mapping, manager): self.act(manager)
        def end_relationship_creation(self, mapping, manager): self.act(manager)
        def perform_custom_validation(self, mapping, manager): self.act(manager)

        def end(self, mapping, manager):
            for source in manager.fetch("Item", side="source"):
                assert set(manager.destination_instances("Items", source)) == self.associated[source.object_id.key]
            for (kind, key), value in self.kept.items():
                assert manager.table("t")[key] == value
            self.act(manager)
            with open(sys.argv[2], "w") as file:
                for tag, entry in sorted(self.book.items()):
                    item = entry["item"].object_id.key if entry["item"] else "–"
                    peers = "+".join(sorted(entry["peers"])) or "–"
                    file.write("|".join([tag, entry["text"], str(item), peers]) + "\n")

    run(P)
    """#
}
