// Patterns of a model that hopd's regular expressions do not support: values are not checked against them, and the plan
// must report this.

import Diagnostics
import Expressions
import ManagedObjectModel

extension HopdError.Code {
  /// Values are not checked against a regular expression of the model.
  package static let patternNotChecked = HopdError.Code("pattern-not-checked", severity: .warning)
}

/// Finds the patterns against which the objects of a mapped hop are not checked.
enum UncheckedPatterns {
  /// Returns one remark per attribute of the hop's destination, by entity and name.
  static func remarks(on model: ManagedObjectModel, hop: String) -> [HopdError] {
    model.entities.flatMap { entity in
      entity.attributes.compactMap { attribute in
        guard let pattern = attribute.regularExpression, !pattern.isEmpty else { return nil }
        do throws(HopdError) {
          _ = try RegularPattern(pattern)
          return nil
        } catch {
          return HopdError(
            .patternNotChecked,
            "values are not checked against the attribute's regular expression, which hopd cannot read",
            at: Place(hop: hop, entity: entity.name, property: attribute.name), cause: error,
            hint: "write a simpler pattern to have it checked here; the app checks it when it saves such an object")
        }
      }
    }
  }
}
