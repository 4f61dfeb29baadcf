// Converts the components of key paths, from texts and archives, to steps. Both readers use it, so that
// `$source.a.@count` is the same node from either.

extension ExpressionNode {
  /// Returns a key path on a base. Plain keys extend the base's own path. Keys after a collection operator's path do
  /// not, because they would then be read once for every member (KVC).
  package static func path(_ base: ExpressionNode, _ steps: [KeyPathStep]) -> ExpressionNode {
    guard !steps.isEmpty else { return base }
    if case .keyPath(let inner, let first) = base, first.allSatisfy(\.isKey) {
      return .keyPath(inner, KeyPathSteps.joined(first + steps))
    }
    return .keyPath(base, steps)
  }
}

extension KeyPathStep {
  /// Whether the step is a property's name.
  package var isKey: Bool { if case .key = self { true } else { false } }
}

extension CollectionOperator {
  /// Whether the operator's key path follows it. Only `@count` has none.
  package var takesPath: Bool { self != .count }
}

/// The reason why a key path is not valid.
struct KeyPathProblem: Error {
  /// The reason in words.
  let message: String
  /// The index of the component.
  let component: Int
  /// Whether it is an operator of KVC that hopd does not have.
  var isUnsupported = false
}

/// Creates the steps of key paths.
enum KeyPathSteps {
  /// Returns the steps of a path's components: `objectID.URIRepresentation.path` at its end is one step.
  static func steps(_ components: [String]) throws(KeyPathProblem) -> [KeyPathStep] {
    var steps: [KeyPathStep] = []
    steps.reserveCapacity(components.count)
    for (index, component) in components.enumerated() {
      if case .collection(let operation)? = steps.last, !operation.takesPath {
        throw KeyPathProblem(message: "nothing may follow \(operation.rawValue) in a key path", component: index)
      }
      guard component.utf8.first == UInt8(ascii: "@") else {
        steps.append(.key(component))
        continue
      }
      guard let operation = CollectionOperator(rawValue: component) else {
        throw KeyPathProblem(
          message: "the collection operator \(component) is unknown; known are "
            + CollectionOperator.allCases.map(\.rawValue).joined(separator: " "), component: index, isUnsupported: true)
      }
      steps.append(.collection(operation))
    }
    if case .collection(let operation)? = steps.last, operation.takesPath {
      throw KeyPathProblem(
        message: "\(operation.rawValue) needs a key behind it, as in \(operation.rawValue).name",
        component: components.count)
    }
    return joined(steps)
  }

  /// Returns the steps, with the three of an object's path at their end as one.
  static func joined(_ steps: [KeyPathStep]) -> [KeyPathStep] {
    guard steps.suffix(3) == [.key("objectID"), .key("URIRepresentation"), .key("path")] else { return steps }
    return steps.dropLast(3) + [.objectPath]
  }

  /// Whether the text can be a name in a model: a letter or `_`, then letters, digits and `_`.
  static func isName(_ text: String) -> Bool {
    guard let first = text.unicodeScalars.first, isNameStart(first) else { return false }
    return text.unicodeScalars.allSatisfy(isNamePart)
  }

  /// Whether a name may begin with the character.
  static func isNameStart(_ scalar: Unicode.Scalar) -> Bool {
    if scalar.isASCII {
      return scalar == "_" || (0x41...0x5a).contains(scalar.value) || (0x61...0x7a).contains(scalar.value)
    }
    return scalar.properties.isIDStart
  }

  /// Whether a name may contain the character.
  static func isNamePart(_ scalar: Unicode.Scalar) -> Bool {
    if scalar.isASCII { return isNameStart(scalar) || (0x30...0x39).contains(scalar.value) }
    return scalar.properties.isIDContinue
  }
}
