// Adds `$source` to values of mapping models that begin with a bare key, with a remark for each.

import Diagnostics
import Expressions
import ManagedObjectModel
import SystemPackage

extension ExplicitMapping {
  /// Returns a copy with `$source` before every bare key path, and a remark for each.
  func namingSources(_ source: ManagedObjectModel) -> (mapping: ExplicitMapping, remarks: [HopdError]) {
    var remarks: [HopdError] = []
    let entities = entityMappings.map { $0.namingSources(source, &remarks, file: path) }
    return (replacing(entities), remarks)
  }
}

extension ExplicitEntityMapping {
  fileprivate func namingSources(
    _ source: ManagedObjectModel, _ remarks: inout [HopdError], file: FilePath
  ) -> ExplicitEntityMapping {
    /// Returns one part of the mapping with `$source` before its bare key paths: a property, or the grouping (nil).
    func named<Part>(_ property: String?, _ mapping: ((ExpressionNode) -> ExpressionNode) -> Part) -> Part {
      var paths = BareKeyPaths(model: source, source: self.source)
      let part = mapping { paths.named($0) }
      remarks += paths.found.map { path in
        HopdError(
          .mappingRemark,
          "the value “\(path)” is read as “$source.\(path)”: no document says what a key alone is a property of",
          at: Place(file: file, entity: destination ?? self.source, property: property),
          hint: "write $source.\(path)")
      }
      return part
    }
    var copy = self
    copy.grouping = named(nil) { grouping.mappingExpressions($0) }
    copy.attributes = attributes.map { property in named(property.name) { property.mappingExpressions($0) } }
    copy.relationships = relationships.map { property in named(property.name) { property.mappingExpressions($0) } }
    return copy
  }
}
