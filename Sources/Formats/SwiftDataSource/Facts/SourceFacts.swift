// What the reader of Swift source says of one file: declarations as written, nothing resolved. The reader
// (SourceReader/) has this file too, as a link, so that both sides have the same types. A line of JSON has the facts of
// one file; fields that are usually empty are nil, which keeps the lines short.

/// The facts of one Swift file.
package struct SourceFile: Codable, Sendable, Hashable {
  /// Types, extensions and typealiases at the top of the file.
  package var declarations: [SourceDeclaration] = []
  /// Variables at the top of the file.
  package var variables: [SourceProperty] = []
  /// Calls that name the models of a container.
  package var uses: [SchemaUse] = []
  /// The first syntax errors.
  package var faults: [SyntaxFault]?
  /// Whether a file with syntax errors has the words `@Model`, `VersionedSchema` or `SchemaMigrationPlan`: an error may
  /// hide any declaration.
  package var mayDeclareModels: Bool?

  package init() {}
}

/// A syntax error: what the parser expected or found.
package struct SyntaxFault: Codable, Sendable, Hashable {
  package var message: String
  package var position: SwiftPosition

  package init(_ message: String, position: SwiftPosition) {
    self.message = message
    self.position = position
  }
}

/// A place in a file, both numbers from 1; the column counts bytes.
package struct SwiftPosition: Codable, Sendable, Hashable {
  package var line: Int
  package var column: Int

  package init(line: Int, column: Int) {
    self.line = line
    self.column = column
  }
}

/// A type, an extension or a typealias.
package struct SourceDeclaration: Codable, Sendable, Hashable {
  /// The keyword of the declaration.
  package enum Kind: String, Codable, Sendable, Hashable {
    case `class`, `struct`, `enum`, actor, `protocol`, `extension`, `typealias`
  }

  package var kind: Kind
  /// The name; the extended type of an extension, as `Schema.Item`.
  package var name: [String]
  package var position: SwiftPosition
  /// Whether only its own file sees it.
  package var isPrivate: Bool?
  package var isGeneric: Bool?
  /// The undecided condition of `#if` around it.
  package var condition: String?
  package var attributes: [SourceAttribute]?
  package var inherited: [SourceType]?
  /// The type that a typealias names.
  package var aliased: SourceType?
  package var members: [SourceDeclaration]?
  /// Stored properties, and static ones also if they are computed.
  package var properties: [SourceProperty]?
  package var cases: [SourceCase]?
  /// `#Unique` and `#Index`.
  package var macros: [SourceAttribute]?

  package init(kind: Kind, name: [String], position: SwiftPosition) {
    self.kind = kind
    self.name = name
    self.position = position
  }
}

/// A stored property, or a static one.
package struct SourceProperty: Codable, Sendable, Hashable {
  package var name: String
  package var position: SwiftPosition
  package var isStatic: Bool?
  package var isConstant: Bool?
  package var isLazy: Bool?
  /// Whether it is a tuple of names, which declares several properties.
  package var isTuple: Bool?
  package var condition: String?
  package var type: SourceType?
  /// The initial value; for a computed static one the only expression of its body.
  package var value: SourceExpression?
  package var attributes: [SourceAttribute]?

  package init(name: String, position: SwiftPosition) {
    self.name = name
    self.position = position
  }
}

/// A case of an enum.
package struct SourceCase: Codable, Sendable, Hashable {
  package var name: String
  package var position: SwiftPosition
  package var hasPayload: Bool?
  package var rawValue: SourceExpression?
  package var condition: String?

  package init(name: String, position: SwiftPosition) {
    self.name = name
    self.position = position
  }
}

/// An attribute such as `@Attribute(.unique)`, or a macro such as `#Unique<Item>([\.name])`.
package struct SourceAttribute: Codable, Sendable, Hashable {
  package var name: String
  package var position: SwiftPosition
  package var arguments: [SourceArgument]?
  package var condition: String?

  package init(name: String, position: SwiftPosition) {
    self.name = name
    self.position = position
  }
}

/// An argument of a call.
package struct SourceArgument: Codable, Sendable, Hashable {
  package var label: String?
  package var value: SourceExpression

  package init(label: String?, value: SourceExpression) {
    self.label = label
    self.value = value
  }
}

/// A type as written.
package indirect enum SourceType: Codable, Sendable, Hashable {
  /// A name with the types it is nested in, `SchemaV1.Item`.
  case name([SourceTypeName])
  case optional(SourceType)
  case array(SourceType)
  case dictionary(SourceType, SourceType)
  /// Any other form, such as a tuple or a function, with its text.
  case other(String)
}

/// One name of a type's path, with its generic arguments.
package struct SourceTypeName: Codable, Sendable, Hashable {
  package var name: String
  package var arguments: [SourceType]?

  package init(name: String, arguments: [SourceType]? = nil) {
    self.name = name
    self.arguments = arguments
  }
}

/// An expression, as far as models need it.
package indirect enum SourceExpression: Codable, Sendable, Hashable {
  /// A string without interpolation.
  case string(String)
  /// A string with interpolation.
  case interpolation
  /// Digits with an optional sign, without separators.
  case integer(String)
  case real(String)
  case boolean(Bool)
  case none
  case array([SourceExpression])
  case dictionary(isEmpty: Bool)
  /// Names with points between; the first is empty where the type is implied, as in `.unique`.
  case path([String])
  case type(SourceType)
  case call(SourceExpression, [SourceArgument])
  case keyPath(root: SourceType?, [String])
  case sum([SourceExpression])
  /// `value as Type`.
  case cast(SourceExpression, SourceType)
  /// Any other form, with the beginning of its text.
  case other(String)
}

/// A call that names the models of a container: `Schema(…)`, `ModelContainer(…)` or `.modelContainer(…)`.
package struct SchemaUse: Codable, Sendable, Hashable {
  package var name: String
  package var position: SwiftPosition
  package var arguments: [SourceArgument]
  /// Names of the types around it.
  package var scope: [String]
  package var isPreview: Bool?

  package init(name: String, position: SwiftPosition, arguments: [SourceArgument], scope: [String]) {
    self.name = name
    self.position = position
    self.arguments = arguments
    self.scope = scope
  }
}

/// What the reader gets before the files.
package struct SourceRequest: Codable, Sendable {
  /// Conditions of `#if` by their text, as `DEBUG` or `os(iOS)`.
  package var definitions: [String: Bool]

  package init(definitions: [String: Bool] = [:]) { self.definitions = definitions }
}
