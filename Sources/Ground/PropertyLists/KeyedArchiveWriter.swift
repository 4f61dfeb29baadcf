// Writes an object graph as NSKeyedArchiver does: a property list whose `$objects` refer to each other by number.
// Models have that form, with cycles between entities, properties and inverses. The callers define the meaning of the
// objects.

/// Collects the objects of one archive, then writes them.
///
/// Numbers follow Foundation's archiver (docs/formats/model-files.md, "Model cache archives"): an object gets its
/// number at the first reference to it, then its contents in the order of its fields, depth first, then the record of
/// its class. Equal texts and numbers share one entry. Equal graphs, built in the same order, give equal bytes.
package struct KeyedArchiveWriter {
  /// An object of the archive; its fields may be set after other objects refer to it.
  package struct Object: Hashable, Sendable {
    fileprivate let index: Int
  }

  /// The target of a reference.
  package enum Reference: Sendable {
    /// Nil: the `$null` every archive begins with.
    case null
    /// A text, number or truth value as an object of its own.
    case scalar(PropertyListValue)
    /// An object, written at its first reference of this kind.
    case object(Object)
    /// An object written elsewhere (`encodeConditionalObject:`); nil if no other reference exists.
    case conditional(Object)

    /// A text, or nil.
    package static func text(_ text: String?) -> Reference { text.map { .scalar(.string($0)) } ?? .null }
  }

  /// The content of one key of an object.
  package enum Field: Sendable {
    /// A value in the object itself.
    case value(PropertyListValue)
    /// One object.
    case reference(Reference)
    /// A list of objects.
    case references([Reference])

    /// Nil.
    package static let null = Field.reference(.null)
    /// A text of its own, or nil.
    package static func text(_ text: String?) -> Field { .reference(.text(text)) }
    /// An object that is written here.
    package static func object(_ object: Object) -> Field { .reference(.object(object)) }
    /// An integer in the object itself.
    package static func integer(_ number: some BinaryInteger) -> Field { .value(.integer(Int64(number))) }
    /// A truth value in the object itself.
    package static func boolean(_ flag: Bool) -> Field { .value(.boolean(flag)) }
  }

  /// The names of a class and its ancestors.
  package struct ClassName: Hashable, Sendable {
    let names: [String]

    /// The class with its ancestors below NSObject, nearest first.
    package init(_ name: String, _ ancestors: String...) { names = [name] + ancestors + ["NSObject"] }
  }

  private struct Record {
    var className: ClassName
    var fields: [(key: String, field: Field)] = []
  }

  private var records: [Record] = []

  /// Creates an empty archive.
  package init() {}

  /// Adds an object.
  package mutating func makeObject(_ className: ClassName, _ fields: [(key: String, field: Field)] = []) -> Object {
    records.append(Record(className: className, fields: fields))
    return Object(index: records.count - 1)
  }

  /// Sets the fields of an object, in the order in which they are encoded.
  package mutating func setFields(of object: Object, _ fields: [(key: String, field: Field)]) {
    guard records.indices.contains(object.index) else { return }
    records[object.index].fields = fields
  }

  /// Adds an NSArray or another list of objects.
  package mutating func makeList(_ elements: [Reference], _ className: ClassName = ClassName("NSArray")) -> Object {
    makeObject(className, [("NS.objects", .references(elements))])
  }

  /// Adds an NSDictionary or its mutable form.
  package mutating func makeDictionary(
    _ entries: [(key: String, value: Reference)], _ className: ClassName = ClassName("NSDictionary")
  ) -> Object {
    makeObject(
      className,
      [
        ("NS.keys", .references(entries.map { .text($0.key) })), ("NS.objects", .references(entries.map(\.value))),
      ])
  }

  /// Returns the archive as a property list with `root` on top.
  package func archive(root: Object) -> PropertyListValue {
    var pass = Pass(records: records)
    let top = pass.write(root)
    return .dictionary([
      "$archiver": .string("NSKeyedArchiver"), "$version": .integer(100_000),
      "$top": .dictionary(["root": .uid(top)]), "$objects": .array(pass.objects),
    ])
  }

  /// One traversal of the graph. It has its own stack: chains of objects may be as long as the model is large.
  private struct Pass {
    private struct Frame {
      let index: Int
      /// Every reference of the object, in order.
      let references: [Reference]
      var next = 0
    }

    let records: [Record]
    var objects: [PropertyListValue] = [.string("$null")]
    private var numbers: [Int: UInt64] = [:]
    private var written: Set<Int> = []
    private var scalars: [ScalarIdentity: UInt64] = [:]
    private var classes: [ClassName: UInt64] = [:]
    private var frames: [Frame] = []

    init(records: [Record]) { self.records = records }

    mutating func write(_ root: Object) -> UInt64 {
      let top = number(of: root.index)
      open(root.index)
      while let frame = frames.last {
        guard frame.next < frame.references.count else {
          frames.removeLast()
          close(frame.index)
          continue
        }
        frames[frames.count - 1].next += 1
        switch frame.references[frame.next] {
        case .null: break
        case .scalar(let value): number(of: value)
        case .conditional(let object): number(of: object.index)
        case .object(let object):
          number(of: object.index)
          if !written.contains(object.index) { open(object.index) }
        }
      }
      return top
    }

    private mutating func open(_ index: Int) {
      written.insert(index)
      // An object of another archive has no content here.
      guard records.indices.contains(index) else { return }
      let references = records[index].fields.flatMap { entry -> [Reference] in
        switch entry.field {
        case .value: []
        case .reference(let reference): [reference]
        case .references(let list): list
        }
      }
      frames.append(Frame(index: index, references: references))
    }

    /// Fills the object's entry; after its contents, every number is known.
    private mutating func close(_ index: Int) {
      let record = records[index]
      var entries: [String: PropertyListValue] = ["$class": .uid(number(of: record.className))]
      for (key, field) in record.fields {
        switch field {
        case .value(let value): entries[key] = value
        case .reference(let reference): entries[key] = uid(reference)
        case .references(let list): entries[key] = .array(list.map { uid($0) })
        }
      }
      if let place = numbers[index].flatMap({ Int(exactly: $0) }) { objects[place] = .dictionary(entries) }
    }

    private func uid(_ reference: Reference) -> PropertyListValue {
      switch reference {
      case .null: .uid(0)
      case .scalar(let value): .uid(scalars[ScalarIdentity(value)] ?? 0)
      case .object(let object), .conditional(let object): .uid(numbers[object.index] ?? 0)
      }
    }

    @discardableResult private mutating func number(of index: Int) -> UInt64 {
      // Stays nil if the object has only conditional references.
      number(of: index, in: \.numbers) { .string("$null") }
    }

    @discardableResult private mutating func number(of value: PropertyListValue) -> UInt64 {
      number(of: ScalarIdentity(value), in: \.scalars) { value }
    }

    private mutating func number(of className: ClassName) -> UInt64 {
      number(of: className, in: \.classes) {
        .dictionary([
          "$classname": .string(className.names.first ?? ""), "$classes": .array(className.names.map { .string($0) }),
        ])
      }
    }

    /// The number of an object in a table by `key`; for a new object, `make` returns its first content.
    private mutating func number<Key: Hashable>(
      of key: Key, in table: WritableKeyPath<Pass, [Key: UInt64]>, _ make: () -> PropertyListValue
    ) -> UInt64 {
      if let number = self[keyPath: table][key] { return number }
      let number = UInt64(objects.count)
      objects.append(make())
      self[keyPath: table][key] = number
      return number
    }
  }
}
